#include "base/this_host.h"

#include <unistd.h>

namespace starling {

std::string this_host() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 && name[0] ? name : "unnamed";
}

}  // namespace starling
