#include "strategies/asynchronous.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <optional>

#include "config/config.h"
#include "strategies/asynchronous_server.h"

namespace starling {
namespace {

class Asynchronous : public Strategy {
 public:
  Asynchronous(const StrategyOptions& options, const ParameterStore& parameters, int rank, int workers, int servers)
      : options_(options),
        o_(options_.asynchronous),
        rank_(rank),
        workers_(workers),
        flat_(parameters.flat_count()),
        element_(size_of(parameters.values().dtype())),
        narrow_(options.wire == Wire::bf16 && element_ == 4) {
    for (int i = 0; i < servers; ++i) servers_.push_back({workers + i, part(flat_, i, servers)});
    buckets_ = make_buckets(parameters, flat_, {});
    progress_ = Tensor({AsynchronousServer::kProgress}, DType::f64);
    if (rank >= workers) server_.emplace(options_, workers, servers_[static_cast<size_t>(rank - workers)].part, rank == workers);
  }

  int workers() const override { return workers_; }
  const std::vector<Bucket>& buckets() const override { return buckets_; }
  Replicas replicas() const override { return Replicas::served; }

  std::vector<Range> owned(int rank) const override {
    if (rank < workers_) return {};
    const Range own = servers_[static_cast<size_t>(rank - workers_)].part;
    return own.count() > 0 ? std::vector<Range>{own} : std::vector<Range>{};
  }

  // A worker's update, or a server's whole work. A worker that has been told to end returns without computing anything.
  StepResult step(Worker& w) override {
    StepResult result;
    if (server_) {
      if (!std::exchange(begun_, true)) server_->serve(w, progress_);
      result.control.stop = server_->stopped();
      result.control.finished = 1;
      return result;
    }
    begin_worker(w);
    fetch_if_due(w);
    result.learning_rate = answer_.rate;
    result.fraction = answer_.fraction;
    if (answer_.stop || answer_.finished) {
      if (summed_ > 0) push(w);
      result.totals = std::exchange(told_, {}).totals;
      result.control.stop = answer_.stop;
      result.control.finished = answer_.finished;
      return result;
    }
    const StepTotals mine = compute(w, result);
    result.totals = rank_ == 0 ? std::exchange(told_, {}).totals : mine;
    return result;
  }

  Tensor deployed(Worker& w, bool /*final*/) override {
    if (server_ || !serving()) return {};
    return ask_for_whole(w, Request::look).front().tensor;
  }

  std::vector<StateTensor> state(Worker& w) override {
    if (server_ || !serving()) return {{"asynchronous.progress", progress_, true}};
    return ask_for_whole(w, Request::save);
  }

  int64_t aside_bytes() const override { return aside_bytes_; }

  // Lets the servers end, which they do when all workers have left.
  void leave(Worker& w) override {
    if (server_ || !serving()) return;
    if (fetching_) finish_fetch(w);
    for (Outgoing& o : outgoing_) wait(o);
    for (const auto& [word, pending] : words_) pending.wait();
    const Tensor numbers({AsynchronousSummary::kNumbers}, DType::f64);
    Pending summary;
    if (rank_ == 0) summary = w.comm().receive(numbers, servers_[0].rank, kWholeTag);
    std::vector<Pending> sent;
    for (const ServerPart& s : servers_) sent.push_back(send_request(w, s, Request::leave));
    for (const Pending& p : sent) p.wait();
    summary.wait(kNoDeadline);  // until all have left
    if (rank_ == 0) summary_ = AsynchronousSummary::unpack(numbers);
    left_ = true;
  }

  Report report() const override {
    if (server_) return report_of(server_->summary());
    return left_ && rank_ == 0 ? report_of(summary_) : Report{};
  }

  std::string describe() const override {
    const double mib = static_cast<double>(flat_ * element_) / (1 << 20);
    const int64_t k = o_.sum_pushes > 0 ? o_.sum_pushes : workers_;
    return fmt::format(
        "asynchronous: {} workers, {} server{}; push every {} and fetch every {} updates{}; {} push{} per server step{}; each worker sends "
        "{:.1f} MiB and receives {:.1f} MiB per update",
        workers_, servers_.size(), servers_.size() == 1 ? "" : "s", o_.push_interval, o_.fetch_interval,
        ahead() ? ", one update ahead" : "", k, k == 1 ? "" : "es", o_.wait_for_step ? ", which fetches wait for" : "",
        mib * (narrow_ ? 0.5 : 1.0) / static_cast<double>(o_.push_interval), mib / static_cast<double>(o_.fetch_interval));
  }

 private:
  struct ServerPart {
    int rank;
    Range part;
  };
  // A push in transit.
  struct Outgoing {
    Tensor data;
    std::vector<Pending> pending;
  };

  static Report report_of(const AsynchronousSummary& s) {
    return {s.text(),
            {{"pushes", s.pushes},
             {"server-steps", s.steps},
             {"staleness-mean", s.in_pushes.mean},
             {"staleness-median", s.in_pushes.median},
             {"staleness-95", s.in_pushes.most},
             {"staleness-largest", s.in_pushes.largest},
             {"staleness-steps-mean", s.in_steps.mean},
             {"staleness-steps-largest", s.in_steps.largest},
             {"fewest-updates", s.fewest_updates},
             {"most-updates", s.most_updates},
             {"updates", s.updates},
             {"held-fetches", s.held}}};
  }

  // Parameters are requested one update before they are used, which hides their transfer.
  bool ahead() const { return options_.overlap; }
  bool serving() const { return begun_ && !left_; }
  double patience(Worker& w) const { return o_.wait_for_step ? kNoDeadline : w.comm().deadline(); }

  static void wait(Outgoing& o) {
    for (const Pending& p : o.pending) p.wait();
    o.pending.clear();
  }

  Tensor whole(Worker& w, DType type) const { return working_tensor(w, flat_, type); }
  static FlatOps& flat(Worker& w) { return w.parameters().backend().flat(); }

  void begin_worker(Worker& w) {
    if (std::exchange(begun_, true)) return;
    const DType type = w.parameters().values().dtype();
    for (Outgoing& o : outgoing_) o.data = whole(w, narrow_ ? DType::bf16 : type);
    if (narrow_) sum_ = whole(w, type);
    if (ahead()) incoming_ = whole(w, type);
    answers_.resize(servers_.size());
    bases_.resize(servers_.size());
    for (Tensor& a : answers_) a = Tensor({Answer::kNumbers}, DType::f64);
  }

  void fetch_if_due(Worker& w) {
    const bool first = computed_ == 0;
    if (fetching_) finish_fetch(w);
    hear();
    if (answer_.stop || answer_.finished || (computed_ % o_.fetch_interval != 0 && !ending_)) return;
    const bool apart = ahead() && !first && !ending_;
    start_fetch(w, apart);
    if (!apart) finish_fetch(w);
  }

  // The words of servers about pushes that have arrived so far.
  void hear() {
    for (; !words_.empty() && words_.front().second.done(); words_.pop_front()) {
      words_.front().second.wait();
      ending_ = ending_ || doubles_of(words_.front().first)[0] > 0;
    }
  }

  // apart: not into the parameters, which are in use.
  void start_fetch(Worker& w, bool apart) {
    fetching_ = true;
    apart_ = apart;
    const Tensor& into = apart ? incoming_ : w.parameters().values();
    for (size_t i = 0; i < servers_.size(); ++i) {
      const ServerPart& s = servers_[i];
      fetches_.push_back(w.comm().receive(answers_[i], s.rank, kAnswerTag));
      fetches_.push_back(w.comm().receive(view(into, s.part), s.rank, kValuesTag));
    }
    for (const ServerPart& s : servers_) fetches_.push_back(send_request(w, s, Request::fetch));
  }

  void finish_fetch(Worker& w) {
    w.comm().note("fetch of parameters", 0);
    for (const Pending& p : fetches_) p.wait(patience(w));
    fetches_.clear();
    fetching_ = false;
    ParameterStore& parameters = w.parameters();
    const Tensor& values = parameters.values();
    if (apart_) w.clock().spend({Work::memory, 0, 2.0 * static_cast<double>(values.bytes())}, [&] { values.copy_from(incoming_); });
    parameters.changed();
    for (size_t i = 0; i < servers_.size(); ++i) bases_[i] = Answer::unpack(answers_[i]);
    answer_ = bases_[0];
    for (const Answer& a : bases_) answer_.stop = answer_.stop || a.stop;  // whichever server was asked to
    told_ += {answer_.totals, {}};
  }

  Pending send_request(Worker& w, const ServerPart& s, Request::Kind kind) {
    Request request;
    request.kind = kind;
    return w.comm().send(request.pack(), s.rank, kRequestTag);
  }

  StepTotals compute(Worker& w, StepResult& result) {
    w.gradients({{}, [](size_t) {}});
    const StepSums mine = w.sums();
    if (!std::isfinite(mine.totals.smoothed)) refuse_step(w, "the loss");
    const double divisor = w.gradient_divisor(mine.totals);
    result.gradient_norm = own_gradient_norm(w, mine.totals);
    const Worker::UpdatePlan plan = w.plan_update(mine, result.gradient_norm);
    if (result.learning_rate == 0) result.learning_rate = plan.rate;  // the servers have no rate yet
    accumulate(w, mine, plan.scale * divisor);
    single_norm_ = result.gradient_norm * plan.scale * divisor;
    update_locally(w, plan.scale);
    w.optimizer().begin_update();
    ++computed_;
    ending_ = ending_ || mine.control.stop > 0 || mine.control.finished > 0;
    if (summed_ == o_.push_interval || ending_) push(w);
    return mine.totals;
  }

  // What the next push is summed up in.
  const Tensor& sum() const { return narrow_ ? sum_ : outgoing_[turn_].data; }

  void accumulate(Worker& w, const StepSums& mine, double factor) {
    const Tensor& gradients = w.parameters().gradients();
    if (!narrow_) wait(outgoing_[turn_]);
    w.clock().spend({Work::memory, 0, (summed_ > 0 ? 3.0 : 2.0) * static_cast<double>(gradients.bytes())},
                    [&] { flat(w).scale(gradients, factor, sum(), summed_ > 0 ? Write::accumulate : Write::overwrite); });
    push_sums_ += mine;
    ++summed_;
  }

  void update_locally(Worker& w, double scale) {
    if (o_.local_learning_rate == 0) return;
    ParameterStore& parameters = w.parameters();
    w.clock().spend({Work::update, 0, traits_of(OptimizerKind::sgd).elements_moved() * static_cast<double>(flat_ * element_)}, [&] {
      parameters.backend().optimizer_step(parameters.values(), parameters.gradients(), {}, SgdStep{o_.local_learning_rate, 0, scale});
    });
    parameters.changed();
  }

  void push(Worker& w) {
    clip(w);
    Outgoing& o = outgoing_[turn_];
    turn_ = 1 - turn_;
    if (narrow_) {
      wait(o);
      w.clock().spend({Work::memory, 0, 6.0 * static_cast<double>(flat_)}, [&] { flat(w).convert(sum_, o.data); });
    }
    Request request;
    request.kind = Request::push;
    request.updates = summed_;
    request.sums = push_sums_;
    for (size_t i = 0; i < servers_.size(); ++i) {
      request.base_version = bases_[i].version;
      request.base_pushes = bases_[i].pushes;
      o.pending.push_back(w.comm().send(request.pack(), servers_[i].rank, kRequestTag));
      o.pending.push_back(w.comm().send(view(o.data, servers_[i].part), servers_[i].rank, kPushTag));
      if (!words_on_pushes(o_)) continue;
      const Tensor word({1}, DType::f64);
      words_.emplace_back(word, w.comm().receive(word, servers_[i].rank, kWordTag));
    }
    summed_ = 0;
    push_sums_ = {};
  }

  // The mean gradient of what is pushed, by all servers' parts together.
  void clip(Worker& w) {
    if (o_.push_clip == 0) return;
    const double divisor = w.gradient_divisor(push_sums_.totals);
    const double norm = summed_ == 1 ? single_norm_ : std::sqrt(sum_of_squares(w, sum())) / divisor;
    if (norm <= o_.push_clip) return;
    w.clock().spend({Work::memory, 0, 2.0 * static_cast<double>(flat_ * element_)},
                    [&] { flat(w).scale(sum(), o_.push_clip / norm, sum(), Write::overwrite); });
  }

  // Parameters and, for save, the optimizer's state and the progress, each flat.
  std::vector<StateTensor> ask_for_whole(Worker& w, Request::Kind kind) {
    const DType type = w.parameters().values().dtype();
    std::vector<StateTensor> all{{"parameters", whole(w, type), true}};
    if (kind == Request::save)
      for (const auto& [name, tensor] : w.optimizer().state()) all.push_back({name, whole(w, tensor.dtype()), true});
    std::vector<Pending> pending;
    for (const StateTensor& t : all)
      for (const ServerPart& s : servers_) pending.push_back(w.comm().receive(view(t.tensor, s.part), s.rank, kWholeTag));
    if (kind == Request::save) {
      all.push_back({"asynchronous.progress", Tensor({AsynchronousServer::kProgress}, DType::f64), true});
      pending.push_back(w.comm().receive(all.back().tensor, servers_[0].rank, kWholeTag));
    }
    for (const ServerPart& s : servers_) pending.push_back(send_request(w, s, kind));
    for (const Pending& p : pending) p.wait();
    for (const StateTensor& t : all) aside_bytes_ += t.tensor.bytes();
    aside_bytes_ += static_cast<int64_t>(servers_.size()) * Request::kNumbers * size_of(DType::f64);
    return all;
  }

  const StrategyOptions options_;
  const AsynchronousOptions& o_;
  const int rank_, workers_;
  const int64_t flat_, element_;
  const bool narrow_;  // bf16 on the wire
  std::vector<ServerPart> servers_;
  std::vector<Bucket> buckets_;
  Tensor progress_;  // what a continued run has behind it
  bool begun_ = false, left_ = false;
  int64_t aside_bytes_ = 0;
  std::optional<AsynchronousServer> server_;  // of a rank that is one

  // Of a worker.
  int64_t computed_ = 0, summed_ = 0;  // updates; those in the next push
  StepSums push_sums_;
  double single_norm_ = 0;  // of the last update's part in it, per token
  Outgoing outgoing_[2];
  int turn_ = 0;
  Tensor sum_;
  std::deque<std::pair<Tensor, Pending>> words_;  // about pushes, not received yet
  bool ending_ = false;                           // the run is ending, as far as known: fetches are now made at once and will confirm it
  bool fetching_ = false, apart_ = false;
  Tensor incoming_;
  std::vector<Pending> fetches_;
  std::vector<Tensor> answers_;
  std::vector<Answer> bases_;  // by server: what the worker's parameters are
  Answer answer_;              // the first server's last one
  StepSums told_;              // of all workers, not yet reported; the first worker's
  AsynchronousSummary summary_;
};

}  // namespace

std::unique_ptr<Strategy> make_asynchronous(const StrategyOptions& o, const ParameterStore& parameters, int rank, int size) {
  const int64_t servers = std::max<int64_t>(1, o.servers);
  if (servers >= size)
    throw ConfigError(
        fmt::format("strategy {} needs a rank for each of its {} servers and at least one worker, but there {} only {}; start {} ranks "
                    "or more (starling launch, mpirun -n), or choose another strategy",
                    o.name, servers, size == 1 ? "is" : "are", size, servers + 1));
  const int workers = size - static_cast<int>(servers);
  const AsynchronousOptions& a = o.asynchronous;
  if (a.wait_for_step && a.sum_pushes > workers)
    throw ConfigError(fmt::format(
        "strategy.asynchronous.sum-pushes {} is more than the {} workers, which with wait-for-step would all wait; lower it, or "
        "set it to 0 for one push of each",
        a.sum_pushes, workers));
  return std::make_unique<Asynchronous>(o, parameters, rank, workers, static_cast<int>(servers));
}

}  // namespace starling
