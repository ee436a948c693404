#include "text/composition.h"

#include <utf8proc.h>

#include <vector>

#include "base/error.h"
#include "base/utf8.h"

namespace starling {

bool begins_composition(char32_t c) {
  if (c < 0x300) return true;
  const utf8proc_category_t what = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  const bool mark = what >= UTF8PROC_CATEGORY_MN && what <= UTF8PROC_CATEGORY_ME;
  // Not U+11A7 between them, which utf8proc 2.8 loses behind a syllable.
  const bool within_syllable = (c >= 0x1161 && c <= 0x1175) || (c >= 0x11A8 && c <= 0x11C2);
  return !mark && !within_syllable;
}

std::string composed(std::string_view text) {
  constexpr auto kForm = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  // Three bytes become at most four code points.
  const auto size = static_cast<utf8proc_ssize_t>(text.size());
  std::vector<utf8proc_int32_t> all(2 * text.size());
  utf8proc_ssize_t count = utf8proc_decompose(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), size, all.data(), 2 * size, kForm);
  CHECK(count >= 0 && count <= 2 * size, "{} code points of {} bytes", count, size);
  count = utf8proc_normalize_utf32(all.data(), count, kForm);
  std::string out;
  for (utf8proc_ssize_t i = 0; i < count; ++i) append_utf8(out, static_cast<char32_t>(all[static_cast<size_t>(i)]));
  return out;
}

}  // namespace starling
