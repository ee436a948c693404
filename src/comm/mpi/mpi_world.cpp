// The world of the ranks that mpirun or srun started. Each call to a communicator becomes a task of the communication thread.
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "comm/mpi/engine.h"
#include "comm/mpi/mpi_call.h"
#include "comm/world.h"

namespace starling {
namespace {

constexpr int64_t kPiece = 1 << 30;  // bytes; counts of MPI are int
constexpr int kTags = 1 << 15;

// One side of messages in transit.
class Messages {
 public:
  void send(MPI_Comm comm, const std::byte* from, int64_t bytes, int to, int tag) {
    for (int64_t at = 0; at < bytes; at += kPiece)
      MPI_CALL(Isend, from + at, static_cast<int>(std::min(kPiece, bytes - at)), MPI_BYTE, to, tag, comm, &requests_.emplace_back());
  }
  void receive(MPI_Comm comm, std::byte* to, int64_t bytes, int from, int tag) {
    for (int64_t at = 0; at < bytes; at += kPiece)
      MPI_CALL(Irecv, to + at, static_cast<int>(std::min(kPiece, bytes - at)), MPI_BYTE, from, tag, comm, &requests_.emplace_back());
  }
  bool finished() {
    if (requests_.empty()) return true;
    int all = 0;
    MPI_CALL(Testall, static_cast<int>(requests_.size()), requests_.data(), &all, MPI_STATUSES_IGNORE);
    if (all) requests_.clear();
    return all != 0;
  }

 private:
  std::vector<MPI_Request> requests_;
};

class ScheduleTask : public Task {
 public:
  ScheduleTask(Engine& engine, const Group& group, const char* what, int64_t sequence, Schedule schedule, const Tensor& x)
      : Task(engine, group, what, group.world ? sequence : -1, -1),
        tag_(static_cast<int>(sequence % kTags)),
        schedule_(std::move(schedule)),
        x_(x) {}

  void begin() override {
    if (schedule_.scratch_bytes > 0) scratch_ = engine_.scratch().take(schedule_.scratch_bytes);
    open_round();
  }

  Progress advance() override {
    Progress progress = Progress::none;
    while (round_ < schedule_.rounds.size()) {
      if (!messages_.finished()) return progress;
      calculate(schedule_.rounds[round_++].after);
      if (round_ < schedule_.rounds.size()) open_round();
      progress = Progress::some;
    }
    return Progress::done;
  }

  void release() override {
    if (scratch_) engine_.scratch().give_back(std::move(scratch_));
    x_ = {};
    schedule_ = {};
  }

 private:
  std::byte* area(Area area) const { return area == Area::data ? x_.raw() : scratch_ ? scratch_->data() : nullptr; }
  void calculate(const std::vector<Schedule::Local>& steps) {
    for (const Schedule::Local& step : steps) apply(step, x_.dtype(), area(Area::data), area(Area::scratch));
  }
  void open_round() {
    if (round_ == schedule_.rounds.size()) return;
    const Schedule::Round& round = schedule_.rounds[round_];
    calculate(round.before);
    // Sends come first. A receive whose message has been announced answers at once, so the other side would begin with its data and answer
    // our own announcement only after all of that: the two directions of a link would take turns (measured: half the bandwidth).
    for (const auto& s : round.sends) messages_.send(group_.collectives, area(s.area) + s.offset, s.bytes, s.to, tag_);
    for (const auto& r : round.receives) messages_.receive(group_.collectives, area(r.area) + r.offset, r.bytes, r.from, tag_);
  }

  const int tag_;
  Schedule schedule_;
  Tensor x_;
  std::shared_ptr<Storage> scratch_;
  Messages messages_;
  size_t round_ = 0;
};

class MessageTask : public Task {
 public:
  MessageTask(Engine& engine, const Group& group, bool sends, const Tensor& x, int other, Tag tag)
      : Task(engine, group,
             fmt::format("{} rank {} of {} bytes with tag {}", sends ? "a message to" : "a message from",
                         group.members[static_cast<size_t>(other)], x.bytes(), tag),
             -1, group.members[static_cast<size_t>(other)]),
        sends_(sends),
        x_(x),
        other_(other),
        tag_(tag) {}
  void begin() override {
    if (sends_)
      messages_.send(group_.messages, x_.raw(), x_.bytes(), other_, tag_);
    else
      messages_.receive(group_.messages, x_.raw(), x_.bytes(), other_, tag_);
  }
  Progress advance() override { return messages_.finished() ? Progress::done : Progress::none; }
  void release() override { x_ = {}; }

 private:
  const bool sends_;
  Tensor x_;
  const int other_;
  const Tag tag_;
  Messages messages_;
};

MPI_Datatype mpi_type(DType type) {
  switch (type) {
    case DType::f32:
      return MPI_FLOAT;
    case DType::f64:
      return MPI_DOUBLE;
    case DType::i32:
      return MPI_INT32_T;
    default:
      return MPI_DATATYPE_NULL;
  }
}

// One of MPI's own collectives.
class LibraryTask : public Task {
 public:
  enum Kind : uint8_t { sum, maximum, reduce_scatter, all_gather, broadcast, barrier };
  LibraryTask(Engine& engine, const Group& group, const char* what, int64_t sequence, Kind kind, const Tensor& x, int root)
      : Task(engine, group, what, group.world ? sequence : -1, -1), kind_(kind), x_(x), root_(root) {
    const int size = static_cast<int>(group.members.size());
    for (int r = 0; r < size; ++r) {
      const Range range = part(x.count(), r, size);
      counts_.push_back(static_cast<int>(range.count()));
      offsets_.push_back(static_cast<int>(range.begin));
    }
  }

  void begin() override {
    const MPI_Comm comm = group_.collectives;
    const MPI_Datatype type = mpi_type(x_.dtype());
    const int count = static_cast<int>(x_.count());
    switch (kind_) {
      case sum:
      case maximum:
        return MPI_CALL(Iallreduce, MPI_IN_PLACE, x_.raw(), count, type, kind_ == sum ? MPI_SUM : MPI_MAX, comm, &request_);
      case reduce_scatter:
        return MPI_CALL(Ireduce_scatter, MPI_IN_PLACE, x_.raw(), counts_.data(), type, MPI_SUM, comm, &request_);
      case all_gather:
        return MPI_CALL(Iallgatherv, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, x_.raw(), counts_.data(), offsets_.data(), type, comm, &request_);
      case broadcast:
        return MPI_CALL(Ibcast, x_.raw(), count, type, root_, comm, &request_);
      case barrier:
        return MPI_CALL(Ibarrier, comm, &request_);
    }
  }
  Progress advance() override {
    int flag = 0;
    MPI_CALL(Test, &request_, &flag, MPI_STATUS_IGNORE);
    if (!flag) return Progress::none;
    if (kind_ == reduce_scatter) {  // in place, MPI puts a rank's part at the beginning
      const auto own = static_cast<size_t>(group_.rank);
      const auto element = static_cast<size_t>(size_of(x_.dtype()));
      std::memmove(x_.raw() + static_cast<size_t>(offsets_[own]) * element, x_.raw(), static_cast<size_t>(counts_[own]) * element);
    }
    return Progress::done;
  }
  void release() override { x_ = {}; }

 private:
  const Kind kind_;
  Tensor x_;
  const int root_;
  std::vector<int> counts_, offsets_;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

class SplitTask : public Task {
 public:
  SplitTask(Engine& engine, const Group& group, int color) : Task(engine, group, "split", -1, -1), color_(color) {}
  void begin() override { result_ = &engine_.split(group_, color_); }
  Progress advance() override { return Progress::done; }
  const Group& result() const { return *result_; }

 private:
  const int color_;
  const Group* result_ = nullptr;
};

class MpiCommunicator : public Communicator {
 public:
  MpiCommunicator(std::shared_ptr<Engine> engine, const Group& group) : engine_(std::move(engine)), group_(group) {}

  int rank() const override { return group_.rank; }
  int size() const override { return static_cast<int>(group_.members.size()); }
  std::string host(int rank) const override { return engine_->hosts()[static_cast<size_t>(world_rank(rank))]; }
  Traffic own_traffic() const override { return engine_->traffic(); }
  void note(const char* phase, int64_t step) override { engine_->note(phase, step); }
  void note(const CardCounts& card) override { engine_->note(card); }
  std::vector<RankNews> news() const override { return engine_->news(group_); }

  Pending start_send(const Tensor& x, int to, Tag tag) override { return message(true, x, to, tag); }
  Pending start_receive(const Tensor& x, int from, Tag tag) override { return message(false, x, from, tag); }

  Pending start(Schedule schedule, const Tensor& x, const char* what) override {
    const int64_t sequence = sequence_++;
    count(schedule);
    return begin(std::make_shared<ScheduleTask>(*engine_, group_, what, sequence, std::move(schedule), x));
  }

  // MPI_Comm_split would block the thread, so it begins only when all ranks have arrived: a late rank is named, and heartbeats continue.
  std::unique_ptr<Communicator> split_off(const Colors& color) override {
    barrier().wait();
    const auto task = std::make_shared<SplitTask>(*engine_, group_, color(rank()));
    begin(task).wait();
    auto part = std::make_unique<MpiCommunicator>(engine_, task->result());
    part->set_algorithm(algorithm());
    part->set_deadline(deadline());
    return part;
  }

 protected:
  bool library_collective(Collective collective, const Tensor& x, int root, Pending& pending) override {
    if (mpi_type(x.dtype()) == MPI_DATATYPE_NULL || x.count() > INT_MAX) return false;
    // What MPI sends is unknown, so this counts what our own algorithm for large tensors would send.
    const CollectiveShape shape{rank(), size(), x.count(), x.dtype()};
    LibraryTask::Kind kind = LibraryTask::barrier;
    const char* what = "barrier (library)";
    switch (collective) {
      case Collective::all_reduce_sum:
      case Collective::all_reduce_maximum:
        kind = collective == Collective::all_reduce_sum ? LibraryTask::sum : LibraryTask::maximum;
        what = "all-reduce (library)";
        count(ring_all_reduce(shape, Reduce::sum));
        break;
      case Collective::reduce_scatter:
        kind = LibraryTask::reduce_scatter;
        what = "reduce-scatter (library)";
        count(ring_reduce_scatter(shape, Reduce::sum));
        break;
      case Collective::all_gather:
        kind = LibraryTask::all_gather;
        what = "all-gather (library)";
        count(ring_all_gather(shape));
        break;
      case Collective::broadcast:
        kind = LibraryTask::broadcast;
        what = "broadcast (library)";
        count(tree_broadcast(shape, root));
        break;
      case Collective::barrier:
        count(dissemination_barrier(rank(), size()));
        break;
    }
    pending = begin(std::make_shared<LibraryTask>(*engine_, group_, what, sequence_++, kind, x, root));
    return true;
  }

 private:
  int world_rank(int rank) const {
    CHECK(rank >= 0 && rank < size(), "rank {} of {}", rank, size());
    return group_.members[static_cast<size_t>(rank)];
  }

  Pending begin(const std::shared_ptr<Task>& task) {
    task->set_silence(deadline());
    engine_->submit(task);
    return {task, deadline()};
  }

  Pending message(bool sends, const Tensor& x, int other, Tag tag) {
    CHECK(other != rank() && world_rank(other) >= 0, "rank {} sends a message to itself", rank());
    CHECK(tag >= 0 && tag < kTags, "tag {}", tag);
    if (x.bytes() == 0) return {};
    engine_->count(sends ? x.bytes() : 0, sends ? 0 : x.bytes(), sends);
    return begin(std::make_shared<MessageTask>(*engine_, group_, sends, x, other, tag));
  }

  void count(const Schedule& schedule) {
    int64_t messages = 0;
    for (const auto& round : schedule.rounds)
      messages += std::count_if(round.sends.begin(), round.sends.end(), [](auto& s) { return s.bytes > 0; });
    engine_->count(schedule.bytes_sent(), schedule.bytes_received(), messages);
  }

  std::shared_ptr<Engine> engine_;
  const Group& group_;
  int64_t sequence_ = 0;  // of collectives
};

// A process can join MPI only once, so there is one of these per process. It outlives a communicator that an exception destroys, so that
// the program can still report what happened and end the other ranks.
Engine* joined = nullptr;

void leave(Engine* engine) {
  if (std::uncaught_exceptions() > 0) return;
  joined = nullptr;
  delete engine;
}

}  // namespace

bool started_by_mpi() { return std::getenv("OMPI_COMM_WORLD_SIZE") || std::getenv("PMIX_RANK"); }

World make_mpi_world() {
  CHECK(!joined, "MPI can be joined only once");
  joined = new Engine;
  const std::shared_ptr<Engine> engine(joined, leave);
  World world{std::make_unique<MpiCommunicator>(engine, engine->world()), std::make_unique<WallClock>(), engine->local_rank(),
              engine->local_size(), false};
  return world;
}

std::string mpi_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(text, &length);
  std::string version(text, text + std::strcspn(text, ","));  // "Open MPI v4.1.4, package: ..."
  if (const size_t v = version.find(" v"); v != std::string::npos) version.erase(v + 1, 1);
  return version;
}

std::string rank_label() {
  if (!joined) return "";
  const int rank = joined->world().rank;
  return fmt::format("rank {} on {}: ", rank, joined->hosts()[static_cast<size_t>(rank)]);
}

void abort_run(int status) {
  if (joined) {
    let_output_out();
    joined->abort(status);
    std::this_thread::sleep_for(std::chrono::seconds(5));
  }
  std::fflush(nullptr);
  _exit(status);
}

}  // namespace starling
