#include "interop/stand_ins.h"

#include <algorithm>
#include <array>

#include "base/ascii.h"
#include "base/error.h"

namespace starling {

void refuse_stand_in(std::string_view begin, const std::string& where) {
  if (begin.starts_with("version https://git-lfs.github.com/spec/"))
    throw DataError(
        fmt::format("{}: a pointer of Git LFS, not the file itself; run 'git lfs pull' in the repository that it comes from", where));
  constexpr size_t kTag = 15;
  begin.remove_prefix(std::min(begin.find_first_not_of(" \t\r\n\xef\xbb\xbf"), begin.size()));
  std::string tag(begin.substr(0, kTag));
  std::transform(tag.begin(), tag.end(), tag.begin(), ascii_lower);
  if (tag.starts_with("<!doctype html") || tag.starts_with("<html"))
    throw DataError(fmt::format(
        "{}: a web page, not the file itself; the server answered the download with an error or a login page, so fetch it again", where));
  if (begin.starts_with("Entry not found") && begin.size() < 2 * kTag)
    throw DataError(fmt::format("{}: says 'Entry not found', so the server had no such file; fetch it from the right address", where));
}

}  // namespace starling
