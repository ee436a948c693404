#include "experiments/recipe.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "base/ascii.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text_files.h"
#include "data/corpus.h"
#include "run/fine_tuning.h"
#include "run/post_update_actions.h"
#include "settings/batch_size_schedule.h"
#include "settings/checks.h"
#include "strategies/factory.h"

namespace starling {
namespace {

constexpr const char* kRates[] = {"forward-gflops", "backward-gflops", "update-gb-s", "memory-gb-s"};
constexpr const char* kBaseline = "one-worker";
// Cluster keys that a recipe may not set: `networks` and `workers` determine them.
constexpr const char* kOverridden[] = {"ranks", "network", "latency-us", "bandwidth-gbit-s", "message-us"};

std::vector<ConfigSection> sections_of(RaceRecipe& recipe) {
  return {config_section("race", "Race", recipe), config_section("cluster", "Simulated cluster", recipe.cluster)};
}

bool good_name(const std::string& name) {
  return !name.empty() && name.size() <= 60 &&
         std::all_of(name.begin(), name.end(), [](char c) { return is_ascii_letter_or_digit(c) || c == '-' || c == '_' || c == '.'; }) &&
         name[0] != '.';
}

template <class Named>
void check_names(const RaceRecipe& r, const char* what, const std::vector<Named>& list) {
  std::set<std::string> seen;
  for (size_t i = 0; i < list.size(); ++i) {
    const auto fail = [&](const std::string& problem) { throw ConfigError(fmt::format("{}: race.{}.{}: {}", r.file, what, i, problem)); };
    if (!good_name(list[i].name))
      fail(fmt::format("the name {} cannot be used in file names; give 1 to 60 letters, digits, '-', '_' or '.'", in_quotes(list[i].name)));
    if (list[i].name == kBaseline) fail("the name 'one-worker' is that of the baseline, which is always there; choose another");
    if (!seen.insert(list[i].name).second) fail(fmt::format("the name {} is given twice; choose another", in_quotes(list[i].name)));
  }
}

void check_rates(const RaceRecipe& r) {
  if (r.tuning == "fixed") return;
  const auto candidates = [](const RaceArm& arm) { return arm.rates.size() * std::max<size_t>(1, arm.seconds.size()); };
  for (const RaceArm& arm : r.arms)
    if (candidates(arm) != candidates(r.baseline))
      throw ConfigError(fmt::format(
          "{}: the arm {} has {} to choose from, one worker has {}: a race is fair if all have as many; list as many in its "
          "learning-rates{}, or set race.tuning to fixed",
          r.file, arm.name, counted(static_cast<int64_t>(candidates(arm)), r.second_key.empty() ? "learning rate" : "candidate"),
          candidates(r.baseline), r.second_key.empty() ? "" : " and second-values"));
}

template <class T>
void check_list(const RaceRecipe& r, const std::string& name, const std::vector<T>& values) {
  if (values.empty()) throw ConfigError(fmt::format("{}: {} is empty; list at least one", r.file, name));
  if (std::set<T>(values.begin(), values.end()).size() != values.size())
    throw ConfigError(fmt::format("{}: {} has a value twice; remove one", r.file, name));
}

void refuse_overridden(const ConfigDocument& document, const std::vector<Override>& settings) {
  for (const std::string key : kOverridden) {
    std::string where;
    if (const auto scalar = document.scalar("cluster", key)) where = scalar->where;
    for (const Override& o : settings)
      if (o.first == "cluster." + key) where = "command line";
    if (where.empty()) continue;
    throw ConfigError(fmt::format("{}: cluster.{}: {}", where, key,
                                  key == "ranks" ? "the number of ranks follows from race.workers; remove it"
                                                 : "the networks of a race are those of race.networks; move it there"));
  }
}

void check(const RaceRecipe& r) {
  check_names(r, "arms", r.arms);
  check_names(r, "networks", r.networks);
  if (r.arms.empty()) throw ConfigError(fmt::format("{}: race.arms is empty; list at least one arm, '- name: ...'", r.file));
  check_list(r, "race.workers", r.workers);
  check_list(r, "race.seeds", r.seeds);
  for (const RaceArm& arm : r.arms) {
    check_list(r, fmt::format("workers of the arm {}", arm.name), arm.workers);
    check_list(r, fmt::format("learning-rates of the arm {}", arm.name), arm.rates);
  }
  if (r.second_key.empty() != r.baseline.seconds.empty())
    throw ConfigError(fmt::format("{}: race.{} is set, but race.{} is not; give both, or neither", r.file,
                                  r.second_key.empty() ? "second-values" : "second-key",
                                  r.second_key.empty() ? "second-key" : "second-values"));
  if (r.second_key.starts_with("vocab.") || (r.second_key.starts_with("data.") && r.second_key != "data.subword-alpha"))
    throw ConfigError(
        fmt::format("{}: race.second-key {}: all runs of a race have one vocabulary and one text; name another key", r.file, r.second_key));
  for (const RaceArm& arm : r.arms)
    if (r.second_key.empty() && !arm.seconds.empty())
      throw ConfigError(
          fmt::format("{}: the arm {} has second-values, but race.second-key names no key; set it, or remove them", r.file, arm.name));
  if (r.tune_each && r.tuning_workers > 0)
    throw ConfigError(fmt::format(
        "{}: race.tune-each compares candidates at every number of workers, so tuning-workers {} does nothing; remove one of them", r.file,
        r.tuning_workers));
  if (r.screening_rungs > 1 && static_cast<double>(r.screening_tokens) * std::pow(3, r.screening_rungs - 1) > static_cast<double>(r.tokens))
    throw ConfigError(fmt::format(
        "{}: race.screening-tokens {} become more than race.tokens {} in {} rungs, each with three times as many; lower one of them",
        r.file, r.screening_tokens, r.tokens, r.screening_rungs));
  if (r.screening_rungs > 1 && r.screening_tokens == 0)
    throw ConfigError(fmt::format("{}: race.screening-rungs does nothing without screening-tokens; set these too", r.file));
  if (r.screening_tokens > r.tokens)
    throw ConfigError(fmt::format("{}: race.screening-tokens {} are more than race.tokens {}; lower them, or set 0", r.file,
                                  r.screening_tokens, r.tokens));
  if (r.tuning_workers > 0 && std::find(r.workers.begin(), r.workers.end(), r.tuning_workers) == r.workers.end())
    throw ConfigError(fmt::format("{}: race.tuning-workers {} is not among race.workers {}; choose one of them, or 0 for the first", r.file,
                                  r.tuning_workers, fmt::join(r.workers, ", ")));
  for (const RaceNetwork& n : r.networks)
    if (n.r > 0 && n.link.bandwidth_gbit_s > 0)
      throw ConfigError(
          fmt::format("{}: the network {} has r and bandwidth-gbit-s, but one follows from the other; remove one", r.file, n.name));
  if (r.cluster.network.ranks_per_node > 1)
    for (const RaceNetwork& n : r.networks)
      if (n.r > 0)
        throw ConfigError(fmt::format(
            "{}: the network {} has r, which is that of a ring of nodes with one rank each, but cluster.ranks-per-node is {}; give "
            "bandwidth-gbit-s in place of r, or set ranks-per-node to 1",
            r.file, n.name, r.cluster.network.ranks_per_node));
  if (!r.cluster.crashes.empty()) throw ConfigError(fmt::format("{}: cluster.crashes would end every run; remove it", r.file));
  if (r.cluster.timing_only) throw ConfigError(fmt::format("{}: cluster.timing-only: a race trains for real; remove it", r.file));
  check_rates(r);
}

// Replaces "command line" in a message by the place where the recipe sets the key.
[[noreturn]] void rethrow_with_place(const ConfigError& e, const RaceRecipe& recipe, const RaceArm& arm) {
  const std::string message = e.what(), place = "command line: ";
  const size_t at = message.find(place);
  if (at == 0)
    for (const auto* keys : {&arm.keys, &recipe.keys})
      for (const ForeignKey& key : *keys)
        if (message.find(key.name) != std::string::npos)
          throw ConfigError(fmt::format("{}: arm {}: {}", key.where, arm.name, message.substr(place.size())));
  throw ConfigError(fmt::format("{}: arm {}: {}", recipe.file, arm.name, message));
}

// Returns, for messages, where keys that all arms share are set.
std::string place_of_keys(const RaceRecipe& r) {
  return r.train.empty() ? fmt::format("{}, in the section race", r.file) : fmt::format("{}, which race.train names", r.train);
}

Config shared_config(const RaceRecipe& recipe, const RaceArm& arm, const std::string& second = "") {
  std::vector<Override> overrides{{"strategy.batch", "per-worker"},
                                  {"train.max-steps", "0"},
                                  {"train.max-minutes", "0"},
                                  {"train.max-tokens", fmt::format("{}", recipe.tokens)}};
  for (const auto* keys : {&recipe.keys, &arm.keys})
    for (const ForeignKey& key : *keys) overrides.emplace_back(key.name, key.text);
  if (!second.empty()) overrides.emplace_back(recipe.second_key, second);
  try {
    // A race that began with another normalization rule keeps it, unless a rule is given.
    Config c = load_config(recipe.train, overrides,
                           [&](const GivenText& given, Config& basis) { take_normalization(given, recipe.output, basis); });
    if (c.data.train.empty())
      throw ConfigError(fmt::format("there is no training text; set data.source and data.target in {}", place_of_keys(recipe)));
    require_data(c);
    refuse_cleaning(c, "a race");
    c.valid.metrics = {"cross-entropy"};
    return c;
  } catch (const ConfigError& e) {
    const std::string message = e.what(), place = "command line: ";
    if (!second.empty() && message.starts_with(place))
      throw ConfigError(
          fmt::format("{}: arm {}, with {} {}: {}", recipe.file, arm.name, recipe.second_key, second, message.substr(place.size())));
    rethrow_with_place(e, recipe, arm);
  }
}

// Refuses to tune keys that the race sets itself or that all its runs share: the candidates would be the same under two names.
void check_seconds(const RaceRecipe& r, const RaceArm& arm) {
  const auto fail = [&](const std::string& problem) {
    throw ConfigError(fmt::format("{}: race.second-key {}: {}", r.file, r.second_key, problem));
  };
  if (arm.seconds.empty()) return;
  std::map<std::string, std::string> seen;  // values by the configuration that they give
  for (const std::string& second : arm.seconds) {
    Config config = race_config(r, {&arm, static_cast<int>(arm.workers.front()), r.seeds.front(), arm.rates.front(), "", 0, second});
    config.train.output.clear();
    if (const auto [other, fresh] = seen.emplace(config_identity(config), second); !fresh)
      fail(
          fmt::format("arm {}: the values {} and {} make the same configuration; remove one, or name a key that a race does not set "
                      "itself",
                      arm.name, in_quotes(other->second), in_quotes(second)));
  }
}

// Checks the requirements of a race on the configuration that all arms share.
void check_config(const RaceRecipe& r, const RaceArm& arm, const Config& c) {
  const auto fail = [&](const std::string& problem) { throw ConfigError(fmt::format("{}: arm {}: {}", r.file, arm.name, problem)); };
  if (!c.valid.sets.empty()) fail("races compare on one text; set valid.source and valid.target in place of valid.sets");
  if (!c.valid.enabled()) fail(fmt::format("there is nothing to validate on; set valid.source and valid.target in {}", place_of_keys(r)));
  if (c.train.objective != Objective::likelihood) fail("times of samples cannot be replayed; set train.objective to likelihood");
  if (c.parallel.ranks() > 1)
    fail("a race replays whole models; set parallel.pipeline and tensor to 1, and see 'starling plan' for layouts");
  if (c.train.batch_follows_noise > 0)
    fail("a replay computes no gradients whose noise a batch could follow; give train.batch-doubles-at in place of batch-follows-noise");
  if (c.guard.mode == GuardMode::act) fail("a replay makes each update once, and cannot go back as guard.mode act does; set it to warn");
  if (c.strategy.algorithm == Algorithm::library)
    fail("strategy.algorithm library is MPI's own; choose auto, ring, tree or halving-doubling");
}

// Arms that reuse another arm's runs may differ only in what is exchanged when.
void check_trained_as(RaceRecipe& r) {
  for (RaceArm& arm : r.arms) {
    if (arm.trained_as.empty()) continue;
    const auto fail = [&](const std::string& problem) { throw ConfigError(fmt::format("{}: arm {}: {}", r.file, arm.name, problem)); };
    const auto base = std::find_if(r.arms.begin(), r.arms.end(), [&](const RaceArm& a) { return a.name == arm.trained_as; });
    if (base == r.arms.end() || !base->trained_as.empty())
      fail(fmt::format("trained-as names {}, which is not an arm with runs of its own; name one of race.arms", in_quotes(arm.trained_as)));
    if (!arm.rates.empty() || !arm.seconds.empty() || arm.longer > 0 || arm.timed)
      fail("with trained-as there is nothing to train; remove learning-rates, second-values, longer and timed");
    arm.rates = base->rates;
    arm.seconds = base->seconds;
    arm.longer = base->longer;
    for (const int64_t workers : arm.workers)
      if (std::find(base->workers.begin(), base->workers.end(), workers) == base->workers.end())
        fail(fmt::format("trained-as: {} is not run with {} workers; list the same in both", base->name, workers));
    Config mine = shared_config(r, arm), its = shared_config(r, *base);
    if (family_of(its.strategy) != Family::synchronous || base->timed)
      fail(fmt::format(
          "trained-as needs an arm with a synchronous strategy and without timed, which {} is not; name another arm or remove it",
          base->name));
    mine.strategy.overlap = its.strategy.overlap;
    mine.strategy.bucket_mib = its.strategy.bucket_mib;
    // In bf16 the parts of a table are rounded one by one, so this key alters the result.
    if (its.strategy.wire == Wire::f32) mine.strategy.embedding_gradients = its.strategy.embedding_gradients;
    if (config_identity(mine) != config_identity(its))
      fail(
          fmt::format("trained-as: its configuration differs from that of {} in more than strategy.overlap, bucket-mib and "
                      "embedding-gradients; remove trained-as, or what differs",
                      base->name));
  }
}

// Applies settings such as race.output=x to the recipe and adds the others to the configuration that all arms share.
void apply_settings(RaceRecipe& recipe, const std::vector<ConfigSection>& sections, const std::vector<Override>& settings) {
  for (const auto& [name, text] : settings) {
    if (name.starts_with("race.") || name.starts_with("cluster."))
      apply_override(sections, name, text);
    else
      recipe.keys.push_back({name, text, "command line"});
  }
}

// Returns the GPU whose rates are used if the recipe gives none.
std::string gpu_of(const ConfigDocument& document, const std::vector<Override>& settings) {
  RaceRecipe first;
  const std::vector<ConfigSection> sections = sections_of(first);
  document.read(sections);
  apply_settings(first, sections, settings);
  return first.cluster.network.gpu;
}

}  // namespace

RaceRecipe load_recipe(const std::string& path, const std::vector<Override>& settings) {
  const ConfigDocument document(read_config_file(path), path);
  RaceRecipe r;
  r.file = path;
  r.cluster.ranks = 1;
  const std::string gpu = gpu_of(document, settings);
  if (gpu != "none") r.cluster.compute = gpu_rates(gpu);
  const std::vector<ConfigSection> sections = sections_of(r);
  document.read(sections);
  refuse_overridden(document, settings);
  apply_settings(r, sections, settings);
  r.rates_given = gpu != "none" || std::all_of(std::begin(kRates), std::end(kRates), [&](const char* key) {
                    return document.has("cluster", key) || std::any_of(settings.begin(), settings.end(), [&](const Override& o) {
                             return o.first == std::string("cluster.") + key;
                           });
                  });
  if (!r.train.empty() && !r.train.starts_with('/')) r.train = join_path(parent_path(path), r.train);
  if (r.networks.empty()) r.networks.push_back({.name = "10gbe"});
  if (r.targets.empty()) r.targets.emplace_back();
  r.baseline.name = kBaseline;
  r.baseline.workers = {1};
  r.baseline.rates = r.rates;
  r.baseline.seconds = r.seconds;
  if (r.baseline.rates.empty()) r.baseline.rates = {shared_config(r, r.baseline).train.optimizer.learning_rate};
  for (RaceArm& arm : r.arms) {
    if (arm.workers.empty()) arm.workers = r.workers;
    if (arm.seconds.empty() && arm.trained_as.empty()) arm.seconds = r.seconds;
    if (arm.rates.empty() && arm.trained_as.empty())
      arm.rates = r.rates.empty() ? std::vector<double>{shared_config(r, arm).train.optimizer.learning_rate} : r.rates;
  }
  check_trained_as(r);
  check(r);
  std::vector<const RaceArm*> all{&r.baseline};
  for (const RaceArm& arm : r.arms) all.push_back(&arm);
  for (const RaceArm* arm : all) {
    check_config(r, *arm, shared_config(r, *arm));
    for (const std::string& second : arm->seconds) check_config(r, *arm, shared_config(r, *arm, second));
    check_seconds(r, *arm);
  }
  return r;
}

std::string run_directory(const RaceRecipe& recipe, const std::string& run) { return join_path(join_path(recipe.output, "runs"), run); }

std::string RaceRun::name() const {
  std::string value = second;  // made fit for file names
  std::replace_if(
      value.begin(), value.end(), [](char c) { return !good_name(std::string("x") + c); }, '_');
  return fmt::format("{}-{}w-seed{}-rate{:g}{}{}{}{}{}", arm->name, workers, seed, rate, value.empty() ? "" : "-", value,
                     network.empty() ? "" : "-", network,
                     rung == 0   ? ""
                     : rung == 1 ? "-trial"
                                 : fmt::format("-trial{}", rung));
}

int64_t planned_tokens(const RaceRecipe& recipe, const RaceRun& run) {
  if (run.rung > 0) return recipe.screening_tokens * std::llround(std::pow(3, run.rung - 1));
  const double longer = run.arm->longer > 0 ? run.arm->longer : recipe.longer;
  return run.workers == 1 ? recipe.tokens : std::llround(longer * static_cast<double>(recipe.tokens));
}

Config race_config(const RaceRecipe& recipe, const RaceRun& run) {
  Config c = shared_config(recipe, *run.arm, run.second);
  c.train.output = run_directory(recipe, run.name());
  c.train.seed = static_cast<uint64_t>(run.seed);
  c.train.optimizer.learning_rate = run.rate;
  const int64_t global = plan_batch(c.strategy, c.train.batch_tokens, run.workers).global_tokens;
  const auto updates = [&](int64_t tokens) { return std::max<int64_t>(1, (tokens + global / 2) / global); };
  c.train.max_steps = updates(planned_tokens(recipe, run));
  c.train.max_tokens = 0;
  if (BatchSizeSchedule::asked(c.train)) {
    if (c.train.clip_steps == 0) c.train.clip_steps = c.train.max_steps;
    c.train.max_tokens = std::exchange(c.train.max_steps, 0) * global;
  }
  c.train.max_epochs = 0;
  c.train.max_minutes = 0;
  c.valid.early_stopping = 0;
  c.train.threads = 1;
  // A worker's share may slightly exceed its part of the batch; cut in two, it would cost more than a single worker's.
  if (c.train.micro_batch_tokens == 0) c.train.micro_batch_tokens = std::max<int64_t>(4096, 2 * global / run.workers);
  c.valid.every = updates(recipe.validate_every);
  c.valid.metrics = {"cross-entropy"};
  for (const RaceTarget& t : recipe.targets)
    if (run.rung == 0 && std::find(c.valid.metrics.begin(), c.valid.metrics.end(), t.metric) == c.valid.metrics.end())
      c.valid.metrics.push_back(t.metric);
  c.valid.early_stopping_metric = "first";
  c.log.every = c.valid.every;
  c.log.progress = "never";
  c.checkpoint.every = 4 * c.valid.every;
  c.checkpoint.keep = 1;
  if (c.vocab.source.empty()) c.vocab.source = join_path(recipe.output, c.vocab.joint ? "vocab.spm" : "source.spm");
  if (c.vocab.target.empty() && !c.vocab.joint) c.vocab.target = join_path(recipe.output, "target.spm");
  return c;
}

int64_t race_updates(const Config& c, int workers) {
  if (!BatchSizeSchedule::asked(c.train)) return c.train.max_steps;
  const int64_t global = plan_batch(c.strategy, c.train.batch_tokens, workers).global_tokens;
  return BatchSizeSchedule(c.train, global, last_update(c.train, global)).updates();
}

std::optional<TokenizerChoice> race_tokenizer(const RaceRecipe& recipe, const ValidConfig& valid) {
  bool measured = std::any_of(recipe.final_metrics.begin(), recipe.final_metrics.end(), is_tokenized);
  for (const RaceTarget& t : recipe.targets) measured = measured || is_tokenized(t.metric);
  if (!measured) return std::nullopt;
  std::vector<std::string> references;
  PairReader reader({valid.source, valid.target, "", 1});
  for (std::string_view source, target; reader.next(source, target);) references.emplace_back(target);
  return choose_tokenizer(valid.tokenize, {&references, 1});
}

}  // namespace starling
