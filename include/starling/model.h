// Models in files: what they are, and copies of them in other programs' formats.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "starling/error.h"

STARLING_NAMESPACE_BEGIN

struct Direction {
  std::string source, target;  // codes of languages, such as en and pt-BR
};

struct ModelInfo {
  std::string directory;                              // of the model itself, if the path was that of a run
  std::string architecture;                           // "transformer" or "gnmt"
  std::int64_t step = 0;                              // updates of training
  bool quantized = false;                             // its weights are 8-bit integers
  std::vector<Direction> directions;                  // empty if the model does not say its languages
  std::int64_t source_pieces = 0, target_pieces = 0;  // sizes of the vocabularies
  bool reads_source_end = true;                       // the model reads an end of sentence behind each source
  std::string unknown_token, end_token;               // of the target vocabulary: "<unk>", "</s>"
};

/// Returns what a path holds: a run directory (its best model), a checkpoint, a model directory, or a model of another program
/// (docs/guides/import.md), which is imported into the user's cache. Throws Error.
STARLING_API ModelInfo describe_model(const std::string& path);

/// Writes a model as another program reads it: ctranslate2, argos, marian, bergamot or huggingface (docs/guides/import.md). `int8`:
/// matrices as 8-bit integers. Throws Error, also if `output` exists.
STARLING_API void export_model(const std::string& path, const std::string& format, const std::string& output, bool int8 = false);

STARLING_NAMESPACE_END
