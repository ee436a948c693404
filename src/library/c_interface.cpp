#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>

#include "starling.h"
#include "starling/translator.h"
#include "starling/version.h"

struct starling_translator {
  starling::v0::Translator translator;
};
struct starling_result {
  std::vector<starling::v0::Translation> translations;
};

namespace {

using starling::v0::Hypothesis;

thread_local std::string last_error;

// Returns f(), or `failed` with the message kept for starling_error(): no exception leaves a C interface.
template <class Function, class Result>
Result kept_error(Result failed, Function f) noexcept {
  try {
    try {
      return f();
    } catch (const std::exception& e) {
      last_error = e.what();
    }
  } catch (...) {  // the message does not fit into memory
    last_error.clear();
  }
  return failed;
}

constexpr size_t kFirstSize = offsetof(starling_options, suppress);  // of the structure's first version

[[noreturn]] void refuse(const std::string& message) { throw starling::v0::Error(starling::v0::ErrorKind::usage, message); }

// Splits a text at each separator.
std::vector<std::string> parts_of(const std::string& text, const std::string& separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + separator.size();
  }
  return parts;
}

starling::v0::TranslateOptions options_of(const starling_options* given) {
  starling_options o;
  starling_default_options(&o);
  if (given && given->size < kFirstSize) refuse("the options were not set by starling_default_options(); call it first");
  if (given) std::memcpy(&o, given, std::min(given->size, sizeof o));
  starling::v0::TranslateOptions options;
  if (o.beam != 0) options.beam = o.beam;
  options.n_best = o.n_best;
  // A penalty that is not a number must reach the check of its range.
  if (!(o.length_penalty < 0)) options.length_penalty = o.length_penalty;
  if (!(o.coverage_penalty < 0)) options.coverage_penalty = o.coverage_penalty;
  if (o.no_repeat_ngram >= 0) options.no_repeat_ngram = o.no_repeat_ngram;
  if (o.target_language) options.target_language = o.target_language;
  if (o.source_prefix) options.source_prefix = o.source_prefix;
  if (o.target_prefix) options.target_prefix = o.target_prefix;
  options.alignment = o.alignment != 0;
  if (o.suppress) options.suppress = parts_of(o.suppress, " ||| ");
  if (o.end_tokens) options.end_tokens = parts_of(o.end_tokens, " ");
  if (o.min_length >= 0) options.min_length = o.min_length;
  if (o.max_length != 0) options.max_length_factor = 0, options.max_length_offset = o.max_length;
  options.max_source_tokens = o.max_source_tokens;
  if (o.patience != 0) options.patience = o.patience;
  if (o.repetition_penalty != 0) options.repetition_penalty = o.repetition_penalty;
  options.prefix_bias = o.prefix_bias;
  options.confidence = o.confidence != 0;
  if (o.glossary) options.glossary = o.glossary;
  if (o.sample) options.sampling = {o.top_k, o.top_p, o.temperature, o.seed};
  return options;
}

const Hypothesis* hypothesis(const starling_result* result, size_t sentence, size_t translation) {
  if (!result || sentence >= result->translations.size()) return nullptr;
  const auto& all = result->translations[sentence].hypotheses;
  return translation < all.size() ? &all[translation] : nullptr;
}

}  // namespace

extern "C" {

const char* starling_version(void) { return starling::v0::version(); }

const char* starling_error(void) { return last_error.c_str(); }

starling_translator* starling_open(const char* model, const char* device, int threads) {
  return kept_error<>(static_cast<starling_translator*>(nullptr), [&] {
    if (!model) refuse("model is NULL; give the path of a model directory");
    return new starling_translator{starling::v0::Translator(model, {.device = device ? device : "auto", .threads = threads})};
  });
}

void starling_close(starling_translator* translator) { delete translator; }

void starling_fill_options(starling_options* options, size_t size) {
  if (!options) return;
  const starling_options all{.size = size,
                             .n_best = 1,
                             .length_penalty = -1,
                             .coverage_penalty = -1,
                             .no_repeat_ngram = -1,
                             .min_length = -1,
                             .top_p = 1,
                             .temperature = 1,
                             .seed = 1};
  std::memset(options, 0, size);
  std::memcpy(options, &all, std::min(size, sizeof all));
}

starling_result* starling_translate(starling_translator* translator, const char* const* sentences, size_t count,
                                    const starling_options* options) {
  return kept_error<>(static_cast<starling_result*>(nullptr), [&] {
    if (!translator) refuse("translator is NULL; check what starling_open() returned");
    if (!sentences && count > 0) refuse("sentences is NULL, but count is not 0");
    std::vector<std::string> all;
    for (size_t i = 0; i < count; ++i) {
      if (!sentences[i]) refuse("sentence " + std::to_string(i) + " is NULL");
      all.emplace_back(sentences[i]);
    }
    return new starling_result{translator->translator.translate(all, options_of(options))};
  });
}

starling_result* starling_translate_stream(starling_translator* translator, const char* sentence, const starling_options* options,
                                           starling_on_token token, void* data) {
  return kept_error<>(static_cast<starling_result*>(nullptr), [&] {
    if (!translator || !sentence) refuse("translator or sentence is NULL; check what starling_open() returned");
    if (!token) refuse("token is NULL; give a function, or call starling_translate()");
    starling::v0::TranslateOptions o = options_of(options);
    if (!o.beam) o.beam = 1;
    o.on_token = [token, data](const starling::v0::Step& step) {
      return token(step.token.c_str(), step.text.c_str(), step.last, data) != 0;
    };
    return new starling_result{translator->translator.translate(std::vector<std::string>{sentence}, o)};
  });
}

size_t starling_sentences(const starling_result* result) { return result ? result->translations.size() : 0; }

size_t starling_translations(const starling_result* result, size_t sentence) {
  return sentence < starling_sentences(result) ? result->translations[sentence].hypotheses.size() : 0;
}

const char* starling_text(const starling_result* result, size_t sentence, size_t translation) {
  const Hypothesis* h = hypothesis(result, sentence, translation);
  return h ? h->text.c_str() : nullptr;
}

double starling_score(const starling_result* result, size_t sentence, size_t translation) {
  const Hypothesis* h = hypothesis(result, sentence, translation);
  return h ? h->score : 0;
}

double starling_log_probability(const starling_result* result, size_t sentence, size_t translation) {
  const Hypothesis* h = hypothesis(result, sentence, translation);
  return h ? h->log_probability : 0;
}

size_t starling_tokens(const starling_result* result, size_t sentence, size_t translation) {
  const Hypothesis* h = hypothesis(result, sentence, translation);
  return h ? h->tokens.size() : 0;
}

const char* starling_token(const starling_result* result, size_t sentence, size_t translation, size_t token) {
  return token < starling_tokens(result, sentence, translation) ? hypothesis(result, sentence, translation)->tokens[token].c_str()
                                                                : nullptr;
}

size_t starling_links(const starling_result* result, size_t sentence, size_t translation) {
  const Hypothesis* h = hypothesis(result, sentence, translation);
  return h ? h->alignment.size() : 0;
}

void starling_link(const starling_result* result, size_t sentence, size_t translation, size_t link, size_t* source, size_t* target) {
  const bool there = link < starling_links(result, sentence, translation);
  const auto [from, to] = there ? hypothesis(result, sentence, translation)->alignment[link] : std::pair{0, 0};
  if (source) *source = static_cast<size_t>(from);
  if (target) *target = static_cast<size_t>(to);
}

double starling_confidence(const starling_result* result, size_t sentence, size_t translation) {
  const Hypothesis* h = hypothesis(result, sentence, translation);
  return h ? h->confidence.value_or(-1) : -1;
}

size_t starling_words(const starling_result* result, size_t sentence, size_t translation) {
  const Hypothesis* h = hypothesis(result, sentence, translation);
  return h ? h->words.size() : 0;
}

double starling_word(const starling_result* result, size_t sentence, size_t translation, size_t word, size_t* begin, size_t* end) {
  const bool there = word < starling_words(result, sentence, translation);
  const starling::v0::Word w = there ? hypothesis(result, sentence, translation)->words[word] : starling::v0::Word();
  if (begin) *begin = w.begin;
  if (end) *end = w.end;
  return w.confidence;
}

void starling_free_result(starling_result* result) { delete result; }

char* starling_translate_document(starling_translator* translator, const char* text, int html, const starling_options* options) {
  return kept_error<>(static_cast<char*>(nullptr), [&] {
    using starling::v0::Format;
    if (!translator || !text) refuse("translator or text is NULL; check what starling_open() returned");
    const std::string done = translator->translator.translate_document(text, html ? Format::html : Format::text, options_of(options));
    char* copy = new char[done.size() + 1];
    std::memcpy(copy, done.c_str(), done.size() + 1);
    return copy;
  });
}

void starling_free_string(char* string) { delete[] string; }

}  // extern "C"
