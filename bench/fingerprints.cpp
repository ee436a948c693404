// Hashes of what training and translating compute: losses, parameters after some updates of every strategy, optimizer state, translations,
// for both models on both backends. A change that should move nothing prints the same lines before and after (on one machine: the
// hashes depend on its instructions). Usage: bench_fingerprints > before.txt
#include <fmt/format.h>

#include <cstdio>
#include <functional>

#include "base/sha256.h"
#include "decode/beam_search.h"
#include "sim/simulate.h"
#include "tests/strategies/training.h"

namespace starling {
namespace {

struct Case {
  std::string name;
  int ranks = 3;
  std::function<void(StrategyOptions&)> set = [](StrategyOptions&) {};
};

std::vector<Case> cases() {
  std::vector<Case> all = {{"alone", 1}};
  for (const std::string& name : strategy_names()) all.push_back({name});
  const auto add = [&](const std::string& name, const std::string& preset, const std::function<void(StrategyOptions&)>& set) {
    all.push_back({name + "/" + preset, 3, set});
  };
  add("all-reduce", "tree", [](StrategyOptions& o) { o.algorithm = Algorithm::tree; });
  add("all-reduce", "halving-doubling", [](StrategyOptions& o) { o.algorithm = Algorithm::halving_doubling; });
  add("all-reduce", "blocking", [](StrategyOptions& o) { o.overlap = false; });
  add("all-reduce", "bf16", [](StrategyOptions& o) { o.wire = Wire::bf16; });
  add("all-reduce", "sharded", [](StrategyOptions& o) { o.sharded_optimizer = true; });
  add("all-reduce", "dense", [](StrategyOptions& o) { o.embedding_gradients = EmbeddingGradients::dense; });
  add("all-reduce", "assumed-sparse", [](StrategyOptions& o) { o.embedding_gradients = EmbeddingGradients::assumed_sparse; });
  add("diloco", "radial", [](StrategyOptions& o) { o.periodic.merge = MergeRule::radial; });
  add("diloco", "anchored", [](StrategyOptions& o) { o.periodic.outer_form = OuterForm::anchored; });
  add("diloco", "classical", [](StrategyOptions& o) { o.periodic.outer_form = OuterForm::classical; });
  add("diloco", "averaged", [](StrategyOptions& o) { o.periodic.inner_state = InnerState::average; });
  add("streaming", "mix", [](StrategyOptions& o) { o.periodic.late_merge = LateMerge::mix; });
  add("gradient-dropping", "2-bit", [](StrategyOptions& o) { o.compression.values = SentValues::two_bit; });
  add("gradient-dropping", "bf16", [](StrategyOptions& o) { o.compression.values = SentValues::bf16; });
  add("gradient-dropping", "ternary",
      [](StrategyOptions& o) { o.compression.compressor = Compressor::ternary, o.compression.keep_warmup = 0; });
  add("gradient-dropping", "momentum", [](StrategyOptions& o) { o.compression.momentum_correction = 0.9; });
  add("downpour", "compensated", [](StrategyOptions& o) { o.asynchronous.delay_compensation = 0.5; });
  add("downpour", "bf16", [](StrategyOptions& o) { o.wire = Wire::bf16; });
  return all;
}

// The strategy of a case, small enough that all of it happens in 20 updates.
StrategyOptions strategy_of(const Case& c) {
  StrategyOptions o = strategy_preset(c.name == "alone" ? "all-reduce" : c.name.substr(0, c.name.find('/')));
  o.bucket_mib = 0.004;
  if (family_of(o) == Family::periodic) o.periodic.interval = 5;
  o.synchronous_steps = std::min<int64_t>(o.synchronous_steps, 4);
  o.periodic.delay = std::min<int64_t>(o.periodic.delay, 2), o.periodic.fragments = std::min<int64_t>(o.periodic.fragments, 2);
  o.sparse.average_interval = std::min<int64_t>(o.sparse.average_interval, 5);
  o.compression.keep_warmup = std::min<int64_t>(o.compression.keep_warmup, 8);
  if (o.compression.compressor != Compressor::none) o.compression.dense_below = 100;
  if (c.set) c.set(o);
  return o;
}

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& all) {
  return std::as_bytes(std::span<const T>(all));
}

std::string hash_of(const std::vector<TrainingTrace>& traces) {
  Sha256 hash;
  for (const TrainingTrace& t : traces)
    for (const auto part : {bytes_of(t.losses), bytes_of(t.norms), bytes_of(t.values), bytes_of(t.first), bytes_of(t.second)})
      hash.update(part);
  return to_hex(hash.digest()).substr(0, 16);
}

std::vector<TrainingTrace> train(const TrainingRun& run, int ranks) {
  std::vector<TrainingTrace> traces(static_cast<size_t>(ranks));
  Scenario scenario;
  scenario.ranks = ranks;
  simulate(scenario, [&](World& world) { traces[static_cast<size_t>(world.comm->rank())] = train_together(run, world); });
  return traces;
}

// Of a model with random weights: the tokens and scores of a beam search, which every op of decoding has a part in.
std::string translations(const std::string& backend_name, const std::string& preset) {
  const auto backend = make_backend(backend_name, 1);
  const auto model = make_model(small_model(preset, "all"), {400, 400}, *backend, 11, false);
  Sha256 hash;
  for (const int64_t beam : {1, 4}) {
    SearchOptions search = search_defaults(preset);
    search.beam = search.n_best = beam;
    const Batch batch = random_batch(5, 0, 12);
    std::vector<std::vector<int32_t>> sources;
    for (int64_t b = 0; b < batch.source.sentences(); ++b)
      sources.emplace_back(batch.source.tokens.begin() + batch.source.offsets[static_cast<size_t>(b)],
                           batch.source.tokens.begin() + batch.source.offsets[static_cast<size_t>(b) + 1]);
    for (const auto& hypotheses : beam_search(*model, sources, search))
      for (const Hypothesis& h : hypotheses) {
        const std::vector<double> numbers{h.log_probability, h.score};
        hash.update(bytes_of(h.tokens)), hash.update(bytes_of(numbers));
      }
  }
  return to_hex(hash.digest()).substr(0, 16);
}

void print_all() {
  for (const std::string backend : {"reference", "cpu:f32", "cpu:bf16"})
    for (const std::string model : {"transformer-tiny", "gnmt-small"}) {
      fmt::print("{} {} translations {}\n", backend, model, translations(backend, model));
      for (const Case& c : cases()) {
        TrainingRun run;
        run.backend = backend, run.model = model, run.steps = 20, run.strategy = strategy_of(c);
        const bool servers = c.name.starts_with("downpour") || c.name.starts_with("gnmt-downpour");
        try {
          fmt::print("{} {} {} {}\n", backend, model, c.name, hash_of(train(run, c.ranks + servers)));
        } catch (const ConfigError& e) {
          fmt::print("{} {} {} refused: {}\n", backend, model, c.name, e.what());
        }
        std::fflush(stdout);
      }
      TrainingRun mixed;
      mixed.backend = backend, mixed.model = model, mixed.mixed = true;
      fmt::print("{} {} mixed {}\n", backend, model, hash_of(train(mixed, 2)));
    }
}

}  // namespace
}  // namespace starling

int main() { starling::print_all(); }
