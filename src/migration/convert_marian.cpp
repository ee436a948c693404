// Marian's configuration. What it leaves out has Marian's default, which often differs from ours, and so is written out.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <sstream>

#include "base/error.h"
#include "migration/conversion.h"
#include "migration/marian_options.h"

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
  if (!rest.empty() && std::string_view("kKMGT").find(rest.front()) != std::string_view::npos) {
    length.count *= rest.front() == 'k' || rest.front() == 'K' ? 1e3 : rest.front() == 'M' ? 1e6 : rest.front() == 'G' ? 1e9 : 1e12;
    rest.erase(0, 1);
  }
  if (error != std::errc() || rest.size() > 1 || (!rest.empty() && std::string_view("uet").find(rest.front()) == std::string_view::npos))
    throw ConfigError(fmt::format("{} is '{}', which is not a number of updates (u), epochs (e) or target tokens (t)", name, text));
  if (!rest.empty()) length.unit = rest.front();
  return length;
}

// What the user gives besides the files, and what the files have.
struct MarianTexts {
  bool corpus = false, validation = false;
};

MarianTexts convert_data(PeerOptions& o, const std::set<std::string>& given) {
  const auto gives = [&](const char* prefix) {
    return std::any_of(given.begin(), given.end(), [&](const std::string& key) { return key.starts_with(prefix); });
  };
  MarianTexts texts{.corpus = gives("data.train.") || gives("data.source") || gives("data.tsv"),
                    .validation = gives("valid.source") || gives("valid.sets")};
  const std::vector<std::string> train = o.list("train-sets");
  const bool tsv = o.flag("tsv"), stream = train.size() == 1 && (train[0] == "stdin" || train[0] == "-");
  if (stream)
    o.missing("train-sets stdin: a pipe is a file here too: data.tsv: /dev/stdin, or what a pipe is called (docs/guides/streams.md)");
  else if (tsv && train.size() == 1)
    o.set("data.train.0.tsv", train[0]), texts.corpus = true;
  else if (train.size() >= 2)
    o.set("data.train.0.source", train[0]), o.set("data.train.0.target", train[1]), texts.corpus = true;
  if (train.size() > 2) o.missing("train-sets: one source and one target file are used; others are left out");
  const std::vector<std::string> valid = o.list("valid-sets");
  if (valid.size() == 2)
    o.set("valid.source", valid[0]), o.set("valid.target", valid[1]), texts.validation = true;
  else if (valid.size() == 1)
    o.missing(fmt::format("valid-sets: one file per side is needed; cut -f 1 {0} and cut -f 2 {0} make them", valid[0]));
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
  if (const std::vector<std::string> alphas = o.list("sentencepiece-alphas"); !alphas.empty()) {
    const std::string alpha = alphas[0] == "0" && alphas.size() > 1 ? alphas[1] : alphas[0];
    o.set("data.subword-alpha", alpha);
    if (alphas.size() > 1 && alphas[0] != alphas[1])
      o.approximate(fmt::format("sentencepiece-alphas {} {}: one number is for both sides; {} is taken", alphas[0], alphas[1], alpha));
  }
  for (const auto& [theirs, ours] : {std::pair{"all-caps-every", "data.upper-case"}, {"english-title-case-every", "data.title-case"}})
    if (const double every = o.number(theirs).value_or(0); every > 0) o.set(ours, 1 / every);
  const std::string pieces = o.text("sentencepiece-options").value_or("");
  const auto piece_option = [&](const std::string& name) -> std::optional<std::string> {
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
    if (const auto value = piece_option(theirs)) o.set(std::string("vocab.") + ours, *value);
  o.set_count("data.max-length", o.number("max-length").value_or(50));
  return texts;
}

// The place of the normalisation, which decides whether the model can go back.
void convert_norm(PeerOptions& o) {
  const auto without_dropout = [&](const char* name, const char* otherwise) {
    std::string letters = o.text(name).value_or(otherwise);
    std::erase(letters, 'd');
    return letters;
  };
  const std::string before = without_dropout("transformer-preprocess", ""), after = without_dropout("transformer-postprocess", "dan"),
                    top = without_dropout("transformer-postprocess-top", ""),
                    embeddings = without_dropout("transformer-postprocess-emb", "d");
  const bool pre = before == "n";
  o.set("model.norm", pre ? "pre" : "post");
  o.set("model.decoder-start", "zero");
  o.set("model.norm-epsilon", "1e-06");
  if (!(pre ? after == "a" && top == "n" : before.empty() && after == "an" && top.empty()) || !embeddings.empty())
    return o.missing(fmt::format(
        "transformer-preprocess '{}', -postprocess '{}', -postprocess-top '{}', -postprocess-emb '{}': layers here are normalised "
        "before ('n', 'a', 'n', '') or after ('', 'an', '', ''), which model.norm says",
        before, after, top, embeddings));
  if (pre)
    o.approximate(
        "transformer-preprocess n: a model that is normalised before its layers does not go back to Marian or Firefox, whose decoders "
        "compute something else (docs/guides/import.md); with --model.norm post --model.for marian,bergamot it does");
  else
    o.set("model.for", "marian,bergamot");
}

void convert_transformer(PeerOptions& o) {
  const double width = o.number("dim-emb").value_or(512);
  o.set("model.preset", width >= 1024 ? "transformer-big" : "transformer-base");
  o.set_count("model.encoder-layers", o.number("enc-depth").value_or(1));
  o.set_count("model.decoder-layers", o.number("dec-depth").value_or(1));
  o.set_count("model.width", width);
  o.set_count("model.feed-forward", o.number("transformer-dim-ffn").value_or(2048));
  o.set_count("model.heads", o.number("transformer-heads").value_or(8));
  convert_norm(o);
  const std::string activation = o.text("transformer-ffn-activation").value_or("swish");
  if (activation == "relu" || activation == "swish" || activation == "gelu")
    o.set("model.activation", activation == "gelu" ? "gelu-sigmoid" : activation);
  else
    o.missing(fmt::format("transformer-ffn-activation {}: activations are relu, swish and gelu", activation));
  const std::string cell = o.text("dec-cell").value_or("gru");
  if (const std::string way = o.text("transformer-decoder-autoreg").value_or("self-attention"); way == "rnn" && cell == "ssru")
    o.set("model.autoregression", "ssru");
  else if (way != "self-attention")
    o.missing(fmt::format("transformer-decoder-autoreg {} with dec-cell {}: decoders have self-attention, or SSRU", way, cell));
  o.set("model.dropout", o.number("transformer-dropout").value_or(0));
  o.copy("transformer-dropout-attention", "model.attention-dropout");
  o.copy("transformer-dropout-ffn", "model.feed-forward-dropout");
  o.set("model.output-bias", o.flag("output-omit-bias") ? "false" : "true");
  // Of recurrent models; Marian's configurations give them all the same.
  o.take({"enc-type", "enc-cell", "enc-cell-depth", "dec-cell-base-depth", "dec-cell-high-depth", "dim-rnn"});
}

void convert_model(PeerOptions& o) {
  const std::string type = o.text("type").value_or("amun");
  if (type == "transformer") {
    convert_transformer(o);
  } else if (type == "s2s" || type == "amun" || type == "nematus") {
    o.set("model.preset", "gnmt-small");
    o.approximate(fmt::format("type {}: the recurrent models here are GNMT's, which do not go back to Marian", type));
  } else {
    throw ConfigError(fmt::format("type is {}; the models that can be trained here are transformer and s2s", type));
  }
  const bool all = o.flag("tied-embeddings-all") || o.flag("tied-embeddings-src");
  o.set("model.tied-embeddings", o.flag("tied-embeddings") && !all ? "decoder" : all ? "all" : "none");
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
void convert_alignment(PeerOptions& o, bool corpus) {
  const std::string links = o.text("guided-alignment").value_or("none"),
                    layer = o.text("transformer-guided-alignment-layer").value_or("last"),
                    cost = o.text("guided-alignment-cost").value_or("ce");
  o.take({"guided-alignment", "guided-alignment-cost", "transformer-guided-alignment-layer"});
  const std::optional<double> weight = o.number("guided-alignment-weight");
  if (links == "none") return;
  if (o.text("type").value_or("amun") != "transformer")
    return o.missing("guided-alignment: only the attention of a transformer can be guided");
  const bool column = links.find_first_not_of("0123456789") == std::string::npos;
  if (column && links != "2") return o.missing(fmt::format("guided-alignment {}: links are in the third column of a tsv", links));
  if (corpus)
    o.set("data.train.0.alignment", column ? std::string("column") : links);
  else
    o.missing(fmt::format("guided-alignment {}: name the corpus, and its links in data.alignment{}", links, column ? ": column" : ""));
  o.set("data.alignment-unit", "pieces");
  o.set("train.guided-alignment", weight.value_or(0.1));
  o.set("model.alignment-head", "1");
  o.set("model.alignment-layer", layer == "last" ? fmt::format("{}", o.number("dec-depth").value_or(1)) : layer);
  if (cost != "ce") o.approximate(fmt::format("guided-alignment-cost {}: it is ce, cross-entropy", cost));
}

void convert_training(PeerOptions& o) {
  const double delay = std::max(1.0, o.number("optimizer-delay").value_or(1));
  const double devices =
      std::max<double>(1, std::max<double>(static_cast<double>(o.list("devices").size()), o.number("num-devices").value_or(0)));
  const double at_once = delay * devices;
  const std::optional<double> sentences = o.number("mini-batch");
  if (const double words = o.number("mini-batch-words").value_or(0); words > 0) {
    o.set_count("train.batch-tokens", words * at_once);
    if (sentences) o.not_needed("mini-batch: mini-batch-words counts the batch");
    o.take({"mini-batch-fit"});
  } else if (o.flag("mini-batch-fit")) {
    o.missing(
        fmt::format("mini-batch-fit{}: Marian fills its workspace{}{}; set train.batch-tokens to the target tokens of an update, which its "
                    "log shows, or leave it to what suits the corpus",
                    sentences ? fmt::format(" (at most mini-batch {:.0f})", *sentences) : "",
                    at_once > 1 ? fmt::format(" {:g} times per update", at_once) : "", ""));
  } else {
    const double count = sentences.value_or(64);
    o.set_count("train.batch-tokens", count * 25 * at_once);
    o.approximate(fmt::format("mini-batch: {:.0f} sentences are taken for {:.0f} target tokens, 25 each", count, 25 * count));
  }
  if (devices > 1) o.approximate(fmt::format("devices: one process per card: starling launch -n {:.0f} -- train ...", devices));
  o.set("train.optimizer", o.text("optimizer").value_or("adam"));
  if (!o.flag("sync-sgd") && devices > 1) o.not_needed("sync-sgd: updates are synchronous; see strategy.name for others");
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
  if (cost == "ce-sum")
    o.approximate("cost-type ce-sum: the gradient is a mean over the target tokens; with Adam this makes no difference");
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
  o.take({"precision", "fp16", "sync-sgd", "relative-paths"});
}

void convert_validation(PeerOptions& o, const MarianTexts& texts) {
  const bool validates = texts.validation;
  const double patience = o.number("early-stopping").value_or(10);
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
  if (o.has("valid-metrics") || o.has("early-stopping")) {
    const std::string wanted = metrics.empty() ? "" : fmt::format(" --valid.metrics {}", fmt::join(metrics, ","));
    if (!validates)
      o.missing(
          fmt::format("valid-metrics, early-stopping: there is no text to validate on; convert with --valid.source DEV.src --valid.target "
                      "DEV.trg, or train with these,{} --valid.early-stopping {:.0f}",
                      wanted, patience));
    if (!validates) metrics.clear();
  }
  if (!metrics.empty()) o.set("valid.metrics", fmt::format("[{}]", fmt::join(metrics, ", ")));
  if (std::find(metrics.begin(), metrics.end(), "script") != metrics.end()) {
    o.set("valid.script", script);
    o.approximate("valid-script-path: the script gets the files of the sources and the references after that of the translations");
  }
  if (o.flag("valid-translation-output")) {
    o.set("valid.keep-translations", "true");
    o.approximate("valid-translation-output: translations go to the run directory, validations/UPDATE.txt");
  }
  if (validates) o.set_count("valid.early-stopping", patience);
  const std::string on = o.text("early-stopping-on").value_or("first");
  if (on == "any" || (on == "first" && metrics.size() > 1 && validates && patience > 0))
    o.approximate(
        fmt::format("early-stopping-on {}: training stops when none of valid.metrics has improved for that many validations", on));
  o.set_count("valid.beam", o.number("beam-size").value_or(12));
  o.set("valid.length-penalty", o.flag("normalize") && o.text("normalize") == "true" ? 1 : o.number("normalize").value_or(0));
  if (const std::optional<double> factor = o.number("max-length-factor")) o.set("valid.max-length-factor", *factor);
  if (o.flag("allow-unk")) o.set("valid.allow-unknown", "true");
  o.set("valid.length-penalty-form", "power");
  convert_length(o, "valid-freq", "valid.every", nullptr, nullptr);
  convert_length(o, "save-freq", "checkpoint.every", nullptr, nullptr);
  convert_length(o, "disp-freq", "log.every", nullptr, nullptr);
  convert_alignment(o, texts.corpus);
  if (const std::optional<std::string> weights = o.text("data-weighting")) {
    if (o.text("data-weighting-type").value_or("sentence") == "sentence" && texts.corpus)
      o.set("data.train.0.sentence-weights", *weights);
    else
      o.missing("data-weighting: weights are those of the sentences of a corpus, data.train.0.sentence-weights");
  }
}

// Sets what aliases stand for, where no file says otherwise.
void expand_aliases(PeerOptions& o) {
  std::vector<std::string> tasks = o.list("task");
  for (const MarianAlias& alias : marian_aliases()) {
    const bool asked = alias.name == "task" ? std::erase(tasks, alias.value) > 0 : o.flag(std::string(alias.name));
    if (!asked) continue;
    for (const auto& [name, text] : alias.options) {
      std::vector<std::string> values;
      std::istringstream words(text);
      for (std::string word; words >> word;) values.push_back(word);
      if (values.empty()) values.emplace_back();
      o.imply(name, values);
    }
  }
  if (tasks.empty()) return;
  std::vector<std::string> known;
  for (const MarianAlias& alias : marian_aliases())
    if (alias.name == "task") known.emplace_back(alias.value);
  throw ConfigError(fmt::format("task is '{}', which is not one of those that can be trained here: {}", tasks[0], fmt::join(known, ", ")));
}

}  // namespace

Conversion convert_marian(const std::vector<PeerFile>& files, const std::set<std::string>& given) {
  PeerOptions options(files, 'M');
  options.take({"version", "config"});
  expand_aliases(options);
  const MarianTexts texts = convert_data(options, given);
  convert_model(options);
  convert_training(options);
  convert_validation(options, texts);
  return options.done();
}

}  // namespace starling
