// The file model.bin of a CTranslate2 directory (github.com/OpenNMT/CTranslate2, src/models/model.cc), binary versions 1 to 6.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "interop/foreign_array.h"

namespace starling {

struct Ct2File {
  uint32_t version = 0, revision = 0;
  std::string spec;                            // "TransformerSpec", ...; empty in version 1
  std::map<std::string, ForeignArray> arrays;  // by their names of today; types "f4", "f2", "b2" (bf16), "i1", "i2", "i4"
  std::map<std::string, std::string> aliases;  // of arrays
  // The array of a name or an alias; null if there is none.
  const ForeignArray* find(const std::string& name) const;
  // A single number; `otherwise` if there is none.
  double number(const std::string& name, double otherwise) const;
};

bool is_ct2(std::string_view bytes);
// The arrays lie in `bytes`, which must outlive them. Throws DataError, beginning with `where`, for anything else.
Ct2File read_ct2(std::string_view bytes, const std::string& where);
Ct2File read_ct2(std::string&& bytes, const std::string& where) = delete;

}  // namespace starling
