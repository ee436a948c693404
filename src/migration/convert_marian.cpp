// Marian's configuration. What it leaves out has Marian's default, which often differs from ours, and so is written out.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "migration/conversion.h"

namespace starling {
namespace {

// A length of training: "16000", "16000u", "10e", "100Mt".
struct MarianLength {
  double count = 0;
  char unit = 'u';  // updates, epochs, target tokens
};

MarianLength length_of(const std::string& text, const std::string& name) {
  MarianLength length;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length.count);
  std::string rest(end, text.data() + text.size());
  if (!rest.empty() && std::string_view("kMGT").find(rest.front()) != std::string_view::npos) {
    length.count *= rest.front() == 'k' ? 1e3 : rest.front() == 'M' ? 1e6 : rest.front() == 'G' ? 1e9 : 1e12;
    rest.erase(0, 1);
  }
  if (error != std::errc() || rest.size() > 1 || (!rest.empty() && std::string_view("uet").find(rest.front()) == std::string_view::npos))
    throw ConfigError(fmt::format("{} is '{}', which is not a number of updates (u), epochs (e) or target tokens (t)", name, text));
  if (!rest.empty()) length.unit = rest.front();
  return length;
}

// Returns whether there is a text to validate on.
bool convert_data(PeerOptions& o) {
  const std::vector<std::string> train = o.list("train-sets");
  const bool tsv = o.flag("tsv");
  if (tsv && train.size() == 1)
    o.set("data.train.0.tsv", train[0]);
  else if (train.size() >= 2)
    o.set("data.train.0.source", train[0]), o.set("data.train.0.target", train[1]);
  if (train.size() > 2) o.missing("train-sets: one source and one target file are used; others are left out");
  const std::vector<std::string> valid = o.list("valid-sets");
  if (valid.size() == 2)
    o.set("valid.source", valid[0]), o.set("valid.target", valid[1]);
  else if (valid.size() == 1)
    o.missing(fmt::format("valid-sets: a file a side is needed: cut -f 1 {0} and cut -f 2 {0} make them", valid[0]));
  if (const std::vector<std::string> vocabs = o.list("vocabs"); !vocabs.empty()) {
    const bool joint = vocabs.size() < 2 || vocabs[0] == vocabs[1];
    if (vocabs[0].ends_with(".yml") || vocabs[0].ends_with(".json")) {
      o.missing("vocabs: vocabularies are SentencePiece models here; a new one is trained");
    } else {
      o.set("vocab.source", vocabs[0]);
      if (!joint) o.set("vocab.target", vocabs[1]);
    }
    o.set("vocab.joint", joint ? "true" : "false");
  }
  if (const std::vector<std::string> sizes = o.list("dim-vocabs"); !sizes.empty() && sizes[0] != "0") o.set("vocab.size", sizes[0]);
  o.copy("sentencepiece-max-lines", "vocab.sample-lines");
  o.copy("sentencepiece-alphas", "data.subword-alpha");
  const std::string pieces = o.text("sentencepiece-options").value_or("");
  const auto given = [&](const std::string& name) -> std::optional<std::string> {
    const size_t at = pieces.find("--" + name);
    if (at == std::string::npos) return std::nullopt;
    const size_t begin = std::min(at + name.size() + 2, pieces.size());
    if (begin == pieces.size() || pieces[begin] != '=') return "true";
    return pieces.substr(begin + 1, pieces.find(' ', begin) - begin - 1);
  };
  for (const auto& [theirs, ours] : {std::pair{"character_coverage", "character-coverage"},
                                     {"byte_fallback", "byte-fallback"},
                                     {"split_digits", "split-digits"},
                                     {"model_type", "type"},
                                     {"user_defined_symbols", "user-defined-symbols"}})
    if (const auto value = given(theirs)) o.set(std::string("vocab.") + ours, *value);
  o.set_count("data.max-length", o.number("max-length").value_or(50));
  return valid.size() == 2;
}

void convert_model(PeerOptions& o) {
  const std::string task = o.text("task").value_or(""), type = o.text("type").value_or(task.empty() ? "amun" : "transformer");
  if (!type.starts_with("transformer")) {
    o.set("model.preset", "gnmt-small");
    o.approximate(fmt::format("type {}: the recurrent models here are GNMT's", type));
  } else {
    const bool big = task.starts_with("transformer-big");
    o.set("model.preset", big ? "transformer-big" : "transformer-base");
    const double depth = task.empty() ? 1 : 6;
    o.set_count("model.encoder-layers", o.number("enc-depth").value_or(depth));
    o.set_count("model.decoder-layers", o.number("dec-depth").value_or(depth));
    o.set_count("model.width", o.number("dim-emb").value_or(big ? 1024 : 512));
    o.set_count("model.feed-forward", o.number("transformer-dim-ffn").value_or(big ? 4096 : 2048));
    o.set_count("model.heads", o.number("transformer-heads").value_or(big ? 16 : 8));
    const std::string before = o.text("transformer-preprocess").value_or(task.ends_with("prenorm") ? "n" : "");
    o.set("model.norm", before.find('n') != std::string::npos ? "pre" : "post");
    o.take({"transformer-postprocess", "transformer-postprocess-emb", "transformer-postprocess-top"});
    o.set("model.activation", o.text("transformer-ffn-activation").value_or(task.empty() ? "swish" : "relu"));
    const std::string cell = o.text("dec-cell").value_or("");
    if (const std::string way = o.text("transformer-decoder-autoreg").value_or("self-attention"); way == "rnn" && cell == "ssru")
      o.set("model.autoregression", "ssru");
    else if (way != "self-attention")
      o.missing(fmt::format("transformer-decoder-autoreg {} with {}: the decoder has self-attention, or SSRU", way, cell));
    o.set("model.dropout", o.number("transformer-dropout").value_or(task.empty() ? 0 : 0.1));
    o.copy("transformer-dropout-attention", "model.attention-dropout");
    o.copy("transformer-dropout-ffn", "model.feed-forward-dropout");
  }
  const bool all = o.flag("tied-embeddings-all") || (!task.empty() && !o.has("tied-embeddings-all"));
  o.set("model.tied-embeddings", all ? "all" : o.flag("tied-embeddings") ? "decoder" : "none");
}

// A key for updates; lengths in other units have a key of their own, or are said.
void convert_length(PeerOptions& o, const char* name, const char* key, const char* of_tokens, const char* of_epochs) {
  for (const std::string& text : o.list(name)) {
    const MarianLength length = length_of(text, name);
    if (length.count <= 0) continue;
    const char* const to = length.unit == 'u' ? key : length.unit == 't' ? of_tokens : of_epochs;
    if (to)
      o.set_count(to, length.count);
    else
      o.missing(fmt::format("{} {}: {} counts updates; set it by hand", name, text, key));
  }
}

// Links count pieces there, and the first head of a layer is guided.
void convert_alignment(PeerOptions& o) {
  const std::string links = o.text("guided-alignment").value_or("none"),
                    layer = o.text("transformer-guided-alignment-layer").value_or("last"),
                    cost = o.text("guided-alignment-cost").value_or("ce");
  o.take({"guided-alignment", "guided-alignment-cost", "transformer-guided-alignment-layer"});
  const std::optional<double> weight = o.number("guided-alignment-weight");
  if (links == "none") return;
  if (!o.text("type").value_or("amun").starts_with("transformer") && !o.text("task").value_or("").starts_with("transformer"))
    return o.missing("guided-alignment: only the attention of a transformer can be guided");
  const bool column = links.find_first_not_of("0123456789") == std::string::npos;
  if (column && links != "2") return o.missing(fmt::format("guided-alignment {}: links are in the third column of a tsv", links));
  o.set("data.train.0.alignment", column ? std::string("column") : links);
  o.set("data.alignment-unit", "pieces");
  o.set("train.guided-alignment", weight.value_or(0.1));
  o.set("model.alignment-head", "1");
  o.set("model.alignment-layer", layer == "last" ? fmt::format("{}", o.number("dec-depth").value_or(o.has("task") ? 6 : 1)) : layer);
  if (cost != "ce") o.approximate(fmt::format("guided-alignment-cost {}: it is ce, cross-entropy", cost));
}

void convert_training(PeerOptions& o) {
  const double delay = std::max(1.0, o.number("optimizer-delay").value_or(1));
  const double devices =
      std::max<double>(1, std::max<double>(static_cast<double>(o.list("devices").size()), o.number("num-devices").value_or(0)));
  const double at_once = delay * devices;
  if (const double words = o.number("mini-batch-words").value_or(0); words > 0) {
    o.set_count("train.batch-tokens", words * at_once);
    o.take({"mini-batch"});
  } else if (o.flag("mini-batch-fit")) {
    o.missing(
        fmt::format("mini-batch-fit: Marian fills its workspace{}; set train.batch-tokens to the target tokens of an update, "
                    "which its log shows",
                    at_once > 1 ? fmt::format(" {:.0f} times an update", at_once) : ""));
    o.take({"mini-batch", "workspace"});
  } else {
    const double sentences = o.number("mini-batch").value_or(64);
    o.set_count("train.batch-tokens", sentences * 25 * at_once);
    o.approximate(fmt::format("mini-batch: {:.0f} sentences are taken for {:.0f} target tokens, 25 each", sentences, 25 * sentences));
  }
  if (devices > 1) o.approximate(fmt::format("devices: one process a card: starling launch -n {:.0f} -- train ...", devices));
  o.set("train.optimizer", o.text("optimizer").value_or("adam"));
  const std::vector<std::string> params = o.list("optimizer-params");
  o.set("train.beta1", params.size() > 0 ? params[0] : "0.9");
  o.set("train.beta2", params.size() > 1 ? params[1] : "0.999");
  o.set("train.epsilon", params.size() > 2 ? params[2] : "1e-08");
  o.set("train.learning-rate", o.text("learn-rate").value_or("0.0001"));
  o.set("train.warmup", "0");
  convert_length(o, "lr-warmup", "train.warmup", "train.warmup-tokens", nullptr);
  const std::vector<std::string> decay = o.list("lr-decay-inv-sqrt");
  const bool decays = !decay.empty() && length_of(decay[0], "lr-decay-inv-sqrt").count > 0;
  o.set("train.schedule", decays ? "inverse-sqrt" : "constant");
  if (decays && decay[0] != o.text("lr-warmup").value_or("0"))
    o.approximate(fmt::format("lr-decay-inv-sqrt {}: the learning rate falls from the end of the warm-up on", decay[0]));
  o.set("train.clip-norm", o.number("clip-norm").value_or(1));
  o.set("train.label-smoothing", o.number("label-smoothing").value_or(0));
  const std::string cost = o.text("cost-type").value_or("ce-sum");
  o.set("train.loss-normalization", cost == "ce-mean" ? "sentences" : "tokens");
  if (cost == "ce-sum") o.approximate("cost-type ce-sum: the gradient is a mean over the target tokens; Adam does not see the difference");
  if (const std::optional<std::string> smoothing = o.text("exponential-smoothing");
      smoothing && *smoothing != "false" && *smoothing != "0") {
    double rate = 1e-4;
    std::from_chars(smoothing->data(), smoothing->data() + smoothing->size(), rate);
    o.set("train.ema", 1 - rate);
  }
  if (o.has("after")) convert_length(o, "after", "train.max-steps", "train.max-tokens", "train.max-epochs");
  if (const double epochs = o.number("after-epochs").value_or(0); epochs > 0) o.set_count("train.max-epochs", epochs);
  if (const double updates = o.number("after-batches").value_or(0); updates > 0) o.set_count("train.max-steps", updates);
  if (const double seed = o.number("seed").value_or(0); seed > 0) o.set_count("train.seed", seed);
  o.copy("pretrained-model", "train.initial-model");
  if (const std::optional<std::string> model = o.text("model"))
    o.set("train.output", model->find('/') == std::string::npos ? "run" : model->substr(0, model->rfind('/')));
  o.take({"precision", "fp16", "cost-scaling", "workspace", "sync-sgd", "relative-paths"});
}

void convert_validation(PeerOptions& o, bool validates) {
  const std::string script = o.text("valid-script-path").value_or("");
  std::vector<std::string> metrics;
  for (const std::string& metric : o.list("valid-metrics")) {
    const std::string ours = metric == "ce-mean-words" || metric == "cross-entropy" || metric == "ce-mean" || metric == "perplexity"
                                 ? "cross-entropy"
                             : metric == "translation" && !script.empty()            ? "script"
                             : metric.starts_with("bleu") || metric == "translation" ? "bleu"
                             : metric.starts_with("chrf")                            ? "chrf"
                                                                                     : "";
    if (ours.empty())
      o.missing(fmt::format("valid-metrics {}: not measured", metric));
    else if (std::find(metrics.begin(), metrics.end(), ours) == metrics.end())
      metrics.push_back(ours);
  }
  if (!metrics.empty() && !validates) {
    o.missing("valid-metrics: there are no valid-sets; name valid.source and valid.target, and set valid.metrics then");
    metrics.clear();
  }
  if (!metrics.empty()) o.set("valid.metrics", fmt::format("[{}]", fmt::join(metrics, ", ")));
  if (std::find(metrics.begin(), metrics.end(), "script") != metrics.end()) {
    o.set("valid.script", script);
    o.approximate("valid-script-path: the script gets files of the sources and the references behind that of the translations");
  }
  if (o.flag("valid-translation-output")) {
    o.set("valid.keep-translations", "true");
    o.approximate("valid-translation-output: translations go to the run directory, validations/UPDATE.txt");
  }
  if (const double patience = o.number("early-stopping").value_or(10); validates) o.set_count("valid.early-stopping", patience);
  if (const std::string on = o.text("early-stopping-on").value_or("first"); on != "first")
    o.approximate(fmt::format("early-stopping-on {}: training stops when no metric has improved", on));
  o.set_count("valid.beam", o.number("beam-size").value_or(12));
  o.set("valid.length-penalty", o.number("normalize").value_or(0));
  o.set("valid.length-penalty-form", "power");
  o.take({"valid-mini-batch", "valid-max-length", "valid-reset-stalled", "valid-reset-all"});
  convert_length(o, "valid-freq", "valid.every", nullptr, nullptr);
  convert_length(o, "save-freq", "checkpoint.every", nullptr, nullptr);
  convert_length(o, "disp-freq", "log.every", nullptr, nullptr);
  convert_alignment(o);
  if (const std::optional<std::string> weights = o.text("data-weighting")) {
    if (o.text("data-weighting-type").value_or("sentence") == "sentence")
      o.set("data.train.0.sentence-weights", *weights);
    else
      o.missing("data-weighting-type word: weights are those of sentences");
  }
}

}  // namespace

Conversion convert_marian(const std::string& text, const std::string& file) {
  PeerOptions options(text, file, 'M');
  options.take({"version", "config"});
  const bool validates = convert_data(options);
  convert_model(options);
  convert_training(options);
  convert_validation(options, validates);
  return options.done();
}

}  // namespace starling
