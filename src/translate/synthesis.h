// Synthetic parallel text: lines and their translations by a model, for training another one. Any number of processes share the work
// (storage/shared_parts.h), and one that was killed costs the part that it was at. What is written depends on lines, model and options
// alone, as far as the processes compute alike (device and precision).
#pragma once

#include "translate/translate_files.h"

namespace starling {

struct SynthesisOptions {
  TranslateOptions translate;  // of lines; its output is the directory
  bool forward = false;        // pairs are a line and its translation, as a student learns them; else a translation and its line
  int64_t part_lines = 5000;   // that a process takes at a time
};

// Makes the directory:
//
//   text.tsv.zst    the pairs, source <tab> target, in the order of the lines; data.train reads it
//   scores.zst      for each pair the mean log-probability of its translation's tokens, nats; data.train.N.scores reads it
//   synthesis.json  counts
//
// Left out are blank lines, lines of more tokens than the model may read, and translations that are blank or reached the length limit.
// Returns when all of it is there, also what other processes make. Throws ConfigError for what cannot be done, and DataError (file:line)
// for a line that is no text, before anything is translated.
void synthesize(FileSystem& files, const SynthesisOptions& options, const TranslateSurroundings& surroundings);

}  // namespace starling
