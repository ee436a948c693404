// The verb `starling average`: averages the weights of several checkpoints into a model directory.
#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "base/affinity.h"
#include "base/counted.h"
#include "base/hash64.h"
#include "base/messages.h"
#include "base/stop_note.h"
#include "base/task_progress.h"
#include "cli/verbs.h"
#include "comm/world.h"
#include "decode/framing.h"
#include "decode/model_directory.h"
#include "evaluation/averaging.h"
#include "evaluation/model_selector.h"
#include "evaluation/validation.h"
#include "storage/outputs.h"

namespace starling {
namespace {

struct AverageArguments {
  std::vector<std::string> models;
  std::string run, output, source, target, target_language, metric = "cross-entropy";
  int64_t last = 0;
};

std::vector<std::string> checkpoints_of(FileSystem& files, const std::string& run, int64_t last) {
  const std::string directory = join_path(run, "checkpoints");
  if (!files.exists(directory))
    throw ConfigError(fmt::format("{}: not a run directory (it has no checkpoints/); name the train.output of a run", run));
  std::vector<std::string> paths;
  for (const std::string& name : files.list(directory))
    if (name.rfind("step-", 0) == 0) paths.push_back(join_path(directory, name));  // names sort by step
  if (last == 0) last = static_cast<int64_t>(paths.size());
  if (paths.empty() || static_cast<int64_t>(paths.size()) < last)
    throw ConfigError(fmt::format("{} has {}, --last asks for {}; lower it, or train with a larger checkpoint.keep", run,
                                  counted(paths.size(), "checkpoint"), last));
  return {paths.end() - last, paths.end()};
}

// What two models must share so that the mean of their weights is a model: everything that determines the computation, and the
// vocabularies. Dropout, initial weights and the bound of states, which falls during training, may differ.
auto architecture(const ModelDescription& d) {
  const ModelConfig& c = d.config;
  return std::tuple(architecture_of(c.preset), c.encoder_layers, c.decoder_layers, c.width, c.feed_forward, c.heads, c.norm,
                    c.tied_embeddings, c.activation, c.autoregression, c.decoder_start, c.output_bias, c.norm_epsilon, c.source_end,
                    c.first_position, c.position_table, c.relative_positions, c.embedding_scale, c.attention, c.attention_query,
                    c.attention_place, c.readout, c.tanh_output, d.vocabularies.source().hash(), d.vocabularies.target().hash());
}

uint64_t hash_of(const LoadedModel& m) { return hash64(m.model->parameters().values().download()); }

// Calls `each` with the values of every checkpoint, oldest first; `result` is the last one. Returns their numbers of updates.
template <class Each>
std::vector<int64_t> for_each_model(FileSystem& files, const std::vector<std::string>& paths, Backend& backend, const LoadedModel& result,
                                    const Each& each) {
  std::map<uint64_t, std::string> seen{{hash_of(result), paths.back()}};
  std::vector<int64_t> updates;
  TaskProgress progress("average", standard_error_screen());
  for (size_t i = 0; i + 1 < paths.size(); ++i) {
    if (progress.due()) progress.count(static_cast<int64_t>(i), static_cast<int64_t>(paths.size()), "checkpoints");
    const LoadedModel next = load_model(files, paths[i], backend);
    if (architecture(next.description) != architecture(result.description))
      throw ConfigError(
          fmt::format("{} and {} differ in architecture or vocabulary; name models that share both, such as the checkpoints of one run",
                      paths.back(), paths[i]));
    if (const auto [twice, once] = seen.emplace(hash_of(next), paths[i]); !once)
      throw ConfigError(
          fmt::format("{} and {} have the same weights, which would count twice; name each checkpoint once (best is a copy of one)",
                      paths[i], twice->second));
    updates.push_back(next.description.step);
    each(next.model->parameters().values().to_doubles());
  }
  updates.push_back(result.description.step);
  each(result.model->parameters().values().to_doubles());
  return updates;
}

void set_mean(const std::vector<std::vector<float>>& all, const std::vector<double>& weights, Model& model) {
  std::vector<double> sum(all.front().size(), 0.0);
  for (size_t i = 0; i < all.size(); ++i)
    for (size_t k = 0; weights[i] > 0 && k < sum.size(); ++k) sum[k] += weights[i] * static_cast<double>(all[i][k]);
  model.parameters().values().from_doubles(sum);
  model.parameters().changed();
}

// Returns the profile that scores best on the validation text, and prints a line for each.
AverageProfile best_profile(const AverageArguments& a, const std::vector<std::vector<float>>& all, const std::vector<int64_t>& updates,
                            LoadedModel& result, StopNote& note) {
  if (!std::is_sorted(updates.begin(), updates.end()))
    throw ConfigError(
        "with --source the checkpoints must belong to one run and be in the order of their updates; name them so, or give --run");
  ValidConfig valid;
  valid.source = a.source;
  valid.target = a.target;
  valid.metrics = {a.metric};
  const ModelDescription& d = result.description;
  valid.search = into_language(d.search, d, a.target_language);
  ValidatorRank rank;
  rank.screen = standard_error_screen();
  Validator validator(valid, result.description.vocabularies, rank);
  const World world = make_local_world();
  std::optional<AverageProfile> best;
  double score = 0;
  std::vector<AverageProfile> profiles = average_profiles(updates);
  const double start = steady_seconds();
  for (size_t i = 0; i < profiles.size(); ++i) {
    AverageProfile& profile = profiles[i];
    set_mean(all, profile.weights, *result.model);
    const std::string name = fmt::format("mean {} of {}, {}", i + 1, profiles.size(), profile.name);
    const double found = validator.run(*result.model, *world.comm, name).scores.front().second;
    const double left = (steady_seconds() - start) / static_cast<double>(i + 1) * static_cast<double>(profiles.size() - i - 1);
    tell("{}: {} {:.4f}{}\n", name, a.metric, found, left > 0 ? fmt::format(", about {} left", duration_text(left)) : "");
    if (!best || better_score(a.metric, found, score)) {
      best = std::move(profile);
      score = found;
    }
    note.set(fmt::format("stopped: the best of {} of {} means is {}, {} {:.4f}; nothing was written, the same command begins again", i + 1,
                         profiles.size(), best->name, a.metric, score));
  }
  tell("best: {}, {} {:.4f}\n", best->name, a.metric, score);
  return *best;
}

void run_average(const AverageArguments& a) {
  const auto files = real_file_system();
  if (a.models.empty() && a.run.empty()) throw ConfigError("name the checkpoints to average, or a run with --run");
  if (!a.models.empty() && !a.run.empty()) throw ConfigError("name either checkpoints or --run, not both");
  if (a.last > 0 && a.run.empty()) throw ConfigError("--last needs --run RUN_DIRECTORY");
  if (a.source.empty() != a.target.empty())
    throw ConfigError(fmt::format("--{} is given without --{}; a validation text is both", a.source.empty() ? "target" : "source",
                                  a.source.empty() ? "source" : "target"));
  if (a.source.empty() && a.metric != "cross-entropy")
    throw ConfigError("--metric chooses by a validation text; name it with --source and --target");
  if (files->exists(a.output)) throw ConfigError(fmt::format("{}: exists already; give --output a new name or remove it", a.output));
  refuse_run_files({"--output", a.output});
  StopNote note("stopped: nothing was written; the same command begins again");
  const std::vector<std::string> paths = a.models.empty() ? checkpoints_of(*files, a.run, a.last) : a.models;
  const auto backend = make_backend("cpu:f32", a.source.empty() ? 1 : usable_cores());
  LoadedModel result = load_model(*files, paths.back(), *backend);  // the newest, whose description reflects the end of training
  std::vector<std::vector<float>> all;                              // kept if several means are tried
  std::vector<double> sum;
  const std::vector<int64_t> updates = for_each_model(*files, paths, *backend, result, [&](const std::vector<double>& values) {
    if (!a.source.empty()) return void(all.emplace_back(values.begin(), values.end()));
    sum.resize(values.size());
    for (size_t k = 0; k < sum.size(); ++k) sum[k] += values[k] / static_cast<double>(paths.size());
  });
  std::vector<NamedPath> inputs;
  for (const std::string& path : paths) inputs.push_back({"the checkpoint", describe_model(*files, path).directory});
  refuse_own_input({"--output", a.output}, inputs);
  std::string name = counted(paths.size(), "checkpoint");
  if (a.source.empty()) {
    result.model->parameters().values().from_doubles(sum);
  } else {
    const AverageProfile best = best_profile(a, all, updates, result, note);
    set_mean(all, best.weights, *result.model);
    name = best.name;
  }
  files->make_directories(parent_path(a.output));
  const auto& d = result.description;
  WholeWrite write;
  publish_directory(*files, a.output, 0, model_parts(*result.model, d.config, d.languages, d.vocabularies, d.search, 0));
  const std::string told = fmt::format("the mean of {} is in {}", name, a.output);
  write.done(told);
  tell("{}\n", told);
}

}  // namespace

void add_average(CLI::App& app) {
  auto* sub = app.add_subcommand("average", "average the weights of several checkpoints into one model directory");
  auto a = std::make_shared<AverageArguments>();
  sub->add_option("-m,--model,checkpoints", a->models,
                  "checkpoints, model directories, or runs (their best, else latest); the last one gives the settings");
  sub->add_option("--run", a->run, "run directory whose last checkpoints are taken");
  sub->add_option("--last", a->last, "how many of them; default: all that are kept")->check(CLI::Range(1, 100000));
  sub->add_option(
      "--source", a->source,
      "source text of a validation set: write the best of several means (of the last few, with growing weights) instead of the plain mean");
  sub->add_option("--target", a->target, "its reference translation");
  add_target_language_option(*sub, a->target_language);
  sub->add_option("--metric", a->metric, "what is best")
      ->check(CLI::IsMember({"cross-entropy", "bleu", "chrf", "chrf++", "ter", "gleu"}))
      ->capture_default_str();
  sub->add_option("-o,--output", a->output, "model directory to write; must not exist")->required();
  sub->callback([a] { run_average(*a); });
}

}  // namespace starling
