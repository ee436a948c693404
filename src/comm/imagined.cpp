// The world of one rank whose fellows are imagined.
#include "base/error.h"
#include "base/this_host.h"
#include "comm/world.h"

namespace starling {
namespace {

class ImaginedCommunicator : public Communicator {
 public:
  ImaginedCommunicator(int rank, int size) : rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string host(int) const override { return this_host(); }
  Traffic own_traffic() const override { return {}; }
  Pending start_send(const Tensor&, int, Tag) override { return {}; }
  Pending start_receive(const Tensor&, int, Tag) override { return {}; }
  Pending start(Schedule, const Tensor&, const char*) override { return {}; }
  std::unique_ptr<Communicator> split_off(const Colors& color) override {
    int before = 0, all = 0;
    for (int r = 0; r < size_; ++r) {
      if (color(r) != color(rank_)) continue;
      before += r < rank_;
      ++all;
    }
    return std::make_unique<ImaginedCommunicator>(before, all);
  }
  using Communicator::note;
  void note(const char*, int64_t) override {}

 private:
  const int rank_, size_;
};

}  // namespace

World make_imagined_world(int rank, int ranks) {
  CHECK(rank >= 0 && rank < ranks, "rank {} of {}", rank, ranks);
  World world{std::make_unique<ImaginedCommunicator>(rank, ranks), std::make_unique<WallClock>(), 0, 1, true};
  world.computes = false;
  return world;
}

}  // namespace starling
