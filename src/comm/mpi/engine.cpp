#include "comm/mpi/engine.h"

#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "base/messages.h"
#include "base/start_threads.h"
#include "base/this_host.h"
#include "comm/mpi/mpi_call.h"

namespace starling {
namespace {

using namespace std::chrono_literals;

// The thread polls while an operation is in progress. If somebody waits for it, a core is likely to be free, so at first it only yields;
// otherwise computing threads want the core, and it sleeps at once. Sleeping longer than this costs bandwidth, shorter costs the other
// threads' time.
constexpr int kYieldsWaitedFor = 2000, kYields = 10;
constexpr auto kSleepWaitedFor = 20us, kSleep = 50us;
// While nothing moves and nobody waits, as between the micro-batches of a pipeline, it sleeps for an eighth of the time that this has
// lasted; a thread that begins to wait wakes it. Each look takes some 20 us from the computing thread: a look every 200 us made the steps
// of a pipeline 5 to 13 % slower, also over TCP, where long sleeps delay the handshake of a long message.
constexpr int64_t kQuietShare = 8;
constexpr auto kLongestSleep = 2ms;
constexpr auto kIdle = 5ms;                     // between looks at heartbeats with nothing else to do
constexpr int64_t kBeatInterval = 500'000'000;  // ns
constexpr int64_t kFastestBeat = 10'000'000;    // ns, while somebody waits with a short deadline
constexpr size_t kPooled = 64;                  // free blocks of scratch memory that are kept
constexpr int kHostName = 64;
constexpr double kSilenceLook = 0.5;          // s, between looks at who is silent while somebody waits
constexpr int64_t kAway = 4 * kBeatInterval;  // ns; after a longer absence this thread takes in heartbeats before it judges others

int64_t now_ns() { return std::chrono::steady_clock::now().time_since_epoch() / 1ns; }

}  // namespace

void let_output_out() {
  std::fflush(nullptr);
  std::this_thread::sleep_for(200ms);
}

std::shared_ptr<Storage> ScratchPool::take(int64_t bytes) {
  auto best = free_.end();
  for (auto block = free_.begin(); block != free_.end(); ++block) {
    const int64_t size = (*block)->bytes();
    if (size >= bytes && size <= 2 * bytes + (1 << 20) && (best == free_.end() || size < (*best)->bytes())) best = block;
  }
  if (best == free_.end()) return std::make_shared<Storage>(bytes);
  std::shared_ptr<Storage> block = std::move(*best);
  free_.erase(best);
  return block;
}

void ScratchPool::give_back(std::shared_ptr<Storage> storage) {
  free_.push_back(std::move(storage));
  if (free_.size() > kPooled) free_.erase(free_.begin());
}

void Task::wait(double deadline_s) {
  const Task* const self = this;
  if (!done()) engine_.wait({&self, 1}, deadline_s, [&] { return done(); });
  if (error_) std::rethrow_exception(error_);
}

size_t Task::wait_any(std::span<Operation* const> operations, double deadline_s) {
  std::vector<const Task*> tasks;
  for (Operation* operation : operations) tasks.push_back(static_cast<const Task*>(operation));
  size_t first = tasks.size();
  engine_.wait(tasks, deadline_s, [&] {
    for (size_t i = 0; i < tasks.size(); ++i)
      if (tasks[i]->ended_ > 0 && (first == tasks.size() || tasks[i]->ended_ < tasks[first]->ended_)) first = i;
    return first < tasks.size();
  });
  if (tasks[first]->error_) std::rethrow_exception(tasks[first]->error_);
  return first;
}

void Engine::wait(std::span<const Task* const> tasks, double deadline_s, const std::function<bool()>& ended) {
  std::unique_lock lock(mutex_);
  // Checked first, since a rank that serves many others may never have to wait as long as one of them lives.
  bool lost = somebody_is_silent(tasks), in_time = !lost && ended();
  if (in_time) return;
  const int64_t begin = now_ns();
  ++waiting_;
  // News of which rank is late must have reached all ranks by the deadline.
  beat_interval_ns_ = std::clamp(static_cast<int64_t>(1e9 / 20 * deadline_s), kFastestBeat, kBeatInterval);
  to_thread_.notify_one();
  double waited_s = 0;
  while (!in_time && !lost && waited_s < deadline_s) {
    in_time = from_thread_.wait_for(lock, std::chrono::duration<double>(std::min(deadline_s - waited_s, kSilenceLook)), ended);
    waited_s = 1e-9 * static_cast<double>(now_ns() - begin);
    lost = somebody_is_silent(tasks);
  }
  --waiting_;
  waited_ns_ += now_ns() - begin;
  if (!in_time) throw PeerError(lateness(tasks, waited_s));
}

Engine::Engine() : beat_interval_ns_(kBeatInterval) {
  thread_ = start_thread("communication", [this] { main(); });
  std::unique_lock lock(mutex_);
  from_thread_.wait(lock, [&] { return state_ != State::starting; });
  if (start_error_) {
    lock.unlock();
    thread_.join();
    std::rethrow_exception(start_error_);
  }
}

Engine::~Engine() {
  {
    const std::lock_guard lock(mutex_);
    state_ = State::closing;
    to_thread_.notify_one();
  }
  thread_.join();
}

void Engine::submit(const std::shared_ptr<Task>& task) {
  const std::lock_guard lock(mutex_);
  ++operations_;
  last_silence_s_ = task->silence_s_;
  if (task->collective_ >= 0) collectives_ = task->collective_ + 1;
  queue_.push_back(task);
  to_thread_.notify_one();
}

void Engine::note(const char* phase, int64_t step) {
  const std::lock_guard lock(mutex_);
  Heartbeat& own = known_[static_cast<size_t>(world_->rank)].beat;
  std::strncpy(own.phase, phase, sizeof own.phase - 1);
  if (step > 0) own.step = step;
}

void Engine::note(const CardCounts& card) {
  const std::lock_guard lock(mutex_);
  known_[static_cast<size_t>(world_->rank)].beat.card = card;
}

std::vector<RankNews> Engine::news(const Group& group) const {
  const std::lock_guard lock(mutex_);
  std::vector<RankNews> all;
  for (const int r : group.members) {
    const Heartbeat& beat = known_[static_cast<size_t>(r)].beat;
    all.push_back({beat.card, beat.phase, beat.step, silence_s(r)});
  }
  return all;
}

Traffic Engine::traffic() const {
  const std::lock_guard lock(mutex_);
  return {sent_, received_, messages_, waited_ns_};
}

void Engine::count(int64_t sent, int64_t received, int64_t messages) {
  sent_ += sent;
  received_ += received;
  messages_ += messages;
}

void Engine::abort(int status) {
  const std::lock_guard lock(mutex_);
  abort_status_ = status;
  to_thread_.notify_one();
}

void Engine::main() {
  prctl(PR_SET_NAME, "communication");
  prctl(PR_SET_TIMERSLACK, 1000UL);  // ns; the default adds 50 us to every sleep
  try {
    start_mpi();
  } catch (...) {
    start_error_ = std::current_exception();
  }
  {
    const std::lock_guard lock(mutex_);
    state_ = start_error_ ? State::ended : State::running;
    from_thread_.notify_all();
  }
  if (start_error_) return;
  serve();
  stop_mpi();
}

void Engine::start_mpi() {
  int level = 0;
  MPI_CALL(Init_thread, nullptr, nullptr, MPI_THREAD_FUNNELED, &level);  // "main" is the thread that calls this
  MPI_CALL(Comm_set_errhandler, MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm world, beats, local;
  MPI_CALL(Comm_dup, MPI_COMM_WORLD, &world);
  MPI_CALL(Comm_dup, MPI_COMM_WORLD, &beats);
  world_ = &add_group(world, true);

  MPI_CALL(Comm_split_type, MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, world_->rank, MPI_INFO_NULL, &local);
  MPI_CALL(Comm_rank, local, &local_rank_);
  MPI_CALL(Comm_size, local, &local_size_);
  MPI_CALL(Comm_free, &local);

  const size_t size = world_->members.size();
  std::string names(size * kHostName, '\0');
  this_host().copy(names.data() + static_cast<size_t>(world_->rank) * kHostName, kHostName - 1);
  MPI_CALL(Allgather, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, names.data(), kHostName, MPI_CHAR, world);
  for (size_t r = 0; r < size; ++r) hosts_.emplace_back(names.c_str() + r * kHostName);

  known_.assign(size, {{}, now_ns()});
  heartbeats_.start(beats);
}

const Group& Engine::add_group(MPI_Comm comm, bool world) {
  auto group = std::make_unique<Group>();
  group->collectives = comm;
  group->world = world;
  MPI_CALL(Comm_set_errhandler, comm, MPI_ERRORS_RETURN);
  MPI_CALL(Comm_dup, comm, &group->messages);
  MPI_CALL(Comm_rank, comm, &group->rank);
  int size = 0;
  MPI_CALL(Comm_size, comm, &size);
  std::vector<int> ranks(static_cast<size_t>(size));
  for (int r = 0; r < size; ++r) ranks[static_cast<size_t>(r)] = r;
  group->members.resize(ranks.size());
  MPI_Group these, all;
  MPI_CALL(Comm_group, comm, &these);
  MPI_CALL(Comm_group, MPI_COMM_WORLD, &all);
  MPI_CALL(Group_translate_ranks, these, size, ranks.data(), all, group->members.data());
  MPI_CALL(Group_free, &these);
  MPI_CALL(Group_free, &all);
  groups_.push_back(std::move(group));
  return *groups_.back();
}

const Group& Engine::split(const Group& group, int color) {
  MPI_Comm part;
  MPI_CALL(Comm_split, group.collectives, color, group.rank, &part);
  return add_group(part, false);
}

void Engine::serve() {
  Tasks fresh;
  for (;;) {
    bool closing;
    {
      const std::lock_guard lock(mutex_);
      std::swap(fresh, queue_);
      closing = state_ == State::closing;
    }
    if (abort_status_ >= 0) MPI_Abort(MPI_COMM_WORLD, abort_status_);
    bool moved = !fresh.empty();
    for (std::shared_ptr<Task>& task : fresh) {
      try {
        task->begin();
        active_.push_back(std::move(task));
      } catch (...) {
        end_task(*task, std::current_exception());
      }
    }
    fresh.clear();
    moved |= advance_all();
    beat(now_ns());
    if (closing && active_.empty()) return;
    pause(moved);
  }
}

bool Engine::advance_all() {
  bool moved = false;
  for (auto task = active_.begin(); task != active_.end();) {
    Task::Progress progress = Task::Progress::done;
    std::exception_ptr error;
    try {
      progress = (*task)->advance();
    } catch (...) {
      error = std::current_exception();
    }
    moved |= progress != Task::Progress::none;
    if (progress == Task::Progress::done) {
      end_task(**task, error);
      task = active_.erase(task);
    } else {
      ++task;
    }
  }
  return moved;
}

void Engine::end_task(Task& task, const std::exception_ptr& error) {
  task.release();
  const std::lock_guard lock(mutex_);
  task.error_ = error;
  task.ended_ = ++ended_;
  task.done_.store(true, std::memory_order_release);
  from_thread_.notify_all();
}

void Engine::beat(int64_t now) {
  if (heartbeats_.size() == 1) return;
  while (heartbeats_.receive()) {
    const std::lock_guard lock(mutex_);
    merge(known_, heartbeats_.news(), now);
  }
  std::unique_lock lock(mutex_);
  if (now - looked_ns_ > kAway)
    for (Heartbeats::Known& k : known_) k.heard_ns = now;
  looked_ns_ = now;
  // A shorter interval counts from now on.
  if (now < next_beat_ns_ && next_beat_ns_ <= now + beat_interval_ns_) return;
  next_beat_ns_ = now + beat_interval_ns_;
  all_heard_ = silence_s(longest_silent(world_->members)) <= silent_s();
  enter_own_beat(now);
  heartbeats_.send(known_);
}

void Engine::enter_own_beat(int64_t now) {
  Heartbeats::Known& own = known_[static_cast<size_t>(world_->rank)];
  ++own.beat.count;
  own.beat.collectives = collectives_;
  own.beat.operations = operations_;
  own.heard_ns = now;
}

void Engine::pause(bool moved) {
  if (moved) {
    quiet_sweeps_ = 0;
    moved_ns_ = now_ns();
    return;
  }
  const bool waited_for = waiting_.load(std::memory_order_relaxed) > 0;
  if (!active_.empty() && ++quiet_sweeps_ < (waited_for ? kYieldsWaitedFor : kYields)) {
    sched_yield();
    return;
  }
  std::unique_lock lock(mutex_);
  if (!queue_.empty() || abort_status_ >= 0) return;
  if (!active_.empty()) {
    const std::chrono::nanoseconds quiet((now_ns() - moved_ns_) / kQuietShare);
    const bool by_now = waiting_.load(std::memory_order_relaxed) > 0;  // it changes only under the lock
    to_thread_.wait_for(lock, by_now ? kSleepWaitedFor : std::clamp<std::chrono::nanoseconds>(quiet, kSleep, kLongestSleep));
  } else if (state_ != State::closing) {
    to_thread_.wait_for(lock, kIdle);
  }
}

void Engine::stop_mpi() {
  const auto rest = [&] {
    if (abort_status_ >= 0) MPI_Abort(MPI_COMM_WORLD, abort_status_);
    std::this_thread::sleep_for(1ms);
  };
  for (; !heartbeats_.everybody_leaves(); rest()) {
    beat(now_ns());
    std::unique_lock lock(mutex_);
    const int lost = all_heard_ ? -1 : lost_rank(world_->members, last_silence_s_);
    if (lost < 0) continue;
    const double silence = silence_s(lost);
    lock.unlock();
    tell("starling: error: rank {} on {}: the run is over here, but rank {} on {} has not been heard of for {:.1f} s\n", world_->rank,
         hosts_[static_cast<size_t>(world_->rank)], lost, hosts_[static_cast<size_t>(lost)], silence);
    let_output_out();
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  while (!heartbeats_.stop()) rest();
  MPI_Finalize();
  const std::lock_guard lock(mutex_);
  state_ = State::ended;
}

std::vector<int> Engine::waited_for(std::span<const Task* const> tasks) {
  std::vector<int> ranks;
  for (const Task* task : tasks)
    if (task->peer_ >= 0)
      ranks.push_back(task->peer_);
    else
      ranks.insert(ranks.end(), task->group_.members.begin(), task->group_.members.end());
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

// News needs up to 2 hops beats, since each beat goes to one distance and distances take turns.
double Engine::silent_s() const {
  int hops = 1;
  while ((1 << hops) < static_cast<int>(known_.size())) ++hops;
  return 1e-9 * static_cast<double>(kBeatInterval) * (4 + 4 * hops);
}

double Engine::silence_s(int rank) const {
  const int64_t heard = known_[static_cast<size_t>(rank)].heard_ns;
  return rank == world_->rank ? 0 : 1e-9 * static_cast<double>(now_ns() - heard);
}

int Engine::longest_silent(const std::vector<int>& ranks) const {
  return *std::max_element(ranks.begin(), ranks.end(), [&](int a, int b) { return silence_s(a) < silence_s(b); });
}

int Engine::lost_rank(const std::vector<int>& ranks, double allowed_s) const {
  if (now_ns() - looked_ns_ > kAway) return -1;
  const int rank = longest_silent(ranks);
  return silence_s(rank) > std::max(allowed_s, silent_s()) ? rank : -1;
}

bool Engine::somebody_is_silent(std::span<const Task* const> tasks) const {
  return !all_heard_ && lost_rank(waited_for(tasks), tasks.front()->silence_s_) >= 0;
}

std::string Engine::lateness(std::span<const Task* const> tasks, double waited_s) {
  const int64_t now = now_ns();
  enter_own_beat(now);
  Lateness l;
  l.waited_s = waited_s;
  l.self = world_->rank;
  l.silent_s = now - looked_ns_ > kAway ? INFINITY : silent_s();  // a thread that was away itself cannot judge
  const Task& first = *tasks.front();
  l.operation = first.what_;
  l.any = tasks.size() > 1;
  if (!l.any) {
    l.collective = first.collective_;
    l.members = first.group_.members;
    l.peer = first.peer_;
  } else {
    l.operation = fmt::format("any of {} operations, of which the first is {},", tasks.size(), first.what_);
    l.members = waited_for(tasks);
  }
  return describe_lateness(l, known_, hosts_, now);
}

}  // namespace starling
