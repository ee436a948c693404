// Values that other programs' users write for keys that are called alike or nearly so, and numbers with units: each is refused with ours,
// never taken in silence, since what a unit means differs between programs.
#include <fmt/format.h>

#include <algorithm>

#include "base/suggestion.h"
#include "train/peer_names.h"

namespace starling {
namespace {

struct PeerValue {
  std::string_view key, theirs, ours;  // theirs: as folded_name gives it
};
constexpr PeerValue kValues[] = {
    {"model.preset", "transformer", "transformer-base"},
    {"model.preset", "base", "transformer-base"},
    {"model.preset", "big", "transformer-big"},
    {"model.preset", "small", "transformer-small"},
    {"model.preset", "tiny", "transformer-tiny"},
    {"model.preset", "transformer-wmt-en-de", "transformer-base"},
    {"model.preset", "transformer-vaswani-wmt-en-de-big", "transformer-big"},
    {"model.preset", "transformer-iwslt-de-en", "transformer-small"},
    {"model.preset", "s2s", "gnmt-small"},
    {"model.preset", "rnn", "gnmt-small"},
    {"model.preset", "lstm", "gnmt-small"},
    {"model.norm", "n", "pre"},
    {"model.norm", "da", "pre"},
    {"model.norm", "dan", "post"},
    {"model.tied-embeddings", "src-trg-softmax", "all"},
    {"model.tied-embeddings", "trg-softmax", "decoder"},
    {"model.tied-embeddings", "true", "all"},
    {"model.tied-embeddings", "false", "none"},
    {"vocab.type", "sentencepiece", "unigram"},
    {"train.schedule", "noam", "inverse-sqrt"},
    {"train.schedule", "rsqrt", "inverse-sqrt"},
    {"train.schedule", "inv-sqrt-decay", "inverse-sqrt"},
    {"train.schedule", "fixed", "constant"},
    {"train.schedule", "none", "constant"},
    {"train.loss-normalization", "ce-mean-words", "tokens"},
    {"train.loss-normalization", "ce-mean", "sentences"},
    {"train.loss-normalization", "sents", "sentences"},
    {"train.precision", "fp16", "bf16"},
    {"train.precision", "float16", "bf16"},
    {"train.precision", "bfloat16", "bf16"},
    {"train.precision", "fp32", "f32"},
    {"train.precision", "float32", "f32"},
    {"strategy.name", "sync-sgd", "all-reduce"},
    {"strategy.name", "ddp", "all-reduce"},
    {"valid.metrics", "bleu-detok", "bleu"},
    {"valid.metrics", "bleu-segmented", "bleu"},
    {"valid.metrics", "translation", "bleu"},
    {"valid.metrics", "sacrebleu", "bleu"},
    {"valid.metrics", "ce-mean-words", "cross-entropy"},
    {"valid.metrics", "ce-mean", "cross-entropy"},
    {"valid.metrics", "perplexity", "cross-entropy"},
    {"valid.metrics", "ppl", "cross-entropy"},
    {"valid.metrics", "loss", "cross-entropy"},
};

// What is in front of the letter at the end, if it is a whole number: "10" of "10u".
std::string_view number_before(std::string_view text, std::string_view letters) {
  if (text.size() < 2 || letters.find(text.back()) == std::string_view::npos) return "";
  text.remove_suffix(1);
  return text.find_first_not_of("0123456789") == std::string_view::npos ? text : "";
}

// "25000" of 25,000 or 25_000, where groups of three digits follow the first; "" if it is nothing like that.
std::string without_separators(const std::string& text) {
  std::string digits;
  for (size_t at = 0, group = 0; at <= text.size(); ++at) {
    if (at < text.size() && text[at] >= '0' && text[at] <= '9') {
      digits += text[at], ++group;
      continue;
    }
    const bool first = digits.size() == group;
    if (first ? group == 0 || group > 3 || at == text.size() : group != 3) return "";
    if (at < text.size() && text[at] != ',' && text[at] != '_') return "";
    group = 0;
  }
  return digits;
}

// A whole number as we write it: of 10k, 10M, 10u (Marian's updates), 1e4, 10,000; "" if it is none of these.
std::string whole_number(std::string text) {
  for (const auto& [letters, zeros] : {std::pair("u", ""), {"kK", "000"}, {"M", "000000"}, {"G", "000000000"}})
    if (const std::string_view number = number_before(text, letters); !number.empty()) return std::string(number) + zeros;
  if (const size_t e = text.find_first_of("eE"); e != std::string::npos) {
    const std::string_view mantissa = number_before(std::string_view(text).substr(0, e + 1), "eE");
    const bool digit = e + 2 == text.size() && text[e + 1] >= '0' && text[e + 1] <= '9';
    return digit && !mantissa.empty() ? std::string(mantissa) + std::string(static_cast<size_t>(text[e + 1] - '0'), '0') : "";
  }
  return without_separators(text);
}

// What a decimal comma of other languages means: "0.1" of "0,1".
std::string with_a_point(std::string text) {
  const size_t comma = text.find(',');
  if (comma == std::string::npos || comma == 0 || comma + 1 == text.size()) return "";
  text[comma] = '.';
  return text.find_first_not_of("0123456789.") == std::string::npos && text.find('.') == text.rfind('.') ? text : "";
}

}  // namespace

std::string peer_value_advice(const std::string& key, const std::string& text, ValueKind kind) {
  if (text.size() > 40) return "";
  const std::string theirs = folded_name(text);
  const std::string_view listed_as = key == "valid.early-stopping-metric" ? "valid.metrics" : std::string_view(key);
  for (const PeerValue& row : kValues)
    if (row.key == listed_as && row.theirs == theirs) return fmt::format("; did you mean {}?", row.ours);
  if (kind == ValueKind::word) return "";
  if (const std::string_view epochs = number_before(text, "e"); !epochs.empty() && kind == ValueKind::whole_number)
    return key == "train.max-epochs" ? fmt::format("; did you mean {}?", epochs) : "; epochs are counted by train.max-epochs alone.";
  const std::string number = kind == ValueKind::whole_number ? whole_number(text) : with_a_point(text);
  return number.empty() ? "" : fmt::format("; did you mean {}?", number);
}

std::string peer_values_markdown() {
  std::string out = "| key | value there | value here |\n|---|---|---|\n";
  for (const PeerValue& row : kValues) out += fmt::format("| `{}` | `{}` | `{}` |\n", row.key, row.theirs, row.ours);
  return out;
}

}  // namespace starling
