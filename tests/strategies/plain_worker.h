// A worker without a model, for tests of strategies: parameters in double, plain SGD, as many tokens an update as it is told.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "strategies/worker.h"

namespace starling {

class PlainWorker : public Worker {
 public:
  PlainWorker(World& world, double rate, double tokens, const std::string& backend = "reference")
      : PlainWorker(world, rate, tokens, make_backend(backend, 1)) {}
  PlainWorker(World& world, double rate, double tokens, std::unique_ptr<Backend> backend)
      : world_(world), rate_(rate), tokens_(tokens), backend_(std::move(backend)), store_(*backend_) {}

  Communicator& comm() override { return *world_.comm; }
  void sum_over_replica(const Tensor&) override {}
  void sum_over_all(const Tensor& x) override { comm().all_reduce(x).wait(); }
  Clock& clock() override { return *world_.clock; }
  ParameterStore& parameters() override { return store_; }
  Optimizer& optimizer() override { return optimizer_.value(); }
  GradientSum& gradient_sum() override { return gradient_sum_.value(); }
  void gradients(const Calls& calls) override {
    if (calls.forward_done) calls.forward_done();
    calls.ready(0);
  }
  StepSums sums() override { return {{.smoothed = tokens_, .tokens = tokens_}, {}}; }
  LookupRows lookup_rows(const Parameter&, bool) override { return {}; }
  double gradient_divisor(const StepTotals& totals) override { return totals.tokens; }
  UpdatePlan plan_update(const StepSums& sums, double) override { return {1 / sums.totals.tokens, rate_}; }
  double learning_rate(int64_t) const override { return 0; }
  int64_t planned_updates() const override { return 0; }
  std::string step_name() const override { return "update 7"; }

 protected:
  // After the parameters have been added.
  void allocate() {
    store_.allocate(1, true);
    OptimizerOptions sgd;
    sgd.optimizer = OptimizerKind::sgd;
    optimizer_.emplace(*backend_, sgd, store_.values().count());
    gradient_sum_.emplace(store_);
  }
  double tokens() const { return tokens_; }

 private:
  World& world_;
  double rate_, tokens_;
  std::unique_ptr<Backend> backend_;
  ParameterStore store_;
  std::optional<Optimizer> optimizer_;
  std::optional<GradientSum> gradient_sum_;
};

}  // namespace starling
