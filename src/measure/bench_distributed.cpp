#include "measure/bench_distributed.h"

#include <algorithm>
#include <map>

#include "backend/cpu/product_times.h"
#include "backend/meta.h"
#include "base/processor_use.h"
#include "comm/threads.h"
#include "data/batches.h"
#include "decode/model_directory.h"
#include "measure/calibration.h"
#include "measure/disturbance.h"
#include "measure/link.h"
#include "replica/replica.h"
#include "sim/scenario.h"
#include "strategies/factory.h"

namespace starling {
namespace {

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

class Bench {
 public:
  Bench(const BenchDistributedOptions& options, World& world) : o_(options), world_(world), comm_(*world.comm), peers_(*world.comm) {
    o_.strategy = options_in(world, o_.strategy);
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
    r_.ranks_per_host = world_.local_size;
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
    // affects all alike. The means of the rounds count.
    RateMeter meter(alone, *world_.clock, peers_, shares_, !world_.simulated);
    const double first = world_.clock->seconds();
    const Round warm = round(meter, blocking, overlapped);
    const double took = peers_.largest(world_.clock->seconds() - first);
    int64_t count = o_.steps > 0 ? (o_.steps + size() - 1) / size() : std::max<int64_t>(1, std::llround(4 * o_.train.seconds / took));
    count = std::stoll(broadcast_text(comm_, std::to_string(count)));
    if (o_.settle) count = (count + 1) / 2;
    std::map<size_t, std::vector<Round>> measured;  // by the meter's index
    const auto measure = [&] {
      const size_t index = meter.begin();
      const DisturbanceWatch watch(peers_, backend_->threads());
      for (int64_t i = 0; i < count; ++i) {
        say(fmt::format("round {} of {}: {} steps of each kind", i + 1, count, size()));
        measured[index].push_back(round(meter, blocking, overlapped));
      }
      const std::string disturbance = world_.simulated ? "" : watch.text();
      if (!disturbance.empty() && !o_.settle) say("warning: this measurement was disturbed: " + disturbance);
      return MeasuredRates{index, world_.simulated ? Calibration() : meter.rates(), disturbance};
    };
    std::vector<Round> rounds;
    if (o_.settle) {
      const std::vector<size_t> believed = settle(measure, 1e-9 * warm.product_alone, [&](const std::string& line) { say(line); });
      meter.merge(believed);
      for (const size_t index : believed) rounds.insert(rounds.end(), measured[index].begin(), measured[index].end());
    } else {
      rounds = measured[measure().measurement];
    }
    const auto all = static_cast<double>(rounds.size());
    r_.steps = std::ssize(rounds) * size();
    const auto mean = [&](double Round::*of) {
      double sum = 0;
      for (const Round& each : rounds) sum += each.*of;
      return sum / all;
    };
    const auto most = [&](double Round::*of) {
      double value = 0;
      for (const Round& each : rounds) value = std::max(value, each.*of);
      return value;
    };
    r_.alone = meter.alone();
    r_.local = meter.local();
    r_.forward = meter.forward();
    r_.backward = meter.backward();
    r_.blocking = mean(&Round::blocking);
    r_.overlapped = mean(&Round::overlapped);
    exchange_in_step_ = mean(&Round::exchange);
    sent_in_step_ = mean(&Round::sent);
    r_.product_rate_alone = most(&Round::product_alone);
    r_.product_rate_together = most(&Round::product_together);
    if (!world_.simulated) r_.rates = meter.rates();
    if (several) {
      say("the link, and the exchange without computing");
      exchange(meter);
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
    double blocking = 0, overlapped = 0, exchange = 0, product_alone = 0, product_together = 0;
    double sent = 0;  // bytes by the rank that sends most, while blocking; overlapping may send more
  };

  void say(const std::string& line) const {
    if (comm_.rank() == 0) o_.say(line);
  }
  int64_t size() const { return static_cast<int64_t>(shares_.size()); }

  Round round(RateMeter& meter, std::optional<Replica>& blocking, std::optional<Replica>& overlapped) {
    Round r;
    meter.round();
    if (blocking) {
      peers_.together();
      const int64_t sent_before = comm_.traffic().bytes_sent;
      const TimedSteps timed = timed_steps(*blocking, *world_.clock, shares_);
      const double sent_blocking = static_cast<double>(comm_.traffic().bytes_sent - sent_before) / static_cast<double>(size());
      r.blocking = peers_.largest(timed.mean());
      r.exchange = shortest(timed.besides) - meter.update();
      peers_.together();
      const Traffic before = comm_.traffic();
      const double mine = timed_steps(*overlapped, *world_.clock, shares_).mean();
      const Traffic after = comm_.traffic();
      r.overlapped = peers_.largest(mine);
      r.sent = peers_.largest(sent_blocking);
      const double sent = static_cast<double>(after.bytes_sent - before.bytes_sent) / static_cast<double>(size());
      const double waited = 1e-9 * static_cast<double>(after.waited_ns - before.waited_ns) / static_cast<double>(size());
      r_.bytes_sent = peers_.gather({&sent, 1});
      r_.waited = peers_.gather({&waited, 1});
    }
    if (world_.simulated) return r;
    const DType type = backend_->activation();
    peers_.together();
    if (comm_.rank() == 0) r.product_alone = peak_product_rate(type);
    r.product_alone = peers_.largest(r.product_alone);
    peers_.together();
    r.product_together = -peers_.largest(-peak_product_rate(type));
    return r;
  }

  // Returns the mean over the steps of the least that a rank had: the last to come to an exchange waits for nobody.
  double shortest(const std::vector<double>& of_steps) {
    const std::vector<double> all = peers_.gather(of_steps);
    double sum = 0;
    for (size_t s = 0; s < of_steps.size(); ++s) {
      double least = of_steps[s];
      for (size_t at = s; at < all.size(); at += of_steps.size()) least = std::min(least, all[at]);
      sum += least;
    }
    return sum / static_cast<double>(of_steps.size());
  }

  // Measures the link and the exchange of all buckets without computing, and estimates what both together would take.
  void exchange(RateMeter& meter) {
    const LinkRates link = measure_link(world_);
    r_.latency_s = link.latency_s;
    r_.bandwidth = link.bandwidth;
    const auto plan = make_strategy(o_.strategy, model_->parameters(), {}, comm_.rank(), comm_.size());
    const Tensor gradients = model_->parameters().gradients();
    r_.exchange = time_all_reduce(world_, gradients, plan->buckets(), o_.strategy.wire, [&] { meter.empty_caches(); });

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
    if (!world_.simulated) rates_of_exchange();
  }

  // Derives the rates of exchanges from those within steps. Repeated by itself, an exchange is faster: its memory is in caches, and its
  // threads are awake.
  void rates_of_exchange() {
    // Without a better measurement: whether computing and communication threads need more cores than the host has.
    r_.rates.exchange_slows = world_.local_size * (backend_->threads() + 1) > processor_use().processors ? 1 : 0;
    r_.step_bandwidth = r_.bandwidth;
    const bool dense = family_of(o_.strategy) == Family::synchronous && !o_.strategy.sharded_optimizer && r_.workers == r_.ranks;
    if (!dense || exchange_in_step_ <= 0) return;
    // Half of the bytes that a ring sends are sums: for each, two elements were read and one was written.
    const double sent = sent_in_step_, adding = 1.5 * sent / (1e9 * r_.rates.memory_gb_s);
    const double most = std::max(r_.bandwidth, sent / r_.exchange);  // an exchange has more messages under way than the link's measurement
    r_.step_bandwidth = std::min(most, sent / std::max(exchange_in_step_ - adding, exchange_in_step_ / 3));
    const double share = 1 - r_.last_bucket / r_.exchange, hidden = share * exchange_in_step_;
    // So short an exchange disappears in the variation of the steps.
    if (hidden < 0.01 * r_.local) return;
    // The time lost, over the work of the communication thread: copying, at the rate of memory if the link is slower, and adding.
    const double within = 1e9 / 8 * resolved({}).intra.bandwidth_gbit_s;
    const double copying = sent / (r_.ranks_per_host < r_.ranks ? std::max(r_.step_bandwidth, within) : r_.step_bandwidth);
    r_.rates.exchange_slows = std::clamp((hidden - (r_.blocking - r_.overlapped)) / (share * (copying + adding)), 0.0, 3.0);
  }

  BenchDistributedOptions o_;
  World& world_;
  Communicator& comm_;
  RankPeers peers_;
  World local_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Model> model_;
  StepOptions options_;
  Shares shares_;
  double exchange_in_step_ = 0;  // of a blocking step, seconds
  double sent_in_step_ = 0;      // in it, bytes
  BenchDistributedResult r_;
};

}  // namespace

BenchDistributedResult bench_distributed(const BenchDistributedOptions& options, World& world) {
  comm_settings(options.strategy, *world.comm);
  return Bench(options, world).run();
}

}  // namespace starling
