// Loading, checking and dumping a training configuration. The order matters: the preset first, so that the other keys of the
// model section override it; the shorthands data.source and so on folded last, so that a dump has one form only.
#include "settings/config.h"

#include <algorithm>
#include <cmath>

#include "base/counted.h"
#include "base/error.h"
#include "base/text_files.h"
#include "metrics/tokenizers.h"
#include "migration/peer_names.h"
#include "parallel/stages.h"
#include "settings/corpus_choices.h"
#include "strategies/factory.h"

namespace starling {

// The keys of the sections whose structs know nothing of presets and shorthands.
struct CorpusShorthand {
  std::string source, target, tsv;
  bool any() const { return !(source.empty() && target.empty() && tsv.empty()); }
};
struct DataSection {
  DataOptions& options;
  Languages& languages;
  CorpusShorthand& shorthand;
};
template <class Visitor>
void visit(Visitor& v, DataSection& s) {
  v.records("train", s.options.train, "training corpora, a list of maps; on the command line --data.train.0.source and so on");
  v.shorthand("source", s.shorthand.source,
              "source text, one sentence a line (plain, .gz, .zst); short for train.0.source when there is one corpus");
  v.shorthand("target", s.shorthand.target, "its translation, line by line; short for train.0.target when there is one corpus");
  v.shorthand("tsv", s.shorthand.tsv,
              "in place of both: source and target separated by a tab; short for train.0.tsv when there is one corpus");
  v.field("max-length", s.options.max_length, "tokens a side, end of sentence included; longer pairs are dropped", 2, 8192);
  v.field("max-ratio", s.options.max_ratio, "longer over shorter side in tokens; pairs above it are dropped; 0 = off, else at least 1", 0.0,
          1e6);
  v.field("subword-alpha", s.options.subword_alpha,
          "cuts the words of the training text into other pieces in every epoch: with a unigram vocabulary a segmentation's probability to "
          "this power (0.1 to 0.5 is usual, less = more varied), with bpe the probability that a merge is left out (0.1 is usual); 0 = off",
          0.0, 10.0);
  visit(v, s.languages);
}
struct ModelSection {
  ModelConfig& model;
};
template <class Visitor>
void visit(Visitor& v, ModelSection& s) {
  v.field("preset", s.model.preset,
          "dimensions to start from: transformer-base, -big, -small, -tiny, gnmt, gnmt-4 or gnmt-small; the keys below override it");
  visit(v, s.model);
}

namespace {

std::vector<ConfigSection> sections_of(Config& c, CorpusShorthand& shorthand) {
  DataSection data{c.data, c.languages, shorthand};
  ModelSection model{c.model};
  std::vector<ConfigSection> all;
  const auto add = [&](const char* name, const char* help, auto& part) {
    for (ConfigSection& section : config_sections(name, help, part)) all.push_back(std::move(section));
  };
  add("data", "Training text", data);
  add("vocab", "Subword vocabulary (SentencePiece)", c.vocab);
  add("model", "Architecture", model);
  add("train", "Optimization, run directory and limits", c.train);
  add("refine", "Refinement by sampled translations", c.refine), all.back().needs = {{"train.objective", {"mixed"}}};
  add("strategy", "Several workers", c.strategy);
  add("parallel", "A model divided among several ranks", c.parallel);
  add("valid", "Validation", c.valid);
  add("checkpoint", "Checkpoints", c.checkpoint);
  add("log", "Reports", c.log);
  return all;
}

// Sets the model's preset and the strategy that the file or the command line names, before anything else is read.
void apply_presets(const ConfigDocument& document, const std::vector<Override>& overrides, Config& config) {
  const auto apply = [&](const std::string& section, const std::string& key, const auto& set) {
    ConfigDocument::Scalar preset = document.scalar(section, key).value_or(ConfigDocument::Scalar{});
    for (const auto& [name, value] : overrides) {
      if (name == section + "." + key) preset = {value, "command line"};
    }
    if (preset.where.empty()) return;
    try {
      set(preset.text);
    } catch (const ConfigError& e) {
      throw ConfigError(
          fmt::format("{}: {}{}", preset.where, e.what(), peer_value_advice(section + "." + key, preset.text, ValueKind::word)));
    }
  };
  apply("model", "preset", [&](const std::string& name) { set_preset(name, config); });
  apply("strategy", "name", [&](const std::string& name) { config.strategy = strategy_preset(name); });
}

// data.source, data.target and data.tsv stand for the first corpus, as long as it is the only one.
void fold_shorthand(DataOptions& data, CorpusShorthand& shorthand, bool from_file) {
  if (!shorthand.any()) return;
  if (data.train.size() > (from_file ? 0u : 1u)) {
    throw ConfigError(
        fmt::format("data: source, target and tsv name the only corpus, but data.train lists {}; use data.train.0.source and so on",
                    data.train.size()));
  }
  if (data.train.empty()) data.train.emplace_back();
  CorpusFiles& corpus = data.train.front();
  if (!shorthand.tsv.empty() && shorthand.source.empty() && shorthand.target.empty()) corpus.source = corpus.target = "";
  if (shorthand.tsv.empty()) corpus.tsv = "";
  for (auto [from, to] :
       {std::pair(&shorthand.source, &corpus.source), {&shorthand.target, &corpus.target}, {&shorthand.tsv, &corpus.tsv}}) {
    if (!from->empty()) *to = *from;
  }
  shorthand = {};
}

void check_model(const Config& c) {
  if (c.model.width % c.model.heads != 0) {
    throw ConfigError(fmt::format("model.width {} is not a multiple of model.heads {}; set model.width to {} or choose other heads",
                                  c.model.width, c.model.heads, (c.model.width / c.model.heads + 1) * c.model.heads));
  }
  if (c.model.tied_embeddings == TiedEmbeddings::all && !c.vocab.joint) {
    throw ConfigError(
        "model.tied-embeddings is all, which needs one vocabulary for both sides; set vocab.joint to true, or "
        "model.tied-embeddings to decoder or none");
  }
  check(c.model);
}

// Keys of the other family do nothing; who sets one means another model.
void check_family(const ModelConfig& c) {
  ModelConfig asked = c, preset = model_preset(c.preset), defaults;
  const auto sections = [](ModelSection section) { return config_sections("model", "", section); };
  refuse_idle_keys(sections({asked}), std::vector{sections({preset}), sections({defaults})});
}

void check_clip(const Config& c) {
  if (c.model.clip > 0 && c.train.clip_start < c.model.clip)
    throw ConfigError(fmt::format("train.clip-start {} is below model.clip {}, but the bound falls; raise clip-start or lower clip",
                                  c.train.clip_start, c.model.clip));
}

void check_vocab(const VocabConfig& c) {
  if (!c.joint && !c.source.empty() && c.source == c.target) {
    throw ConfigError(
        fmt::format("vocab.source and vocab.target are the same file {}; set vocab.joint to true or name two files", in_quotes(c.source)));
  }
  if (c.joint && !c.target.empty() && c.source != c.target) {
    throw ConfigError("vocab.target is set, but vocab.joint is true; name the one vocabulary in vocab.source, or set vocab.joint to false");
  }
}

void check_train(const TrainConfig& c) {
  if (c.output.empty()) throw ConfigError("train.output is empty; name the run directory, e.g. train.output: run");
  if (c.optimizer.optimizer == OptimizerKind::sgd && c.optimizer.sgd_after > 0) {
    throw ConfigError("train.sgd-after is for a run that begins with Adam, but train.optimizer is sgd; set one of them back");
  }
  if (c.optimizer.sgd_after > 0 && c.optimizer.weight_decay > 0) {
    throw ConfigError(
        fmt::format("train.weight-decay {:g} would act at the rate of train.sgd-after too, where it shrinks the weights by the factor "
                    "{:g} an update; set train.weight-decay to 0",
                    c.optimizer.weight_decay, 1 - c.optimizer.sgd_learning_rate * c.optimizer.weight_decay));
  }
  if (c.micro_batch_tokens > c.batch_tokens) {
    throw ConfigError(fmt::format("train.micro-batch-tokens {} is larger than train.batch-tokens {}; lower it or set it to 0",
                                  c.micro_batch_tokens, c.batch_tokens));
  }
}

void check_valid(const ValidConfig& c) {
  check_tokenizer_name(c.tokenize, "valid.tokenize");
  if (c.source.empty() != c.target.empty()) {
    throw ConfigError(fmt::format("valid.{} is set, but valid.{} is not; name both files, or none for no validation",
                                  c.source.empty() ? "target" : "source", c.source.empty() ? "source" : "target"));
  }
  if (c.source.empty() && !c.metrics.empty()) {
    throw ConfigError(
        "valid.metrics are asked for, but there is nothing to validate on; name valid.source and valid.target, or set valid.metrics to []");
  }
  if (c.early_stopping > 0 && !c.enabled()) {
    throw ConfigError("valid.early-stopping needs a validation; name valid.source, valid.target and valid.metrics, or set it to 0");
  }
  const std::string& metric = c.early_stopping_metric;
  if (c.enabled() && metric != "first" && std::find(c.metrics.begin(), c.metrics.end(), metric) == c.metrics.end()) {
    throw ConfigError(fmt::format("valid.early-stopping-metric {} is not among valid.metrics {}; add it there, or choose one of these",
                                  metric, fmt::join(c.metrics, ", ")));
  }
}

// What needs a whole model on every rank.
void check_parallel(const Config& c) {
  if (c.parallel.pipeline == 1) {
    if (c.parallel.micro_batches > 0)
      throw ConfigError("parallel.micro-batches does nothing without stages; set parallel.pipeline too, or see train.micro-batch-tokens");
    if (c.parallel.time_pieces > 0)
      throw ConfigError("parallel.time-pieces does nothing without stages; set parallel.pipeline too, or leave it out");
  }
  if (const size_t listed = c.parallel.stages.size(); listed > 0 && listed != static_cast<size_t>(c.parallel.pipeline))
    throw ConfigError(fmt::format("parallel.stages lists {}, and parallel.pipeline is {}; give as many numbers as there are stages",
                                  counted(static_cast<int64_t>(listed), "stage"), c.parallel.pipeline));
  check(c.parallel);
  if (c.parallel.ranks() == 1) return;
  require_shards(c.model, c.parallel.tensor);
  if (c.parallel.time_pieces > 0 && architecture_of(c.model.preset) != Architecture::gnmt)
    throw ConfigError(
        fmt::format("parallel.time-pieces is for recurrent models, and {} computes all positions of a sentence at once; leave it "
                    "out, or set model.preset to one of gnmt",
                    c.model.preset));
  if (c.parallel.hybrid) check_hybrid(c.model);
  const bool stages = c.parallel.pipeline > 1;
  const char* const key = stages ? c.parallel.tensor > 1 ? "parallel.pipeline and tensor" : "parallel.pipeline" : "parallel.tensor";
  const std::string divided = stages && c.parallel.tensor > 1 ? fmt::format("parallel.pipeline {} and tensor {} divide the model",
                                                                            c.parallel.pipeline, c.parallel.tensor)
                                                              : fmt::format("{} {} divides the model", key, c.parallel.ranks());
  if (family_of(c.strategy) == Family::asynchronous)
    throw ConfigError(
        fmt::format("{}, but with strategy {} each server would answer its part at another moment; choose another strategy, or "
                    "set {} to 1",
                    divided, c.strategy.name, key));
  if (family_of(c.strategy) == Family::periodic && c.strategy.periodic.merge == MergeRule::radial)
    throw ConfigError(
        fmt::format("{}, but strategy.periodic.merge radial needs the length of whole displacements; set merge to mean", divided));
  if (c.train.objective == Objective::mixed)
    throw ConfigError(fmt::format("{}, but train.objective mixed samples from whole models; set {} to 1", divided, key));
}

void check(const Config& c) {
  if (!c.data.train.empty()) require_data(c);
  check(c.languages, "data");
  check_model(c);
  check_family(c.model);
  check_clip(c);
  check_vocab(c.vocab);
  check_train(c.train);
  check_strategy(c.strategy);
  require_whole_matrices(c);
  check_r_drop(c);
  check_batch_growth(c);
  if (family_of(c.strategy) != Family::synchronous && c.train.optimizer.ema > 0)
    throw ConfigError(
        fmt::format("train.ema is for strategies all-reduce and parameter-server; with {} set train.ema to 0", c.strategy.name));
  check_valid(c.valid);
  check_parallel(c);
}

std::optional<std::string> given_text(const ConfigDocument& document, const std::vector<Override>& overrides, const std::string& section,
                                      const std::string& key) {
  std::optional<std::string> text;
  if (const auto scalar = document.scalar(section, key)) text = scalar->text;
  for (const auto& [name, value] : overrides)
    if (name == section + "." + key) text = value;
  return text;
}

// A dump gives every key. Emptying one of them must not leave others, which the dump gave only because of it, in the way; nor must filling
// it have no effect. What is told at a later place than the emptied key stays, and is refused if it makes no sense.
void follow_what_was_emptied(const ConfigDocument& document, const std::vector<Override>& overrides, Config& c) {
  enum Place { nowhere, file, command_line };
  const auto place = [&](const char* section, const char* key) {
    const std::string name = fmt::format("{}.{}", section, key);
    const bool overridden = std::any_of(overrides.begin(), overrides.end(), [&](const Override& o) { return o.first == name; });
    return overridden ? command_line : document.has(section, key) ? file : nowhere;
  };
  const Place source = place("valid", "source"), metrics = place("valid", "metrics");
  if (c.valid.source.empty()) {
    if (source > nowhere && place("valid", "target") < command_line) c.valid.target.clear();
    if (c.valid.target.empty() && (metrics == nowhere || (source > nowhere && metrics == file))) c.valid.metrics.clear();
    if (source == command_line && place("valid", "early-stopping") < command_line) c.valid.early_stopping = 0;
  } else if (c.valid.metrics.empty() && source == command_line && metrics == file &&
             document.scalar("valid", "source").value_or(ConfigDocument::Scalar{}).text.empty()) {
    c.valid.metrics = ValidConfig{}.metrics;  // the list was empty since there was nothing to validate on
  }
  // One vocabulary may be named for both sides.
  if (c.vocab.joint && place("vocab", "source") == command_line && place("vocab", "target") == file &&
      given_text(document, {}, "vocab", "source") == c.vocab.target)
    c.vocab.target.clear();
}

template <class Describe>
auto of_defaults(const Describe& describe) {
  Config config;
  CorpusShorthand shorthand;
  return describe(sections_of(config, shorthand));
}

}  // namespace

void set_preset(const std::string& name, Config& c) {
  c.model = model_preset(name);
  c.valid.search = search_defaults(name);
}

namespace {

Config parse(std::string_view text, const std::string& file, const std::vector<Override>& overrides, const Basis& basis, bool moved_keys) {
  const ConfigDocument document(text, file);
  Config config;
  CorpusShorthand shorthand;
  const std::vector<ConfigSection> sections = sections_of(config, shorthand);
  apply_presets(document, overrides, config);
  if (basis)
    basis([&](const std::string& section, const std::string& key) { return given_text(document, overrides, section, key); }, config);
  const ConfigAdvice advice{peer_name_advice, peer_value_advice, moved_keys};
  config.named = document.read(sections, advice);
  fold_shorthand(config.data, shorthand, true);
  for (const auto& [name, value] : overrides) {
    apply_override(sections, name, value, advice);
    config.named.insert(name);
    fold_shorthand(config.data, shorthand, false);
  }
  follow_what_was_emptied(document, overrides, config);
  config.vocab.training.seed = config.train.seed;
  check(config);
  return config;
}

}  // namespace

Config parse_config(std::string_view text, const std::string& file, const std::vector<Override>& overrides, const Basis& basis) {
  return parse(text, file, overrides, basis, false);
}

Config load_record(const std::string& path) { return parse(read_config_file(path), path, {}, {}, true); }

Config load_config(const std::string& path, const std::vector<Override>& overrides, const Basis& basis) {
  return parse_config(path.empty() ? "" : read_config_file(path), path, overrides, basis);
}

void require_data(const Config& config) {
  try {
    check_options(config.data);
  } catch (const ConfigError& e) {
    throw ConfigError(fmt::format("data: {}", e.what()));
  }
  try {
    if (config.valid.enabled()) require_files({config.valid.source, config.valid.target, "", 1});
  } catch (const ConfigError& e) {
    throw ConfigError(fmt::format("valid: {}", e.what()));
  }
}

namespace {

// What differs from the defaults, and the keys that are named.
std::string written_keys(const Config& config, const std::set<std::string>* named) {
  Config copy = config, standard;
  CorpusShorthand shorthand;
  const std::string standard_preset = standard.model.preset;
  set_preset(config.model.preset, standard);
  standard.model.preset = standard_preset;
  std::vector<ConfigSection> defaults = sections_of(standard, shorthand);
  // What is taken over from the initial model would stand in the place of a default that is left out.
  if (!config.train.initial_model.empty()) std::erase_if(defaults, [](const ConfigSection& d) { return d.name == "model"; });
  const std::vector<ConfigSection> sections = sections_of(copy, shorthand);
  // A named strategy is shown with everything it stands for.
  if (config.strategy.name != standard.strategy.name)
    std::erase_if(defaults, [&](const ConfigSection& d) { return d.name.starts_with("strategy") && has_needs(d, sections); });
  return write_config(sections, {.defaults = defaults, .named = named});
}

}  // namespace

std::string dump_config(const Config& config, bool full) {
  if (!full) return written_keys(config, &config.named);
  Config copy = config;
  CorpusShorthand shorthand;
  return write_config(sections_of(copy, shorthand), {.comments = true});
}

std::string config_identity(const Config& config) { return written_keys(config, nullptr); }

std::vector<std::string> config_lines(const Config& config) {
  Config copy = config;
  CorpusShorthand shorthand;
  return config_lines(sections_of(copy, shorthand));
}

void require_whole_matrices(const Config& c) {
  if (c.train.optimizer.optimizer != OptimizerKind::muon) return;
  const auto refuse = [](const std::string& what, const std::string& instead) {
    throw ConfigError(fmt::format("train.optimizer muon needs each weight matrix whole where it is updated, but {}; {}", what, instead));
  };
  if (family_of(c.strategy) == Family::asynchronous)
    refuse(fmt::format("the servers of strategy {} have parts", c.strategy.name), "choose all-reduce or parameter-server");
  if (c.parallel.tensor > 1) refuse("parallel.tensor cuts them", "set it to 1");
}

void check_r_drop(const Config& c) {
  if (c.train.r_drop == 0) return;
  const auto refuse = [&](const std::string& what) { throw ConfigError(fmt::format("train.r-drop {:g} {}", c.train.r_drop, what)); };
  const bool transformer = architecture_of(c.model.preset) != Architecture::gnmt;
  if (std::max({c.model.dropout, transformer ? c.model.attention_dropout : 0, transformer ? c.model.feed_forward_dropout : 0}) == 0)
    refuse("compares two passes with different dropout, but there is none; set model.dropout, or leave train.r-drop out");
  if (c.train.objective == Objective::mixed)
    refuse("is for the likelihood of references, but train.objective is mixed, which has samples; leave one of them out");
  if (c.parallel.tensor > 1 || c.parallel.hybrid)
    refuse(fmt::format("needs all probabilities of a token on one rank, but {} divides the output; leave it out, or train.r-drop",
                       c.parallel.hybrid ? "parallel.hybrid" : "parallel.tensor"));
  if (c.train.r_drop_from > 0 && c.train.max_minutes > 0)
    throw ConfigError(
        fmt::format("train.r-drop-from {:g} is a share of the run's updates, which train.max-minutes {:g} leaves open; end the run by "
                    "train.max-steps, max-tokens or max-epochs, or set train.r-drop-from to 0",
                    c.train.r_drop_from, c.train.max_minutes));
}

void check_batch_growth(const Config& c) {
  const TrainConfig& t = c.train;
  const bool doubles = !t.batch_doubles_at.empty(), follows = t.batch_follows_noise > 0;
  if (!doubles && !follows) return;
  const auto refuse = [](const char* key, const std::string& what) { throw ConfigError(fmt::format("train.{} {}", key, what)); };
  const char* const either = doubles ? "batch-doubles-at" : "batch-follows-noise";
  if (!std::is_sorted(t.batch_doubles_at.begin(), t.batch_doubles_at.end()))
    refuse("batch-doubles-at", "must be ascending shares of the run, such as 0.25, 0.5");
  constexpr double kMostTokens = 1e8;  // of a batch, as of batch-tokens
  if (static_cast<double>(t.batch_tokens) * std::exp2(t.batch_doubles_at.size()) > kMostTokens)
    refuse("batch-doubles-at", fmt::format("makes {} target tokens {} times twice as many, which is more than {:.0f}; give fewer shares",
                                           t.batch_tokens, t.batch_doubles_at.size(), kMostTokens));
  if (t.max_steps > 0)
    refuse(either,
           "counts the run in tokens, not in updates, whose tokens change; end it by train.max-tokens or max-epochs in place of "
           "train.max-steps");
  if (doubles && t.max_minutes > 0)
    refuse("batch-doubles-at",
           fmt::format("gives shares of the run, which train.max-minutes {:g} leaves open; end it by train.max-tokens or "
                       "max-epochs alone",
                       t.max_minutes));
  if (family_of(c.strategy) != Family::synchronous)
    refuse(either, fmt::format("goes with strategies all-reduce and parameter-server, not with {}; choose one of those, or leave it out",
                               c.strategy.name));
  if (t.optimizer.sgd_after > 0) refuse(either, "goes by tokens and train.sgd-after by updates; leave one of them out");
  if (t.objective == Objective::mixed)
    refuse(either, "is not for train.objective mixed, whose samples are counted by update; leave it out");
}

std::vector<std::string> idle_keys(const Config& c) {
  Config copy = c, standard;
  set_preset(c.model.preset, standard);
  standard.strategy = strategy_preset(c.strategy.name);
  CorpusShorthand shorthand;
  std::vector<std::string> idle =
      idle_keys(sections_of(copy, shorthand), std::vector<std::vector<ConfigSection>>{sections_of(standard, shorthand)});
  if (c.train.batch_growth_exponent != standard.train.batch_growth_exponent && c.train.batch_doubles_at.empty() &&
      c.train.batch_follows_noise == 0)
    idle.push_back("train.batch-growth-exponent does nothing without train.batch-doubles-at or batch-follows-noise");
  return idle;
}

namespace {
constexpr int64_t kDefaultSteps = 100000;
}

bool has_limit(const TrainConfig& c) { return c.max_steps > 0 || c.max_tokens > 0 || c.max_epochs > 0 || c.max_minutes > 0; }

int64_t step_limit(const TrainConfig& c) {
  if (c.max_steps > 0) return c.max_steps;
  return has_limit(c) ? kNoStepLimit : kDefaultSteps;
}

double state_clip(const Config& c, int64_t step) {
  const double start = c.train.clip_start, end = c.model.clip;
  if (end <= 0) return 0;
  const int64_t steps = c.train.clip_steps > 0 ? c.train.clip_steps : c.train.max_steps > 0 ? c.train.max_steps : kDefaultSteps;
  const double done = steps <= 1 ? 1.0 : std::min(1.0, static_cast<double>(step - 1) / static_cast<double>(steps - 1));
  return start * std::pow(end / start, done);
}

std::vector<std::string> all_config_names() { return of_defaults(config_names); }

namespace {

std::string by_corpus(const std::string& name) {
  const std::vector<std::string> keys = keys_by_corpus();
  return std::find(keys.begin(), keys.end(), name) == keys.end() ? "" : ", but a new run has what suits its corpus";
}

}  // namespace

std::string config_reference() {
  return of_defaults([](const auto& all) { return config_help(all, by_corpus); });
}

std::string everyday_reference() {
  static constexpr KeyExample kKeys[] = {
      {"data.source", "train.en.gz"},  {"data.target", "train.de.gz"},        {"valid.source", "valid.en"},   {"valid.target", "valid.de"},
      {"train.output", "my-model"},    {"model.preset", "transformer-small"}, {"model.dropout", "0.3"},       {"vocab.size", "16000"},
      {"train.batch-tokens", "25000"}, {"train.learning-rate", "0.0007"},     {"train.warmup", "1000"},       {"train.max-steps", "20000"},
      {"train.max-minutes", "60"},     {"valid.metrics", "bleu,chrf"},        {"valid.early-stopping", "10"}, {"checkpoint.every", "500"}};
  return of_defaults([](const auto& all) { return config_help(all, kKeys, by_corpus); });
}

std::string config_reference_markdown() {
  return of_defaults([](const auto& all) { return config_markdown(all, by_corpus); });
}

}  // namespace starling
