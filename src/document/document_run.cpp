#include "document/document_run.h"

#include <algorithm>

#include "base/ascii.h"
#include "document/placeholders.h"

namespace starling {
namespace {

constexpr int64_t kLongestUntouched = 64;  // bytes of the longest untouched element that stays in its sentence
constexpr ptrdiff_t kMostTagsWithin = 50;  // of a placeholder and at its ends

void append(DocumentRun& run, std::string_view text, Range place) {
  run.text += text;
  run.places.insert(run.places.end(), text.size(), place);
}

// Turns placeholders into kept parts, except where that is impossible: if tags begin within a placeholder and end elsewhere.
class Keeper {
 public:
  Keeper(DocumentRun& run, const std::vector<HtmlToken>& tokens) : run_(run), tokens_(tokens) {}

  // Keeps the placeholder together with the tags within it; returns false if those cannot be separated from the tags around it.
  bool keep(Range at) {
    const size_t begin = static_cast<size_t>(at.begin), end = static_cast<size_t>(at.end);
    DocumentRun::Kept kept{at, {run_.places[begin].begin, run_.places[end - 1].end}, true};
    const auto from = std::lower_bound(run_.tags.begin() + static_cast<ptrdiff_t>(first_), run_.tags.end(), at.begin, before);
    auto to = from;
    while (to != run_.tags.end() && to->offset <= at.end) ++to;
    first_ = static_cast<size_t>(from - run_.tags.begin());
    if (to - from > kMostTagsWithin) return false;
    std::vector<bool> inner(static_cast<size_t>(to - from), false);
    for (auto t = from; t != to; ++t) {
      const auto p = std::find_if(from, to, [&](const DocumentRun::Tag& other) { return other.token == tokens_[t->token].partner; });
      const bool strictly = t->offset > at.begin && t->offset < at.end;
      const bool partner_strictly = p != to && p->offset > at.begin && p->offset < at.end;
      if (strictly && p == to && tokens_[t->token].kind != HtmlToken::other) return false;
      if (!strictly && !partner_strictly) continue;
      inner[static_cast<size_t>(t - from)] = true;
      kept.place.begin = std::min(kept.place.begin, static_cast<int64_t>(tokens_[t->token].begin));
      kept.place.end = std::max(kept.place.end, static_cast<int64_t>(tokens_[t->token].end));
    }
    for (auto t = from; t != to; ++t) {
      const auto place = static_cast<int64_t>(tokens_[t->token].begin);
      if (!inner[static_cast<size_t>(t - from)] && place >= kept.place.begin && place < kept.place.end) return false;
    }
    for (size_t i = inner.size(); i > 0; --i)
      if (inner[i - 1]) drop_.push_back(first_ + i - 1);
    run_.kept.push_back(kept);
    return true;
  }
  void drop_inner_tags() {
    std::sort(drop_.begin(), drop_.end());
    std::vector<DocumentRun::Tag> left;
    size_t next = 0;
    for (size_t i = 0; i < run_.tags.size(); ++i) {
      while (next < drop_.size() && drop_[next] < i) ++next;
      if (next == drop_.size() || drop_[next] != i) left.push_back(run_.tags[i]);
    }
    run_.tags = std::move(left);
  }

 private:
  static bool before(const DocumentRun::Tag& tag, int64_t offset) { return tag.offset < offset; }
  DocumentRun& run_;
  const std::vector<HtmlToken>& tokens_;
  size_t first_ = 0;
  std::vector<size_t> drop_;
};

}  // namespace

void append_plain_text(DocumentRun& run, std::string_view document, const HtmlToken& token, bool lines) {
  run.places.reserve(run.places.size() + token.end - token.begin);
  for (size_t i = token.begin; i < token.end; ++i) {
    const char c = document[i];
    run.text += !lines && (c == '\n' || c == '\r') ? ' ' : c;
    run.places.push_back({static_cast<int64_t>(i), static_cast<int64_t>(i) + 1});
  }
}

void append_html_text(DocumentRun& run, std::string_view document, const HtmlToken& token, bool lines) {
  for (size_t at = token.begin; at < token.end;) {
    const char c = document[at];
    const int64_t begin = static_cast<int64_t>(at);
    if (const HtmlEntity entity = c == '&' ? html_entity(document.substr(at, token.end - at)) : HtmlEntity(); entity.length > 0) {
      const Range place{begin, begin + static_cast<int64_t>(entity.length)};
      const int64_t offset = static_cast<int64_t>(run.text.size());
      append(run, entity.text.empty() ? document.substr(at, entity.length) : entity.text, place);
      if (entity.text.empty()) run.kept.push_back({{offset, static_cast<int64_t>(run.text.size())}, place});
      at += entity.length;
    } else {
      run.text += is_ascii_space(c) && !(lines && c == '\n') ? ' ' : c;
      run.places.push_back({begin, begin + 1});
      ++at;
    }
  }
}

void append_untouched(DocumentRun& run, std::string_view document, std::vector<HtmlToken>& tokens, size_t first, size_t last) {
  const Range place{static_cast<int64_t>(tokens[first].begin), static_cast<int64_t>(tokens[last].end)};
  DocumentRun inner;
  for (size_t i = first; i <= last && inner.text.size() <= static_cast<size_t>(kLongestUntouched); ++i)
    if (tokens[i].kind == HtmlToken::text) append_html_text(inner, document, tokens[i], false);
  const bool is_short = inner.text.size() <= static_cast<size_t>(kLongestUntouched);
  if (!is_short || inner.text.find_first_not_of(' ') == std::string::npos) {
    tokens[first].kind = HtmlToken::other;
    tokens[first].end = tokens[last].end;
    tokens[first].partner = SIZE_MAX;
    run.tags.push_back({static_cast<int64_t>(run.text.size()), first});
    return;
  }
  const int64_t offset = static_cast<int64_t>(run.text.size());
  append(run, inner.text, place);
  run.kept.push_back({{offset, static_cast<int64_t>(run.text.size())}, place});
}

void keep_placeholders(DocumentRun& run, const std::vector<HtmlToken>& tokens, const OwnPlaceholders* own) {
  const std::vector<DocumentRun::Kept> before = std::move(run.kept);
  run.kept.clear();
  Keeper keeper(run, tokens);
  size_t next = 0;
  std::vector<Range> all = find_placeholders(run.text);
  if (own != nullptr) own->add_to(all, run.text);
  for (const Range& found : all) {
    while (next < before.size() && before[next].at.end <= found.begin) run.kept.push_back(before[next++]);
    if (next < before.size() && before[next].at.begin < found.end) continue;  // part of a kept part already
    keeper.keep(found);
  }
  run.kept.insert(run.kept.end(), before.begin() + static_cast<ptrdiff_t>(next), before.end());
  keeper.drop_inner_tags();
}

}  // namespace starling
