// Opens files for their translation, whatever their format.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "units/unit.h"

namespace starling {

/// Opens a file of a format of file_format(). Throws DataError for a broken file, and for an archive with more than `most_unpacked` bytes
/// of text and tags.
std::unique_ptr<UnitFile> open_unit_file(std::string_view format, std::string bytes, const Languages& languages,
                                         uint64_t most_unpacked = uint64_t{512} << 20);

}  // namespace starling
