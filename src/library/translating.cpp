#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <thread>

#include "base/error.h"
#include "base/utf8.h"
#include "decode/document_parts.h"
#include "library/guarded.h"
#include "library/impl.h"
#include "text/listed_pieces.h"

namespace starling {
namespace {

constexpr size_t kFirstBytes = 64 << 10;  // of a text that may have to be cut: its beginning is enough, unless it has few tokens

}  // namespace

std::string joined(const std::vector<std::string>& tokens) {
  std::string text;
  for (const std::string& token : tokens) {
    if (token.find(' ') != std::string::npos)
      throw ConfigError(fmt::format("'{}' is not a piece of a vocabulary, since it has a space; split it", token.substr(0, 60)));
    text += (text.empty() ? "" : " ") + token;
  }
  return text;
}

std::vector<std::string> joined(const std::vector<std::vector<std::string>>& sentences) {
  std::vector<std::string> lines;
  for (const std::vector<std::string>& tokens : sentences) lines.push_back(joined(tokens));
  return lines;
}

size_t first_bytes(std::string_view text, size_t most) {
  if (text.size() <= most) return text.size();
  const size_t space = text.rfind(' ', most);
  if (space != std::string_view::npos && space > 0) return space;
  size_t end = most;
  while (end > 1 && is_continuation(static_cast<unsigned char>(text[end]))) --end;
  return end;
}

void require_utf8(const std::vector<std::string>& texts, const char* each) {
  for (size_t i = 0; i < texts.size(); ++i) {
    if (const auto at = invalid_utf8_offset(texts[i]))
      throw DataError(fmt::format("{} {}: byte {} (0x{:02x}) does not belong to UTF-8; convert the text", each, i, *at,
                                  static_cast<unsigned char>(texts[i][*at])));
    if (const size_t at = texts[i].find('\0'); at != std::string::npos)
      throw DataError(fmt::format("{} {}: byte {} is a NUL; leave it out", each, i, at));
  }
}

v0::Step v0::Translator::Impl::step_of(size_t sentence, int64_t hypothesis, const std::vector<int32_t>& so_far,
                                       const StepToken& token) const {
  const Vocabulary& target = vocabularies().target();
  return {.sentence = sentence,
          .hypothesis = static_cast<int>(hypothesis),
          .token = target.token(token.token),
          .token_id = token.token,
          .log_probability = token.log_probability,
          .last = token.last,
          .text = target.decode(so_far)};
}

SentenceListeners v0::Translator::Impl::listeners_of(size_t sentences, const TranslateOptions& options) const {
  if (!options.on_token) return {};
  // A sentence is in one worker, so each has a list of its own.
  const auto so_far = std::make_shared<std::vector<std::vector<int32_t>>>(sentences);
  const auto on_token = [this, told = options.on_token, so_far](size_t i, const StepToken& token) {
    (*so_far)[i].push_back(token.token);
    try {
      return told(step_of(i, 0, (*so_far)[i], token));
    } catch (...) {  // sentences of others are under way in this thread
      return false;
    }
  };
  return {.token = on_token};
}

std::vector<bool> v0::Translator::Impl::cut(Strings& sentences, const TranslateOptions& options, const SearchOptions& search,
                                            SentenceForm form, Stopping& stopping) const {
  require_utf8(sentences, "sentence");
  const int64_t further = std::max<int64_t>(0, std::ssize(search.source_prefix_ids) - std::ssize(usual_.source_prefix_ids));
  auto most = static_cast<size_t>(std::max<int64_t>(1, most_tokens_ - further));
  if (options.max_source_tokens > 0) most = std::min(most, static_cast<size_t>(options.max_source_tokens));
  if (search.glossary && form == SentenceForm::pieces) throw ConfigError("glossary: it is for text, not for pieces; leave it out");
  std::vector<bool> cut(sentences.size());
  for (size_t i = 0; i < sentences.size(); ++i) {
    stopping.poll();
    cut[i] = form == SentenceForm::text ? cut_text(sentences[i], most) : cut_pieces(sentences[i], most);
  }
  return cut;
}

int64_t v0::Translator::Impl::submit(Strings sentences, const TranslateOptions& options, SentenceForm form, Done done) {
  if (options.sampling || options.alternatives)
    throw ConfigError("sampling and alternatives have no asynchronous form; call translate() or translate_tokens() in a thread");
  Stopping stopping(options.stop);
  const SearchOptions search = search_of(options);
  const std::vector<bool> were_cut = cut(sentences, options, search, form, stopping);
  std::vector<std::string> sources;
  if (search.alignment || search.attention) sources = sentences;
  const auto answer = [this, were_cut, form, confidence = options.confidence, sources = std::move(sources),
                       done = std::move(done)](Scheduler::Outcome outcome) {
    std::vector<Translation> translations;
    std::exception_ptr error;
    try {
      guarded([&] {
        if (outcome.end != Scheduler::End::done) std::rethrow_exception(outcome.cause);
        for (size_t i = 0; i < outcome.translations.size(); ++i)
          translations.push_back(
              translation_of(outcome.translations[i], were_cut[i], sources.empty() ? nullptr : &sources[i], form, confidence));
      });
    } catch (...) {
      error = std::current_exception();
    }
    try {
      done(std::move(translations), error);
    } catch (...) {  // the callback's own affair: sentences of others are under way in this thread
    }
  };
  const size_t count = sentences.size();
  return requests_.submit(std::move(sentences), search, form, answer, listeners_of(count, options));
}

std::future<Scheduler::Outcome> v0::Translator::Impl::search(Strings sentences, const SearchOptions& search, SentenceForm form,
                                                             int64_t& number) {
  const auto promise = std::make_shared<std::promise<Scheduler::Outcome>>();
  number = requests_.submit(std::move(sentences), search, form, [promise](Scheduler::Outcome o) { promise->set_value(std::move(o)); });
  return promise->get_future();
}

std::future<std::vector<v0::Translation>> v0::Translator::Impl::submit(Strings sentences, const TranslateOptions& options,
                                                                       SentenceForm form, int64_t* number) {
  const auto promise = std::make_shared<std::promise<std::vector<Translation>>>();
  const int64_t given =
      submit(std::move(sentences), options, form, [promise](std::vector<Translation> translations, const std::exception_ptr& error) {
        if (error)
          promise->set_exception(error);
        else
          promise->set_value(std::move(translations));
      });
  if (number) *number = given;
  return promise->get_future();
}

std::vector<v0::Translation> v0::Translator::Impl::translate(Strings sentences, const TranslateOptions& options, SentenceForm form) {
  if (options.sampling) return sampled(std::move(sentences), options, form);
  if (options.alternatives) return alternatives(std::move(sentences), options, form);
  int64_t number = 0;
  auto future = submit(std::move(sentences), options, form, &number);
  return Stopping(options.stop).wait(future, [&] { requests_.cancel(number); });
}

std::string v0::Translator::Impl::translate_document(const std::string& text, Format format, TranslateOptions options) {
  Stopping stopping(options.stop);
  const auto between = [&] { stopping.poll(); };
  options.n_best = 1;
  options.confidence = false;
  const std::string language = info_.directions.empty() ? "" : info_.directions.front().source;
  const DocumentParts parts(Document(text, format == Format::html ? DocumentFormat::html : DocumentFormat::text, language),
                            vocabularies().source(), std::min(most_tokens_, kDocumentTokens), between);
  SearchOptions search = search_of(options);
  search.alignment = false;
  for (size_t i = 0; i < parts.parts().size(); ++i) search.alignment = search.alignment || parts.needs_links(i);
  search.attention = false;
  int64_t number = 0;
  auto future = this->search(parts.parts(), search, SentenceForm::text, number);
  const Scheduler::Outcome outcome = stopping.wait(future, [&] { requests_.cancel(number); });
  if (outcome.end != Scheduler::End::done) std::rethrow_exception(outcome.cause);
  std::vector<PartTranslation> translations;
  for (const Candidates& c : outcome.translations) translations.push_back(c.empty() ? PartTranslation{} : c.front());
  return parts.assemble_with_links(translations, vocabularies().source(), vocabularies().target(), false, between).text;
}

void v0::Translator::Impl::cancel_all() {
  requests_.cancel_all();
  if (Workers::is_own_thread()) return;  // a callback, which the worker would wait for
  const double end = serve_seconds() + 10;
  while (!scheduler_.idle() && serve_seconds() < end) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// cut_text() and cut_pieces() cut a sentence after the last token that fits, and return whether there were more.
bool v0::Translator::Impl::cut_text(std::string& sentence, size_t most) const {
  if (sentence.size() < most / 4) return false;
  const Vocabulary& source = vocabularies().source();
  for (size_t bytes = kFirstBytes; sentence.size() > bytes; bytes *= 4) {
    const size_t first = first_bytes(sentence, bytes);
    if (source.encode(std::string_view(sentence).substr(0, first)).size() <= most) continue;
    sentence.resize(first);
  }
  bool cut = false;
  // The rest may be split into more pieces than it was before.
  for (size_t kept = most; kept > 0; --kept) {
    const EncodedLine line = source.encode_with_bytes(sentence);
    if (line.ids.size() <= most) break;
    sentence.resize(static_cast<size_t>(line.bytes[kept - 1].end));
    cut = true;
  }
  return cut;
}

bool v0::Translator::Impl::takes_given_end(std::string& sentence) const {
  const std::string end = " " + vocabularies().source().piece(vocabularies().source().eos());
  if (info_.reads_source_end || !sentence.ends_with(end)) return false;
  sentence.resize(sentence.size() - end.size());
  return true;
}

void v0::Translator::Impl::give_end(std::string& sentence) const {
  const std::string end = " " + vocabularies().source().piece(vocabularies().source().eos());
  sentence += end + end;
}

bool v0::Translator::Impl::cut_pieces(std::string& sentence, size_t most) const {
  const bool given = takes_given_end(sentence);
  size_t end = 0;
  for (size_t i = std::max<size_t>(most - (given ? 1 : 0), 1); i > 0 && end < sentence.size(); --i)
    end = std::min(sentence.find(' ', end + 1), sentence.size());
  const std::string_view rest = std::string_view(sentence).substr(end);
  const bool cut = !rest.empty() && rest != " " + vocabularies().source().piece(vocabularies().source().eos());
  sentence.resize(end);
  if (given) give_end(sentence);
  return cut;
}

v0::Translation v0::Translator::Impl::translation_of(const Candidates& candidates, bool cut, const std::string* source, SentenceForm form,
                                                     bool confidence) const {
  Translation t;
  t.truncated = cut;
  for (const PartTranslation& c : candidates) {
    Hypothesis h{.text = c.text, .score = c.hypothesis.score, .log_probability = c.hypothesis.log_probability};
    for (const int32_t id : c.hypothesis.tokens) h.tokens.push_back(vocabularies().target().token(id));
    if (c.hypothesis.end >= 0) h.end = vocabularies().target().token(c.hypothesis.end);
    h.attention = c.hypothesis.attention;
    if (info_.reads_source_end)
      for (std::vector<float>& row : h.attention) row.pop_back();
    if (source && typed_tag(*source))  // a token of the source that the search does not count
      for (std::vector<float>& row : h.attention) row.insert(row.begin(), 0.0F);
    if (source) h.alignment = alignment_of(c.hypothesis, *source, form);
    if (confidence) add_confidence(c.hypothesis, h);
    t.hypotheses.push_back(std::move(h));
  }
  if (t.hypotheses.empty()) t.hypotheses.emplace_back();
  return t;
}

void v0::Translator::Impl::add_confidence(const ::starling::Hypothesis& found, Hypothesis& h) const {
  const Confidence confidence = loaded_.confidence.require().of(found, vocabularies().target());
  h.confidence = confidence.sentence;
  for (const Confidence::Word& w : confidence.words)
    h.words.push_back({static_cast<size_t>(w.bytes.begin), static_cast<size_t>(w.bytes.end), w.value});
}

bool v0::Translator::Impl::typed_tag(std::string_view source) const {
  const Vocabulary& vocabulary = vocabularies().source();
  return vocabulary.listed().is_tag(vocabulary.take_tag(source));
}

std::vector<std::pair<int, int>> v0::Translator::Impl::alignment_of(const ::starling::Hypothesis& h, const std::string& source,
                                                                    SentenceForm form) const {
  const Vocabulary& vocabulary = vocabularies().source();
  std::string_view text = source;
  const int32_t tag = vocabulary.take_tag(text);
  const int typed = typed_tag(source) ? 1 : 0;  // a token of source_tokens(), which the search does not count
  const int64_t count = (tag >= 0 && typed == 0 ? 1 : 0) + (form == SentenceForm::text ? std::ssize(vocabulary.encode(text))
                                                            : text.empty()             ? 0
                                                                                       : std::count(text.begin(), text.end(), ' ') + 1);
  std::vector<std::pair<int, int>> pairs;
  for (size_t t = 0; t < h.tokens.size() && t < h.alignment.size(); ++t)
    if (h.alignment[t] < count) pairs.emplace_back(h.alignment[t] + typed, static_cast<int>(t));
  std::sort(pairs.begin(), pairs.end());
  return pairs;
}

}  // namespace starling
