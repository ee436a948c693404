#include "decode/terms.h"

#include <algorithm>

#include "base/error.h"

namespace starling {

constexpr int32_t kRoots = 2;

Terms::Terms(const std::vector<std::vector<Spelling>>& terms, std::shared_ptr<const PieceShapes> shapes)
    : shapes_(std::move(shapes)), nodes_(kRoots) {
  CHECK(!terms.empty() && terms.size() <= kMost, "{} terms", terms.size());
  for (size_t term = 0; term < terms.size(); ++term) {
    const uint32_t bit = uint32_t{1} << term;
    int64_t longest = 0;
    for (const Spelling& spelling : terms[term]) {
      CHECK(!spelling.tokens.empty(), "a spelling without tokens");
      int32_t node = spelling.inner && !spelling.loose ? 1 : 0;
      nodes_[static_cast<size_t>(node)].below |= bit;
      for (const int32_t token : spelling.tokens) {
        int32_t next = child(node, token);
        if (next < 0) {
          next = static_cast<int32_t>(nodes_.size());
          nodes_[static_cast<size_t>(node)].children.emplace_back(token, next);
          const int32_t depth = nodes_[static_cast<size_t>(node)].depth + 1;
          nodes_.emplace_back().depth = depth;
        }
        node = next;
        nodes_[static_cast<size_t>(node)].below |= bit;
      }
      Node& end = nodes_[static_cast<size_t>(node)];
      end.ends.push_back(static_cast<int32_t>(term));
      end.loose = end.loose || spelling.loose;
      longest = std::max<int64_t>(longest, end.depth);
    }
    CHECK(longest > 0, "a term without spellings");
    all_ |= bit;
    longest_.push_back(longest);
    longest_sum_ += longest;
  }
}

int32_t Terms::child(int32_t node, int32_t token) const {
  for (const auto& [t, next] : nodes_[static_cast<size_t>(node)].children)
    if (t == token) return next;
  return -1;
}

Terms::State Terms::after(State s, int32_t token) const {
  const auto t = static_cast<size_t>(token);
  if (s.last >= 0 && shapes_->continues[t]) s.met &= ~(uint32_t{1} << s.last);
  s.last = -1;
  int32_t next = s.node >= kRoots ? child(s.node, token) : -1;
  if (next < 0) next = child(0, token);
  if (next < 0 && s.opened) next = child(1, token);
  s.node = std::max(next, 0);
  for (const int32_t term : nodes_[static_cast<size_t>(s.node)].ends) {
    if (s.met >> term & 1) continue;
    s.met |= uint32_t{1} << term;
    if (!nodes_[static_cast<size_t>(s.node)].loose) s.last = term;
    break;
  }
  s.opened = shapes_->opens[t];
  s.number = !shapes_->counts.empty() && shapes_->counts[t];
  return s;
}

void Terms::append_next(const State& s, std::vector<int32_t>& tokens) const {
  const auto append = [&](int32_t node) {
    const size_t before = tokens.size();
    for (const auto& [token, next] : nodes_[static_cast<size_t>(node)].children)
      if (nodes_[static_cast<size_t>(next)].below & ~s.met) tokens.push_back(token);
    return tokens.size() > before;
  };
  if (s.node >= kRoots && append(s.node)) return;
  append(0);
  if (s.opened) append(1);
}

int64_t Terms::progress(const State& s) const {
  int64_t sum = 0;
  for (size_t term = 0; term < longest_.size(); ++term)
    if (s.met >> term & 1) sum += longest_[term];
  if (s.node < kRoots) return sum;
  const Node& node = nodes_[static_cast<size_t>(s.node)];
  for (const auto& [token, next] : node.children)
    if (nodes_[static_cast<size_t>(next)].below & ~s.met) return sum + node.depth;
  return sum;
}

}  // namespace starling
