// The HMM of word alignment (Vogel, Ney and Tillmann 1996): target words come one after another, and the source word that each is linked to
// depends on how far it is from that of the word before, the width of the jump. With the empty word of Och and Ney (2003): a target word
// that is linked to nothing leaves the position where it was. Forward and backward sums are scaled at each target word, so nothing
// underflows.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace starling {

constexpr int64_t kWidestJump = 50;                                               // wider ones count as this wide
using JumpWidths = std::array<double, static_cast<size_t>(2 * kWidestJump + 1)>;  // by width, from -kWidestJump

// Returns where a width is in JumpWidths.
inline size_t jump_place(int64_t width) { return static_cast<size_t>(std::clamp(width, -kWidestJump, kWidestJump) + kWidestJump); }

// Expected numbers of jumps: [0] from one source word to the next, [1] from before the sentence, as from position 0, to its first.
struct JumpCounts {
  std::array<JumpWidths, 2> jumps{};
  std::array<JumpWidths, 2> chances{};  // how many there would be if every width had the weight 1
  void add(const JumpCounts& other);
};

// How probable jumps are: from i' to position i of n in proportion to the weight of i - i', mixed with a uniform part.
struct JumpDistribution {
  static constexpr double kUniform = 0.2;
  JumpDistribution();                 // every jump is as probable
  std::array<JumpWidths, 2> weights;  // the largest is 1; indices as in JumpCounts
  // Takes the weights from the counts, so that those are more likely. Dividing by the chances makes up for positions that short sentences
  // lack and that all share the widest jumps: it is the step that minorises the likelihood, whose terms log(sum of weights) are replaced by
  // their tangents.
  void maximize(const JumpCounts& counts);
};

// Posteriors of the links of one sentence pair.
class HmmLattice {
 public:
  // At the beginning of a target sentence, for `S` source words. `jumps` must live as long.
  HmmLattice(const JumpDistribution& jumps, double null_probability, size_t S);
  // Takes the next target words: for each a row of S + 1 probabilities of it, given the null word and each source word. What comes later is
  // not known to them, what came before is. Adds to `counts`, if there are any. Takes time in proportion to the rows' size times the
  // smaller of S and 2 kWidestJump, and memory of 16 bytes for each number of the rows.
  void take(std::span<const double> emissions, JumpCounts* counts);
  // Of a word last taken: the posteriors of the null word and of each source word.
  std::span<const double> posteriors(size_t row) const { return std::span(posteriors_).subspan(row * states_, states_); }
  // The probability of a word last taken, given all before.
  double probability(size_t row) const { return scales_[row]; }

 private:
  void forward(std::span<const double> emissions, size_t row);
  void backward(std::span<const double> emissions, size_t row, bool counting);

  const JumpDistribution& jumps_;
  const double null_;
  const size_t states_;                      // S + 1: the position that was linked last, 0 at the beginning
  JumpWidths mirrored_;                      // weights by the width backwards
  std::vector<double> inverse_;              // of the sum of the weights of all jumps from a position
  std::vector<double> before_;               // rows: the probability of each position before a word, given the words before
  std::vector<double> posteriors_, scales_;  // rows; one a row
  std::vector<double> beta_, next_, spread_, weighted_, occupied_;
  std::array<JumpWidths, 2> found_;  // jumps, without the factor of their weight
};

}  // namespace starling
