#include "tests/cards/thread_world.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "tests/emulated/emulator.h"

namespace starling {
namespace {

using Bytes = std::vector<std::byte>;
// The group, what it is (the number of a collective, or -1 - tag), from, to: ranks of the group.
using Channel = std::tuple<std::string, int64_t, int, int>;

struct Post {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<Channel, std::deque<Bytes>> messages;
  std::vector<RankNews> news;  // by rank
  bool failed = false;
};

// Part of a rank's work; `advance` is called with the mutex of the post held and says whether it has ended.
class ThreadOperation;
struct Rank {
  Post& post;
  int rank;
  std::deque<std::shared_ptr<ThreadOperation>> under_way;
  Traffic traffic;
  uint64_t ended = 0;
  void advance();
};

class ThreadOperation : public Operation {
 public:
  ThreadOperation(Rank& rank, const char* what, std::function<bool()> advance) : rank_(rank), what_(what), advance_(std::move(advance)) {}
  bool try_to_end() {
    if (ended_ == 0 && advance_()) ended_ = ++rank_.ended, advance_ = {};
    return ended_ > 0;
  }
  bool done() override {
    const std::lock_guard lock(rank_.post.mutex);
    rank_.advance();
    return ended_ > 0;
  }
  void wait(double deadline_s) override {
    Operation* const self = this;
    wait_any({&self, 1}, deadline_s);
  }
  size_t wait_any(std::span<Operation* const> operations, double deadline_s) override {
    std::unique_lock lock(rank_.post.mutex);
    const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(std::min(deadline_s, 1e6));
    const auto ended = [&](size_t i) { return static_cast<ThreadOperation*>(operations[i])->ended_; };
    for (;;) {
      rank_.advance();
      size_t first = operations.size();
      for (size_t i = 0; i < operations.size(); ++i)
        if (ended(i) > 0 && (first == operations.size() || ended(i) < ended(first))) first = i;
      if (first < operations.size()) return first;
      if (rank_.post.failed) throw PeerError(std::string(what_) + ": another rank has failed");
      if (rank_.post.changed.wait_until(lock, until) == std::cv_status::timeout) throw PeerError(std::string(what_) + " waited too long");
    }
  }

 private:
  Rank& rank_;
  const char* what_;
  std::function<bool()> advance_;
  uint64_t ended_ = 0;
};

void Rank::advance() {
  std::erase_if(under_way, [](const auto& operation) { return operation->try_to_end(); });
}

// One rank's way through its schedule.
struct RankProgress {
  Schedule schedule;
  Tensor x;
  std::vector<std::byte> scratch;
  size_t round = 0, received = 0;
  bool sent = false;
};

class ThreadCommunicator : public Communicator {
 public:
  ThreadCommunicator(std::shared_ptr<Rank> self, std::string group, std::vector<int> members)
      : self_(std::move(self)), group_(std::move(group)), members_(std::move(members)) {
    rank_ = static_cast<int>(std::find(members_.begin(), members_.end(), self_->rank) - members_.begin());
  }
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(members_.size()); }
  std::string host(int rank) const override { return fmt::format("host{}", members_[static_cast<size_t>(rank)]); }

  Pending start_send(const Tensor& x, int to, Tag tag) override {
    const std::lock_guard lock(post().mutex);
    put({group_, -1 - tag, rank_, to}, x.raw(), x.bytes());
    return {};
  }
  Pending start_receive(const Tensor& x, int from, Tag tag) override {
    return begin("a message", [this, x, from, tag] { return take({group_, -1 - tag, from, rank_}, x.raw(), x.bytes()); });
  }
  Pending start(Schedule schedule, const Tensor& x, const char* what) override {
    self_->traffic.bytes_sent += schedule.bytes_sent(), self_->traffic.bytes_received += schedule.bytes_received();
    const auto p = std::make_shared<RankProgress>();
    p->scratch.resize(static_cast<size_t>(schedule.scratch_bytes)), p->schedule = std::move(schedule), p->x = x;
    return begin(what, [this, p, number = number_++] { return advance(*p, number); });
  }

  void note(const char* phase, int64_t step) override {
    const std::lock_guard lock(post().mutex);
    RankNews& own = post().news[static_cast<size_t>(self_->rank)];
    own.phase = phase, own.step = step > 0 ? step : own.step;
  }
  void note(const CardCounts& card) override {
    const std::lock_guard lock(post().mutex);
    post().news[static_cast<size_t>(self_->rank)].card = card;
  }
  std::vector<RankNews> news() const override {
    const std::lock_guard lock(post().mutex);
    std::vector<RankNews> all;
    for (const int r : members_) all.push_back(post().news[static_cast<size_t>(r)]);
    return all;
  }

 protected:
  Traffic own_traffic() const override { return self_->traffic; }
  std::unique_ptr<Communicator> split_off(const Colors& color) override {
    std::vector<int> part;
    for (int r = 0; r < size(); ++r)
      if (color(r) == color(rank())) part.push_back(members_[static_cast<size_t>(r)]);
    auto comm = std::make_unique<ThreadCommunicator>(self_, fmt::format("{}/{}:{}", group_, splits_++, color(rank())), part);
    comm->set_algorithm(algorithm()), comm->set_deadline(deadline());
    return comm;
  }

 private:
  Post& post() const { return self_->post; }
  Pending begin(const char* what, std::function<bool()> advance) {
    const auto operation = std::make_shared<ThreadOperation>(*self_, what, std::move(advance));
    const std::lock_guard lock(post().mutex);
    self_->under_way.push_back(operation);
    self_->advance();
    return {operation, deadline()};
  }
  void put(const Channel& channel, const std::byte* from, int64_t bytes) {
    if (bytes == 0) return;
    post().messages[channel].emplace_back(from, from + bytes);
    post().changed.notify_all();
  }
  bool take(const Channel& channel, std::byte* to, int64_t bytes) {
    if (bytes == 0) return true;
    auto& queue = post().messages[channel];
    if (queue.empty()) return false;
    CHECK(static_cast<int64_t>(queue.front().size()) == bytes, "{} bytes came, not {}", queue.front().size(), bytes);
    std::memcpy(to, queue.front().data(), queue.front().size());
    queue.pop_front();
    return true;
  }
  bool advance(RankProgress& p, int64_t number) {
    const auto at = [&](Area area) { return area == Area::data ? p.x.raw() : p.scratch.data(); };
    const auto calculate = [&](const std::vector<Schedule::Local>& steps) {
      for (const auto& step : steps) apply(step, p.x.dtype(), at(Area::data), at(Area::scratch));
    };
    for (; p.round < p.schedule.rounds.size(); ++p.round, p.received = 0, p.sent = false) {
      const Schedule::Round& round = p.schedule.rounds[p.round];
      if (!std::exchange(p.sent, true)) {
        calculate(round.before);
        for (const auto& s : round.sends) put({group_, number, rank_, s.to}, at(s.area) + s.offset, s.bytes);
      }
      for (; p.received < round.receives.size(); ++p.received) {
        const auto& r = round.receives[p.received];
        if (!take({group_, number, r.from, rank_}, at(r.area) + r.offset, r.bytes)) return false;
      }
      calculate(round.after);
    }
    return true;
  }

  const std::shared_ptr<Rank> self_;
  const std::string group_;
  const std::vector<int> members_;
  int rank_, splits_ = 0;
  int64_t number_ = 0;  // of collectives
};

}  // namespace

void run_threads(int ranks, const std::function<void(World&)>& rank_main) {
  emulated_cuda::set_cards(ranks);
  Post post;
  post.news.resize(static_cast<size_t>(ranks));
  std::exception_ptr first;
  std::vector<int> members;
  for (int r = 0; r < ranks; ++r) members.push_back(r);
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      emulated_cuda::card_of_thread() = r;
      World world{std::make_unique<ThreadCommunicator>(std::make_shared<Rank>(post, r), "all", members), std::make_unique<WallClock>(), r,
                  ranks, false};
      world.comm->set_deadline(60);
      try {
        rank_main(world);
      } catch (...) {
        const std::lock_guard lock(post.mutex);
        if (!std::exchange(post.failed, true)) first = std::current_exception();
        post.changed.notify_all();
      }
    });
  for (std::thread& thread : threads) thread.join();
  emulated_cuda::set_cards(1);
  if (first) std::rethrow_exception(first);
}

}  // namespace starling
