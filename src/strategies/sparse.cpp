// Compressed gradients at every update, with error feedback, and combined with local gradients (Aji, Heafield and Bogoychev 2019). Of rank
// n with gradient L_n and residual e_n, both sums over tokens:
//   a = L_n + decay e_n;  C_n = what is sent of a;  e_n = a - C_n;  G = sum of the C over the ranks
//   none: u = G;  sum: u = G + s L_n;  partial: u = G - C_n + L_n where n has sent, G + s L_n elsewhere;  error: u = G + s e_n
// Each rank updates its replica by u, clipped by u's own norm; unless u = G the replicas differ, and are averaged every K updates.
#include "strategies/sparse.h"

#include <algorithm>
#include <cmath>

#include "strategies/compressed_exchange.h"
#include "strategies/steps.h"

namespace starling {
namespace {

class Sparse : public Strategy {
 public:
  Sparse(const StrategyOptions& options, std::vector<Bucket> buckets, const ParameterStore& parameters, int size)
      : options_(options), buckets_(std::move(buckets)), size_(size) {
    flat_ = parameters.values().count();
    type_ = parameters.values().dtype();
    element_ = size_of(type_);
    const double asked = options.sparse.local_scale;
    local_scale_ = asked == 0 ? std::sqrt(static_cast<double>(size)) : asked < 0 ? size : asked;
    std::vector<NamedRange> small;
    for (const Bucket& b : buckets_) exchanges_.emplace_back(options.compression, pieces(parameters, b.range, small), type_, size);
    std::sort(small.begin(), small.end(), [](const NamedRange& a, const NamedRange& b) { return a.range.begin < b.range.begin; });
    exchanges_.emplace_back(options.compression, small, type_, size);
    sums_ = Tensor({kSums + 1}, DType::f64);
    norm_ = Tensor({1}, DType::f64);
  }

  int workers() const override { return size_; }
  std::vector<Range> owned(int) const override { return {{0, flat_}}; }
  const std::vector<Bucket>& buckets() const override { return buckets_; }
  Replicas replicas() const override { return differ() ? Replicas::merged : Replicas::equal; }

  void begin(Worker& w) override {
    residual_ = working_tensor(w, flat_, type_);
    if (options_.compression.momentum_correction > 0) velocity_ = working_tensor(w, flat_, type_);
  }

  StepResult step(Worker& w) override {
    exchange(w);
    const StepSums sums = read_sums(doubles_of(sums_).first(kSums));
    if (!std::isfinite(sums.totals.smoothed)) refuse_step(w, "the loss");
    if (doubles_of(sums_)[kSums] > 0) refuse_numbers(w);
    for (CompressedExchange& e : exchanges_) e.finish(w);
    StepResult result = update_replica(w, sums, differ() ? own_gradient_norm(w, sums.totals) : common_norm(w, sums.totals));
    result.totals = sums.totals;
    result.control = sums.control;
    const int64_t every = options_.sparse.average_interval;
    if (differ() && every > 0 && w.optimizer().updates() % every == 0) average(w);
    return result;
  }

  std::vector<StateTensor> state(Worker&) override {
    std::vector<StateTensor> all{{"sparse.residual", residual_, false}};
    if (velocity_) all.push_back({"sparse.velocity", velocity_, false});
    return all;
  }

  // The mean of the replicas; nothing is charged, as later pieces of computing would last otherwise (jitter).
  Tensor deployed(Worker& w, bool) override {
    if (!differ()) return {};
    const Tensor mean = w.parameters().values().clone();
    sum_up(w, mean);
    w.parameters().backend().flat().divide(mean, size_);
    return mean;
  }

  std::string describe() const override {
    const CompressionOptions& c = options_.compression;
    const SparseOptions& s = options_.sparse;
    const std::string what = c.compressor == Compressor::top_k
                                 ? fmt::format("the largest {:g} % of each {} in {}", 100 * c.keep, c.select, c.values)
                                 : std::string(word(c.compressor));
    const std::string local =
        s.local_gradients == LocalPart::none
            ? ""
            : fmt::format(", with local gradients ({}, scale {:.3g}){}", s.local_gradients, local_scale_,
                          s.average_interval > 0 ? fmt::format(", parameters averaged every {} updates", s.average_interval) : "");
    double bytes = 0, dense = 0;
    for (CompressedExchange e : exchanges_) {
      bytes += e.planned_bytes(c.keep);
      dense += e.dense_bytes();
    }
    return fmt::format(
        "{}: {} workers exchange compressed gradients: {}{}; each rank sends {:.2f} MiB per update, {:.1f} % of an all-reduce",
        options_.name, size_, what, local, bytes / (1 << 20), dense > 0 ? 100 * bytes / dense : 0);
  }

 private:
  bool differ() const { return options_.sparse.local_gradients != LocalPart::none; }

  // The parameters in a bucket, or the parts of them that lie in it; small ones are left for the exchange at the end.
  std::vector<NamedRange> pieces(const ParameterStore& parameters, const Range& bucket, std::vector<NamedRange>& small) const {
    std::vector<NamedRange> large;
    for (const Parameter& p : parameters.all()) {
      const Range r{std::max(bucket.begin, p.offset), std::min(bucket.end, p.offset + p.shape.count())};
      if (r.count() > 0) (r.count() < options_.compression.dense_below ? small : large).push_back({p.name, r});
    }
    return large;
  }

  // Starts everything, each bucket when its gradient is complete. The sums go last, since they also tell whether a rank has a number that
  // cannot be sent.
  void exchange(Worker& w) {
    const double keep = keep_at(options_.compression, w.optimizer().updates() - options_.synchronous_steps);
    bad_.clear();
    size_t started = 0;
    const auto start = [&](size_t bucket) {
      exchanges_[bucket].start(w, {w.parameters().gradients(), residual_, velocity_, keep, options_.sparse.local_gradients, local_scale_});
      ++started;
    };
    Worker::Calls calls;
    calls.ready = [&](size_t bucket) {
      if (options_.overlap) start(bucket);
    };
    w.gradients(calls);
    while (started < exchanges_.size()) start(started);
    for (const CompressedExchange& e : exchanges_)
      if (bad_.empty()) bad_ = e.bad_element();
    write_sums(w.sums(), doubles_of(sums_).first(kSums));
    doubles_of(sums_)[kSums] = bad_.empty() ? 0 : 1;
    w.comm().note("exchange of compressed gradients", 0);
    w.sum_over_all(sums_);
  }

  // Called on every rank once one of them has a number that cannot be sent: the ranks tell each other which.
  [[noreturn]] void refuse_numbers(Worker& w) const {
    const std::vector<std::string> all = gather_texts(w.comm(), bad_);
    const auto first = std::find_if(all.begin(), all.end(), [](const std::string& text) { return !text.empty(); });
    if (first == all.end()) refuse_step(w, "the gradient of another stage of the model");
    const auto rank = static_cast<int>(first - all.begin());
    refuse_step(w, fmt::format("the gradient of rank {} on {}, {},", rank, w.comm().host(rank), *first));
  }

  // The squares of the gradient, which is the same on all ranks, as the same number on all: each rank adds up a part, so that neither
  // thread counts nor processors that differ let equal replicas drift apart.
  double common_norm(Worker& w, const StepTotals& totals) {
    doubles_of(norm_)[0] = sum_of_squares(w, view(w.parameters().gradients(), part(flat_, w.comm().rank(), size_)));
    w.sum_over_all(norm_);
    return gradient_norm(w, doubles_of(norm_)[0], totals);
  }

  void average(Worker& w) {
    w.comm().note("average of parameters", 0);
    sum_up(w, w.parameters().values());
    divide_by(w, w.parameters().values(), size_);
    w.parameters().changed();
    if (!options_.sparse.residual_reset) return;
    w.clock().spend({Work::memory, 0, static_cast<double>(flat_ * element_)}, [&] {
      residual_.zero();
      if (velocity_) velocity_.zero();
    });
  }

  // x becomes the sum over the ranks, in pieces that travel one after another.
  void sum_up(Worker& w, const Tensor& x) const {
    for (const Pending& p : all_reduce_in_pieces(w.comm(), x, options_.bucket_mib, false)) p.wait();
  }

  StrategyOptions options_;
  std::vector<Bucket> buckets_;
  int size_;
  int64_t flat_ = 0, element_ = 4;
  DType type_ = DType::f32;
  double local_scale_ = 1;
  std::vector<CompressedExchange> exchanges_;  // one a bucket, and that of all small tensors
  Tensor residual_, velocity_;                 // flat
  Tensor sums_;                                // and how many ranks have a number that cannot be sent
  std::string bad_;                            // which one this rank has
  Tensor norm_;
};

}  // namespace

std::unique_ptr<Strategy> make_sparse(const StrategyOptions& options, std::vector<Bucket> buckets, const ParameterStore& parameters,
                                      int size) {
  return std::make_unique<Sparse>(options, std::move(buckets), parameters, size);
}

}  // namespace starling
