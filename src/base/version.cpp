#include "base/version.h"

namespace starling {

const std::string_view kVersion = STARLING_VERSION;

}  // namespace starling
