#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "decode/framing.h"
#include "decode/glossary.h"
#include "library/impl.h"

namespace starling {
namespace {

template <class Number>
Number in_range(const char* name, Number value, Number least, Number most) {
  if (value >= least && value <= most) return value;
  throw ConfigError(fmt::format("{}: {} is not allowed; it must lie between {} and {}", name, value, least, most));
}

// Messages of what is wrong with a text end at such a character.
const std::string& without_nul(const char* name, const std::string& text) {
  const size_t at = text.find('\0');
  if (at == std::string::npos) return text;
  throw ConfigError(fmt::format("{}: '{}\\0...' has a NUL character; leave it out", name, text.substr(0, std::min<size_t>(at, 60))));
}

}  // namespace

SearchOptions v0::Translator::Impl::search_of(const TranslateOptions& o) const {
  SearchOptions s = loaded_.description.search;
  if (o.beam) s.beam = in_range("beam", *o.beam, 1, 1024);
  s.n_best = in_range("n_best", o.n_best, 1, 1024);
  if (s.n_best > s.beam && o.beam) throw ConfigError(fmt::format("n_best {} is more than the beam of {}; raise beam", s.n_best, s.beam));
  s.beam = std::max(s.beam, s.n_best);
  if (o.length_penalty) s.length_penalty = in_range("length_penalty", *o.length_penalty, 0.0, 10.0);
  if (o.length_penalty_form)
    s.length_penalty_form = from_word<LengthPenaltyForm>(without_nul("length_penalty_form", *o.length_penalty_form));
  if (o.coverage_penalty) s.coverage_penalty = in_range("coverage_penalty", *o.coverage_penalty, 0.0, 10.0);
  if (o.prune_threshold) s.prune_threshold = in_range("prune_threshold", *o.prune_threshold, 0.0, 1000.0);
  if (o.max_length_factor) s.max_length_factor = in_range("max_length_factor", *o.max_length_factor, 0.0, 100.0);
  if (o.max_length_offset) s.max_length_offset = in_range("max_length_offset", *o.max_length_offset, 1, 100000);
  if (o.source_prefix) s.source_prefix = without_nul("source_prefix", *o.source_prefix);
  if (o.target_prefix) s.target_prefix = without_nul("target_prefix", *o.target_prefix);
  if (o.suppress) {
    s.suppress.clear();
    for (const std::string& sequence : *o.suppress) s.suppress += (s.suppress.empty() ? "" : " ||| ") + without_nul("suppress", sequence);
  }
  if (o.no_repeat_ngram) s.no_repeat_ngram = in_range("no_repeat_ngram", *o.no_repeat_ngram, 0, 1000);
  if (o.allow_unknown) s.allow_unknown = *o.allow_unknown;
  if (o.min_length) s.min_length = in_range("min_length", *o.min_length, 0, 100000);
  if (o.patience) s.patience = in_range("patience", *o.patience, 0.01, 100.0);
  if (o.repetition_penalty) s.repetition_penalty = in_range("repetition_penalty", *o.repetition_penalty, 0.01, 1e6);
  if (o.word_penalty) s.word_penalty = in_range("word_penalty", *o.word_penalty, -100.0, 100.0);
  s.prefix_bias = in_range("prefix_bias", o.prefix_bias, 0.0, 0.9999999999);
  in_range("max_source_tokens", o.max_source_tokens, 0, 1000000);
  in_range("min_alternative_probability", o.min_alternative_probability, 0.0, 1.0);
  if (o.sampling) {
    in_range("sampling.top_k", o.sampling->top_k, 0, 1000000);
    in_range("sampling.top_p", o.sampling->top_p, 1e-9, 1.0);
    in_range("sampling.temperature", o.sampling->temperature, 1e-3, 1e3);
  } else if (o.on_token && (s.beam > 1 || o.alternatives)) {
    throw ConfigError("on_token: tokens arrive one by one only with a beam of 1 or with sampling; set beam to 1");
  }
  if (o.confidence) loaded_.confidence.require();
  if (!o.glossary.empty()) {
    if (o.sampling || o.alternatives || o.on_token || s.repetition_penalty != 1 || s.prefix_bias > 0)
      throw ConfigError(
          "glossary: it cannot be combined with sampling, alternatives, on_token, repetition_penalty or prefix_bias; leave them out");
    try {
      s.glossary = Glossary::parse(o.glossary, "glossary");
    } catch (const DataError& e) {
      throw ConfigError(e.what());
    }
  }
  s.alignment = o.alignment;
  s.attention = o.attention;
  s.end_ids.clear();
  for (const std::string& token : o.end_tokens) {
    s.end_ids.push_back(vocabularies().target().token_id(without_nul("end_tokens", token)));
    if (s.end_ids.back() < 0)
      throw ConfigError(fmt::format("end_tokens: the vocabulary has no piece '{}'; leave it out", token.substr(0, 60)));
  }
  s = with_prefixes(into_language(std::move(s), loaded_.description, without_nul("target_language", o.target_language)), vocabularies());
  require_room(s, loaded_.description.config);
  return s;
}

}  // namespace starling
