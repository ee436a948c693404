// Synchronous data parallelism, one shape for three strategies: buckets of gradients are summed at their owners, owners update their
// parameters, and what a rank does not own it gets back.
//   all-reduce                    every rank owns everything: sums everywhere, nothing to get back
//   all-reduce, sharded optimizer rank r owns part r of each bucket: reduce-scatter, update, all-gather (ZeRO-1)
//   parameter-server              servers own the parts: push, update, pull
#include <algorithm>
#include <cmath>
#include <optional>

#include "base/config.h"
#include "strategies/embedding_exchange.h"
#include "strategies/strategy.h"

namespace starling {
namespace {

constexpr int kTotals = 8;

class Synchronous : public Strategy {
 public:
  Synchronous(const StrategyOptions& options, const ParameterStore& parameters, std::vector<ExchangedTable> tables, int rank, int size)
      : options_(options), tables_(std::move(tables)), rank_(rank), size_(size), flat_(parameters.values().count()) {
    element_ = size_of(parameters.values().dtype());
    if (server()) {
      const int servers = options.servers == 0 ? size : static_cast<int>(options.servers);
      const bool own = options.servers > 0 && options.server_placement == "own";
      workers_ = own ? size - servers : size;
      for (int i = 0; i < servers; ++i) servers_.push_back(own ? workers_ + i : static_cast<int>(int64_t{i} * size / servers));
    } else {
      workers_ = size;
      for (int i = 0; i < size; ++i) servers_.push_back(i);
    }
    // Tables that may go by rows: all of them when the mistake is to be shown, else those that are not the output projection as well.
    std::erase_if(tables_, [&](const ExchangedTable& t) { return !t.looked_up || (t.output && !assumed_sparse()); });
    if (size == 1 || server() || options.embedding_gradients == "dense") tables_.clear();
    std::vector<const Parameter*> whole;
    for (const ExchangedTable& t : tables_) whole.push_back(t.table);
    buckets_ = make_buckets(parameters, static_cast<int64_t>(options.bucket_mib * (1 << 20)) / element_, whole);
    row_exchanges_.resize(tables_.size());
    if (assumed_sparse())
      for (const ExchangedTable& t : tables_) t.table->token_gradients = std::make_shared<TokenGradients>();
    totals_ = Tensor({kTotals + static_cast<int64_t>(tables_.size()) * size}, DType::f64);
    norm_ = Tensor({1}, DType::f64);
  }

  int workers() const override { return workers_; }
  const std::vector<Bucket>& buckets() const override { return buckets_; }

  std::vector<Range> owned(int rank) const override {
    if (everything_everywhere()) return {{0, flat_}};
    std::vector<Range> ranges;
    for (auto b = buckets_.rbegin(); b != buckets_.rend(); ++b)  // ascending
      if (const Range r = owned_part(b->range, rank); r.count() > 0) ranges.push_back(r);
    return ranges;
  }

  StepResult step(Worker& w) override {
    exchanges_.assign(buckets_.size(), {});
    for (const ExchangedTable& t : tables_)
      if (t.table->token_gradients) t.table->token_gradients->clear();
    Worker::Calls calls;
    calls.totals = [&](const StepTotals& mine) { send_totals(w, mine); };
    calls.ready = [&](size_t b) {
      if (options_.overlap) start(w, b);
    };
    const bool computes = rank_ < workers_;
    if (computes)
      w.gradients(calls);
    else
      calls.totals(w.idle_totals());
    if (!computes || !options_.overlap)
      for (size_t b = 0; b < buckets_.size(); ++b) start(w, b);

    w.comm().note("exchange of gradients", 0);
    StepResult result;
    result.totals = receive_totals();
    if (!std::isfinite(result.totals.smoothed)) refuse(w, "loss");
    const double tokens = std::max(result.totals.tokens, 1.0);
    result.gradient_norm = std::sqrt(sum_of_squares(w)) / tokens;
    if (!std::isfinite(result.gradient_norm)) refuse(w, "gradient");
    const Worker::UpdatePlan plan = w.plan_update(result.totals, result.gradient_norm);
    result.learning_rate = plan.rate;
    update(w, plan);
    return result;
  }

  std::string describe() const override {
    if (size_ == 1) return "one worker";
    const double M = static_cast<double>(flat_ * element_), N = size_, mib = 1 << 20;
    const double gradient = options_.wire == "bf16" && element_ == 4 ? 0.5 : 1.0;
    const std::string cut = fmt::format("{} buckets of up to {:g} MiB{}", buckets_.size(), options_.bucket_mib,
                                        options_.overlap ? ", exchanged during the backward pass" : "");
    if (server()) {
      const double S = static_cast<double>(servers_.size()), clients = workers_ - (workers_ == size_ ? 1 : 0);
      return fmt::format("parameter server: {} workers, {} server{} on {}; {}; a server receives and sends {:.1f} MiB an update", workers_,
                         servers_.size(), servers_.size() == 1 ? "" : "s",
                         workers_ == size_ ? "ranks that compute too" : "ranks of their own", cut, (gradient + 1) * clients * M / S / mib);
    }
    const double bytes = options_.sharded_optimizer ? (gradient + 1) * (N - 1) / N * M : gradient * 2 * (N - 1) / N * M;
    return fmt::format("all-reduce among {} workers{}; {}, {} on the wire; a rank sends {:.1f} MiB an update", size_,
                       options_.sharded_optimizer ? ", optimizer sharded" : "", cut, options_.wire, bytes / mib);
  }

  std::string embedding_report() const override { return embedding_report_; }

 private:
  bool server() const { return options_.name == "parameter-server" && size_ > 1; }
  bool sharded() const { return options_.sharded_optimizer && size_ > 1; }
  bool everything_everywhere() const { return !server() && !sharded(); }
  bool assumed_sparse() const { return options_.embedding_gradients == "assumed-sparse"; }

  // What `rank` owns of a bucket.
  Range owned_part(const Range& bucket, int rank) const {
    for (size_t i = 0; i < servers_.size(); ++i)
      if (servers_[i] == rank) {
        const Range p = part(bucket.count(), static_cast<int>(i), static_cast<int>(servers_.size()));
        return {bucket.begin + p.begin, bucket.begin + p.end};
      }
    return {bucket.begin, bucket.begin};
  }

  static Tensor view(const Tensor& flat, const Range& r) { return flat.slice(r.begin, Shape{r.count()}); }

  ServerShape server_shape(const Tensor& x, bool gradient) const {
    return {rank_, size_, x.count(), x.dtype(), workers_, servers_, gradient && options_.wire == "bf16" && x.dtype() == DType::f32};
  }

  void send_totals(Worker& w, const StepTotals& mine) {
    auto* x = totals_.data<double>();
    std::fill_n(x, totals_.count(), 0.0);
    const double values[kTotals] = {mine.smoothed,      mine.nll,       mine.tokens, mine.correct,
                                    mine.source_tokens, mine.sentences, mine.stop,   mine.finished};
    std::copy_n(values, kTotals, x);
    touched_.clear();
    for (size_t t = 0; t < tables_.size(); ++t) {
      const ExchangedTable& table = tables_[t];
      touched_.push_back(w.lookup_rows(*table.table));
      const int64_t rows = !assumed_sparse() ? static_cast<int64_t>(touched_.back().touched.size())
                                             : touched_.back().tokens + (table.output ? table.table->shape[0] : 0);
      x[kTotals + static_cast<int64_t>(t) * size_ + rank_] = static_cast<double>(rows);
    }
    pending_totals_ = w.comm().all_reduce(totals_);
  }

  StepTotals receive_totals() {
    pending_totals_.wait();
    const auto* x = totals_.data<double>();
    return {x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]};
  }

  // Begins the exchange of bucket b, whose gradient is complete here.
  void start(Worker& w, size_t b) {
    if (size_ == 1) return;
    const Bucket& bucket = buckets_[b];
    if (bucket.table && start_rows(w, *bucket.table)) return;
    const Tensor x = view(w.parameters().gradients(), bucket.range);
    const bool narrow = options_.wire == "bf16" && x.dtype() == DType::f32;
    if (everything_everywhere())
      exchanges_[b] = narrow ? w.comm().all_reduce_bf16(x) : w.comm().all_reduce(x);
    else if (server() || narrow)
      exchanges_[b] = w.comm().run(server_push(server_shape(x, true)), x, "push of gradients");
    else
      exchanges_[b] = w.comm().reduce_scatter(x);
  }

  // The exchange of a table by rows, where that is asked for or cheaper; false: as any other bucket.
  bool start_rows(Worker& w, const Parameter& table) {
    size_t t = 0;
    while (tables_[t].table != &table) ++t;
    pending_totals_.wait();  // begun before the backward pass, so it is usually there
    std::vector<int64_t> counts;
    int64_t rows = 0;
    for (int r = 0; r < size_; ++r) {
      counts.push_back(static_cast<int64_t>(totals_.data<double>()[kTotals + static_cast<int64_t>(t) * size_ + r]));
      rows += counts.back();
    }
    const int64_t V = table.shape[0], D = table.shape[1];
    const double dense = dense_exchange_bytes(V, D, element_, size_), mib = 1 << 20;
    const double sparse = assumed_sparse() ? static_cast<double>(rows * (D * element_ + 8)) * (size_ - 1) / size_
                                           : rows_exchange_bytes(rows, D, element_, size_);
    const bool by_rows = assumed_sparse() || sparse < dense;
    if (assumed_sparse())
      embedding_report_ = fmt::format("{}: assumed sparse, {} rows gathered into {:.1f} MiB on every rank ({:.1f}x the table's {:.1f} MiB)",
                                      table.name, rows, static_cast<double>(rows * (D * element_ + 8)) / mib,
                                      static_cast<double>(rows * (D * element_ + 8)) / static_cast<double>(V * D * element_),
                                      static_cast<double>(V * D * element_) / mib);
    else
      embedding_report_ =
          fmt::format("{}: {}; {} rows over all ranks of {} in the table: {:.2f} MiB by rows, {:.2f} MiB dense, sent per rank", table.name,
                      by_rows ? "by rows" : "dense", rows, V, sparse / mib, dense / mib);
    if (!by_rows) return false;
    if (w.clock().timing_only()) return false;
    const Parameter& p = table;
    row_exchanges_[t] = assumed_sparse()
                            ? RowExchange::start_assumed_sparse(w.comm(), p.gradient, *p.token_gradients, tables_[t].output, counts)
                            : RowExchange::start_rows(w.comm(), p.gradient, touched_[t].touched, counts);
    return true;
  }

  // Waits for bucket b; then its gradient is summed where it is owned.
  void finish(Worker& w, size_t b) {
    exchanges_[b].wait();
    for (size_t t = 0; t < tables_.size(); ++t)
      if (buckets_[b].table == tables_[t].table && row_exchanges_[t]) {
        const double bytes = 3.0 * static_cast<double>(row_exchanges_[t]->buffer_bytes());
        w.clock().spend({Work::memory, 0, bytes}, [&] { row_exchanges_[t]->finish(); });
        row_exchanges_[t].reset();
      }
  }

  // Over all parameters, the same number on every rank: each adds up a part of its own, whatever it owns.
  double sum_of_squares(Worker& w) {
    ParameterStore& parameters = w.parameters();
    double squares = 0;
    for (size_t b = 0; b < buckets_.size(); ++b) {
      finish(w, b);
      const Range range = owned_part(buckets_[b].range, rank_);
      if (range.count() == 0) continue;
      w.clock().spend({Work::memory, 0, static_cast<double>(range.count() * element_)},
                      [&] { squares += parameters.backend().sum_of_squares(view(parameters.gradients(), range)); });
    }
    norm_.data<double>()[0] = squares;
    w.comm().all_reduce(norm_).wait();
    return norm_.data<double>()[0];
  }

  void update(Worker& w, const Worker::UpdatePlan& plan) {
    ParameterStore& parameters = w.parameters();
    Optimizer& optimizer = w.optimizer();
    optimizer.begin_update();
    std::vector<Pending> gathers;
    for (const Bucket& bucket : buckets_) {
      const Range range = everything_everywhere() ? bucket.range : owned_part(bucket.range, rank_);
      w.clock().spend({Work::update, 0, 7.0 * static_cast<double>(range.count() * element_)}, [&] {
        optimizer.update(parameters.values(), parameters.gradients(), range.begin, range.end, plan.scale, plan.rate);
      });
      if (everything_everywhere()) continue;
      const Tensor x = view(parameters.values(), bucket.range);
      gathers.push_back(server() ? w.comm().run(server_pull(server_shape(x, false)), x, "pull of parameters") : w.comm().all_gather(x));
    }
    w.comm().note("exchange of parameters", 0);
    for (const Pending& gather : gathers) gather.wait();
    parameters.changed();
  }

  [[noreturn]] static void refuse(Worker& w, const char* what) {
    throw Error(
        fmt::format("the {} of {} is not finite; nothing was updated. The latest checkpoint is intact: continue from it with a lower "
                    "train.learning-rate or longer train.warmup, or with --train.precision f32",
                    what, w.step_name()));
  }

  StrategyOptions options_;
  std::vector<ExchangedTable> tables_;  // that may go by rows
  int rank_, size_;
  int64_t flat_, element_ = 4;
  int workers_ = 1;
  std::vector<int> servers_;  // ranks that own parts, in order of the parts
  std::vector<Bucket> buckets_;

  Tensor totals_, norm_;
  Pending pending_totals_;
  std::vector<LookupRows> touched_;
  std::vector<Pending> exchanges_;                         // by bucket
  std::vector<std::optional<RowExchange>> row_exchanges_;  // by table
  std::string embedding_report_;
};

}  // namespace

std::unique_ptr<Strategy> make_strategy(const StrategyOptions& o, const ParameterStore& parameters,
                                        const std::vector<ExchangedTable>& tables, int rank, int size) {
  if (o.name == "parameter-server") {
    if (o.sharded_optimizer)
      throw ConfigError(
          "strategy.sharded-optimizer belongs to all-reduce; a parameter server is sharded by strategy.servers (0 = on every rank)");
    if (o.servers > 0 && o.server_placement == "own" && o.servers >= size && size > 1)
      throw ConfigError(fmt::format(
          "strategy.servers {} leaves no rank of {} to compute; start more ranks, or use server-placement: shared", o.servers, size));
    if (o.servers > size)
      throw ConfigError(fmt::format("strategy.servers is {}, but there are {} ranks; lower it, or set it to 0", o.servers, size));
  }
  return std::make_unique<Synchronous>(o, parameters, tables, rank, size);
}

void comm_settings(const StrategyOptions& options, Communicator& comm) {
  comm.set_algorithm(parse_algorithm(options.algorithm));
  comm.set_deadline(options.deadline_seconds);
}

BatchPlan plan_batch(const StrategyOptions& o, int64_t batch_tokens, int workers) {
  const int64_t global = o.batch == "per-worker" ? batch_tokens * workers : batch_tokens;
  const double ratio = static_cast<double>(global) / static_cast<double>(o.base_batch_tokens > 0 ? o.base_batch_tokens : batch_tokens);
  return {global, o.rate_scaling == "linear" ? ratio : o.rate_scaling == "sqrt" ? std::sqrt(ratio) : 1.0};
}

}  // namespace starling
