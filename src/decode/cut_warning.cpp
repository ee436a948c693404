#include "decode/cut_warning.h"

#include <fmt/format.h>

#include "base/counted.h"

namespace starling {

std::string cut_warning(const Translator& translator, int64_t asked, const char* remedy) {
  const int64_t lines = translator.truncated(), read = translator.most_source_tokens();
  if (lines == 0) return "";
  const std::string cut = fmt::format("warning: {} {} cut at {} source tokens", counted(lines, "sentence"), lines == 1 ? "was" : "were",
                                      translator.most_text_tokens());
  return read < asked ? fmt::format("{}, since the model has {} positions; {}\n", cut, read + 1, remedy)
                      : cut + "; raise --max-source-tokens\n";
}

}  // namespace starling
