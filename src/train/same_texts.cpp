#include "train/same_texts.h"

#include <fmt/format.h>

#include <filesystem>

namespace starling {

bool same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  return !a.empty() && !b.empty() && std::filesystem::equivalent(a, b, error) && !error;
}

std::vector<std::string> same_texts(const Config& config) {
  std::vector<std::string> lines;
  const ValidConfig& valid = config.valid;
  for (const CorpusFiles& corpus : config.data.train) {
    if (same_file(corpus.source, corpus.target))
      lines.push_back(fmt::format("{} is source and target of the training text, so the model learns to copy", corpus.source));
    if (valid.enabled() && (same_file(valid.source, corpus.source) || same_file(valid.target, corpus.target)))
      lines.push_back(
          fmt::format("the validation text {} is training text too: its scores do not tell how the model translates anything else; keep "
                      "some lines apart",
                      same_file(valid.source, corpus.source) ? valid.source : valid.target));
  }
  if (valid.enabled() && same_file(valid.source, valid.target))
    lines.push_back(fmt::format("{} is source and target of the validation text", valid.source));
  return lines;
}

}  // namespace starling
