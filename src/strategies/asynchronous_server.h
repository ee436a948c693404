// One server of the asynchronous family: keeps and updates its part of the parameters, and serves the workers in the order in which they
// come. It sees only its own part of each gradient, so all clipping is done by the workers.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "base/range.h"
#include "strategies/asynchronous_messages.h"
#include "strategies/options.h"
#include "strategies/worker.h"

namespace starling {

class AsynchronousServer {
 public:
  // part: of the flat parameters; first: whether this is the server that counts for all servers.
  AsynchronousServer(const StrategyOptions& options, int workers, Range part, bool first);

  // Serves until every worker has left. progress: what the run did before, kProgress numbers.
  void serve(Worker& worker, const Tensor& progress);

  AsynchronousSummary summary() const;
  bool stopped() const { return stop_; }
  // Steps, pushes, and updates of the run (those of all workers divided by their number): what a resumed run needs besides parameters and
  // optimizer, even with another number of workers.
  static constexpr int kProgress = 3;

 private:
  // Parameters that were sent to a worker.
  struct Sent {
    int64_t version = 0;
    Tensor values, answer;
    std::vector<Pending> pending;
  };
  struct Client {
    int rank = 0;
    Tensor request, payload;
    Pending incoming;  // the request, or the push that it announced
    Pending word;      // about its last push
    bool pushing = false, waiting = false, gone = false;
    Request push;
    int64_t effective = 0;  // the version that includes its last push
    int64_t updates = 0;
    std::deque<Sent> sent;
  };
  // Counts how often each number occurs.
  class Histogram {
   public:
    void add(int64_t value) { ++counts_[value], ++total_; }
    AsynchronousSummary::Delay delay() const;

   private:
    double quantile(double q) const;
    std::map<int64_t, int64_t> counts_;
    int64_t total_ = 0;
  };

  void start(Worker& w, const Tensor& progress);
  void listen(Worker& w, Client& c);
  void read(Worker& w, Client& c);
  void take(Worker& w, Client& c);
  void add_gradient(Worker& w, Client& c);
  void compensate(Worker& w, Client& c, const Tensor& gradient);
  void step(Worker& w);
  void send_word(Worker& w, Client& c) const;
  void answer(Worker& w, Client& c);
  void answer_waiting(Worker& w);
  void send_whole(Worker& w, const Client& c, bool state) const;
  void let_go(Worker& w, Client& c);
  Tensor buffer(Worker& w);
  Tensor values(Worker& w) const;
  bool ending() const { return stop_ || finished_ || present_ < workers_; }

  const StrategyOptions& options_;
  const int workers_;
  const Range part_;
  const bool first_;
  int64_t sum_pushes_ = 1;
  bool narrow_ = false;
  std::vector<Client> clients_;
  int present_ = 0;
  std::vector<Tensor> free_;  // buffers of the part's size

  int64_t version_ = 0, pushes_ = 0, updates_ = 0, budget_ = 0;
  int64_t summed_ = 0;  // pushes in sum_
  Tensor sum_, widened_;
  StepSums sums_, unreported_;  // of the pushes in the present sum; of those in steps that have not been reported
  double rate_ = 0;
  bool stop_ = false, finished_ = false;
  Histogram in_pushes_, in_steps_;
  int64_t held_ = 0, served_steps_ = 0, served_pushes_ = 0;
};

}  // namespace starling
