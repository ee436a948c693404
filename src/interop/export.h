// `starling export`: models of ours in the formats of other programs.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "base/files.h"
#include "config/words.h"
#include "text/languages.h"

namespace starling {

enum class ExportFormat : uint8_t { ctranslate2, argos, marian, bergamot, huggingface };
constexpr auto words(ExportFormat) { return std::array{"ctranslate2", "argos", "marian", "bergamot", "huggingface"}; }

struct ExportOptions {
  std::string model, output;
  ExportFormat to = ExportFormat::marian;
  bool integers = false;  // 8-bit matrices
  Languages languages;    // in place of the model's, if given
};

// Writes a directory of files, or for Argos one archive, which must not exist. Returns what the user should know, a line each. Throws
// ConfigError saying what the format cannot hold, and what to train instead.
std::vector<std::string> export_model(FileSystem& files, const ExportOptions& options);

}  // namespace starling
