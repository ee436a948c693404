#include "measure/bench_distributed.h"

#include <algorithm>
#include <numeric>

#include "backend/cpu/product_times.h"
#include "backend/meta.h"
#include "comm/threads.h"
#include "data/batches.h"
#include "decode/model_directory.h"
#include "replica/replica.h"
#include "strategies/factory.h"

namespace starling {
namespace {

constexpr Tag kPing = 7;

// Returns rank r's shares of the global batches, which are the same on all ranks because every rank generates all of them.
Shares shares_of(const std::vector<Batch>& batches, const ComputeCost& cost, int index, int count) {
  Shares shares;
  for (const Batch& batch : batches) {
    Batch own = slice_for_rank(batch, index, count, cost.source_weight(), cost.target_weight());
    shares.emplace_back();
    if (own.target.count() > 0) shares.back().push_back(std::move(own));
  }
  return shares;
}

double slowest(Communicator& comm, double value) {
  const Tensor x({1}, DType::f64);
  doubles_of(x)[0] = value;
  comm.all_reduce(x, Reduce::maximum).wait(kNoDeadline);
  return doubles_of(x)[0];
}

std::vector<double> of_all(Communicator& comm, double value) {
  const Tensor x({comm.size()}, DType::f64);
  doubles_of(x)[comm.rank()] = value;
  comm.all_reduce(x).wait(kNoDeadline);
  return {doubles_of(x).begin(), doubles_of(x).end()};
}

class Bench {
 public:
  Bench(const BenchDistributedOptions& options, World& world) : o_(options), world_(world), comm_(*world.comm) {
    const bool divide = o_.train.threads == 0 && comm_.size() > 1 && !world.simulated;
    backend_ =
        make_backend(resolve({o_.train.precision, divide ? threads_for_rank(comm_) : o_.train.threads, "cpu"}, false, world.local_rank));
    const ModelVocabulary vocabulary{o_.train.vocabulary, o_.train.vocabulary};
    if (!world.computes) backend_ = std::make_unique<MetaBackend>(backend_->activation(), backend_->parameter());
    model_ = make_model(o_.train.model, vocabulary, *backend_, o_.train.seed, true);
    options_.optimizer.learning_rate = 1e-4;
    options_.strategy = o_.strategy;
    local_.comm = make_local_world().comm;
    local_.clock = std::make_unique<Borrowed>(*world.clock);
    local_.computes = world.computes;
  }

  BenchDistributedResult run() {
    Replica alone(*model_, options_, local_);
    const int workers = make_strategy(o_.strategy, model_->parameters(), {}, comm_.rank(), comm_.size())->workers();
    r_.ranks = comm_.size();
    r_.workers = workers;
    r_.machine = backend_->describe();
    r_.parameters = model_->parameters().count();
    r_.gradient_bytes = model_->parameters().gradients().bytes();
    BenchTrainOptions global = o_.train;
    global.batch_tokens *= workers;
    const std::vector<Batch> batches = synthetic_batches(global, o_.batches);
    const bool computes = comm_.rank() < workers;
    if (computes) shares_ = shares_of(batches, alone.cost(), comm_.rank(), workers);
    shares_.resize(batches.size());
    small_ = in_small_passes(shares_);
    for (const Batch& b : batches) r_.tokens_per_step += static_cast<double>(b.target.count()) / static_cast<double>(batches.size());

    const bool several = comm_.size() > 1;
    StepOptions blocking_options = options_, overlapped_options = options_;
    blocking_options.strategy.overlap = false;
    overlapped_options.strategy.overlap = true;
    std::optional<Replica> blocking, overlapped;
    if (several) {
      blocking.emplace(*model_, blocking_options, world_);
      overlapped.emplace(*model_, overlapped_options, world_);
      r_.strategy = overlapped->strategy().describe();
    }

    say("each kind of step once, to warm up");
    // Runs everything once, which also shows how many rounds fit. Then each round runs every kind in turn, so that drifting machine speed
    // affects all alike. The fastest round of each kind counts, because other programs only ever add time.
    const double first = world_.clock->seconds();
    std::vector<Round> rounds{round(alone, blocking, overlapped)};
    const double took = slowest(comm_, world_.clock->seconds() - first);
    int64_t count = o_.steps > 0 ? (o_.steps + size() - 1) / size() : std::max<int64_t>(1, std::llround(4 * o_.train.seconds / took));
    count = std::stoll(broadcast_text(comm_, std::to_string(count)));
    rounds.clear();
    for (int64_t i = 0; i < count; ++i) {
      say(fmt::format("round {} of {}: {} steps of each kind", i + 1, count, size()));
      rounds.push_back(round(alone, blocking, overlapped));
    }
    r_.steps = count * size();
    const auto best = [&](double Round::*of, bool largest = false) {
      double value = rounds.front().*of;
      for (const Round& each : rounds) value = largest ? std::max(value, each.*of) : std::min(value, each.*of);
      return value;
    };
    r_.alone = best(&Round::alone);
    r_.blocking = best(&Round::blocking);
    r_.overlapped = best(&Round::overlapped);
    double small_forward = 0, small_backward = 0;
    for (const Round& each : rounds) {
      if (r_.local == 0 || each.local < r_.local) {
        r_.local = each.local;
        r_.forward = each.forward;
        r_.backward = each.backward;
      }
      if (small_forward == 0 || each.small_forward + each.small_backward < small_forward + small_backward)
        small_forward = each.small_forward, small_backward = each.small_backward;
    }
    r_.product_rate_alone = best(&Round::product_alone, true);
    r_.product_rate_together = best(&Round::product_together, true);
    if (!world_.simulated && comm_.rank() == 0) {
      const auto n = static_cast<double>(size());
      MeasuredPasses whole = count_passes(alone.cost(), shares_), small = count_passes(alone.cost(), small_);
      whole.forward_s = n * r_.forward;
      whole.backward_s = n * r_.backward;
      small.forward_s = n * small_forward;
      small.backward_s = n * small_backward;
      r_.rates = rates_of(static_cast<double>(model_->parameters().values().bytes()), adding_rate(), r_.local - r_.forward - r_.backward,
                          whole, small);
    }
    if (several) {
      say("the link, and the exchange without computing");
      exchange();
    }
    return r_;
  }

 private:
  // Lends the world's clock to a replica that trains by itself.
  class Borrowed : public Clock {
   public:
    explicit Borrowed(Clock& clock) : clock_(clock) {}
    int64_t now_ns() const override { return clock_.now_ns(); }
    void begin(const Work& work) override { clock_.begin(work); }
    void end() override { clock_.end(); }
    void sleep_until(int64_t ns) override { clock_.sleep_until(ns); }

   private:
    Clock& clock_;
  };

  // Means over the steps of one round, in seconds; rates in FLOP/s.
  struct Round {
    double alone = 0, local = 0, forward = 0, backward = 0, small_forward = 0, small_backward = 0, blocking = 0, overlapped = 0,
           product_alone = 0, product_together = 0;
  };

  void say(const std::string& line) const {
    if (comm_.rank() == 0) o_.say(line);
  }
  int64_t size() const { return static_cast<int64_t>(shares_.size()); }
  void barrier() { comm_.barrier().wait(kNoDeadline); }

  Round round(Replica& alone, std::optional<Replica>& blocking, std::optional<Replica>& overlapped) {
    Round r;
    const bool computes = comm_.rank() < r_.workers;
    barrier();
    if (comm_.rank() == 0) r.alone = steps(alone, shares_);
    r.alone = slowest(comm_, r.alone);
    alone.clear_times();
    barrier();
    r.local = slowest(comm_, computes ? steps(alone, shares_) : 0);
    // Means over the workers: the worker that is slowest in the one may not be so in the other, and the two must fit into the step.
    const auto mean = [&](double seconds) {
      const std::vector<double> all = of_all(comm_, seconds / static_cast<double>(size()));
      return std::accumulate(all.begin(), all.end(), 0.0) / r_.workers;
    };
    r.forward = mean(alone.times().forward);
    r.backward = mean(alone.times().backward);
    if (!world_.simulated) {
      alone.clear_times();
      barrier();
      if (computes) steps(alone, small_);
      r.small_forward = mean(alone.times().forward);
      r.small_backward = mean(alone.times().backward);
    }
    if (blocking) {
      barrier();
      r.blocking = slowest(comm_, steps(*blocking, shares_));
      barrier();
      const Traffic before = comm_.traffic();
      const double mine = steps(*overlapped, shares_);
      const Traffic after = comm_.traffic();
      r.overlapped = slowest(comm_, mine);
      r_.bytes_sent = of_all(comm_, static_cast<double>(after.bytes_sent - before.bytes_sent) / static_cast<double>(size()));
      r_.waited = of_all(comm_, 1e-9 * static_cast<double>(after.waited_ns - before.waited_ns) / static_cast<double>(size()));
    }
    if (world_.simulated) return r;
    const DType type = backend_->activation();
    barrier();
    if (comm_.rank() == 0) r.product_alone = peak_product_rate(type);
    r.product_alone = slowest(comm_, r.product_alone);
    barrier();
    r.product_together = -slowest(comm_, -peak_product_rate(type));
    return r;
  }

  // Computes every share once and returns the seconds per step.
  double steps(Replica& replica, const Shares& shares) {
    const double start = world_.clock->seconds();
    for (const auto& share : shares) replica.step(share);
    model_->parameters().wait_for_parameters();  // replicas share the parameters, so none may be in flight when another replica takes over
    return (world_.clock->seconds() - start) / static_cast<double>(size());
  }

  // Measures the link between the first and the last rank, and the exchange of all buckets without computing.
  void exchange() {
    const int last = comm_.size() - 1;
    const auto ping = [&](const Tensor& x, int times) {
      barrier();
      const double start = world_.clock->seconds();
      for (int i = 0; i < times; ++i)
        for (const int from : {0, last}) {
          if (comm_.rank() == from) comm_.send(x, last - from, kPing).wait(kNoDeadline);
          if (comm_.rank() == last - from) comm_.receive(x, from, kPing).wait(kNoDeadline);
        }
      return slowest(comm_, comm_.rank() == 0 ? (world_.clock->seconds() - start) / (2 * times) : 0);
    };
    ping(Tensor({1}, DType::f64), 10);
    r_.latency_s = ping(Tensor({1}, DType::f64), 50);
    const Tensor large({4 << 20}, DType::f32);
    ping(large, 1);
    r_.bandwidth = static_cast<double>(large.bytes()) / ping(large, 2);

    const auto plan = make_strategy(o_.strategy, model_->parameters(), {}, comm_.rank(), comm_.size());
    const Tensor gradients = model_->parameters().gradients();
    gradients.zero();
    const int times = 3;
    for (int i = -1; i < times; ++i) {
      barrier();
      const double start = world_.clock->seconds();
      std::vector<Pending> pending;
      for (const Bucket& b : plan->buckets()) {
        const Tensor x = gradients.slice(b.range.begin, Shape{b.range.count()});
        pending.push_back(o_.strategy.wire == Wire::bf16 ? comm_.all_reduce_bf16(x) : comm_.all_reduce(x));
      }
      for (const Pending& p : pending) p.wait(kNoDeadline);
      const double time = slowest(comm_, world_.clock->seconds() - start);
      if (i >= 0) r_.exchange += time / times;  // the first warms up
    }

    // Estimates when buckets become ready in the backward pass, from their share of its operations.
    const ComputeCost cost(*model_, plan->buckets());
    const auto tokens = static_cast<double>(o_.train.batch_tokens);
    const PassRows rows{tokens, tokens, tokens, tokens};
    const double whole = cost.backward(rows).flops, update = r_.local - r_.forward - r_.backward;
    double ready = 0, done = 0;
    for (size_t b = 0; b < plan->buckets().size(); ++b) {
      const double piece = cost.backward(rows, static_cast<int64_t>(b)).flops;
      const double time = r_.exchange * static_cast<double>(plan->buckets()[b].range.count()) / static_cast<double>(gradients.count());
      ready += piece / whole * r_.backward;
      done = std::max(done, ready) + time;
      r_.last_bucket = piece > 0 ? time : r_.last_bucket + time;
    }
    r_.pipeline = r_.forward + done + update;
    r_.ideal = r_.forward + std::max(r_.backward, r_.exchange) + r_.last_bucket + update;
  }

  const BenchDistributedOptions& o_;
  World& world_;
  Communicator& comm_;
  World local_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Model> model_;
  StepOptions options_;
  Shares shares_, small_;
  BenchDistributedResult r_;
};

}  // namespace

BenchDistributedResult bench_distributed(const BenchDistributedOptions& options, World& world) {
  comm_settings(options.strategy, *world.comm);
  return Bench(options, world).run();
}

}  // namespace starling
