#include "text/subword_sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/utf8.h"
#include "text/vocabulary_format.h"

namespace starling {
namespace {

constexpr std::string_view kSpace = "\xe2\x96\x81";  // U+2581, which SentencePiece writes for a space

}  // namespace

SubwordSampler::SubwordSampler(const Vocabulary& vocabulary, double alpha) : alpha_(alpha), bytes_(vocabulary.bytes()) {
  const auto settings = vocabulary_format::settings(bytes_);
  const std::string type = settings ? settings->type : "unigram";
  bpe_ = type == "bpe";
  if (!bpe_ && type != "unigram")
    throw ConfigError(
        fmt::format("data.subword-alpha needs a vocabulary of type unigram or bpe, this one is of type {}; set it to 0", type));
  if (!(alpha > 0) || (bpe_ && alpha > 1))
    throw ConfigError(fmt::format("data.subword-alpha is {:g}, but {}", alpha,
                                  bpe_ ? "with a BPE vocabulary it is the probability that a merge is left out; choose 0 to 1, e.g. 0.1"
                                       : "it must be above 0, e.g. 0.3"));
  for (const auto& piece : vocabulary_format::pieces(bytes_)) {
    if (piece.ordinary) {
      ids_.emplace(piece.text, static_cast<int32_t>(pieces_.size()));
      longest_ = std::max(longest_, piece.text.size());
    }
    pieces_.push_back({piece.text, piece.score, piece.ordinary});
  }
}

int32_t SubwordSampler::find(std::string_view text) const {
  const auto found = ids_.find(text);
  return found == ids_.end() ? -1 : found->second;
}

std::vector<int32_t> SubwordSampler::sample(std::span<const int32_t> ids, Random& random) const {
  std::vector<int32_t> sampled;
  std::string word;
  for (size_t i = 0; i < ids.size(); ++i) {
    const Piece& piece = pieces_.at(static_cast<size_t>(ids[i]));
    if (!piece.ordinary) {
      sampled.push_back(ids[i]);
      continue;
    }
    word = piece.text;
    size_t end = i + 1;
    for (; end < ids.size(); ++end) {
      const Piece& next = pieces_.at(static_cast<size_t>(ids[end]));
      if (!next.ordinary || next.text.starts_with(kSpace)) break;
      word += next.text;
    }
    const auto begin = static_cast<std::ptrdiff_t>(sampled.size());
    cut(word, random, sampled);
    if (std::find(sampled.begin() + begin, sampled.end(), -1) != sampled.end()) {  // a character without a piece of its own
      sampled.resize(static_cast<size_t>(begin));
      sampled.insert(sampled.end(), ids.begin() + static_cast<std::ptrdiff_t>(i), ids.begin() + static_cast<std::ptrdiff_t>(end));
    }
    i = end - 1;
  }
  return sampled;
}

std::vector<TokenRange> SubwordSampler::places(std::span<const int32_t> before, std::span<const int32_t> now) const {
  const auto bytes = [&](int32_t id) { return pieces_.at(static_cast<size_t>(id)).text.size(); };
  std::vector<TokenRange> places;
  size_t at = 0, end = now.empty() ? 0 : bytes(now[0]), from = 0;  // the token of now, where it ends, where that of before begins
  for (const int32_t id : before) {
    const size_t to = from + bytes(id);
    while (end <= from && at + 1 < now.size()) end += bytes(now[++at]);
    TokenRange& range = places.emplace_back(TokenRange{at, at});
    for (; end < to && at + 1 < now.size(); range.last = at) end += bytes(now[++at]);
    from = to;
  }
  return places;
}

void SubwordSampler::cut(std::string_view text, Random& random, std::vector<int32_t>& to) const {
  std::vector<size_t> ends{0};  // of characters
  for (size_t i = 1; i <= text.size(); ++i)
    if (i == text.size() || !is_continuation(text[i])) ends.push_back(i);
  if (bpe_)
    cut_bpe(text, ends, random, to);
  else
    cut_unigram(text, ends, random, to);
}

// Computes forward sums of the probabilities of all segmentations, then samples pieces from the end to the beginning.
void SubwordSampler::cut_unigram(std::string_view text, const std::vector<size_t>& ends, Random& random, std::vector<int32_t>& to) const {
  struct Arc {
    size_t from;
    int32_t id;
    double log_sum;  // over all segmentations up to its end that end with it
  };
  const size_t n = ends.size() - 1;
  std::vector<std::vector<Arc>> arcs(n + 1);  // by the character after which they end
  std::vector<double> log_sums(n + 1, -std::numeric_limits<double>::infinity());
  log_sums[0] = 0;
  for (size_t end = 1; end <= n; ++end) {
    double most = -std::numeric_limits<double>::infinity(), sum = 0;
    for (size_t from = end; from-- > 0 && ends[end] - ends[from] <= longest_;) {
      const int32_t id = find(text.substr(ends[from], ends[end] - ends[from]));
      if (id < 0 || std::isinf(log_sums[from])) continue;
      const double log_sum = log_sums[from] + alpha_ * static_cast<double>(pieces_[static_cast<size_t>(id)].score);
      arcs[end].push_back({from, id, log_sum});
      most = std::max(most, log_sum);
    }
    for (const Arc& arc : arcs[end]) sum += std::exp(arc.log_sum - most);
    if (sum > 0) log_sums[end] = most + std::log(sum);
  }
  const size_t begin = to.size();
  for (size_t at = n; at > 0;) {
    double left = random.uniform();
    const Arc* chosen = nullptr;
    for (const Arc& arc : arcs[at]) {
      chosen = &arc;
      left -= std::exp(arc.log_sum - log_sums[at]);
      if (left < 0) break;
    }
    CHECK(chosen, "no piece ends at byte {} of {}", ends[at], text);
    to.push_back(chosen->id);
    at = chosen->from;
  }
  std::reverse(to.begin() + static_cast<std::ptrdiff_t>(begin), to.end());
}

// Merges the neighbours with the best score, the leftmost if there are several, until no merge is left. A dropped merge is tried again only
// when one of the two symbols has changed.
void SubwordSampler::cut_bpe(std::string_view text, const std::vector<size_t>& ends, Random& random, std::vector<int32_t>& to) const {
  struct Symbol {
    size_t from, end;
    int32_t with_next;  // the piece that it forms with the next symbol; -1: none, or dropped
  };
  std::vector<Symbol> symbols;
  for (size_t i = 0; i + 1 < ends.size(); ++i) symbols.push_back({ends[i], ends[i + 1], -1});
  const auto look = [&](size_t i) {
    symbols[i].with_next = i + 1 < symbols.size() ? find(text.substr(symbols[i].from, symbols[i + 1].end - symbols[i].from)) : int32_t{-1};
  };
  const auto score = [&](const Symbol& symbol) { return pieces_[static_cast<size_t>(symbol.with_next)].score; };
  for (size_t i = 0; i < symbols.size(); ++i) look(i);
  while (true) {
    size_t best = symbols.size();
    for (size_t i = 0; i < symbols.size(); ++i)
      if (symbols[i].with_next >= 0 && (best == symbols.size() || score(symbols[i]) > score(symbols[best]))) best = i;
    if (best == symbols.size()) break;
    if (random.uniform() < alpha_) {
      symbols[best].with_next = -1;
      continue;
    }
    symbols[best].end = symbols[best + 1].end;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    look(best);
    if (best > 0) look(best - 1);
  }
  for (const Symbol& symbol : symbols) to.push_back(find(text.substr(symbol.from, symbol.end - symbol.from)));
}

}  // namespace starling
