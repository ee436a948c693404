// Translation edit rate as defined by the search of the tool Tercom (Snover et al., 2006): insertions, deletions and substitutions in a
// band around the diagonal, preceded by greedy shifts of word sequences, each of which costs one edit. The shifts are a heuristic, so equal
// scores require an equal search: the order of candidates, the ranking and the limits below are those of sacreBLEU. A row of the edit
// matrix depends only on the prefix of the hypothesis, so a candidate shift is evaluated from the first word that it moves.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "metrics/metrics.h"
#include "metrics/metrics_common.h"
#include "metrics/western_tokenizer.h"
#include "text/unicode.h"

namespace starling {

namespace {

constexpr int kMaxShiftLength = 10;        // words
constexpr int kMaxShiftDistance = 50;      // positions between the two places
constexpr int kBand = 25;                  // columns on each side of the diagonal
constexpr int kMaxShiftCandidates = 1000;  // per sentence
constexpr int kUnreached = 1 << 29;        // cost of a cell outside of the band

using Words = std::vector<std::uint32_t>;
using WordSpan = std::span<const std::uint32_t>;

// How a cell was reached: by advancing in the hypothesis (rows), in the reference (columns) or, by match and substitute, in both.
enum class Edit : std::uint8_t { unknown, match, substitute, hypothesis_only, reference_only };

struct Cell {
  int cost = kUnreached;
  Edit edit = Edit::unknown;
};

// The edit matrix between hypotheses of one length and the reference; row i ends after i hypothesis words.
class EditMatrix {
 public:
  EditMatrix(WordSpan reference, int rows) : reference_(reference), rows_(rows), columns_(static_cast<int>(reference.size()) + 1) {
    cells_.resize(static_cast<std::size_t>(rows_ + 1) * columns_);
    for (int j = 0; j < columns_; ++j) at(0, j) = {j, Edit::reference_only};
    ratio_ = rows_ > 0 ? static_cast<double>(reference.size()) / rows_ : 1.0;
    // The band must overlap with that of the previous row even if the lengths differ greatly.
    band_ = kBand < ratio_ / 2 ? static_cast<int>(std::ceil(ratio_ / 2 + kBand)) : kBand;
  }

  /// Computes the rows after the first `valid_rows`, which are computed already, and returns the edit distance.
  int fill(WordSpan hypothesis, int valid_rows) {
    for (int i = valid_rows + 1; i <= rows_; ++i) fill_row(i, hypothesis[i - 1]);
    return at(rows_, columns_ - 1).cost;
  }

  /// Copies row `i` from a matrix of the same shape.
  void copy_row(const EditMatrix& other, int i) {
    const auto begin = other.cells_.begin() + static_cast<std::ptrdiff_t>(i) * columns_;
    std::copy(begin, begin + columns_, cells_.begin() + static_cast<std::ptrdiff_t>(i) * columns_);
  }

  const Cell& at(int i, int j) const { return cells_[static_cast<std::size_t>(i) * columns_ + j]; }
  int rows() const { return rows_; }
  int columns() const { return columns_; }

 private:
  Cell& at(int i, int j) { return cells_[static_cast<std::size_t>(i) * columns_ + j]; }

  void fill_row(int i, std::uint32_t word) {
    const int diagonal = static_cast<int>(std::floor(i * ratio_));
    const int begin = std::max(0, diagonal - band_);
    const int end = i == rows_ ? columns_ : std::min(columns_, diagonal + band_);
    for (int j = 0; j < columns_; ++j) at(i, j) = {};
    for (int j = begin; j < end; ++j) at(i, j) = best_cell(i, j, word);
  }

  // Among equal costs, prefers a match or substitution, then a hypothesis word alone, then a reference word alone.
  Cell best_cell(int i, int j, std::uint32_t word) const {
    if (j == 0) return {at(i - 1, 0).cost + 1, Edit::hypothesis_only};
    const bool same = word == reference_[j - 1];
    Cell best;
    const auto offer = [&best](int cost, Edit edit) {
      if (cost < best.cost) best = {cost, edit};
    };
    offer(at(i - 1, j - 1).cost + (same ? 0 : 1), same ? Edit::match : Edit::substitute);
    offer(at(i - 1, j).cost + 1, Edit::hypothesis_only);
    offer(at(i, j - 1).cost + 1, Edit::reference_only);
    return best;
  }

  WordSpan reference_;
  int rows_, columns_, band_;
  double ratio_;
  std::vector<Cell> cells_;
};

// Which words are wrong, and the position of each reference word in the hypothesis; for a missing word, that of the hypothesis word before
// it (-1: before the first).
struct Alignment {
  std::vector<int> hypothesis_position;                         // by reference word
  std::vector<std::uint8_t> hypothesis_wrong, reference_wrong;  // by word
};

std::vector<Edit> edits_in_order(const EditMatrix& matrix) {
  std::vector<Edit> edits;
  int i = matrix.rows(), j = matrix.columns() - 1;
  while (i > 0 || j > 0) {
    const Edit edit = matrix.at(i, j).edit;
    CHECK(edit != Edit::unknown, "TER left its band at {}, {}", i, j);
    edits.push_back(edit);
    if (edit != Edit::reference_only) --i;
    if (edit != Edit::hypothesis_only) --j;
  }
  return {edits.rbegin(), edits.rend()};
}

Alignment align(const EditMatrix& matrix) {
  Alignment alignment;
  int hypothesis = -1;
  for (const Edit edit : edits_in_order(matrix)) {
    const bool wrong = edit != Edit::match;
    if (edit != Edit::reference_only) {
      ++hypothesis;
      alignment.hypothesis_wrong.push_back(wrong);
    }
    if (edit != Edit::hypothesis_only) {
      alignment.hypothesis_position.push_back(hypothesis);
      alignment.reference_wrong.push_back(wrong);
    }
  }
  return alignment;
}

// Moves words [start, start + length) before the word that was at `target`; a target inside the range moves them by its distance from
// `start`.
Words shifted(WordSpan words, int start, int length, int target) {
  const auto piece = [&](int begin, int end) { return words.subspan(begin, std::max(0, std::min<int>(end, words.size()) - begin)); };
  const int n = static_cast<int>(words.size());
  Words out;
  out.reserve(words.size());
  const auto append = [&out](WordSpan part) { out.insert(out.end(), part.begin(), part.end()); };
  if (target < start) {
    append(piece(0, target));
    append(piece(start, start + length));
    append(piece(target, start));
    append(piece(start + length, n));
    return out;
  }
  const int end = std::min(n, target > start + length ? target : target + length);
  append(piece(0, start));
  append(piece(start + length, end));
  append(piece(start, start + length));
  append(piece(end, n));
  return out;
}

// The rank of a shift, by decreasing importance: edits saved, length, earliest origin, earliest target.
using Rank = std::tuple<int, int, int, int>;

struct Shift {
  Rank rank;
  Words words;  // after the shift; empty when there is no candidate

  /// Returns what was in the order of the words before the shift in that of those after it.
  Words apply(WordSpan before) const { return shifted(before, -std::get<2>(rank), std::get<1>(rank), -std::get<3>(rank)); }
};

// One round of the search for the best shift of the current words.
class ShiftSearch {
 public:
  ShiftSearch(WordSpan words, WordSpan reference, const EditMatrix& matrix, EditMatrix& scratch, int& candidates)
      : words_(words), reference_(reference), matrix_(matrix), scratch_(scratch), candidates_(candidates), alignment_(align(matrix)) {
    distance_ = matrix.at(matrix.rows(), matrix.columns() - 1).cost;
    for (int i = 1; i <= matrix.rows(); ++i) scratch_.copy_row(matrix, i);
  }

  Shift best() {
    const int H = static_cast<int>(words_.size()), R = static_cast<int>(reference_.size());
    for (int h = 0; h < H; ++h) {
      for (int r = std::max(0, h - kMaxShiftDistance); r < std::min(R, h + kMaxShiftDistance + 1); ++r) {
        const int longest = std::min({kMaxShiftLength, H - h, R - r});
        for (int length = 1; length <= longest && words_[h + length - 1] == reference_[r + length - 1]; ++length) {
          if (!worth_trying(h, r, length)) continue;
          try_targets(h, r, length);
          if (candidates_ >= kMaxShiftCandidates) return std::move(best_);
        }
      }
    }
    return std::move(best_);
  }

 private:
  static bool any(const std::vector<std::uint8_t>& flags, int begin, int length) {
    for (int i = begin; i < begin + length; ++i) {
      if (flags[i]) return true;
    }
    return false;
  }

  // Both ranges must contain an error, and the target must lie outside the moved words.
  bool worth_trying(int h, int r, int length) const {
    if (!any(alignment_.hypothesis_wrong, h, length) || !any(alignment_.reference_wrong, r, length)) return false;
    const int target = alignment_.hypothesis_position[r];
    return !(h <= target && target < h + length);
  }

  // The targets are the positions after the hypothesis words aligned to the reference word before the match and to each word in it.
  void try_targets(int h, int r, int length) {
    int previous = -1;
    for (int position = r - 1; position < r + length; ++position) {
      const int target = position < 0 ? 0 : alignment_.hypothesis_position[position] + 1;
      if (target == previous) continue;
      previous = target;
      evaluate(h, length, target);
    }
  }

  void evaluate(int h, int length, int target) {
    Words candidate = shifted(words_, h, length, target);
    const int unchanged = std::min(h, target);
    const int saved = distance_ - distance_from(candidate, unchanged);
    ++candidates_;
    const Rank rank{saved, length, -h, -target};
    if (best_.words.empty() || rank > best_.rank) best_ = {rank, std::move(candidate)};
  }

  // Rows up to `unchanged` equal those of the current words; rows that an earlier candidate overwrote are restored first.
  int distance_from(const Words& candidate, int unchanged) {
    for (int i = first_dirty_; i <= unchanged; ++i) scratch_.copy_row(matrix_, i);
    first_dirty_ = unchanged + 1;
    return scratch_.fill(candidate, unchanged);
  }

  WordSpan words_, reference_;
  const EditMatrix& matrix_;
  EditMatrix& scratch_;
  int& candidates_;
  Alignment alignment_;
  int distance_ = 0;
  int first_dirty_ = 1;  // rows of the scratch matrix from here on may belong to an earlier candidate
  Shift best_;
};

Words numbered(const std::vector<std::string_view>& words, std::unordered_map<std::string_view, std::uint32_t>& numbers) {
  Words out;
  out.reserve(words.size());
  for (const std::string_view word : words) {
    const auto next = static_cast<std::uint32_t>(numbers.size());
    out.push_back(numbers.try_emplace(word, next).first->second);
  }
  return out;
}

std::string prepared(const std::string& sentence, const TerOptions& options) {
  std::string text = to_lower_utf8(sentence);
  return options.normalized ? detail::normalize_for_ter(std::move(text), options.asian_support) : text;
}

// A hypothesis after all shifts that the search finds.
struct ShiftedHypothesis {
  Words places;  // by word: its position before the shifts
  EditMatrix matrix;
  int shifts = 0, distance = 0;
};

ShiftedHypothesis shift_all(WordSpan hypothesis, WordSpan reference) {
  Words words(hypothesis.begin(), hypothesis.end());
  ShiftedHypothesis all{Words(words.size()), EditMatrix(reference, static_cast<int>(words.size()))};
  std::iota(all.places.begin(), all.places.end(), 0);
  EditMatrix scratch = all.matrix;
  int candidates = 0;
  all.distance = all.matrix.fill(words, 0);
  while (true) {
    Shift shift = ShiftSearch(words, reference, all.matrix, scratch, candidates).best();
    // A round that exhausts the candidates does not count, as in sacreBLEU.
    if (candidates >= kMaxShiftCandidates || shift.words.empty() || std::get<0>(shift.rank) <= 0) break;
    ++all.shifts;
    all.places = shift.apply(all.places);
    words = std::move(shift.words);
    all.distance = all.matrix.fill(words, 0);
  }
  return all;
}

}  // namespace

std::int64_t translation_edits(std::span<const std::uint32_t> hypothesis, std::span<const std::uint32_t> reference) {
  if (reference.empty()) return static_cast<std::int64_t>(hypothesis.size());
  const ShiftedHypothesis all = shift_all(hypothesis, reference);
  return all.shifts + all.distance;
}

std::vector<bool> matched_words(std::span<const std::uint32_t> hypothesis, std::span<const std::uint32_t> reference) {
  std::vector<bool> matched(hypothesis.size(), false);
  if (reference.empty()) return matched;
  const ShiftedHypothesis all = shift_all(hypothesis, reference);
  const std::vector<std::uint8_t> wrong = align(all.matrix).hypothesis_wrong;
  for (std::size_t i = 0; i < wrong.size(); ++i) matched[all.places[i]] = wrong[i] == 0;
  return matched;
}

// Stores two whole numbers per sentence: the fewest edits over the references, and the words of all references, whose mean is the
// denominator.
CountedMetric detail::count_ter(Sentences hypotheses, const ReferenceLists& references, const TerOptions& options) {
  check_corpus(hypotheses, references);
  CountedMetric counted{.width = 2};
  for (std::size_t i = 0; i < hypotheses.size(); ++i) {
    std::unordered_map<std::string_view, std::uint32_t> numbers;
    const std::string hypothesis = prepared(hypotheses[i], options);
    const Words hypothesis_words = numbered(split_on_space(hypothesis), numbers);
    std::int64_t fewest = std::numeric_limits<std::int64_t>::max(), words = 0;
    std::vector<std::string> texts(references.size());  // the map's keys point into them
    for (std::size_t r = 0; r < references.size(); ++r) {
      texts[r] = prepared(references[r][i], options);
      const Words reference = numbered(split_on_space(texts[r]), numbers);
      fewest = std::min(fewest, translation_edits(hypothesis_words, reference));
      words += static_cast<std::int64_t>(reference.size());
    }
    counted.counts.insert(counted.counts.end(), {static_cast<double>(fewest), static_cast<double>(words)});
  }
  counted.score = [lists = static_cast<double>(references.size())](std::span<const double> sums) {
    if (sums[1] == 0) return sums[0] > 0 ? 100.0 : 0.0;
    return 100 * (sums[0] / (sums[1] / lists));
  };
  counted.corpus = {"TER", counted.score(counted.sums()),
                    fmt::format("nrefs:{}|case:lc|tok:tercom|norm:{}|punct:yes|asian:{}|{}", references.size(),
                                options.normalized ? "yes" : "no", options.asian_support ? "yes" : "no", version_part()),
                    ""};
  return counted;
}

}  // namespace starling
