#include "run/run_setup.h"

#include <algorithm>

#include "backend/device_choice.h"
#include "base/affinity.h"
#include "comm/cards.h"
#include "comm/threads.h"
#include "evaluation/validation.h"
#include "parallel/stages.h"
#include "run/run_tokens.h"
#include "run/update_loop.h"
#include "saving/sent_files.h"
#include "strategies/factory.h"

namespace starling {
namespace {

// Ranks with different settings would call different collectives. What may differ between hosts is left out.
// Names a file of the run as it would be named if the run were in "run".
void name_apart(std::string& path, const std::string& run) {
  if (path.starts_with(run + "/")) path = "run" + path.substr(run.size());
}

void require_one_configuration(const Config& config, Communicator& comm) {
  Config mine = config;
  for (CorpusFiles& corpus : mine.data.train)
    for (std::string* path : {&corpus.tsv, &corpus.sentence_weights}) name_apart(*path, config.train.output);
  mine.train.output = "run";
  mine.train.threads = 0;
  mine.log = {};
  mine.log.every = config.log.every;
  const std::vector<std::string> all = gather_texts(comm, config_identity(mine));
  for (int r = 0; r < comm.size(); ++r)
    if (all[static_cast<size_t>(r)] != all[0])
      throw ConfigError(
          fmt::format("rank {0} on {1} has a different configuration from rank 0 on {2}; give every host the same file. Rank {0} "
                      "has\n{3}and rank 0\n{4}",
                      r, comm.host(r), comm.host(0), all[static_cast<size_t>(r)], all[0]));
}

// Where hosts share no disk, only that of rank 0 has checkpoints: a run whose rank 0 moves to another host must not start over unnoticed.
void require_newest_checkpoint(RunParts& run) {
  Communicator& comm = run.comm();
  if (comm.size() == 1 || run.config.train.restart) return;
  run.wait_for_first();  // it may still be tidying up
  int64_t newest = newest_step(*run.files, run.config.train.output);
  if (run.first() && run.directory->checkpoint()) newest = std::max(newest, run.directory->checkpoint()->step);
  const std::vector<std::string> all = gather_texts(comm, std::to_string(newest));
  const int64_t of_first = std::stoll(all[0]);
  for (int r = 1; r < comm.size(); ++r)
    if (const int64_t step = std::stoll(all[static_cast<size_t>(r)]); step > of_first)
      throw ConfigError(
          fmt::format("{}: rank {} on {} has a checkpoint of update {}, but rank 0 on {} {}: start rank 0 on that host, or copy "
                      "the directory to rank 0's; to start over, remove it",
                      run.config.train.output, r, comm.host(r), step, comm.host(0),
                      of_first < 0 ? "has none" : fmt::format("only has that of update {}", of_first)));
}

// Sends the vocabularies, which rank 0 has trained or loaded, to all ranks.
void share_vocabularies(RunParts& run) {
  if (run.comm().size() == 1) return;
  run.comm().note("preparation", 0);
  run.wait_for_first();
  const std::string source = broadcast_text(run.comm(), run.first() ? run.vocabularies->source().bytes() : "");
  const std::string target =
      broadcast_text(run.comm(), run.first() && !run.vocabularies->joint() ? run.vocabularies->target().bytes() : "");
  if (run.first()) return;
  std::optional<Vocabulary> second;
  if (!target.empty()) second = Vocabulary::from_bytes(target, "target vocabulary of rank 0");
  run.vocabularies.emplace(Vocabulary::from_bytes(source, "vocabulary of rank 0"), std::move(second));
}

// Loads the weights of train.initial-model into a new run; the optimizer starts from scratch.
void take_initial_weights(RunParts& run) {
  if (run.config.train.initial_model.empty()) return;
  const ModelDescription* initial = run.initial();
  run.wait_for_first();
  const std::string directory = broadcast_text(run.comm(), initial ? initial->directory : "");
  if (directory.empty()) return;
  const SeenDirectory seen(*run.files, run.comm(), run.config.train.output, directory, {"model.safetensors"}, run.leads());
  if (run.leads()) load_weights(*run.files, join_path(seen.path(), "model.safetensors"), run.model->parameters());
  run.say(fmt::format("weights and vocabulary from {}", directory));
  // Only until the first update: the initial model is validated as it is.
  run.model->set_clip(std::stod(broadcast_text(run.comm(), initial ? fmt::format("{}", initial->config.clip) : "")));
  run.mesh->data_parallel().broadcast(run.model->parameters().values(), 0).wait(kNoDeadline);
  run.model->parameters().changed();
}

// Derives batch, learning rate and warm-up from the number of workers, then makes the replica.
void plan_steps(RunParts& run) {
  const TrainConfig& t = run.config.train;
  const Communicator& data = run.mesh->data_parallel();
  const int workers = make_strategy(run.config.strategy, run.model->parameters(), {}, data.rank(), data.size())->workers();
  const BatchPlan plan = plan_batch(run.config.strategy, t.batch_tokens, workers);
  run.batch_tokens = plan.global_tokens;
  run.optimizer = t.optimizer;
  run.optimizer.learning_rate *= plan.rate_factor;
  run.optimizer.sgd_learning_rate *= plan.rate_factor;
  if (t.warmup_tokens > 0) run.optimizer.warmup = std::max<int64_t>(1, (t.warmup_tokens + run.batch_tokens / 2) / run.batch_tokens);
  if (t.beta2_tokens > 0) run.optimizer.beta2 = std::exp2(-static_cast<double>(run.batch_tokens) / static_cast<double>(t.beta2_tokens));
  if (t.beta2_tokens > 0 && (run.optimizer.beta2 < 0.5 || run.optimizer.beta2 > kMostDecay))
    throw ConfigError(
        fmt::format("train.beta2-tokens {} makes beta2 {:g} with {} tokens per update; give 1 to 69,000 updates' worth of tokens",
                    t.beta2_tokens, run.optimizer.beta2, run.batch_tokens));
  run.max_steps = last_update(t, run.batch_tokens);
  run.replica.emplace(*run.model, step_options(run.config, run.optimizer, run.max_steps), run.world, *run.mesh);
  if (t.max_minutes > 0 && has_end(run.optimizer.schedule) && run.replicas() != Replicas::equal)
    throw ConfigError(
        fmt::format("train.schedule {} cannot end with train.max-minutes under strategy {}, whose workers update on their own and "
                    "do not agree on the time; end the run by train.max-steps or train.max-tokens",
                    t.optimizer.schedule, run.config.strategy.name));
  if (run.config.checkpoint.minutes > 0 && run.replicas() == Replicas::merged && run.comm().size() > 1)
    throw ConfigError(
        fmt::format("checkpoint.minutes needs workers that agree on the time, but under strategy {} each updates on its own; set "
                    "checkpoint.every instead",
                    run.config.strategy.name));
  run.replica->share_parameters();
}

// A resumed run begins with the window that is under way, or with the one before if that is complete: it is there, while the next one may
// have to be waited for.
int64_t first_window(const RunParts& run) {
  const std::optional<State>& state = run.directory->state();
  if (!state) return 0;
  const int64_t epoch = state->integer("epoch");
  return state->integer("batch") == 0 ? std::max<int64_t>(epoch - 1, 0) : epoch;
}

void open_stream(RunParts& run) {
  const Config& c = run.config;
  const auto refuse = [](const char* what) { throw ConfigError(fmt::format("data.tsv is a pipe, {}", what)); };
  if (run.world.simulated) refuse("which a simulated run would use up; give it files");
  if (run.comm().size() > 1) refuse("which one process reads; train with one, or keep windows of the text in files");
  if (c.train.max_epochs > 0) refuse("whose end is not known; leave train.max-epochs out");
  if (!c.checkpoint.second_directory.empty()) refuse("whose windows are not copied; leave checkpoint.second-directory out");
  if (BatchSizeSchedule::asked(c.train)) refuse("and batches that grow need a whole corpus; leave train.batch-... out");
  // What the windows hold depends on the filters.
  run.data_digest = fmt::format("stream {} {}", c.data.max_length, c.data.max_ratio);
  if (c.data.train.front().aligned_in_column()) run.data_digest += fmt::format(" links of {}", c.data.alignment_unit);
  const std::optional<State>& state = run.directory->state();
  if (state && state->text("data") != run.data_digest)
    throw ConfigError(
        fmt::format("{}: this run was started with different text or filters than this pipe has; restore them, or choose "
                    "another train.output",
                    c.train.output));
  run.directory->begin_stream();
  run.first_window = first_window(run);
  run.text.emplace(*run.files, run.directory->stream(), c.data, run.vocabularies->source(), run.vocabularies->target(), run.first_window,
                   run.say);
  if (state && state->has("windows")) run.text->require_windows(state->text("windows"));
  TextStream::Ready ready;
  while ((ready = run.text->wait(run.first_window, [&] { return run.stop_asked(); })) == TextStream::Ready::empty) ++run.first_window;
  if (ready == TextStream::Ready::stopped) throw ConfigError("stopped while waiting for the first text; the same call continues");
  if (ready == TextStream::Ready::ended)
    throw DataError(fmt::format("data.tsv {}: the text has ended after {} lines, none of which is a pair to train on", c.data.train[0].tsv,
                                run.text->lines()));
  const FilterCounts counts = run.text->tokens(run.first_window).counts();
  run.say(fmt::format("data: a stream, in windows of {} lines; the first one has {} pairs, {} kept", c.data.window_lines, counts.total,
                      counts.kept));
}

// Opens the tokens of the training text on every host.
void open_store(RunParts& run) {
  if (is_stream(run.config.data)) return open_stream(run);
  const WallClock wall;
  const double start = wall.seconds();
  const StoreBuild build{.threads = run.backend->threads(), .say = run.say};
  const auto of_first = [&] {
    TokenStore store = run.directory->open_store(*run.vocabularies, build);
    const FilterCounts counts = store.counts();
    run.say(fmt::format("data: {} pairs, {} kept ({} empty, {} longer than {} tokens, {} of unequal length){}", counts.total, counts.kept,
                        counts.empty, counts.too_long, run.config.data.max_length, counts.ratio,
                        store.reused() ? ", tokens reused" : fmt::format(", tokenised in {:.1f} s", wall.seconds() - start)));
    return store;
  };
  if (const std::vector<std::string> tags = language_tags(run.config.languages); !tags.empty())
    run.say(fmt::format("directions: {}; each source begins with the tag of its target language, {}",
                        fmt::join(run.config.languages.directions, ", "), fmt::join(tags, " or ")));
  run.store.emplace(open_tokens_together(*run.files, run.config.train.output, run.config.data, *run.vocabularies, build, run.world,
                                         of_first, run.data_digest));
}

}  // namespace

void set_up(RunParts& run) {
  const Config& config = run.config;
  require_data(config, true);
  if (BatchSizeSchedule::asked(config.train) && config.train.max_tokens == 0 && config.train.max_epochs == 0)
    throw ConfigError("train.batch-doubles-at and batch-follows-noise count the run in tokens; end it by train.max-tokens or max-epochs");
  if (run.first()) require_tokenizer(config.valid);
  comm_settings(config.strategy, run.comm());
  require_one_configuration(config, run.comm());
  const bool divide = config.train.threads == 0 && run.comm().size() > 1 && !run.world.simulated;
  const auto warn = [&](const std::string& line) { run.say("warning: train.threads: " + line); };
  const int threads = divide ? threads_for_rank(run.comm()) : threads_to_use(config.train.threads, usable_core_list(), warn);
  // Simulated ranks share this machine's processor.
  if (!run.world.simulated) prepare_card_environment(run.comm(), config.parallel.ranks() > 1);
  const std::string device = run.world.simulated && config.train.device == "auto" ? "cpu" : config.train.device;
  DeviceChoice choice{config.train.precision, threads, device};
  if (const std::string why = why_no_card(choice); run.first() && !why.empty()) run.say(why);
  choice = resolve(choice, false, run.world.local_rank);
  // Chosen on each host, but one for all: the parts of a model exchange activations, and sums of gradients should not mix two roundings.
  if (config.train.precision == "auto" && !run.world.simulated)
    for (const std::string& precision : gather_texts(run.comm(), choice.precision))
      if (precision == "f32") choice.precision = precision;  // which all have
  run.backend = make_backend(choice);
  if (!run.world.simulated) {
    CardConnection cards = connect_cards_of_ranks(run.comm(), run.backend->memory());
    if (!cards.report.empty()) run.say(cards.report);
    run.cards = std::move(cards.held);
  }
  run.mesh.emplace(run.comm(), config.parallel);
  if (run.first()) run.directory.emplace(*run.files, config, run.backend->threads(), run.say);
  require_newest_checkpoint(run);
  if (run.first()) run.vocabularies.emplace(run.directory->vocabularies());
  share_vocabularies(run);
  const ModelVocabulary sizes = run.vocabularies->sizes();
  const ModelPart part = part_of(*run.mesh, config.model, sizes, *run.backend);
  run.model = make_model(config.model, sizes, *run.backend, config.train.seed, true, part);
  take_initial_weights(run);
  plan_steps(run);
  if (run.first()) run.directory->require_same_run(run.batch_tokens, run.worker_batch_tokens());
  open_store(run);
}

void plan_batches(RunParts& run) {
  BatchOptions options = batch_options(run.config, run.batch_tokens, *run.vocabularies);
  options.first_epoch = run.first_window;
  if (run.text) options.store_of = [&run](int64_t epoch) -> const TokenStore& { return run.text->tokens(epoch); };
  run.stream.emplace(run.text ? run.text->tokens(run.first_window) : *run.store, options);
  const BatchStream::Survey survey = run.stream->survey(run.first_window);
  run.batches_per_epoch = survey.batches;
  run.replica->end_schedule_at(schedule_end(run));
  run.every = distances(run.config, schedule_end(run));
  if (BatchSizeSchedule::asked(run.config.train)) run.growth.emplace(run.config.train, run.batch_tokens, schedule_end(run));
  const TrainConfig& train = run.config.train;
  const int64_t grown = train.batch_follows_noise > 0 ? train.batch_follows_noise : run.batch_tokens << train.batch_doubles_at.size();
  for (const BatchStream::Place& place : {survey.most_tokens, survey.longest}) {
    Batch& batch = run.largest.emplace_back(run.stream->look(place));
    if (!run.growth) continue;
    const Batch once = batch;
    const int64_t most = std::min(grown, run.backend->best_micro_batch() * run.replica->strategy().workers());
    while (batch.target.count() < most) append(batch, once);
  }
}

BatchOptions batch_options(const Config& config, int64_t batch_tokens, const Vocabularies& vocabularies) {
  BatchOptions options;
  options.batch_tokens = batch_tokens;
  options.seed = config.train.seed;
  options.guide = config.train.guided_alignment;
  for (const CorpusFiles& corpus : config.data.train) options.weights.push_back(corpus.weight);
  for (size_t stage = 0; stage <= config.data.stages.size() && !config.data.stages.empty(); ++stage) {
    CurriculumStage& s = options.stages.emplace_back();
    for (const CorpusFiles& corpus : config.data.train) s.weights.push_back(corpus.weights.empty() ? corpus.weight : corpus.weights[stage]);
    if (stage < config.data.stages.size()) s.target_tokens = config.data.stages[stage];
  }
  if (config.data.noise.any()) {
    std::vector<std::vector<int32_t>> tags;
    for (const CorpusFiles& corpus : config.data.train) tags.push_back(vocabularies.source().ids_of(corpus.tag, corpus.name()));
    options.noise = std::make_shared<TextNoise>(config.data.noise, vocabularies.source(), vocabularies.target(), std::move(tags),
                                                config.data.max_length);
  }
  if (const double alpha = config.data.subword_alpha; alpha > 0) {
    options.sampling.source = std::make_shared<SubwordSampler>(vocabularies.source(), alpha);
    options.sampling.target = config.vocab.joint ? options.sampling.source : std::make_shared<SubwordSampler>(vocabularies.target(), alpha);
    options.sampling.max_length = config.data.max_length;
  }
  return options;
}

}  // namespace starling
