#include "base/system_reason.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>

namespace starling {
namespace {

std::string remedy(int error) {
  switch (error) {
    case EACCES:
    case EPERM:
      return "; check the permissions, or choose another directory";
    case ENOENT:
    case ENOTDIR:
      return "; check the path";
    case EROFS:
      return "; the file system is read-only: choose another directory";
    case ENOSPC:
    case EDQUOT:
      return "; the disk or the quota is used up: free some space or choose another directory";
    case EMFILE:
    case ENFILE:
      return "; too many files are open: raise the limit (ulimit -n)";
    case EFBIG: {
      rlimit limit{};
      if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return "; the file system has no room for a file so large";
      return fmt::format("; files of this process may have {} bytes: raise the limit (ulimit -f)", limit.rlim_cur);
    }
    default:
      return "";
  }
}

}  // namespace

std::string system_reason(int error) { return error == 0 ? "for an unknown reason" : std::strerror(error) + remedy(error); }

}  // namespace starling
