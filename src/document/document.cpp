#include "document/document.h"

#include <algorithm>

#include "base/error.h"
#include "document/document_run.h"
#include "document/html.h"
#include "document/parts.h"
#include "document/plain_tags.h"
#include "document/sentences.h"

namespace starling {

// Cuts runs into sentences. Positions within a run are bytes of its text.
class Document::Builder {
 public:
  Builder(Document& document, DocumentFormat format, std::string_view language, const DocumentOptions& options)
      : d_(document), format_(format), language_(language), options_(options) {
    const bool by_default = options.ends == SentenceEnds::usual && format != DocumentFormat::html;
    lines_ = by_default || options.ends == SentenceEnds::marks_and_lines;
  }

  void add_all() {
    if (format_ == DocumentFormat::text)
      add_plain();
    else
      add_tagged();
  }

 private:
  void add_plain() {
    tokens_ = scan_plain_tags(d_.text_);
    for (size_t i = 0; i < tokens_.size(); ++i) {
      const HtmlToken& token = tokens_[i];
      if (token.separates)
        finish_run();
      else if (token.kind == HtmlToken::text)
        append_plain_text(run_, d_.text_, token, lines_);
      else
        run_.tags.push_back({std::ssize(run_.text), i});
    }
    finish_run();
  }

  void add_tagged() {
    tokens_ = format_ == DocumentFormat::xml ? scan_xml(d_.text_, options_.tags) : scan_html(d_.text_, options_.tags);
    for (size_t i = 0; i < tokens_.size(); ++i) {
      const HtmlToken& token = tokens_[i];
      const bool skipped = token.untouched && token.partner != SIZE_MAX;
      if (token.separates) {
        finish_run();
        if (skipped) i = token.partner;
      } else if (skipped) {
        const size_t last = token.partner;
        append_untouched(run_, d_.text_, tokens_, i, last);
        i = last;
      } else if (token.kind == HtmlToken::text) {
        append_html_text(run_, d_.text_, token, lines_);
      } else {
        run_.tags.push_back({static_cast<int64_t>(run_.text.size()), i});
      }
    }
    finish_run();
  }
  void finish_run() {
    keep_placeholders(run_, tokens_, options_.own_placeholders.get());
    next_tag_ = next_kept_ = 0;
    const std::vector<Range> sentences = find_sentences();
    for (size_t i = 0; i < sentences.size(); ++i)
      add(sentences[i], i + 1 < sentences.size() ? sentences[i + 1].begin : static_cast<int64_t>(run_.text.size()));
    run_.clear();
  }

  // Returns the sentences of the run: they never split a kept part, are never too long and always have something to translate.
  std::vector<Range> find_sentences() const {
    std::vector<Range> found;
    std::vector<TextPiece> pieces{{run_.text, true}};
    if (options_.ends != SentenceEnds::none) pieces = split_sentences(run_.text, language_);
    for (const TextPiece& piece : pieces) {
      if (!piece.sentence) continue;
      const int64_t begin = piece.text.data() - run_.text.data();
      found.push_back({begin, begin + static_cast<int64_t>(piece.text.size())});
    }
    std::vector<Range> whole;
    size_t kept = 0, last = 0;  // the first kept part that ends after the sentence begins, and after it ends
    for (Range s : found) {
      if (!whole.empty() && s.begin < whole.back().end) {
        whole.back().end = std::max(whole.back().end, s.end);
        s = whole.back();
        whole.pop_back();
      }
      while (kept < run_.kept.size() && run_.kept[kept].at.end <= s.begin) ++kept;
      if (kept < run_.kept.size() && run_.kept[kept].at.begin < s.begin) s.begin = run_.kept[kept].at.begin;
      while (last < run_.kept.size() && run_.kept[last].at.end <= s.end) ++last;
      if (last < run_.kept.size() && run_.kept[last].at.begin < s.end) s.end = run_.kept[last].at.end;
      whole.push_back(s);
    }
    std::vector<Range> fitting;
    kept = 0;
    for (const Range& s : whole) cut_to_length(s, kept, fitting);
    return fitting;
  }

  void cut_to_length(Range s, size_t& kept, std::vector<Range>& found) const {
    while (s.begin < s.end) {
      int64_t end = s.begin + static_cast<int64_t>(place_to_cut(text_of(s), kLongestSentence));
      while (kept < run_.kept.size() && run_.kept[kept].at.end <= s.begin) ++kept;
      size_t last = kept;
      while (last < run_.kept.size() && run_.kept[last].at.end <= end) ++last;
      if (last < run_.kept.size() && run_.kept[last].at.begin < end)
        end = run_.kept[last].at.begin > s.begin ? run_.kept[last].at.begin : run_.kept[last].at.end;
      add_if_translated(trimmed({s.begin, end}), kept, found);
      s.begin = end;
    }
  }
  // Trims the spaces at both ends, except those of entities and of kept parts.
  Range trimmed(Range s) const {
    const auto is_space = [&](int64_t i) {
      return run_.text[static_cast<size_t>(i)] == ' ' && run_.places[static_cast<size_t>(i)].count() == 1;
    };
    while (s.begin < s.end && is_space(s.begin)) ++s.begin;
    while (s.begin < s.end && is_space(s.end - 1)) --s.end;
    return s;
  }
  void add_if_translated(Range s, size_t kept, std::vector<Range>& found) const {
    int64_t at = s.begin;
    for (; kept < run_.kept.size() && run_.kept[kept].at.begin < s.end; ++kept) {
      if (has_letter(text_of({at, run_.kept[kept].at.begin}))) break;
      at = run_.kept[kept].at.end;
    }
    if (at < s.end && has_letter(text_of({at, s.end}))) found.push_back(s);
  }

  std::string_view text_of(Range r) const {
    return std::string_view(run_.text).substr(static_cast<size_t>(r.begin), static_cast<size_t>(std::max<int64_t>(0, r.count())));
  }

  // Adds a sentence, with the tags at its ends whose partners are within it.
  void add(Range s, int64_t next_begin) {
    const std::vector<DocumentRun::Tag>& tags = run_.tags;
    size_t inside = next_tag_;  // the first tag after the sentence's first byte
    while (inside < tags.size() && tags[inside].offset <= s.begin) ++inside;
    size_t behind = inside;
    while (behind < tags.size() && tags[behind].offset < s.end) ++behind;

    const auto partner_within = [&](size_t tag) {
      const size_t partner = tokens_[tags[tag].token].partner;
      return partner != SIZE_MAX && inside < behind && partner >= tags[inside].token && partner <= tags[behind - 1].token;
    };
    size_t first = inside;
    for (size_t i = inside; i > next_tag_ && is_blank({tags[i - 1].offset, i == inside ? s.begin : tags[i].offset}); --i)
      if (partner_within(i - 1)) first = i - 1;
    size_t last = behind;
    for (size_t i = behind;
         i < tags.size() && tags[i].offset <= next_begin && is_blank({i == behind ? s.end : tags[i - 1].offset, tags[i].offset}); ++i)
      if (partner_within(i)) last = i + 1;
    next_tag_ = last;

    Range place{run_.places[static_cast<size_t>(s.begin)].begin, run_.places[static_cast<size_t>(s.end) - 1].end};
    MarkedSentence marked;
    marked.escape = d_.has_tags_;
    for (size_t i = first; i < last; ++i) {
      const HtmlToken& token = tokens_[tags[i].token];
      include(place, {static_cast<int64_t>(token.begin), static_cast<int64_t>(token.end)});
      const auto partner = std::lower_bound(tags.begin() + static_cast<ptrdiff_t>(first), tags.begin() + static_cast<ptrdiff_t>(last),
                                            token.partner, [](const DocumentRun::Tag& tag, size_t t) { return tag.token < t; });
      const bool here = partner != tags.begin() + static_cast<ptrdiff_t>(last) && partner->token == token.partner;
      marked.tags.push_back({std::clamp(tags[i].offset, s.begin, s.end) - s.begin, d_.text_.substr(token.begin, token.end - token.begin),
                             here ? partner - tags.begin() - static_cast<ptrdiff_t>(first) : -1, !here && token.kind != HtmlToken::other});
    }
    while (next_kept_ < run_.kept.size() && run_.kept[next_kept_].at.begin < s.begin) ++next_kept_;
    for (; next_kept_ < run_.kept.size() && run_.kept[next_kept_].at.begin < s.end; ++next_kept_) {
      const DocumentRun::Kept& kept = run_.kept[next_kept_];
      include(place, kept.place);
      marked.kept.push_back({{kept.at.begin - s.begin, kept.at.end - s.begin},
                             d_.text_.substr(static_cast<size_t>(kept.place.begin), static_cast<size_t>(kept.place.count())),
                             kept.placeholder});
    }
    if (marked.plain()) {
      d_.sentences_.emplace_back(text_of(s));
    } else {
      marked.text = text_of(s);
      marked.leave_out_ends();
      d_.sentences_.push_back(marked.translated_text());
    }
    d_.marked_.push_back(std::move(marked));
    d_.places_.push_back(place);
  }
  static void include(Range& place, Range more) {
    place.begin = std::min(place.begin, more.begin);
    place.end = std::max(place.end, more.end);
  }
  // A tag of plain text stays on its line.
  bool is_blank(Range r) const { return text_of(r).find_first_not_of(d_.has_tags_ ? " \n" : " ") == std::string_view::npos; }

  Document& d_;
  DocumentFormat format_;
  std::string_view language_;
  const DocumentOptions& options_;
  bool lines_;  // a line break ends a sentence
  std::vector<HtmlToken> tokens_;
  DocumentRun run_;
  size_t next_tag_ = 0, next_kept_ = 0;  // the first that belong to no sentence yet
};

Document::Document(std::string text, DocumentFormat format, std::string_view language, const DocumentOptions& options)
    : text_(std::move(text)), has_tags_(format != DocumentFormat::text) {
  Builder(*this, format, language, options).add_all();
}

std::string Document::words() const {
  std::string all;
  for (size_t i = 0; i < sentences_.size(); ++i) {
    const std::string& text = marked_[i].plain() ? sentences_[i] : marked_[i].text;
    int64_t done = 0;
    for (const MarkedSentence::Kept& kept : marked_[i].kept) {
      all.append(text, static_cast<size_t>(done), static_cast<size_t>(kept.at.begin - done)) += ' ';
      done = kept.at.end;
    }
    all.append(text, static_cast<size_t>(done)) += '\n';
  }
  return all;
}

bool Document::begins_line(size_t sentence) const {
  if (sentence == 0) return true;
  const auto begin = static_cast<size_t>(places_[sentence - 1].end), end = static_cast<size_t>(places_[sentence].begin);
  return std::string_view(text_).substr(begin, end - begin).find_first_of(has_tags_ ? "\n<" : "\n") != std::string_view::npos;
}

bool Document::needs_links(size_t sentence) const {
  const MarkedSentence& s = marked_[sentence];
  return !s.tags.empty() || !std::all_of(s.kept.begin(), s.kept.end(), [&](const auto& kept) { return s.is_left_out(kept); });
}

void Document::append_sentence(AlignedText& out, size_t sentence, const AlignedText& translation) const {
  const Range place = places_[sentence];
  const auto done = static_cast<size_t>(sentence > 0 ? places_[sentence - 1].end : 0);  // bytes of text_
  out.text.append(text_, done, static_cast<size_t>(place.begin) - done);
  const MarkedSentence& marked = marked_[sentence];
  const int64_t at = std::ssize(out.text);
  if (translation.text == sentences_[sentence] && (has_tags_ || translation.links.empty())) {  // as it was, with its entities
    out.text.append(text_, static_cast<size_t>(place.begin), static_cast<size_t>(place.count()));
    return;
  }
  const AlignedText marked_up = marked.plain() ? AlignedText() : place_markup(marked, translation);
  const AlignedText& translated = marked.plain() ? translation : marked_up;
  if (has_tags_ && marked.plain())
    append_escaped(out.text, translated.text);
  else
    out.text += translated.text;
  if (has_tags_) return;
  // Bytes of the sentence are behind those of the tags that come before them.
  const auto in_document = [&](int64_t offset, bool end) {
    int64_t byte = place.begin + offset;
    for (const MarkedSentence::Tag& tag : marked.tags)
      if (end ? tag.offset < offset : tag.offset <= offset) byte += std::ssize(tag.bytes);
    return byte;
  };
  for (const auto& [from, to] : translated.links)
    out.links.push_back({{in_document(from.begin, false), in_document(from.end, true)}, {to.begin + at, to.end + at}});
}

AlignedText Document::assemble_with_links(std::span<const AlignedText> translations) const {
  CHECK(translations.size() == sentences_.size(), "{} translations of {} sentences", translations.size(), sentences_.size());
  AlignedText out;
  for (size_t i = 0; i < sentences_.size(); ++i) append_sentence(out, i, translations[i]);
  out.text.append(text_, static_cast<size_t>(places_.empty() ? 0 : places_.back().end));
  return out;
}

}  // namespace starling
