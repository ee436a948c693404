// Values that users of other programs write for keys of the same or a similar name. Each is refused with a suggestion and never accepted
// silently. For numbers in another notation, see config/meant_number.h.
#include <fmt/format.h>

#include <algorithm>

#include "config/suggestion.h"
#include "migration/peer_names.h"

namespace starling {
namespace {

struct PeerValue {
  std::string_view key, theirs, ours;  // theirs: as folded_name returns it
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
// The same for options of verbs.
constexpr PeerValue kOptionValues[] = {
    {"--alignment", "hard", "pieces"},
    {"--alignment", "true", "words"},
    {"--to", "ct2", "ctranslate2"},
    {"--to", "libretranslate", "argos"},
    {"--to", "argos-translate", "argos"},
    {"--to", "argosmodel", "argos"},
    {"--to", "npz", "marian"},
    {"--to", "marian-nmt", "marian"},
    {"--to", "opus-mt", "marian"},
    {"--to", "firefox", "bergamot"},
    {"--to", "mozilla", "bergamot"},
    {"--to", "translatelocally", "bergamot"},
    {"--to", "hf", "huggingface"},
    {"--to", "transformers", "huggingface"},
    {"--to", "marianmt", "huggingface"},
    {"--to", "safetensors", "huggingface"},
    {"--precision", "fp16", "bf16"},
    {"--precision", "float16", "bf16"},
    {"--precision", "bfloat16", "bf16"},
    {"--precision", "fp32", "f32"},
    {"--precision", "float32", "f32"},
    {"--precision", "int8-float32", "int8"},
    {"--precision", "int8shiftalphaall", "int8"},
};

}  // namespace

std::string peer_value_advice(const std::string& key, const std::string& text, ValueKind kind) {
  if (text.size() > 40) return "";
  const std::string theirs = folded_name(text);
  const std::string_view listed_as = key == "valid.early-stopping-metric" ? "valid.metrics" : std::string_view(key);
  for (const PeerValue& row : kValues)
    if (row.key == listed_as && row.theirs == theirs) return fmt::format("; did you mean {}?", row.ours);
  const bool epochs = kind == ValueKind::whole_number && text.size() > 1 && text.find_first_not_of("0123456789") == text.size() - 1 &&
                      text.back() == 'e';  // as in Marian
  if (!epochs) return "";
  return key == "train.max-epochs" ? fmt::format("; did you mean {}?", text.substr(0, text.size() - 1))
                                   : "; epochs are counted by train.max-epochs alone.";
}

std::string peer_option_value_advice(const std::string& option, const std::string& text) {
  const std::string theirs = folded_name(text);
  for (const PeerValue& row : kOptionValues)
    if (row.key == option && row.theirs == theirs) return fmt::format("; did you mean {}?", row.ours);
  return "";
}

std::string peer_values_markdown() {
  std::string out = "| key | value there | value here |\n|---|---|---|\n";
  for (const PeerValue& row : kValues) out += fmt::format("| `{}` | `{}` | `{}` |\n", row.key, row.theirs, row.ours);
  return out;
}

}  // namespace starling
