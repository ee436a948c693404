#include "measure/calibration.h"

#include <algorithm>
#include <thread>

#include "backend/limits.h"
#include "base/error.h"
#include "base/start_threads.h"
#include "decode/model_directory.h"
#include "measure/disturbance.h"
#include "replica/replica.h"

namespace starling {
namespace {

constexpr double kAgreement = 1.25;  // the larger rate over the smaller; 1.02 to 1.1 on a quiet machine
constexpr size_t kMost = 5;          // measurements

double disagreement(const Calibration& a, const Calibration& b, double Calibration::*rate) {
  return std::max(a.*rate, b.*rate) / std::min(a.*rate, b.*rate);
}

bool agree(const Calibration& a, const Calibration& b) {
  return disagreement(a, b, &Calibration::forward_gflops) <= kAgreement && disagreement(a, b, &Calibration::backward_gflops) <= kAgreement;
}

// Relative time of a forward and a backward pass, which computes twice as much.
double time_of(const Calibration& c) { return 1 / c.forward_gflops + 2 / c.backward_gflops; }

std::string text_of(const Calibration& c) {
  return fmt::format("forward {:.1f} and backward {:.1f} GFLOP/s", c.forward_gflops, c.backward_gflops);
}

}  // namespace

std::string doubt_about(const Calibration& c, double peak_gflops) {
  constexpr double kUnlike = 5;    // both directions are the same kinds of products
  constexpr double kBeyond = 1.3;  // the peak is measured too
  const double ratio = c.backward_gflops / c.forward_gflops;
  if (!(ratio >= 1 / kUnlike && ratio <= kUnlike)) return fmt::format("{} cannot both be right", text_of(c));
  if (peak_gflops > 0 && std::max(c.forward_gflops, c.backward_gflops) > kBeyond * peak_gflops)
    return fmt::format("{} are more than the {:.1f} GFLOP/s of this machine's fastest products", text_of(c), peak_gflops);
  return "";
}

std::vector<size_t> settle(const std::function<MeasuredRates()>& measure, double peak_gflops, const Say& say) {
  std::vector<MeasuredRates> sound, doubtful;
  std::exception_ptr failure;
  for (size_t attempt = 1; attempt <= kMost; ++attempt) {
    std::string doubt;
    try {
      const MeasuredRates m = measure();
      doubt = doubt_about(m.rates, peak_gflops);
      if (doubt.empty() && !m.disturbance.empty()) doubt = fmt::format("{}, but {}", text_of(m.rates), m.disturbance);
      if (doubt.empty())
        for (const MeasuredRates& earlier : sound)
          if (agree(earlier.rates, m.rates)) return {earlier.measurement, m.measurement};
      (doubt.empty() ? sound : doubtful).push_back(m);
      if (doubt.empty() && sound.size() > 1)
        doubt = fmt::format("{}, and {} before", text_of(m.rates), text_of(sound[sound.size() - 2].rates));
    } catch (const ConfigError& e) {
      doubt = e.what();
      failure = std::current_exception();
    }
    if (say && !doubt.empty() && attempt < kMost) say(fmt::format("the measurement was disturbed ({}): measuring again", doubt));
  }
  const std::vector<MeasuredRates>& left = sound.empty() ? doubtful : sound;
  if (left.empty()) std::rethrow_exception(failure);
  if (say)
    say(
        fmt::format("warning: {} measurements of the computing rates were disturbed or contradict each other; the fastest one is used, "
                    "but times computed from it may be wrong: measure on a machine without other load",
                    kMost));
  const auto faster = [](const MeasuredRates& a, const MeasuredRates& b) { return time_of(a.rates) < time_of(b.rates); };
  return {std::min_element(left.begin(), left.end(), faster)->measurement};
}

MeasuredBatches batches_to_measure(int64_t batch_tokens, double seconds, double seconds_per_token) {
  constexpr int64_t kMost = 4, kFewest = 512;  // batches, tokens
  const double tokens = 2 * seconds / 8 / std::max(seconds_per_token, 1e-12);
  MeasuredBatches b;
  b.tokens = std::clamp(static_cast<int64_t>(std::min(tokens, 1e9)), std::min(kFewest, batch_tokens), batch_tokens);
  b.count = std::clamp(static_cast<int64_t>(std::min(tokens, 1e9)) / b.tokens, int64_t{1}, kMost);
  return b;
}

namespace {

// One rank's part in a calibration. All ranks decide alike, since they know the same numbers.
class Calibrator {
 public:
  Calibrator(const BenchTrainOptions& given, Peers& peers, const std::function<void(double share)>& told)
      : o_(given), peers_(peers), told_(told), world_(make_local_world()) {
    backend_ = make_backend(DeviceChoice{o_.precision, o_.threads, "cpu"});
    model_ = make_model(o_.model, {o_.vocabulary, o_.vocabulary}, *backend_, o_.seed, true);
    StepOptions options;
    options.optimizer.learning_rate = 1e-4;
    replica_.emplace(*model_, options, world_);
  }

  Calibration run(const Say& say) {
    const std::vector<Batch> probe = in_small_passes({synthetic_batches(o_, 1)}).front();
    const std::vector<Batch> first{probe.front()};
    seconds_of(first);  // warms up
    peers_.together();
    const double each = peers_.largest(seconds_of(first)) / static_cast<double>(first.front().target.count());
    const MeasuredBatches batches = batches_to_measure(o_.batch_tokens, o_.seconds / 2, each);
    o_.batch_tokens = batches.tokens;
    Shares shares;
    for (Batch& batch : synthetic_batches(o_, batches.count)) shares.push_back({std::move(batch)});
    const double steps = 5 * (peers_.size() > 1 ? 3 : 2) * static_cast<double>(shares.size());  // of five rounds, of which one warms up
    double done = 0;
    const auto told = [&] {
      if (told_ && peers_.rank() == 0) told_(std::min(++done / steps, 1.0));
    };
    RateMeter meter(*replica_, *world_.clock, peers_, shares, true);
    meter.on_step = told;
    meter.round();  // warms up
    const double peak = peers_.largest(peers_.rank() == 0 ? 1e-9 * peak_product_rate(*backend_) : 0);
    meter.merge(settle([&] { return once(meter); }, peak, peers_.rank() == 0 ? say : Say()));
    return meter.rates();
  }

 private:
  double seconds_of(const std::vector<Batch>& share) {
    const double start = world_.clock->seconds();
    replica_->step(share);
    return world_.clock->seconds() - start;
  }

  MeasuredRates once(RateMeter& meter) {
    const size_t measurement = meter.begin();
    const DisturbanceWatch watch(peers_, backend_->threads());
    const double start = world_.clock->seconds();
    do meter.round();
    while (meter.rounds() < 2 || peers_.largest(world_.clock->seconds() - start) < o_.seconds / 2);
    const std::string disturbance = watch.text();
    return {measurement, meter.rates(), disturbance};
  }

  BenchTrainOptions o_;
  Peers& peers_;
  const std::function<void(double share)>& told_;
  World world_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Model> model_;
  std::optional<Replica> replica_;
};

}  // namespace

Calibration calibrate(const BenchTrainOptions& options, int ranks, const Say& say, const std::function<void(double share)>& told) {
  ThreadGroup group(ranks);
  std::vector<Calibration> results(static_cast<size_t>(ranks));
  std::vector<std::exception_ptr> errors(static_cast<size_t>(ranks));
  const auto rank = [&](int r) {
    ThreadPeers peers(group, r);
    try {
      results[static_cast<size_t>(r)] = Calibrator(options, peers, told).run(say);
    } catch (...) {
      errors[static_cast<size_t>(r)] = std::current_exception();
      peers.leave();
    }
  };
  std::vector<std::thread> threads;
  for (int r = 1; r < ranks; ++r) {
    try {
      threads.push_back(start_thread("calibration", [&, r] { rank(r); }));
    } catch (...) {
      errors[static_cast<size_t>(r)] = std::current_exception();
      ThreadPeers(group, r).leave();
    }
  }
  rank(0);
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
  return results.front();
}

}  // namespace starling
