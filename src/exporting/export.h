// `starling export`: models of ours in the formats of other programs.
#pragma once

#include <string>
#include <vector>

#include "base/files.h"
#include "models/portability.h"
#include "text/languages.h"

namespace starling {

struct ExportOptions {
  std::string model, output;
  Program to = Program::marian;
  bool integers = false;  // 8-bit matrices
  Languages languages;    // in place of the model's, if given
};

// Writes a directory of files, or for Argos one archive, which must not exist. Returns what the user should know, a line each. Throws
// ConfigError naming everything that keeps the model from the program, and what to train instead.
std::vector<std::string> export_model(FileSystem& files, const ExportOptions& options);

}  // namespace starling
