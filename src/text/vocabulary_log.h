// Parses the log of SentencePiece's trainer to estimate its progress, which it does not report in any other way.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace starling {

class TrainerLog {
 public:
  /// `vocabulary_size` is the number of pieces requested.
  explicit TrainerLog(int64_t vocabulary_size) : wanted_(vocabulary_size) {}

  /// Takes the next bytes of the log; lines may be split anywhere.
  void add(std::string_view bytes);

  /// What the trainer is doing now, in words.
  const std::string& stage() const { return stage_; }
  /// Share of the countable part (rounds of expectation maximisation, or merges) that is done; -1 before it begins.
  double fraction() const { return fraction_; }
  /// Returns the last error output (lines that are not LOG(INFO)), joined into one line.
  std::string errors() const;

 private:
  void line(std::string_view line);
  void round(double candidates);

  int64_t wanted_;
  std::string rest_, errors_;
  std::string stage_ = "SentencePiece reads the sample";
  double fraction_ = -1;
  double first_ = 0;  // candidates after the first round
};

}  // namespace starling
