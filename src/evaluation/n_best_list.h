// N-best lists as Moses, Marian and `starling translate` write them: lines of number ||| text ||| features ||| score, numbers from 0, where
// further fields (an alignment, scores of words) may stand between.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace starling {

struct NBestEntry {
  int64_t sentence = 0;  // number of the source
  std::string text;
  std::vector<std::string> fields;  // all, as they stand in the line, without the bars
};

/// Reads a line of a list. Its text is what stands between the number and the features, alignments and score, which are counted from the
/// end, so it may have bars itself. Throws DataError, without a place, unless it has a number and a text.
NBestEntry parse_n_best(std::string_view line);

/// Returns the line with a feature more, NAME= value, behind those that it has: those of its last field but one, as in Marian's rescorer.
std::string with_feature(const NBestEntry& entry, const std::string& name, double value);

}  // namespace starling
