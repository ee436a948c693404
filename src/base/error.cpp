#include "base/error.h"

namespace starling::detail {

void check_failed(const char* file, int line, const char* condition, const std::string& message) {
  throw InternalError(fmt::format("{}:{}: CHECK({}) failed: {}. This is a defect in Starling; please report it with the command line.",
                                  file, line, condition, message));
}

}  // namespace starling::detail
