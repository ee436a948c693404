// Files that stand where a model's file should be: pointers of Git LFS, web pages that a download was answered with.
#pragma once

#include <string>
#include <string_view>

namespace starling {

// Throws DataError, beginning with `where`, if a file begins as one of these does.
void refuse_stand_in(std::string_view begin, const std::string& where);

}  // namespace starling
