#include "run/fine_tuning.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <sstream>

#include "base/error.h"
#include "base/files.h"
#include "base/text_files.h"
#include "decode/model_directory.h"
#include "run/run_vocabulary.h"
#include "settings/corpus_defaults.h"
#include "storage/outputs.h"
#include "text/vocabulary_format.h"

namespace starling {
namespace {

// The newest checkpoint of a run, complete or not: it is only looked at, and the start verifies it.
std::optional<ModelDescription> newest_checkpoint(FileSystem& files, const std::string& run) {
  const std::string directory = join_path(run, "checkpoints");
  if (files.info(directory).kind != FileKind::directory) return std::nullopt;
  const std::vector<std::string> names = files.list(directory);  // sorted
  for (auto name = names.rbegin(); name != names.rend(); ++name) {
    if (!name->starts_with("step-")) continue;
    try {
      return read_description(files, join_path(directory, *name));
    } catch (const Error&) {  // damaged: the start says so
    }
  }
  return std::nullopt;
}

// The configuration that a run was started with; it is only a record, and people may edit it. A full disk may have left it empty.
std::optional<Config> record_of(FileSystem& files, const std::string& run) {
  const std::string path = join_path(run, "config.yml");
  if (files.info(path).kind != FileKind::file || files.info(path).size == 0) return std::nullopt;
  try {
    return load_record(path);
  } catch (const Error&) {
    return std::nullopt;
  }
}

// What no start but the first heeds; and of a run that took its model over the bounds of the states, of which a checkpoint has only the
// one of its update.
void take_record(const Config& record, bool took_over, Config& config) {
  config.vocab.training.sample_lines = record.vocab.training.sample_lines;
  config.model.init_bound = record.model.init_bound;
  if (took_over) {
    config.model.clip = record.model.clip;
    config.train.clip_start = record.train.clip_start;
  }
}

// Where its attention was guided.
void take_alignment(const ModelConfig& model, Config& config) {
  config.model.alignment_layer = model.alignment_layer;
  config.model.alignment_head = model.alignment_head;
}

void take_model(const GivenText& given, const ModelConfig& model, Config& config) {
  take_alignment(model, config);
  if (given("model", "preset")) return;  // then the architecture is told, and compared at the start
  set_preset(model.preset, config);
  config.model = model;
  // To go on as it ended.
  if (model.clip > 0 && !given("model", "clip")) config.train.clip_start = model.clip;
}

void take_vocabularies(const Vocabularies& vocabularies, Config& config) {
  config.vocab.joint = vocabularies.joint();
  copy_settings(vocabularies.source(), config.vocab);
}

// Of a run without a checkpoint the first file of its vocabularies, trained before or named by the configuration; "" if it is not there.
std::string vocabulary_file(const GivenText& given, FileSystem& files, Config c) {
  c.vocab.source = given("vocab", "source").value_or("");
  c.vocab.target = given("vocab", "target").value_or("");
  if (const auto joint = given("vocab", "joint")) c.vocab.joint = *joint != "false" && *joint != "no" && *joint != "off";
  const std::string path = vocabulary_paths(c).front();
  return files.info(path).kind == FileKind::file ? path : "";
}

// Warm-up and learning rate that the checkpoint's run had, without which a lost record would let them be chosen anew by today's files;
// false if it has none, as those of older versions.
bool take_rates(FileSystem& files, const std::string& checkpoint, OptimizerOptions& o) {
  const std::string path = join_path(checkpoint, "state.json");
  try {
    const State state = State::from_json(files.read_file(path), path);
    if (!state.has("warmup") || !state.has("learning-rate")) return false;
    o.warmup = state.integer("warmup");
    o.learning_rate = state.real("learning-rate");
    if (state.has("warmup-share")) o.warmup_share = state.real("warmup-share");
    return true;
  } catch (const Error&) {  // damaged: the start says so
    return false;
  }
}

std::vector<std::string> settings_of_checkpoint(FileSystem& files, const std::string& checkpoint) {
  const std::string path = join_path(checkpoint, "state.json");
  try {
    return settings_of(State::from_json(files.read_file(path), path));
  } catch (const Error&) {  // damaged: the start says so
    return {};
  }
}

// Of a run's record; none where its rate would mean something else in another run.
std::optional<EarlierTraining> earlier_training(const TrainConfig& t, const StrategyOptions& strategy, int64_t updates) {
  if (!traits_of(t.optimizer.optimizer).adam || strategy.batch != BatchScope::global || strategy.rate_scaling != RateScaling::none)
    return std::nullopt;
  return EarlierTraining{t.optimizer.learning_rate, t.warmup_tokens > 0 ? t.warmup_tokens / t.batch_tokens : t.optimizer.warmup, updates,
                         t.batch_tokens};
}

// The same of a checkpoint that is no longer in its run.
std::optional<EarlierTraining> earlier_training(const State& s, int64_t updates) {
  if (!s.has("optimizer") || !traits_of(from_word<OptimizerKind>(s.text("optimizer"))).adam) return std::nullopt;
  return EarlierTraining{s.real("learning-rate"), s.integer("warmup"), updates, s.integer("batch-tokens")};
}

// How the model was trained that a run begins with; none where that is not known, as of a copy of a model.
std::optional<EarlierTraining> earlier_training(FileSystem& files, const std::string& initial) {
  if (initial.empty() || !files.exists(initial)) return std::nullopt;
  try {
    const ModelDescription model = describe_model(files, initial);
    std::optional<EarlierTraining> earlier;
    const std::filesystem::path around = std::filesystem::absolute(model.directory).lexically_normal().parent_path();
    for (const std::string& run : {around.string(), around.parent_path().string()})  // best/, checkpoints/step-N/
      if (const auto record = is_run_directory(run) ? record_of(files, run) : std::nullopt; record && !earlier)
        earlier = earlier_training(record->train, record->strategy, model.step);
    if (const std::string path = join_path(model.directory, "state.json"); !earlier && files.exists(path))
      earlier = earlier_training(State::from_json(files.read_file(path), path), model.step);
    const bool known = earlier && earlier->updates > 0 && earlier->batch_tokens > 0 && earlier->learning_rate > 0;
    return known ? earlier : std::nullopt;
  } catch (const Error&) {  // damaged: the start says so
    return std::nullopt;
  }
}

// Of the keys that are chosen by the corpus, those that nobody gives.
std::vector<std::string> open_keys(const GivenText& given) {
  const auto any = [&](const char* section, std::initializer_list<const char*> keys) {
    return std::any_of(keys.begin(), keys.end(), [&](const char* key) { return given(section, key).has_value(); });
  };
  std::vector<std::string> open;
  for (const std::string& name : keys_by_corpus()) {
    const size_t dot = name.find('.');
    if (given(name.substr(0, dot), name.substr(dot + 1))) continue;
    // Dimensions are meant for the preset that there is without a choice.
    if (name == "model.preset" && any("model", {"width", "feed-forward", "heads", "encoder-layers", "decoder-layers"})) continue;
    if (name == "train.max-tokens" && any("train", {"max-steps", "max-epochs", "max-minutes"})) continue;
    open.push_back(name);
  }
  return open;
}

// What the lines of a configuration have for these keys.
std::vector<Override> values_of(const std::vector<std::string>& lines, const std::vector<std::string>& keys) {
  std::vector<Override> values;
  for (const std::string& line : lines)
    for (const std::string& key : keys)
      if (line.starts_with(key + ": ")) values.emplace_back(key, line.substr(key.size() + 2));
  return values;
}

std::vector<Override> chosen_first(std::vector<Override> chosen, const std::vector<Override>& given) {
  chosen.insert(chosen.end(), given.begin(), given.end());
  return chosen;
}

// Where a run goes on: the values that it had for the keys that are open now, as far as they are known; without its record those of its
// checkpoint, which older versions do not have.
std::vector<Override> take_over(const GivenText& given, const std::vector<std::string>& open, Config& config) {
  const auto files = real_file_system();
  config.train.output = given("train", "output").value_or(config.train.output);
  const auto run = newest_checkpoint(*files, config.train.output);
  const auto record = run ? record_of(*files, config.train.output) : std::nullopt;
  if (record) config.train.initial_model = record->train.initial_model;
  const std::string initial = given("train", "initial-model").value_or(config.train.initial_model);
  if (run) {
    take_alignment(run->config, config);
    if (!initial.empty()) take_model(given, run->config, config);
    take_vocabularies(run->vocabularies, config);
    config.languages = run->languages;
    if (record) take_record(*record, !initial.empty(), config);
  } else if (!initial.empty() && files->exists(initial)) {
    const ModelDescription model = describe_model(*files, initial);
    take_model(given, model.config, config);
    take_vocabularies(model.vocabularies, config);
    config.languages = model.languages;
  } else if (const std::string path = vocabulary_file(given, *files, config); !path.empty()) {
    copy_settings(Vocabulary::load(path), config.vocab);
  }
  if (!run) return {};
  std::vector<std::string> known;
  for (const std::string& key : open)
    if (initial.empty() || !key.starts_with("model.")) known.push_back(key);
  // Another limit that the run had, and that nobody gives any more, is no end: it follows from the corpus, as in a new run.
  if (record && record->train.max_tokens == 0 && has_limit(record->train)) std::erase(known, "train.max-tokens");
  if (record) return values_of(config_lines(*record), known);
  if (const auto settings = settings_of_checkpoint(*files, run->directory); !settings.empty()) {
    std::vector<Override> values = values_of(settings, known);
    std::erase(values, Override{"train.max-tokens", "0"});
    return values;
  }
  std::erase_if(known, [&](const std::string& key) {
    return !key.starts_with("model.") && key != "train.learning-rate" && !key.starts_with("train.warmup");
  });
  if (!take_rates(*files, run->directory, config.train.optimizer))
    std::erase_if(known, [](const std::string& key) { return key.starts_with("train."); });
  Config then = config;
  then.model = run->config;
  return values_of(config_lines(then), known);
}

// Read once: it may be a pipe.
std::string text_of(const std::string& path) { return path.empty() ? "" : read_config_file(path); }

// What one model's configuration has otherwise than another's.
std::string differences(ModelConfig model, ModelConfig other) {
  const std::vector<ConfigSection> sections{config_section("model", "", model)}, others{config_section("model", "", other)};
  return write_config(sections, {.defaults = others});
}

}  // namespace

std::vector<std::string> settings_of(const State& state) {
  std::vector<std::string> settings;
  std::istringstream lines(state.has("settings") ? state.text("settings") : "");
  for (std::string line; std::getline(lines, line);) settings.push_back(line);
  return settings;
}

Config load_run_config(const std::string& path, const std::vector<Override>& overrides) {
  std::vector<std::string> open;
  std::vector<Override> earlier;  // of a run that goes on: what was chosen when it began
  const auto basis = [&](const GivenText& given, Config& config) {
    open = open_keys(given);
    earlier = take_over(given, open, config);
  };
  const std::string text = text_of(path);
  const Config config = parse_config(text, path, overrides, basis);
  std::vector<Override> chosen = earlier;
  for (const Override& known : earlier) std::erase(open, known.first);
  const bool tunes = !config.train.initial_model.empty();
  const bool asks = std::any_of(open.begin(), open.end(), [](const std::string& key) { return key.starts_with("train."); });
  const auto before = tunes && asks ? earlier_training(*real_file_system(), config.train.initial_model) : std::nullopt;
  const std::vector<Override> now = tunes ? choose_for_fine_tuning(config, open, before) : choose_by_corpus(config, open);
  chosen.insert(chosen.end(), now.begin(), now.end());
  if (chosen.empty()) return config;
  Config result = parse_config(text, path, chosen_first(chosen, overrides), basis);
  if (earlier.empty()) {
    result.chosen = std::move(chosen);
    result.chosen_for = tunes ? fine_tuning_text(config, before) : corpus_text(config);
  }
  return result;
}

Config load_new_config(const std::string& path, const std::vector<Override>& overrides) {
  std::vector<std::string> open;
  const std::string text = text_of(path);
  const Config config = parse_config(text, path, overrides, [&](const GivenText& given, Config&) { open = open_keys(given); });
  std::vector<Override> chosen = choose_by_corpus(config, open);
  Config result = parse_config(text, path, chosen_first(chosen, overrides));
  result.chosen = std::move(chosen);
  result.chosen_for = corpus_text(config);
  return result;
}

Config load_run_config(const std::string& path, const std::vector<Override>& overrides, Communicator& comm) {
  std::optional<Config> mine;
  if (comm.rank() == 0) mine = load_run_config(path, overrides);
  comm.barrier().wait(kNoDeadline);  // a model that is looked into may be large
  const std::string found = broadcast_text(comm, mine ? dump_config(*mine, true) : "");
  if (mine) return *mine;
  const Config first = parse_config(found, "the configuration of rank 0");
  return load_config(path, overrides, [&](const GivenText&, Config& config) {
    set_preset(first.model.preset, config);
    config.model = first.model;
    config.vocab = first.vocab;
    config.languages = first.languages;
    config.train.initial_model = first.train.initial_model;
    config.train.clip_start = first.train.clip_start;
    config.train.optimizer.learning_rate = first.train.optimizer.learning_rate,
    config.train.optimizer.warmup_share = first.train.optimizer.warmup_share;
    config.train.optimizer.warmup = first.train.optimizer.warmup;
    config.train.optimizer.schedule = first.train.optimizer.schedule;
    config.train.batch_tokens = first.train.batch_tokens;
    config.train.max_tokens = first.train.max_tokens;
  });
}

void take_normalization(const GivenText& given, const std::string& run, Config& config) {
  const auto files = real_file_system();
  Config c = config;
  c.train.output = run;
  const std::string path = vocabulary_file(given, *files, c);
  if (path.empty()) return;
  const std::string bytes = files->read_file(path);
  if (!vocabulary_format::defect(bytes)) copy_normalization(bytes, config.vocab);
}

void require_same_model(const Config& config, ModelConfig then, const std::string& where, const char* what, const char* remedy) {
  const ModelConfig& now = config.model;
  then.dropout = now.dropout, then.attention_dropout = now.attention_dropout, then.feed_forward_dropout = now.feed_forward_dropout,
  then.clip = now.clip, then.init_bound = now.init_bound, then.alignment_layer = now.alignment_layer,
  then.alignment_head = now.alignment_head;  // may change
  const std::string a = differences(then, now), b = differences(now, then);
  if (!a.empty() || architecture_of(then.preset) != architecture_of(now.preset))
    throw ConfigError(fmt::format("{}: {} another model. It was\npreset: {}\n{}now the configuration says\npreset: {}\n{}{}", where, what,
                                  then.preset, a, now.preset, b, remedy));
}

}  // namespace starling
