// The tags of a sentence form a tree of elements and single tags. Each element gets a run of units within its parent's run and disjoint
// from its siblings' runs; single tags and elements without units get a position. Then the units are written with the tags of the tree.
#include "document/markup.h"

#include <algorithm>

#include "document/html.h"
#include "document/target_units.h"

namespace starling {
namespace {

constexpr size_t kMostTags = 500;  // with more tags, a sentence just keeps them in order, which takes linear time

struct Node {
  int64_t open = -1, close = -1;  // tags; a single tag has no close
  Range source;
  UnitSpan units;
  std::vector<size_t> children = {};
};

class Writer {
 public:
  Writer(const MarkedSentence& sentence, const AlignedText& translation) : sentence_(sentence), has_links_(!translation.links.empty()) {
    units_ = target_units(sentence, translation);
    taken_.assign(units_.size(), false);
    build_tree();
    nodes_[0].units = {0, units_.size()};
    if (sentence.tags.size() > kMostTags)
      keep_order();
    else
      place(0);
  }

  AlignedText write() {
    write_children(nodes_[0]);
    write_units(units_.size());
    return {std::move(out_), std::move(links_)};
  }

 private:
  const MarkedSentence::Tag& tag(int64_t i) const { return sentence_.tags[static_cast<size_t>(i)]; }

  // Returns which tags belong to pairs; pairs that cross others do not count.
  std::vector<bool> find_pairs() const {
    std::vector<bool> paired(sentence_.tags.size(), false);
    std::vector<int64_t> open;
    for (int64_t i = 0; i < static_cast<int64_t>(sentence_.tags.size()); ++i) {
      const int64_t partner = tag(i).partner;
      if (partner > i) open.push_back(i);
      if (partner < 0 || partner > i) continue;
      if (!open.empty() && open.back() == partner) {
        paired[static_cast<size_t>(i)] = paired[static_cast<size_t>(partner)] = true;
        open.pop_back();
      } else if (open.size() <= kMostTags) {
        open.erase(std::remove(open.begin(), open.end(), partner), open.end());
      }
    }
    return paired;
  }

  void build_tree() {
    const bool flat = sentence_.tags.size() > kMostTags;
    const std::vector<bool> paired = find_pairs();
    nodes_.push_back({-1, -1, {0, static_cast<int64_t>(sentence_.text.size())}, {}});
    std::vector<size_t> within{0};
    for (int64_t i = 0; i < static_cast<int64_t>(sentence_.tags.size()); ++i) {
      const bool pair = !flat && paired[static_cast<size_t>(i)];
      if (pair && tag(i).partner < i) {
        within.pop_back();
        continue;
      }
      const int64_t close = pair ? tag(i).partner : -1;
      nodes_[within.back()].children.push_back(nodes_.size());
      nodes_.push_back({i, close, {tag(i).offset, pair ? tag(close).offset : tag(i).offset}, {}});
      if (pair) within.push_back(nodes_.size() - 1);
    }
  }

  // Places all tags of the root by their relative position in the source.
  void keep_order() {
    const int64_t size = std::max<int64_t>(1, static_cast<int64_t>(sentence_.text.size()));
    for (const size_t child : nodes_[0].children) {
      const size_t at = static_cast<size_t>(nodes_[child].source.begin * static_cast<int64_t>(units_.size()) / size);
      nodes_[child].units = {std::min(at, units_.size()), std::min(at, units_.size())};
    }
  }

  // Assigns units to the descendants of a node.
  void place(size_t parent) {
    const UnitSpan among = nodes_[parent].units;
    const Range source = nodes_[parent].source;
    std::vector<const Node*> elements;
    for (const size_t child : nodes_[parent].children) {
      Node& n = nodes_[child];
      if (n.close < 0 || n.source.count() == 0) continue;
      const bool all = n.source.begin <= source.begin && n.source.end >= source.end;
      n.units = all ? among : best_units(units_, among, n.source, taken_);
      if (n.units.empty()) continue;
      elements.push_back(&n);
      mark(n.units, true);
    }
    for (const Node* e : elements) mark(e->units, false);  // free again for their descendants
    for (const size_t child : nodes_[parent].children) {
      Node& n = nodes_[child];
      if (!n.units.empty()) {
        place(child);
        continue;
      }
      size_t at = n.source.begin <= source.begin ? among.begin
                  : n.source.end >= source.end   ? among.end
                                                 : best_place(units_, among, n.source.begin);
      const bool half = n.close < 0 && tag(n.open).half;
      if (half) at = std::max(at, least_half_);
      for (const Node* e : elements)  // not inside a sibling
        if (at > e->units.begin && at < e->units.end) at = n.source.begin <= e->source.begin && !half ? e->units.begin : e->units.end;
      if (half) least_half_ = at;
      n.units = {at, at};
      place(child);
    }
    auto& children = nodes_[parent].children;
    std::stable_sort(children.begin(), children.end(), [&](size_t a, size_t b) { return nodes_[a].units.begin < nodes_[b].units.begin; });
  }

  void mark(UnitSpan r, bool taken) {
    std::fill(taken_.begin() + static_cast<ptrdiff_t>(r.begin), taken_.begin() + static_cast<ptrdiff_t>(r.end), taken);
  }

  void write_children(const Node& parent) {
    for (const size_t child : parent.children) {
      const Node& n = nodes_[child];
      write_units(n.units.begin);
      if (n.units.empty())
        write_empty(n);
      else
        write_element(n);
    }
  }
  void write_element(const Node& n) {
    write_gap();
    out_ += tag(n.open).bytes;
    write_children(n);
    write_units(n.units.end);
    out_ += tag(n.close).bytes;
  }
  // Keeps the tag on the side of the space that it was on.
  void write_empty(const Node& n) {
    const auto space_at = [&](int64_t i) {
      return i < 0 || i >= static_cast<int64_t>(sentence_.text.size()) || sentence_.text[static_cast<size_t>(i)] == ' ';
    };
    const bool space_before = space_at(n.source.begin - 1), space_behind = space_at(n.source.end);
    const bool gap = (space_before || !space_behind) && write_gap();
    out_ += tag(n.open).bytes;
    write_children(n);
    if (n.close >= 0) out_ += tag(n.close).bytes;
    if (gap && space_before && space_behind) out_ += ' ';
  }

  // Writes the white space before the next unit; returns false if there is none or it is written already.
  bool write_gap() {
    if (at_ >= units_.size() || gap_written_) return false;
    gap_written_ = true;
    write_text(units_[at_].gap);
    return !units_[at_].gap.empty();
  }
  void write_units(size_t end) {
    for (; at_ < end; ++at_, gap_written_ = false) {
      write_gap();
      const int64_t begin = static_cast<int64_t>(out_.size());
      if (units_[at_].kept)
        out_ += units_[at_].text;
      else
        write_text(units_[at_].text);
      if (!has_links_) continue;
      for (const Range& from : units_[at_].from) links_.push_back({from, {begin, static_cast<int64_t>(out_.size())}});
    }
  }
  void write_text(std::string_view text) {
    if (sentence_.escape)
      append_escaped(out_, text);
    else
      out_ += text;
  }

  const MarkedSentence& sentence_;
  const bool has_links_;
  std::vector<TargetUnit> units_;
  std::vector<Node> nodes_;  // the first is the sentence
  std::vector<bool> taken_;
  size_t least_half_ = 0;
  std::string out_;
  std::vector<AlignedText::Link> links_;
  size_t at_ = 0;
  bool gap_written_ = false;
};

}  // namespace

AlignedText place_markup(const MarkedSentence& sentence, const AlignedText& translation) { return Writer(sentence, translation).write(); }

}  // namespace starling
