#include "strategies/synchronous_start.h"

#include <fmt/format.h>

namespace starling {
namespace {

class SynchronousStart : public Strategy {
 public:
  SynchronousStart(std::unique_ptr<Strategy> synchronous, std::unique_ptr<Strategy> strategy, int64_t updates)
      : synchronous_(std::move(synchronous)), strategy_(std::move(strategy)), updates_(updates) {}

  int workers() const override { return strategy_->workers(); }
  std::vector<Range> owned(int rank) const override { return strategy_->owned(rank); }
  const std::vector<Bucket>& buckets() const override { return synchronous_->buckets(); }
  Replicas replicas() const override { return strategy_->replicas(); }
  void begin(Worker& w) override { strategy_->begin(w); }

  StepResult step(Worker& w) override {
    over_ = !starting(w);
    if (over_) return strategy_->step(w);
    const StepResult result = synchronous_->step(w);
    if (!starting(w)) strategy_->begin(w);
    return result;
  }

  std::vector<StateTensor> state(Worker& w) override {
    if (starting(w)) strategy_->begin(w);
    return strategy_->state(w);
  }
  Tensor deployed(Worker& w, bool final) override {
    if (starting(w)) strategy_->begin(w);
    return strategy_->deployed(w, final);
  }

  std::string describe() const override { return fmt::format("{}; the first {} updates are synchronous", strategy_->describe(), updates_); }
  std::string embedding_report() const override { return over_ ? "" : synchronous_->embedding_report(); }

 private:
  bool starting(Worker& w) const { return w.optimizer().updates() < updates_; }

  std::unique_ptr<Strategy> synchronous_, strategy_;
  int64_t updates_;
  bool over_ = false;  // the last step was the strategy's
};

}  // namespace

std::unique_ptr<Strategy> make_synchronous_start(std::unique_ptr<Strategy> synchronous, std::unique_ptr<Strategy> strategy,
                                                 int64_t updates) {
  return std::make_unique<SynchronousStart>(std::move(synchronous), std::move(strategy), updates);
}

}  // namespace starling
