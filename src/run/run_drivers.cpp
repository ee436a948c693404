#include "run/run_drivers.h"

namespace starling {
namespace {

// Every update is made by all ranks together.
class SynchronousDriver : public RunDriver {
 public:
  SynchronousDriver(RunParts& run, const RunStatus& status) : run_(run), status_(status) {}

  bool synchronous() const override { return true; }
  bool finished() const override {
    return run_.taken() >= run_.max_steps || status_.limits_reached() || status_.over || (run_.comm().size() == 1 && status_.time_is_up());
  }
  double fraction(double) const override { return static_cast<double>(run_.taken()) / static_cast<double>(run_.max_steps); }
  bool last_update() const override { return run_.first() && status_.time_is_up(); }
  bool updated(int64_t) const override { return true; }

  void for_validation(const std::function<void(Communicator&)>& body) override {
    run_.comm().note("validation", run_.step());
    Communicator& data = run_.mesh->data_parallel();
    const Tensor& values = run_.model->parameters().values();
    Tensor measured = run_.replica->average();
    if (data.size() > 1 && run_.config.train.optimizer.ema > 0) {  // the first replica keeps it
      if (!run_.leads()) measured = Tensor(values.shape(), values.dtype(), values.memory());
      data.broadcast(measured, 0).wait(kNoDeadline);
    }
    if (run_.replicas() == Replicas::merged) measured = merged();
    if (run_.replica->strategy().workers() < data.size()) {  // ranks that only serve know their own part, but translate a share too
      data.broadcast(values, 0).wait(kNoDeadline);
      run_.model->parameters().changed();
    }
    {
      const SwappedParameters swapped(run_.model->parameters(), measured);
      run_.replica->share_parameters();
      body(data);
    }
    run_.replica->share_parameters();
    if (run_.comm().size() > 1) run_.wait_for_first();
  }

  void for_checkpoint(const Save& body) override {
    run_.comm().note("checkpoint", run_.step());
    const auto strategy = run_.replica->strategy_state();
    const Tensor deployed = run_.replicas() == Replicas::merged ? merged() : Tensor();
    const SwappedParameters swapped(run_.model->parameters(), run_.leads() ? deployed : Tensor());
    body(run_.comm(), run_.leads() && deployed ? deployed : run_.model->parameters().values(), strategy);
  }

 private:
  // Made once an update.
  const Tensor& merged() {
    const bool final = !status_.stopped && finished();
    if (!merged_ || merged_at_ != run_.step() || final_ != final) merged_ = run_.replica->deployed(final);
    merged_at_ = run_.step();
    final_ = final;
    return merged_;
  }

  RunParts& run_;
  const RunStatus& status_;
  Tensor merged_;
  int64_t merged_at_ = -1;
  bool final_ = false;
};

// Servers keep the model, and each rank updates at its own pace.
class AsynchronousDriver : public RunDriver {
 public:
  AsynchronousDriver(RunParts& run, const RunStatus& status) : run_(run), status_(status) {}

  bool synchronous() const override { return false; }
  bool finished() const override { return status_.over; }
  double fraction(double counted) const override { return counted; }
  bool last_update() const override { return run_.first() && (status_.time_is_up() || status_.limits_reached()); }
  bool updated(int64_t before) const override { return run_.step() > before && run_.comm().rank() < run_.replica->strategy().workers(); }

  void for_validation(const std::function<void(Communicator&)>& body) override {
    if (!run_.first()) return;
    const Tensor& average = run_.replica->average();
    const SwappedParameters served(run_.model->parameters(), average ? average : run_.replica->deployed(false));
    body(*self_.comm);
  }

  void for_checkpoint(const Save& body) override {
    if (!run_.first()) return;
    const auto strategy = run_.replica->strategy_state();
    Tensor parameters;
    for (const Strategy::StateTensor& t : strategy)
      if (t.name == "parameters") parameters = t.tensor;
    const SwappedParameters served(run_.model->parameters(), parameters);
    body(*self_.comm, run_.model->parameters().values(), strategy);
  }

 private:
  RunParts& run_;
  const RunStatus& status_;
  const World self_ = make_local_world();
};

}  // namespace

std::unique_ptr<RunDriver> make_run_driver(RunParts& run, const RunStatus& status) {
  if (run.replicas() == Replicas::served) return std::make_unique<AsynchronousDriver>(run, status);
  return std::make_unique<SynchronousDriver>(run, status);
}

}  // namespace starling
