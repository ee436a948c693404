// Terms that a translation must contain (lexical constraints): which of them a hypothesis has, followed token by token. A term has one or
// several spellings, each a sequence of tokens, and one of them must be there as whole words. The beam is divided among hypotheses by how
// much of the terms they have (search_terms.cpp): dynamic beam allocation, Post and Vilar, NAACL 2018.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace starling {

// What the pieces of a vocabulary mean for the limits of words, by token.
struct PieceShapes {
  std::vector<bool> continues;  // begins with a letter or digit and without a space
  std::vector<bool> opens;      // ends with something other than a letter or digit, so that a word may follow it without a space
  std::vector<bool> ends;       // ends with a mark that ends sentences; empty: none does
  std::vector<bool> counts;     // ends with a digit, after which a mark of `ends` ends nothing; empty: none does
};

class Terms {
 public:
  struct Spelling {
    std::vector<int32_t> tokens;
    bool inner = false;  // begins without a space, so it stands behind a piece that opens
    bool loose = false;  // of a script without spaces: may stand anywhere
  };
  // What a hypothesis has of the terms.
  struct State {
    uint32_t met = 0;     // a bit for each term
    int32_t node = 0;     // of the tree of spellings
    int32_t last = -1;    // the term that ends with the last token, unless its word goes on
    bool opened = true;   // the last token opens
    bool number = false;  // the last token counts
  };
  static constexpr size_t kMost = 32;

  /// `terms` has the spellings of each, of one token at least; at most kMost terms.
  Terms(const std::vector<std::vector<Spelling>>& terms, std::shared_ptr<const PieceShapes> shapes);

  State after(State state, int32_t token) const;
  bool complete(const State& state) const { return state.met == all_; }
  int missing(const State& state) const { return __builtin_popcount(all_ & ~state.met); }
  /// Returns whether a token would end a sentence, in which case what still lacks terms would be said behind it.
  bool ends_too_early(const State& before, int32_t token) const {
    return before.met != all_ && !before.number && !shapes_->ends.empty() && shapes_->ends[static_cast<size_t>(token)];
  }
  /// Appends the tokens that bring a hypothesis nearer to the terms that it lacks: those that go on with a spelling that has begun, or else
  /// begin one.
  void append_next(const State& state, std::vector<int32_t>& tokens) const;
  /// Returns how many tokens of the terms a hypothesis has, each term counted by its longest spelling.
  int64_t progress(const State& state) const;
  /// The progress of a hypothesis that is complete.
  int64_t longest() const { return longest_sum_; }

 private:
  struct Node {
    std::vector<std::pair<int32_t, int32_t>> children;  // token and node
    std::vector<int32_t> ends;                          // terms
    uint32_t below = 0;                                 // terms that end here or further down
    int32_t depth = 0;
    bool loose = false;
  };
  int32_t child(int32_t node, int32_t token) const;

  std::shared_ptr<const PieceShapes> shapes_;
  std::vector<Node> nodes_;  // the first two are the roots: of usual spellings, and of inner ones
  std::vector<int64_t> longest_;
  uint32_t all_ = 0;
  int64_t longest_sum_ = 0;
};

}  // namespace starling
