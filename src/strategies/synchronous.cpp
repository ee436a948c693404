#include "strategies/synchronous.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "strategies/deferred_gather.h"
#include "strategies/embedding_exchange.h"
#include "strategies/ownership.h"
#include "strategies/steps.h"

namespace starling {
namespace {

class Synchronous : public Strategy {
 public:
  Synchronous(const StrategyOptions& options, const ParameterStore& parameters, std::vector<ExchangedTable> tables, int rank, int size,
              const std::vector<MatrixPlace>& matrices)
      : options_(options), tables_(std::move(tables)), rank_(rank), size_(size), flat_(parameters.flat_count()) {
    element_ = size_of(parameters.values().dtype());
    if (server()) {
      const int servers = options.servers == 0 ? size : static_cast<int>(options.servers);
      const bool own = options.servers > 0 && options.server_placement == ServerPlacement::own;
      workers_ = own ? size - servers : size;
      for (int i = 0; i < servers; ++i) servers_.push_back(own ? workers_ + i : static_cast<int>(int64_t{i} * size / servers));
    } else {
      workers_ = size;
      for (int i = 0; i < size; ++i) servers_.push_back(i);
    }
    std::erase_if(tables_, [&](const ExchangedTable& t) { return !t.looked_up || (t.output && !assumed_sparse() && !options.overlap); });
    if (size == 1 || server() || options.embedding_gradients == EmbeddingGradients::dense) tables_.clear();
    std::vector<const Parameter*> whole;
    for (const ExchangedTable& t : tables_) whole.push_back(t.table);
    buckets_ = make_buckets(parameters, static_cast<int64_t>(options.bucket_mib * (1 << 20)) / element_, whole);
    ownership_.emplace(buckets_, servers_, everything_everywhere() ? std::vector<MatrixPlace>{} : matrices);
    routes_.resize(tables_.size());
    touched_.resize(tables_.size());
    for (const ExchangedTable& t : tables_) flags_.emplace_back(Shape{t.table->shape[0]}, DType::f64);
    pending_flags_.resize(tables_.size());
    sums_ = Tensor({kSums + 5}, DType::f64);
    counts_ = Tensor({std::max<int64_t>(1, static_cast<int64_t>(tables_.size()) * size)}, DType::f64);
    squares_ = Tensor({3}, DType::f64, parameters.backend().memory());
    if (!everything_everywhere())
      returning_.emplace(parameters, buckets_, *ownership_,
                         DeferredGather::Ranks{rank, size, workers_, server() ? servers_ : std::vector<int>{}, narrow()});
  }

  int workers() const override { return workers_; }
  const std::vector<Bucket>& buckets() const override { return buckets_; }

  std::vector<Range> owned(int rank) const override {
    if (everything_everywhere()) return {{0, flat_}};
    return ownership_->of(rank);
  }

  StepResult step(Worker& w) override {
    exchanges_.assign(buckets_.size(), {});
    rows_.assign(tables_.size(), {});
    handed_over_.assign(buckets_.size(), {});
    squares_.zero();
    announce_rows(w);
    Worker::Calls calls;
    calls.forward_done = [&] { choose_routes(w); };
    calls.ready = [&](size_t b) {
      if (options_.overlap) start(w, b);
    };
    if (size_ == 1) calls.first_done = [&] { add_squares(w, w.parameters().gradients(), squares_.slice(kOfParts, {1})); };
    const bool computes = rank_ < workers_;
    if (computes)
      w.gradients(calls);
    else
      choose_routes(w);
    if (!computes || !options_.overlap)
      for (size_t b = 0; b < buckets_.size(); ++b) start(w, b);

    w.gradient_sum().drop_tokens();
    w.comm().note("exchange of gradients", 0);
    StepResult result;
    const double squares = sum_up(w, result);
    if (!std::isfinite(result.totals.smoothed)) refuse_step(w, "the loss");
    result.gradient_norm = gradient_norm(w, squares, result.totals);
    const Worker::UpdatePlan plan = w.plan_update({result.totals, result.control}, result.gradient_norm);
    result.learning_rate = plan.rate;
    update(w, plan);
    return result;
  }

  std::string describe() const override {
    if (size_ == 1) return "one worker";
    const double M = static_cast<double>(flat_ * element_), N = size_, mib = 1 << 20;
    const double wire = narrow() ? 0.5 : 1.0, moved = (1 + wire) * static_cast<double>(ownership_->moved() * element_);
    const std::string whole = ownership_->by_matrices() ? " by whole matrices" : "";
    const std::string cut = fmt::format("{} buckets of up to {:g} MiB{}", buckets_.size(), options_.bucket_mib,
                                        options_.overlap ? ", exchanged during the backward pass" : "");
    if (server()) {
      const double S = static_cast<double>(servers_.size()), clients = workers_ - (workers_ == size_ ? 1 : 0);
      return fmt::format("parameter server: {} workers, {} server{} on {}{}; {}; each server receives and sends {:.1f} MiB per update",
                         workers_, servers_.size(), servers_.size() == 1 ? "" : "s",
                         workers_ == size_ ? "ranks that compute too" : "ranks of their own", whole, cut,
                         (2 * wire * clients * M + moved) / S / mib);
    }
    const double bytes = wire * 2 * (N - 1) / N * M + (sharded() ? moved / N : 0);
    return fmt::format("all-reduce among {} workers{}; {}, {} on the wire; each rank sends {:.1f} MiB per update", size_,
                       sharded() ? ", optimizer sharded" + whole : "", cut, options_.wire, bytes / mib);
  }

  std::string embedding_report() const override { return embedding_report_; }

 private:
  bool server() const { return options_.name == "parameter-server" && size_ > 1; }
  bool sharded() const { return options_.sharded_optimizer && size_ > 1; }
  bool everything_everywhere() const { return !server() && !sharded(); }
  // Whether gradients and steps go over the wire as bf16; doubles, as on the reference backend, go as they are.
  bool narrow() const { return options_.wire == Wire::bf16 && element_ == 4; }
  bool assumed_sparse() const { return options_.embedding_gradients == EmbeddingGradients::assumed_sparse; }

  CollectiveShape shape(const Tensor& x) const { return {rank_, size_, x.count(), x.dtype()}; }

  // Exchanges, during the forward pass, which rows of each table any rank touches or, if assumed sparse, how many rows every rank will
  // send.
  void announce_rows(Worker& w) {
    if (tables_.empty()) return;
    counts_.zero();
    for (size_t t = 0; t < tables_.size(); ++t) {
      const ExchangedTable& table = tables_[t];
      touched_[t] = w.lookup_rows(*table.table, table.output && !assumed_sparse());
      if (!assumed_sparse()) {
        flags_[t].zero();
        for (const int32_t row : touched_[t].touched) doubles_of(flags_[t])[static_cast<size_t>(row)] = 1;
        pending_flags_[t] = w.comm().all_reduce(flags_[t], Reduce::maximum);
        continue;
      }
      const int64_t rows = touched_[t].tokens + (table.output ? table.table->shape[0] : 0);
      doubles_of(counts_)[static_cast<int64_t>(t) * size_ + rank_] = static_cast<double>(rows);
      w.gradient_sum().keep_tokens(*table.table);
    }
    if (assumed_sparse()) pending_counts_ = w.comm().all_reduce(counts_);
  }

  std::vector<int64_t> rows_by_rank(size_t t) const {
    const auto x = doubles_of(counts_).subspan(t * static_cast<size_t>(size_), static_cast<size_t>(size_));
    return {x.begin(), x.end()};
  }

  // Before the last backward pass: decides how each table's gradient is exchanged, the same way on all ranks.
  void choose_routes(Worker& w) {
    if (tables_.empty()) return;
    std::vector<std::string> reports;
    constexpr double mib = 1 << 20;
    pending_counts_.wait();
    for (size_t t = 0; t < tables_.size(); ++t) {
      const Parameter& table = *tables_[t].table;
      const int64_t V = table.shape[0], D = table.shape[1];
      if (assumed_sparse()) {
        const std::vector<int64_t> counts = rows_by_rank(t);
        const int64_t rows = std::accumulate(counts.begin(), counts.end(), int64_t{0});
        routes_[t] = Route::assumed_sparse;
        const double gathered = assumed_sparse_buffer_bytes(rows, D, element_, 1);
        const double whole = static_cast<double>(V * D * element_);
        reports.push_back(fmt::format("{}: assumed sparse, {} rows gathered into {:.1f} MiB on every rank ({:.1f}x the table's {:.1f} MiB)",
                                      table.name, rows, gathered / mib, gathered / whole, whole / mib));
        continue;
      }
      pending_flags_[t].wait();
      std::vector<int32_t> touched;
      for (size_t row = 0; row < doubles_of(flags_[t]).size(); ++row)
        if (doubles_of(flags_[t])[row] != 0) touched.push_back(static_cast<int32_t>(row));
      // If nearly all rows of a table are touched, exchanging rows is not worth it. For a table that is also the output projection, the
      // rows come on top of the whole table, whose bytes however are exchanged early and hidden.
      const double share = static_cast<double>(touched.size()) / static_cast<double>(V);
      routes_[t] = share >= (tables_[t].output ? 0.5 : 0.9) ? Route::dense : tables_[t].output ? Route::early : Route::rows;
      const double dense = (narrow() ? 0.5 : 1) * (sharded() ? 0.5 : 1) * dense_exchange_bytes(V, D, element_, size_);
      const char* route = routes_[t] == Route::dense  ? "dense"
                          : routes_[t] == Route::rows ? "by rows"
                                                      : "projection's part early, look-ups by rows";
      reports.push_back(
          fmt::format("{}: {}; {} rows touched by any rank, {} in the table: {:.2f} MiB by rows, {:.2f} MiB dense, sent per rank",
                      table.name, route, touched.size(), V, share * dense / mib, dense / mib));
      if (routes_[t] != Route::dense) rows_[t].shared.emplace(w.parameters().backend().flat(), table.gradient, std::move(touched));
      if (routes_[t] != Route::early) continue;
      w.gradient_sum().keep_tokens(table);
      for (size_t b = 0; b < buckets_.size(); ++b)
        if (buckets_[b].table == &table) start_dense(w, b);
    }
    embedding_report_ = fmt::format("{}", fmt::join(reports, "; "));
  }

  // Whether each worker has the whole gradient of bucket b in one place before its exchange, so that its noise can be measured.
  bool measured(size_t b) const {
    for (size_t t = 0; t < tables_.size(); ++t)
      if (buckets_[b].table == tables_[t].table && (routes_[t] == Route::early || routes_[t] == Route::assumed_sparse)) return false;
    return true;
  }

  // Begins the exchange of bucket b, whose gradient is complete here.
  void start(Worker& w, size_t b) {
    if (size_ == 1) return;
    if (rank_ < workers_ && measured(b)) add_squares(w, view(w.parameters().gradients(), buckets_[b].range), squares_.slice(kOfParts, {1}));
    for (size_t t = 0; t < tables_.size(); ++t)
      if (buckets_[b].table == tables_[t].table && routes_[t] != Route::dense) return start_rows(w, t, b);
    start_dense(w, b);
  }

  void start_dense(Worker& w, size_t b) {
    const Tensor x = view(w.parameters().gradients(), buckets_[b].range);
    if (everything_everywhere()) {
      // A table that is a bucket of its own still goes in pieces.
      exchanges_[b] = all_reduce_in_pieces(w.comm(), x, options_.bucket_mib, narrow());
    } else if (server() || narrow()) {
      Schedule push = server_push({rank_, size_, x.count(), x.dtype(), workers_, servers_, narrow()});
      if (narrow() && ownership_->changes_hands(b)) push = then(std::move(push), ownership_->to_owners(shape(x), b));
      exchanges_[b].push_back(w.comm().run(std::move(push), x, "push of gradients"));
    } else {
      exchanges_[b].push_back(w.comm().reduce_scatter(x));
    }
  }

  void start_rows(Worker& w, size_t t, size_t b) {
    const Parameter& p = *tables_[t].table;
    const double row = static_cast<double>(p.shape[1] * element_), tokens = static_cast<double>(touched_[t].tokens);
    if (routes_[t] == Route::assumed_sparse) {
      w.clock().begin({Work::memory, 0, 3 * tokens * row});  // of making the rows, which begins their exchange
      w.clock().end();
      rows_[t].assumed.emplace(w.comm(), w.parameters().backend().flat(), p.gradient, *w.gradient_sum().tokens(p), tables_[t].output,
                               rows_by_rank(t));
      return;
    }
    const bool early = routes_[t] == Route::early;
    SharedRows& shared = *rows_[t].shared;
    const double rows = static_cast<double>(shared.values().rows());
    w.clock().spend({Work::memory, 0, (early ? rows + 3 * tokens : 2 * rows) * row}, [&] {
      if (early)
        shared.take(*w.gradient_sum().tokens(p));
      else
        shared.take();
    });
    const int64_t elements = shared.values().count();
    const Tensor x = shared.values().slice(0, Shape{elements});
    if (everything_everywhere()) {
      rows_[t].pending = all_reduce_in_pieces(w.comm(), x, options_.bucket_mib, narrow());
    } else if (elements > 0) {
      // Ranks sum equal shares, so that nobody waits for the owner of the most frequent rows.
      std::vector<Owned> shares;
      for (int r = 0; r < size_; ++r) shares.push_back({part(elements, r, size_), r});
      Schedule sum = server_push({rank_, size_, elements, x.dtype(), workers_, servers_, narrow()});
      sum = then(std::move(sum), hand_over(shape(x), shares, shared.parts(ownership_->parts(b))));
      rows_[t].pending = {w.comm().run(std::move(sum), x, "rows to their owners")};
    }
  }

  // Waits for bucket b; its gradient is then summed where it is owned.
  void finish(Worker& w, size_t b) {
    for (const Pending& pending : exchanges_[b]) pending.wait();
    for (size_t t = 0; t < tables_.size(); ++t)
      if (buckets_[b].table == tables_[t].table) finish_rows(w, t);
  }

  void finish_rows(Worker& w, size_t t) {
    RowsUnderWay& rows = rows_[t];
    if (rows.assumed) {
      rows.assumed->wait();
      w.clock().spend({Work::memory, 0, 3.0 * static_cast<double>(rows.assumed->buffer_bytes())}, [&] { rows.assumed->add_up(); });
    } else if (rows.shared) {
      for (const Pending& pending : rows.pending) pending.wait();
      const bool early = routes_[t] == Route::early;  // else the whole table is cleared before
      const double cleared = early ? 0 : static_cast<double>(tables_[t].table->gradient.bytes());
      w.clock().spend({Work::memory, 0, 3.0 * static_cast<double>(rows.shared->values().bytes()) + cleared}, [&] {
        if (early)
          rows.shared->add();
        else
          rows.shared->put();
      });
    }
    rows = {};
  }

  // Finishes the exchange. Sums over all ranks the totals, the noise of the gradient, and the squares of the gradient, which it returns:
  // each rank adds up a part of its own, whatever it owns, so the number is the same on all. The host reads all results of an update's
  // passes here, at once.
  double sum_up(Worker& w, StepResult& result) {
    for (size_t b = 0; b < buckets_.size(); ++b) {
      finish(w, b);
      if (size_ == 1) continue;
      const Tensor x = view(w.parameters().gradients(), buckets_[b].range);
      for (const Owned& o : ownership_->parts(b))
        if (o.rank == rank_) add_squares(w, view(x, o.range), squares_.slice(measured(b) ? kMeasured : kOthers, {1}));
      if (ownership_->changes_hands(b) && !narrow())
        handed_over_[b] = w.comm().run(ownership_->to_owners(shape(x), b), x, "gradients to their owners");
    }
    if (size_ == 1) add_squares(w, w.parameters().gradients(), squares_.slice(kMeasured, {1}));
    const std::span<double> numbers = doubles_of(sums_), more = numbers.last(5);
    write_sums(w.sums(), numbers.first(kSums));
    if (squares_.has_elements()) squares_.read<double>(more.first(3));
    more[3] = w.part_tokens();
    more[4] = more[3] * more[3];
    w.sum_over_all(sums_);
    const StepSums sums = read_sums(numbers.first(kSums));
    result.totals = sums.totals;
    result.control = sums.control;
    result.noise = noise_sample({more[kOfParts], more[3], more[4]}, more[kMeasured], result.totals.tokens);
    return more[kMeasured] + more[kOthers];
  }

  void update(Worker& w, const Worker::UpdatePlan& plan) {
    ParameterStore& parameters = w.parameters();
    Optimizer& optimizer = w.optimizer();
    optimizer.begin_update();
    const auto update_ranges = [&](const std::vector<Range>& ranges) {
      Work work{Work::update, 0, optimizer.elements_moved() * static_cast<double>(total(ranges) * element_)};
      for (const Range& r : ranges) work.flops += optimizer.flops(r.begin, r.end);
      w.clock().spend(work, [&] {
        for (const Range& r : ranges) optimizer.update(parameters.values(), parameters.gradients(), r.begin, r.end, plan.scale, plan.rate);
      });
    };
    if (everything_everywhere()) {
      update_ranges({{0, flat_}});
      parameters.changed();
      return;
    }
    // In the order in which the next forward pass needs them, which is that of the flat buffer.
    // Ranks that only serve have no forward pass, and exchanges begin in the same order on all ranks.
    returning_->begin(w, options_.overlap && w.asks_for_units() && workers_ == size_);
    for (size_t b = buckets_.size(), complete = b; b-- > 0;) {
      size_t last = b;  // the bucket that the last matrix that begins in this one ends in
      while (last > 0 && ownership_->cuts(buckets_[last - 1].range.begin)) --last;
      for (; complete > last; --complete) handed_over_[complete - 1].wait();
      update_ranges(ownership_->updated_by(rank_, b));
      returning_->updated(w, b);
    }
    returning_->end(w);
  }

  StrategyOptions options_;
  std::vector<ExchangedTable> tables_;  // that may go by rows
  int rank_, size_;
  int64_t flat_, element_ = 4;
  int workers_ = 1;
  std::vector<int> servers_;  // ranks that own parts, in order of the parts
  std::vector<Bucket> buckets_;
  std::optional<Ownership> ownership_;
  std::optional<DeferredGather> returning_;  // unless every rank owns everything

  enum class Route : uint8_t { dense, rows, early, assumed_sparse };
  std::vector<Route> routes_;  // by table
  // The squares of this rank's part of the gradient: of the buckets whose noise is measured, of the others, and of the former before
  // exchange.
  enum : uint8_t { kMeasured, kOthers, kOfParts };
  Tensor squares_;  // [3], in the backend's memory
  Tensor sums_;     // the totals, these, and the parts' tokens and their squares
  Tensor counts_;   // of rows, by table and rank
  Pending pending_counts_;
  std::vector<std::vector<Pending>> exchanges_;  // by bucket
  std::vector<Pending> handed_over_;             // likewise
  // By table:
  std::vector<LookupRows> touched_;
  std::vector<Tensor> flags_;  // [rows], f64; 1: touched by any rank
  std::vector<Pending> pending_flags_;
  struct RowsUnderWay {
    std::optional<SharedRows> shared;
    std::vector<Pending> pending;  // of these
    std::optional<AssumedSparseExchange> assumed;
  };
  std::vector<RowsUnderWay> rows_;
  std::string embedding_report_;
};

}  // namespace

std::unique_ptr<Strategy> make_synchronous(const StrategyOptions& options, const ParameterStore& parameters,
                                           const std::vector<ExchangedTable>& tables, int rank, int size,
                                           const std::vector<MatrixPlace>& matrices) {
  return std::make_unique<Synchronous>(options, parameters, tables, rank, size, matrices);
}

}  // namespace starling
