// Parallel text as the user names it: pairs of files or one file with two tab-separated columns, with weights.
// The checking pass reads everything once before training starts, so that a defect on line 40,000,000 does not show up after a day.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/task_progress.h"
#include "data/line_reader.h"
#include "data/text_noise.h"
#include "text/links.h"

namespace starling {

constexpr const char* kAlignmentColumn = "column";

struct CorpusFiles {
  std::string source, target;                    // either both of these,
  std::string tsv;                               // or this: source <tab> target, or what open_pairs() reads
  double weight = 1;                             // how often an epoch shows a sentence of this corpus, on average
  std::vector<double> weights;                   // the same in each stage of a curriculum; empty: `weight` in all
  std::string source_language, target_language;  // codes; "": those of the whole text
  std::string tag;                               // pieces in front of each source, with spaces between them
  std::string sentence_weights;                  // a file with the loss weight of each pair, one a line; "": all 1
  std::string scores;                            // a file with a number for each pair, for cleaning; "": none
  std::vector<std::string> clean;                // options of its cleaning, "key=value", in place of those of all corpora
  // A file with the links of each pair, one line a pair; "": none; kAlignmentColumn: the third column of the tsv.
  std::string alignment;
  bool aligned_in_column() const;
  std::string name() const { return !tsv.empty() ? tsv : target.empty() ? source : source + " + " + target; }
};

struct DataOptions {
  std::vector<CorpusFiles> train;
  int64_t max_length = 256;    // tokens per side, end of sentence included; longer pairs are dropped
  double max_ratio = 0;        // longer side over shorter side in tokens, pairs above it are dropped; 0: off
  double subword_alpha = 0;    // alpha of the batches' SubwordSampler; 0: the stored tokens as they are
  std::vector<double> stages;  // target tokens of each stage of a curriculum but the last; empty: there is one stage
  AlignmentUnit alignment_unit = AlignmentUnit::words;  // of what the positions in links count
  NoiseShares noise;
  int64_t window_lines = 200000;  // of a text that is a stream: lines that are shuffled together
};

/// Returns whether a path is standard input ("-") or a named pipe.
bool is_pipe(const std::string& path);

/// Throws ConfigError unless these are two sides or a tsv, in files that can be read more than once (pipes cannot).
void require_files(const CorpusFiles& files);

/// Throws ConfigError for invalid options: no corpus, half a pair, weights or limits out of range, standard input or a pipe. streams:
/// a pipe is allowed as the tsv of the only corpus.
void check_options(const DataOptions& options, bool streams = false);

// Reads the sentence pairs of one corpus in order.
class PairReader {
 public:
  /// Opens the files; throws ConfigError, IoError or DataError.
  explicit PairReader(const CorpusFiles& files);

  /// From here on, lines are given as far as they go, for whoever judges them: see LineReader::mark_invalid_bytes(), and of a table a line
  /// after the first that has other columns is a source without a target.
  void take_damaged_lines();

  /// Gets the next pair, as views valid until the next call; returns false at the end. Throws DataError for everything LineReader refuses,
  /// for sides with unequal numbers of lines (naming both numbers) and for TSV lines without exactly two columns, or three with links.
  bool next(std::string_view& source, std::string_view& target);
  /// Returns the loss weight of the pair that next() returned; 1 without a file of them.
  float weight() const { return weight_; }
  /// Returns the line with the links of the pair that next() returned, valid as long; empty without a file or a column of them.
  std::string_view links() const { return links_line_; }

  int64_t line_number() const { return first_.line_number(); }
  uint64_t bytes_read() const {  // see LineReader
    const auto of = [](const std::optional<LineReader>& reader) { return reader ? reader->bytes_read() : 0; };
    return first_.bytes_read() + of(second_) + of(weights_) + of(links_);
  }

 private:
  bool next_columns(std::string_view& source, std::string_view& target);
  bool next_pair(std::string_view& source, std::string_view& target);
  [[noreturn]] void unequal_lines(bool first_longer);
  [[noreturn]] void unequal_facts(LineReader& facts);

  LineReader first_;
  std::optional<LineReader> second_, weights_, links_;
  bool column_;  // the links are in the third column
  bool takes_damaged_ = false;
  float weight_ = 1;
  std::string_view links_line_;
};

/// Gets the next weight of a file of them; returns false at its end. Throws DataError (file:line) for what is not a number from 0 to 10000.
bool next_weight(LineReader& file, float& weight);

/// Builds the error for sides with unequal numbers of lines; it begins with the last line of the shorter side.
DataError unequal_lines(const std::string& a, int64_t a_lines, const std::string& b, int64_t b_lines);

/// Returns what tells a file from a later state of it: its path, size and time of change. Throws IoError if there is none.
std::string facts_of_file(const std::string& path);

/// Returns the bytes of all files as they are on disk; a missing file counts as empty.
uint64_t corpus_bytes(const DataOptions& options);

/// Reads every corpus to its end, several files at a time, and returns the number of pairs in each; throws the first defect.
std::vector<int64_t> check_corpora(const DataOptions& options, int threads = 1, const Say& say = {});

enum class Side { source, target, both };

// The lines of all corpora in sequence (both: source, target, source, ...) as a LineSource for train_vocabulary: a call gets the next line,
// valid until the next call, or returns false at the end. Copies share one position. Throws like PairReader.
class CorpusLines {
 public:
  CorpusLines(const DataOptions& options, Side side);
  bool operator()(std::string_view& line) const;
  /// Returns the share of the text that has been read.
  double fraction() const;

 private:
  class LineWalk;
  std::shared_ptr<LineWalk> walk_;
  uint64_t bytes_;  // of all files
};

inline CorpusLines corpus_lines(const DataOptions& options, Side side) { return {options, side}; }

}  // namespace starling
