// The world of one rank: collectives have nothing to do.
#include "base/this_host.h"
#include "comm/world.h"

namespace starling {
namespace {

class LocalCommunicator : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::string host(int) const override { return this_host(); }
  Traffic own_traffic() const override { return {}; }
  Pending start_send(const Tensor&, int to, Tag) override {
    CHECK(false, "a message to rank {} in a run of one", to);
    return {};
  }
  Pending start_receive(const Tensor&, int from, Tag) override {
    CHECK(false, "a message from rank {} in a run of one", from);
    return {};
  }
  Pending start(Schedule schedule, const Tensor&, const char* what) override {
    CHECK(schedule.rounds.empty(), "{} among one rank has {} rounds", what, schedule.rounds.size());
    return {};
  }
  std::unique_ptr<Communicator> split_off(const Colors&) override { return std::make_unique<LocalCommunicator>(); }
  using Communicator::note;
  void note(const char*, int64_t) override {}
};

}  // namespace

World make_local_world() { return {std::make_unique<LocalCommunicator>(), std::make_unique<WallClock>(), 0, 1, false}; }

}  // namespace starling
