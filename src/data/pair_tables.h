// Pairs of sentences in files that other programs keep them in: translation memories (TMX) and tables (CSV). They are read as lines of a
// source, a tab and a target.
#pragma once

#include <string>

#include "data/corpus.h"
#include "data/line_reader.h"

namespace starling {

/// Returns whether a file is a translation memory, by its name: .tmx, or .tmx.gz and so on.
bool is_memory(const std::string& path);
/// Returns whether a file is a table of comma-separated values, by its name.
bool is_csv(const std::string& path);

/// Opens the tsv of a corpus, whatever it is. Of a memory the units that have both languages are lines, in order. A first line of a CSV
/// table that names its columns ("source,target", or the corpus's languages) is left out. Throws what LineReader does, and ConfigError for
/// a memory without the languages to take from it.
LineReader open_pairs(const CorpusFiles& files);

}  // namespace starling
