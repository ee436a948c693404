// Local updates, merged from time to time: model averaging, BMUF, DiLoCo and its streaming form are one loop.
//   every update   an update of the replica by its own gradient
//   every H        (a fragment of the parameters) displacement of the replica from the block's start, averaged over the ranks, moves the
//                  merged model by an outer optimizer; the next block starts there
// With W the merged model, D the outer step, G the mean displacement, eta the outer momentum, zeta the outer rate (Chen and Huo 2016):
//   D <- eta D + zeta G;  W <- W + D;  blocks start at W (classical) or W + eta D (nesterov)
#include "strategies/periodic.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "strategies/compressed_exchange.h"
#include "strategies/steps.h"

namespace starling {
namespace {

// What a fragment's exchange carries besides displacements: weight, weighted norm, sums of the updates since the last exchange.
constexpr int kNumbers = 2 + kSums;

struct Fragment {
  std::vector<NamedRange> ranges;  // parameters, of the flat buffer
  int64_t count = 0, tables = 0;   // elements; of these, in front, of embedding tables
  int64_t offset = 0;              // of its merges in the interval, updates
  Tensor displacement;             // [count]; of the replica, then summed
  Tensor start;                    // [count] with delay: the replica when it was sent
  Tensor numbers;                  // [kNumbers] f64
  std::vector<Pending> pending;
  std::optional<CompressedExchange> compressed;
  Tensor residual;           // [count] with compression: of this replica, not sent yet
  bool compressing = false;  // between start and finish of `compressed`
};

// The layer that a parameter belongs to: its name up to the second dot ("decoder.3"), or all of it.
std::string layer_of(const std::string& name) {
  const size_t first = name.find('.');
  return name.substr(0, first == std::string::npos ? first : name.find('.', first + 1));
}

class Periodic : public Strategy {
 public:
  Periodic(const StrategyOptions& options, std::vector<Bucket> buckets, const ParameterStore& parameters,
           const std::vector<ExchangedTable>& tables, int size)
      : options_(options), size_(size), flat_(parameters.flat_count()), buckets_(std::move(buckets)) {
    element_ = size_of(parameters.values().dtype());
    momentum_ = p_.outer_momentum < 0 ? 1 - 1.0 / size : p_.outer_momentum;
    if (p_.outer_momentum_steps > 0) momentum_ = std::exp(-static_cast<double>(p_.interval) / static_cast<double>(p_.outer_momentum_steps));
    divide(parameters, tables);
  }

  int workers() const override { return size_; }
  std::vector<Range> owned(int) const override { return {{0, flat_}}; }
  const std::vector<Bucket>& buckets() const override { return buckets_; }
  Replicas replicas() const override { return size_ > 1 || !plain() ? Replicas::merged : Replicas::equal; }

  void begin(Worker& w) override {
    const Tensor& values = w.parameters().values();
    merged_ = working_tensor(w, flat_, values.dtype());
    if (momentum_ != 0) step_ = working_tensor(w, flat_, values.dtype());
    for (Fragment& f : fragments_) {
      f.displacement = working_tensor(w, f.count, values.dtype());
      if (p_.delay > 0) f.start = working_tensor(w, f.count, values.dtype());
      if (compresses()) {
        f.residual = working_tensor(w, f.count, values.dtype());
        f.compressed.emplace(compressed_exchange(f));
      }
      f.numbers = Tensor({kNumbers}, DType::f64);
    }
    counters_ = Tensor({static_cast<int64_t>(3 * fragments_.size()) + kSums}, DType::f64);
    for (Fragment& f : fragments_) f.compressing = false;
    merged_.copy_from(values);
  }

  StepResult step(Worker& w) override {
    StepResult result = local_update(w);
    StepSums sums;  // of what is merged in this step
    const int64_t t = local_updates(w);
    for (size_t f = 0; f < fragments_.size(); ++f) {
      if (under_way(f) != 0 && t - static_cast<int64_t>(last_sent(f)) >= p_.delay) sums += complete(w, f);
      if (t % p_.interval == fragments_[f].offset) {
        send(w, f, t);
        if (p_.delay == 0) sums += complete(w, f);
        if (p_.inner_state == InnerState::reset)
          w.clock().spend({Work::memory, 0, static_cast<double>(2 * flat_ * element_)}, [&] { w.optimizer().reset_moments(); });
      }
    }
    if (p_.inner_state == InnerState::average) average_moments(w, t);
    result.totals = sums.totals;
    result.control = sums.control;
    return result;
  }

  Tensor deployed(Worker& w, bool final) override {
    if (!final) return merged_.clone();
    // Everything is merged, the result taken, and all put back.
    std::vector<Tensor> changed{merged_, counters_, w.parameters().values()};
    if (step_) changed.push_back(step_);
    for (Fragment& f : fragments_) {
      receive(w, f);
      changed.insert(changed.end(), {f.displacement, f.numbers});
      if (f.start) changed.push_back(f.start);
      if (f.residual) changed.push_back(f.residual);
    }
    std::vector<Tensor> before;
    for (const Tensor& t : changed) before.push_back(t.clone());
    const int64_t t = local_updates(w);
    for (size_t f = 0; f < fragments_.size(); ++f) {
      if (under_way(f) != 0) complete(w, f);
      if (t > static_cast<int64_t>(last_sent(f))) {
        send(w, f, t);
        complete(w, f);
      }
    }
    const Tensor result = merged_.clone();
    for (size_t i = 0; i < changed.size(); ++i) changed[i].copy_from(before[i]);
    w.parameters().changed();
    return result;
  }

  std::vector<StateTensor> state(Worker& w) override {
    forget_requests(sums());
    std::vector<StateTensor> all{{"outer.merged", merged_, true}, {"outer.counters", counters_, false}};
    if (momentum_ != 0) all.push_back({"outer.step", step_, true});
    for (size_t f = 0; f < fragments_.size(); ++f) {
      if (compresses()) all.push_back({fmt::format("outer.{}.residual", f), fragments_[f].residual, false});
      if (p_.delay == 0) continue;  // nothing is under way between steps
      receive(w, fragments_[f]);
      forget_requests(sums_of(fragments_[f]));
      all.push_back({fmt::format("outer.{}.displacement", f), fragments_[f].displacement, true});
      all.push_back({fmt::format("outer.{}.start", f), fragments_[f].start, false});
      all.push_back({fmt::format("outer.{}.numbers", f), fragments_[f].numbers, true});
    }
    return all;
  }

  std::string describe() const override {
    const std::string local = fmt::format("{} workers update by themselves and merge every {} updates{}{}", size_, p_.interval,
                                          p_.fragments > 1 ? fmt::format(" in {} fragments", p_.fragments) : "",
                                          p_.delay > 0 ? fmt::format(", {} updates late", p_.delay) : "");
    const std::string outer =
        plain() ? "by their mean" : fmt::format("outer rate {:g}, momentum {:g} ({})", p_.outer_rate, momentum_, p_.outer_form);
    const double N = size_;
    double bytes = (narrow() ? 0.5 : 1.0) * 2 * (N - 1) / N * static_cast<double>(flat_ * element_);
    if (compresses()) {
      bytes = 0;
      for (const Fragment& f : fragments_) bytes += compressed_exchange(f).planned_bytes(keep_at(options_.compression, 1000000000));
    }
    return fmt::format("{}: {}, {}{}; each rank sends {:.2f} MiB per update, {:.1f} MiB per merge", options_.name, local, outer,
                       compresses() ? sent_text(bytes) : "", bytes / static_cast<double>(p_.interval) / (1 << 20), bytes / (1 << 20));
  }

 private:
  bool compresses() const { return options_.compression.compressor != Compressor::none && size_ > 1; }
  bool narrow() const { return options_.wire == Wire::bf16 && element_ == 4; }
  // Merges are means and nothing more.
  bool plain() const { return momentum_ == 0 && p_.outer_rate == 1; }
  double& under_way(size_t f) { return doubles_of(counters_)[3 * f]; }      // 1: sent and not merged yet
  double& tokens(size_t f) { return doubles_of(counters_)[3 * f + 1]; }     // of this rank since the fragment was sent last
  double& last_sent(size_t f) { return doubles_of(counters_)[3 * f + 2]; }  // update; 0: never
  std::span<double> sums() { return doubles_of(counters_).last(kSums); }    // not yet exchanged
  static std::span<double> sums_of(const Fragment& f) { return doubles_of(f.numbers).last(kSums); }

  std::string sent_text(double bytes) const {
    const double whole = 2 * (size_ - 1.0) / size_ * static_cast<double>(flat_ * element_);
    return bytes < 0.99 * whole
               ? fmt::format(", sent {}", options_.compression.compressor)
               : fmt::format(", sent whole, since {} codes of {} ranks would take more bytes", options_.compression.compressor, size_);
  }

  // Of a fragment's displacement.
  CompressedExchange compressed_exchange(const Fragment& f) const {
    std::vector<NamedRange> parts;
    int64_t at = 0;
    for (const auto& [name, r] : f.ranges) {
      parts.push_back({name, {at, at + r.count()}});
      at += r.count();
    }
    return {options_.compression, parts, element_ == 4 ? DType::f32 : DType::f64, size_};
  }

  // Requests to end are this run's, not those of a run that continues it; they are made again at every update.
  static void forget_requests(std::span<double> numbers) { write_sums({read_sums(numbers).totals, {}}, numbers); }

  // Each layer goes to the fragment that is smallest so far; in each fragment embedding tables come first.
  void divide(const ParameterStore& parameters, const std::vector<ExchangedTable>& tables) {
    fragments_.resize(static_cast<size_t>(p_.fragments));
    std::vector<std::vector<NamedRange>> others(fragments_.size());
    std::string layer;
    size_t at = 0;
    for (const auto& parameter : parameters.all()) {
      if (const std::string own = layer_of(parameter.name); own != layer) {
        layer = own;
        const auto smaller = [](const Fragment& a, const Fragment& b) { return a.count < b.count; };
        at = static_cast<size_t>(std::min_element(fragments_.begin(), fragments_.end(), smaller) - fragments_.begin());
      }
      const Range range{parameter.offset, parameter.offset + parameter.shape.count()};
      Fragment& f = fragments_[at];
      f.count += range.count();
      const bool table = std::any_of(tables.begin(), tables.end(), [&](const ExchangedTable& t) { return t.table == &parameter; });
      if (table) f.tables += range.count();
      (table ? f.ranges : others[at]).push_back({parameter.name, range});
    }
    for (size_t f = 0; f < fragments_.size(); ++f) {
      if (fragments_[f].count == 0)
        throw ConfigError(fmt::format("strategy.periodic.fragments is {}, but the model has only {} layers; lower it", p_.fragments, f));
      fragments_[f].ranges.insert(fragments_[f].ranges.end(), others[f].begin(), others[f].end());
      fragments_[f].offset = static_cast<int64_t>(f) * p_.interval / p_.fragments;
    }
  }

  // Those after the synchronous ones.
  int64_t local_updates(Worker& w) const { return w.optimizer().updates() - options_.synchronous_steps; }

  StepResult local_update(Worker& w) {
    w.gradients({{}, [](size_t) {}});
    const StepSums mine = own_sums(w);
    if (!std::isfinite(mine.totals.smoothed)) refuse_step(w, "the loss");
    const StepResult result = update_replica(w, mine, own_gradient_norm(w, mine.totals));
    StepSums all = read_sums(sums());
    all += mine;
    write_sums(all, sums());
    for (size_t f = 0; f < fragments_.size(); ++f) tokens(f) += mine.totals.tokens;
    return result;
  }

  void send(Worker& w, size_t index, int64_t t) {
    Fragment& f = fragments_[index];
    const double weight = p_.merge_weights == MergeWeights::equal ? 1 : tokens(index);
    const std::span<double> numbers = doubles_of(f.numbers);
    numbers[0] = weight;
    numbers[1] = 0;
    write_sums(read_sums(sums()), sums_of(f));
    write_sums({}, sums());
    tokens(index) = 0;
    under_way(index) = 1;
    last_sent(index) = static_cast<double>(t);
    const int passes = (momentum_ != 0 ? 4 : 3) + (p_.delay > 0 ? 1 : 0) + (weight != 1 ? 2 : 0) + (p_.merge == MergeRule::radial ? 1 : 0);
    w.clock().spend({Work::memory, 0, static_cast<double>(passes * f.count * element_)}, [&] { displace(w, f, weight); });
    f.pending = {w.comm().all_reduce(f.numbers)};
    if (size_ == 1) return;
    if (compresses()) {
      f.compressed->start(w, {.x = f.displacement, .residual = f.residual, .velocity = {}, .keep = keep_at(options_.compression, t)});
      if (const std::string bad = f.compressed->bad_element(); !bad.empty()) refuse_step(w, "the displacement, " + bad + ",");
      f.compressing = true;
      return;
    }
    for (Pending& p : all_reduce_in_pieces(w.comm(), f.displacement, options_.bucket_mib, narrow())) f.pending.push_back(std::move(p));
  }

  // Blocks start at the merged model, or, in Nesterov's form, further along the outer step.
  double ahead() const { return p_.outer_form == OuterForm::nesterov ? momentum_ : 0; }

  // f(parameters' range of the flat buffer, its place in the fragment's tensors).
  template <class F>
  static void each_range(const Fragment& f, F visit) {
    int64_t at = 0;
    for (const auto& [name, r] : f.ranges) {
      visit(r, Range{at, at + r.count()});
      at += r.count();
    }
  }

  // The replica's weighted displacement from the start of its block; with merge radial, of its direction.
  void displace(Worker& w, Fragment& f, double weight) {
    Backend& backend = w.parameters().backend();
    each_range(f, [&](const Range& r, const Range& at) {
      backend.flat().displacement({.value = view(w.parameters().values(), r),
                                   .merged = view(merged_, r),
                                   .step = step_ ? view(step_, r) : Tensor(),
                                   .momentum = ahead(),
                                   .displacement = view(f.displacement, at),
                                   .sent = f.start ? view(f.start, at) : Tensor()});
    });
    const auto scale = [&](const Range& r, double factor) {
      if (r.count() > 0 && factor != 1) backend.flat().scale(view(f.displacement, r), factor, view(f.displacement, r), Write::overwrite);
    };
    if (p_.merge != MergeRule::radial) return scale({0, f.count}, weight);
    const Range directions{f.tables, f.count};
    const double norm = std::sqrt(squares_in_order(w, view(f.displacement, directions)));
    doubles_of(f.numbers)[1] = weight * norm;
    scale({0, f.tables}, weight);
    scale(directions, norm > 0 ? weight / norm : 0);
  }

  // Waits until the displacement is the sum over the ranks.
  static void receive(Worker& w, Fragment& f) {
    for (const Pending& pending : f.pending) pending.wait();
    f.pending.clear();
    if (f.compressing) f.compressed->finish(w);
    f.compressing = false;
  }

  // Merges the fragment; returns the sums that came with it.
  StepSums complete(Worker& w, size_t index) {
    Fragment& f = fragments_[index];
    w.comm().note("merge", 0);
    receive(w, f);
    under_way(index) = 0;
    if (size_ == 1 && plain())  // the mean of one, without rounding
      w.clock().spend({Work::memory, 0, static_cast<double>(2 * f.count * element_)}, [&] { take(w, f); });
    else
      w.clock().spend({Work::memory, 0, static_cast<double>((momentum_ != 0 ? 7 : 5) * f.count * element_)}, [&] { merge(w, f); });
    w.parameters().changed();
    return read_sums(sums_of(f));
  }

  // The merged model is what was sent.
  void take(Worker& w, const Fragment& f) {
    each_range(f, [&](const Range& r, const Range& at) {
      view(merged_, r).copy_from(f.start ? view(f.start, at) : view(w.parameters().values(), r));
    });
  }

  void merge(Worker& w, const Fragment& f) {
    Backend& backend = w.parameters().backend();
    const std::span<double> numbers = doubles_of(f.numbers);
    if (numbers[0] <= 0) return;  // nobody has seen a token
    const double mean = p_.outer_rate / numbers[0], radial = p_.merge == MergeRule::radial ? radial_scale(w, f) : mean;
    each_range(f, [&](const Range& r, const Range& at) {
      backend.flat().outer_step({.sum = view(f.displacement, at),
                                 .value = view(w.parameters().values(), r),
                                 .merged = view(merged_, r),
                                 .step = step_ ? view(step_, r) : Tensor(),
                                 .sent = f.start ? view(f.start, at) : Tensor(),
                                 .rate = at.begin < f.tables ? mean : radial,
                                 .momentum = momentum_,
                                 .anchor = p_.outer_form == OuterForm::anchored ? momentum_ : 0,
                                 .ahead = ahead(),
                                 .corrected = p_.late_merge == LateMerge::corrected,
                                 .keep = p_.late_mix});
    });
  }

  static double squares_in_order(Worker& w, const Tensor& x) {
    const Tensor sum = working_tensor(w, 1, DType::f64);
    w.parameters().backend().flat().squares_in_order(x, sum);
    return number(sum);
  }

  // Outer rate times mean length over the length of the summed directions.
  double radial_scale(Worker& w, const Fragment& f) const {
    const double squares = squares_in_order(w, view(f.displacement, {f.tables, f.count}));
    const std::span<double> numbers = doubles_of(f.numbers);
    return squares > 0 ? p_.outer_rate * numbers[1] / numbers[0] / std::sqrt(squares) : 0;
  }

  void average_moments(Worker& w, int64_t t) {
    for (const auto& [name, state] : w.optimizer().state()) {
      const bool squares = name.ends_with(".v");  // Adam's second moment, AdaGrad's only one
      const int64_t interval = squares ? p_.second_moment_interval : p_.first_moment_interval;
      if (size_ == 1 || t % (interval > 0 ? interval : p_.interval) != 0) continue;
      w.comm().all_reduce(state).wait();
      divide_by(w, state, size_);
    }
  }

  StrategyOptions options_;
  const PeriodicOptions& p_ = options_.periodic;
  int size_;
  int64_t flat_, element_ = 4;
  std::vector<Bucket> buckets_;
  double momentum_ = 0;
  std::vector<Fragment> fragments_;
  Tensor merged_, step_;  // W, D; flat
  Tensor counters_;       // f64, see under_way, tokens, last_sent, sums
};

}  // namespace

std::unique_ptr<Strategy> make_periodic(const StrategyOptions& options, std::vector<Bucket> buckets, const ParameterStore& parameters,
                                        const std::vector<ExchangedTable>& tables, int size) {
  return std::make_unique<Periodic>(options, std::move(buckets), parameters, tables, size);
}

}  // namespace starling
