// Loads, checks and dumps a training configuration. The order matters: the preset comes first, so that the other keys of the model section
// override it; the shorthands such as data.source are folded last, so that a dump has only one form.
#include "settings/config.h"

#include <algorithm>
#include <cmath>

#include "base/counted.h"
#include "base/error.h"
#include "base/push_once.h"
#include "base/text_files.h"
#include "data/pair_tables.h"
#include "metrics/tokenizers.h"
#include "migration/peer_names.h"
#include "parallel/stages.h"
#include "settings/checks.h"
#include "settings/corpus_defaults.h"
#include "settings/fit_to_programs.h"
#include "settings/model_section.h"
#include "strategies/factory.h"

namespace starling {

// The keys of sections whose structs do not contain presets and shorthands.
struct CorpusShorthand {
  std::string source, target, tsv, alignment;
  bool any() const { return !(source.empty() && target.empty() && tsv.empty() && alignment.empty()); }
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
              "source text, one sentence per line (plain, .gz, .zst); short for train.0.source when there is one corpus");
  v.shorthand("target", s.shorthand.target, "its translation, line by line; short for train.0.target when there is one corpus");
  v.shorthand(
      "tsv", s.shorthand.tsv,
      "in place of both: source and target separated by a tab, or a .tmx or .csv file; short for train.0.tsv when there is one corpus");
  v.shorthand("alignment", s.shorthand.alignment,
              "its word alignment: a file or, for a tsv, the word column; short for train.0.alignment when there is one corpus");
  v.choice("alignment-unit", s.options.alignment_unit,
           "what the positions in alignments count: words, between spaces, or the pieces of the vocabularies");
  v.field("max-length", s.options.max_length, "tokens per side, end of sentence included; longer pairs are dropped", 2, 8192);
  v.field("window", s.options.window_lines,
          "where tsv is a pipe (- is standard input): lines that are shuffled together (docs/guides/streams.md)", 1, 1000000000);
  v.numbers(
      "stages", s.options.stages,
      "a curriculum: target tokens of each stage but the last, which lasts to the end; data.train.0.weights are the weights of a corpus "
      "in the stages",
      1.0, 1e15);
  v.field("max-ratio", s.options.max_ratio, "longer over shorter side in tokens; pairs above it are dropped; 0 = off, else at least 1", 0.0,
          1e6);
  v.field(
      "subword-alpha", s.options.subword_alpha,
      "splits the words of the training text into different pieces in every epoch: with a unigram vocabulary, the power to which a "
      "segmentation's probability is raised (0.1 to 0.5 is usual, less = more varied); with bpe, the probability that a merge is dropped "
      "(0.1 is usual); 0 = off",
      0.0, 10.0);
  v.field("upper-case", s.options.noise.upper_case,
          "share of the pairs, drawn in every epoch, that are shown in capitals, both sides (docs/guides/data.md)", 0.0, 1.0);
  v.field("title-case", s.options.noise.title_case, "share of the pairs in which the first letter of each word is shown as a capital", 0.0,
          1.0);
  v.field("typos", s.options.noise.typos, "share of the pairs whose source is shown with typing errors, about one per ten letters", 0.0,
          1.0);
  v.field("merge", s.options.noise.merge,
          "share of the pairs that are joined to another of the same batch and corpus, as two sentences in a line", 0.0, 1.0);
  visit(v, s.languages);
}
namespace {

std::vector<ConfigSection> sections_of(Config& c, CorpusShorthand& shorthand) {
  DataSection data{c.data, c.languages, shorthand};
  ModelSection model{c.model, c.model_for};
  std::vector<ConfigSection> all;
  const auto add = [&](const char* name, const char* help, auto& part) {
    for (ConfigSection& section : config_sections(name, help, part)) all.push_back(std::move(section));
  };
  add("data", "Training text", data);
  add("clean", "What `starling clean` keeps of data.train", c.clean);
  add("vocab", "Subword vocabulary (SentencePiece)", c.vocab);
  add("model", "Architecture", model);
  add("train", "Optimization, run directory and limits", c.train);
  add("refine", "Refinement by sampled translations", c.refine);
  all.back().needs = {{"train.objective", {"mixed"}}};
  add("strategy", "Several workers", c.strategy);
  add("parallel", "A model divided among several ranks", c.parallel);
  add("valid", "Validation", c.valid);
  add("checkpoint", "Checkpoints", c.checkpoint);
  add("guard", "Divergence", c.guard);
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
    throw ConfigError(fmt::format(
        "data: source, target, tsv and alignment describe a single corpus, but data.train lists {}; use data.train.0.source and so on",
        data.train.size()));
  }
  if (data.train.empty()) data.train.emplace_back();
  CorpusFiles& corpus = data.train.front();
  const bool pair = !shorthand.source.empty() || !shorthand.target.empty();
  if (!shorthand.tsv.empty() && !pair) corpus.source = corpus.target = "";
  if (shorthand.tsv.empty() && pair) corpus.tsv = "";
  for (auto [from, to] : {std::pair(&shorthand.source, &corpus.source),
                          {&shorthand.target, &corpus.target},
                          {&shorthand.tsv, &corpus.tsv},
                          {&shorthand.alignment, &corpus.alignment}}) {
    if (!from->empty()) *to = *from;
  }
  shorthand = {};
}

// A model whose attention is guided is asked for its alignments where that is done.
void fold_alignment(Config& c) {
  const bool heads = architecture_of(c.model.preset) == Architecture::transformer;
  if (guides_attention(c) && heads && c.model.alignment_head == 0) c.model.alignment_head = 1;
}

// Collects the directions of the corpora that name their languages; with several, each corpus has them, and its tag.
void fold_languages(Config& c) {
  const auto named = [](const auto& text) { return !text.source_language.empty() || !text.target_language.empty(); };
  // A translation memory may have many languages, so it is read with those of the whole text.
  for (CorpusFiles& corpus : c.data.train)
    if (is_memory(corpus.tsv) && !named(corpus) && c.languages.directions.empty())
      std::tie(corpus.source_language, corpus.target_language) = std::tie(c.languages.source, c.languages.target);
  if (c.languages.directions.empty() && std::none_of(c.data.train.begin(), c.data.train.end(), named) &&
      std::none_of(c.valid.sets.begin(), c.valid.sets.end(), named))
    return;
  std::vector<std::string>& all = c.languages.directions;
  const auto complete = [&](auto& text, const std::string& key) {
    for (auto [code, whole, name] : {std::tuple(&text.source_language, &c.languages.source, "source-language"),
                                     {&text.target_language, &c.languages.target, "target-language"}}) {
      if (code->empty()) *code = *whole;
      if (code->empty())
        throw ConfigError(fmt::format("{0}.{1} is missing; give each corpus its languages, or data.{1} for those without", key, name));
      if (!is_language_code(*code))
        throw ConfigError(fmt::format("{}.{}: '{}' is not a language code; give one such as en, de, pt-BR or zh-Hant", key, name, *code));
    }
  };
  const bool corpora = !c.languages.directions.empty() || std::any_of(c.data.train.begin(), c.data.train.end(), named);
  for (size_t i = 0; i < c.data.train.size() && corpora; ++i) {
    CorpusFiles& corpus = c.data.train[i];
    complete(corpus, fmt::format("data.train.{}", i));
    push_once(all, corpus.source_language + ":" + corpus.target_language);
  }
  for (size_t i = 0; i < c.valid.sets.size(); ++i) complete(c.valid.sets[i], fmt::format("valid.sets.{}", i));
  const std::vector<std::string> tags = language_tags(c.languages);
  if (all.size() == 1) {
    std::tie(c.languages.source, c.languages.target) = parse_direction(all.front(), "data.directions");
    all.clear();
  }
  if (tags.empty()) return;
  const auto add_tag = [](auto& text, const std::string& key) {
    const std::string tag = language_tag(text.target_language);
    if (text.tag.empty()) text.tag = tag;
    if (text.tag.find(tag) == std::string::npos)
      throw ConfigError(
          fmt::format("{}.tag: '{}' lacks {}, by which the model knows the language; add it, or leave the key out", key, text.tag, tag));
  };
  for (size_t i = 0; i < c.data.train.size(); ++i) add_tag(c.data.train[i], fmt::format("data.train.{}", i));
  for (size_t i = 0; i < c.valid.sets.size(); ++i) add_tag(c.valid.sets[i], fmt::format("valid.sets.{}", i));
  if (!c.valid.source.empty() && c.valid.search.source_prefix.empty())
    throw ConfigError(
        "valid.source: the model has several target languages; list the validation texts and their languages in valid.sets instead");
}

std::optional<std::string> given_text(const ConfigDocument& document, const std::vector<Override>& overrides, const std::string& section,
                                      const std::string& key) {
  std::optional<std::string> text;
  if (const auto scalar = document.scalar(section, key)) text = scalar->text;
  for (const auto& [name, value] : overrides)
    if (name == section + "." + key) text = value;
  return text;
}

// A dump gives every key. When the user empties one, keys that the dump gave only because of it must not cause errors, and when the user
// sets it again, that must have an effect. A value given at a later place than the emptied key stays, and is refused if it makes no sense.
void follow_what_was_emptied(const ConfigDocument& document, const std::vector<Override>& overrides, Config& c) {
  enum Place { nowhere, file, command_line };
  const auto place = [&](const char* section, const char* key) {
    const std::string name = fmt::format("{}.{}", section, key);
    const bool overridden = std::any_of(overrides.begin(), overrides.end(), [&](const Override& o) { return o.first == name; });
    return overridden ? command_line : document.has(section, key) ? file : nowhere;
  };
  const Place source = place("valid", "source"), metrics = place("valid", "metrics");
  if (c.valid.source.empty() && c.valid.sets.empty()) {
    if (source > nowhere && place("valid", "target") < command_line) c.valid.target.clear();
    if (c.valid.target.empty() && (metrics == nowhere || (source > nowhere && metrics == file))) c.valid.metrics.clear();
    if (source == command_line && place("valid", "early-stopping") < command_line) c.valid.early_stopping = 0;
  } else if (const bool sets =
                 std::any_of(overrides.begin(), overrides.end(), [](const Override& o) { return o.first.starts_with("valid.sets."); });
             c.valid.metrics.empty() && (sets || (!c.valid.source.empty() && source == command_line)) && metrics == file &&
             document.scalar("valid", "source").value_or(ConfigDocument::Scalar{}).text.empty()) {
    c.valid.metrics = ValidConfig{}.metrics;  // the list was empty because there was nothing to validate on
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
  fit_to_programs(sections, config);
  fold_languages(config);
  fold_alignment(config);
  config.vocab.training.seed = config.train.seed;
  check_settings(config);
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

void require_data(const Config& config, bool streams) {
  try {
    check_options(config.data, streams);
  } catch (const ConfigError& e) {
    throw ConfigError(fmt::format("data: {}", e.what()));
  }
  try {
    if (config.valid.enabled())
      for (const ValidSet& set : config.valid.texts()) require_files({set.source, set.target, "", 1});
  } catch (const ConfigError& e) {
    throw ConfigError(fmt::format("valid: {}", e.what()));
  }
}

namespace {

// Writes the keys that differ from the defaults, and those that are named.
std::string written_keys(const Config& config, const std::set<std::string>* named) {
  Config copy = config, standard;
  CorpusShorthand shorthand;
  const std::string standard_preset = standard.model.preset;
  set_preset(config.model.preset, standard);
  standard.model.preset = standard_preset;
  std::vector<ConfigSection> defaults = sections_of(standard, shorthand);
  // Writes all keys of the model, since for an omitted key the value of the initial model would replace the default.
  if (!config.train.initial_model.empty()) std::erase_if(defaults, [](const ConfigSection& d) { return d.name == "model"; });
  const std::vector<ConfigSection> sections = sections_of(copy, shorthand);
  // A named strategy is written with all keys that it sets.
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

std::string everyday_reference(std::string_view verb) {
  static constexpr KeyExample kCleanKeys[] = {
      {"data.source", "crawl.en.gz"}, {"data.target", "crawl.de.gz"}, {"data.source-language", "en"}, {"data.target-language", "de"},
      {"valid.source", "valid.en"},   {"valid.target", "valid.de"},   {"clean.language", "false"},    {"clean.max-ratio", "4"},
      {"clean.max-words", "150"},     {"clean.min-script", "0.3"},    {"clean.min-digits", "0"},      {"clean.copies", "targets"},
      {"clean.near-copies", "0.8"},   {"clean.max-same-source", "5"}, {"clean.best-share", "0.8"}};
  static constexpr KeyExample kKeys[] = {
      {"data.source", "train.en.gz"},  {"data.target", "train.de.gz"},        {"valid.source", "valid.en"},   {"valid.target", "valid.de"},
      {"train.output", "my-model"},    {"model.preset", "transformer-small"}, {"model.dropout", "0.3"},       {"vocab.size", "16000"},
      {"train.batch-tokens", "25000"}, {"train.learning-rate", "0.0007"},     {"train.warmup", "1000"},       {"train.max-steps", "20000"},
      {"train.max-minutes", "60"},     {"valid.metrics", "bleu,chrf"},        {"valid.early-stopping", "10"}, {"checkpoint.every", "500"}};
  const std::span<const KeyExample> keys = verb == "clean" ? std::span<const KeyExample>(kCleanKeys) : kKeys;
  return of_defaults([&](const auto& all) { return config_help(all, keys, by_corpus); });
}

std::vector<ConfigKeyHelp> config_key_help() {
  return of_defaults([](const auto& all) { return config_key_help(all); });
}

std::string config_reference_markdown() {
  return of_defaults([](const auto& all) { return config_markdown(all, by_corpus); });
}

}  // namespace starling
