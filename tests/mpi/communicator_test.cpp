// Messages between two ranks, parts of the group, counters, and what is said about a late rank.
#include <chrono>
#include <thread>

#include "comm/threads.h"
#include "tests/mpi/fixture.h"

namespace starling {
namespace {

using testing::HasSubstr;

void sleep_s(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

TEST(Messages, KeepTheirOrderPerTag) {
  Communicator& comm = test_comm();
  const int right = (comm.rank() + 1) % comm.size(), left = (comm.rank() + comm.size() - 1) % comm.size();
  constexpr int64_t n = 20000;
  std::vector<Pending> sent, received;
  std::vector<Tensor> in;
  for (int k = 0; k < 12; ++k)  // two tags in turn, small and large ones
    sent.push_back(comm.send(filled(k % 3 ? 5 : n, DType::f32, [&](int64_t i) { return element(comm.rank(), i) + k; }), right, 7 + k % 2));
  for (const int tag : {8, 7})
    for (int k = tag - 7; k < 12; k += 2) {
      in.emplace_back(Shape{k % 3 ? 5 : n}, DType::f32);
      received.push_back(comm.receive(in.back(), left, tag));
    }
  size_t next = 0;
  for (const int tag : {8, 7})
    for (int k = tag - 7; k < 12; k += 2, ++next) {
      received[next].wait();
      expect_elements(
          in[next], {0, in[next].count()}, [&](int64_t i) { return element(left, i) + k; }, fmt::format("message {}", k));
    }
  for (const Pending& p : sent) p.wait();
}

// Tags as low as the numbers of the first collectives of a new communicator.
TEST(Messages, DoNotMeetCollectives) {
  const std::unique_ptr<Communicator> comm = test_comm().split([](int) { return 0; });
  const int N = comm->size(), right = (comm->rank() + 1) % N, left = (comm->rank() + N - 1) % N;
  std::vector<Pending> sent;
  for (int tag = 0; tag < 8; ++tag)
    sent.push_back(comm->send(filled(3, DType::i32, [&](int64_t i) { return element(comm->rank(), i) + tag; }), right, tag));
  for (int k = 0; k < 8; ++k) {
    const Tensor x = filled(3, DType::i32, [&](int64_t) { return k; });
    comm->all_reduce(x).wait();
    expect_elements(
        x, {0, 3}, [&](int64_t) { return k * N; }, fmt::format("sum {}", k));
  }
  for (int tag = 0; tag < 8; ++tag) {  // received later than what was sent later
    const Tensor in({3}, DType::i32);
    comm->receive(in, left, tag).wait();
    expect_elements(
        in, {0, 3}, [&](int64_t i) { return element(left, i) + tag; }, fmt::format("message {}", tag));
  }
  for (const Pending& p : sent) p.wait();
}

TEST(Messages, OfNoBytesAreDone) {
  EXPECT_TRUE(test_comm().send(Tensor({0}, DType::f32), (test_comm().rank() + 1) % test_comm().size(), 1).done());
}

TEST(Split, PartsWorkOnTheirOwn) {
  Communicator& comm = test_comm();
  const int color = comm.rank() % 2;
  const std::unique_ptr<Communicator> half = comm.split([](int r) { return r % 2; });
  EXPECT_EQ(half->size(), (comm.size() + 1 - color) / 2);
  EXPECT_EQ(half->rank(), comm.rank() / 2);
  EXPECT_EQ(half->host(half->rank()), comm.host(comm.rank()));
  const Tensor x = filled(1000, DType::f32, [&](int64_t i) { return element(comm.rank(), i); });
  const Tensor y = filled(1000, DType::f32, [&](int64_t i) { return element(comm.rank(), i); });
  const Pending one = half->all_reduce(x), two = comm.all_reduce(y);
  two.wait(), one.wait();
  const auto sum = [&](int64_t i, int first, int stride) {
    double s = 0;
    for (int r = first; r < comm.size(); r += stride) s += element(r, i);
    return s;
  };
  expect_elements(
      x, {0, 1000}, [&](int64_t i) { return sum(i, color, 2); }, "half");
  expect_elements(
      y, {0, 1000}, [&](int64_t i) { return sum(i, 0, 1); }, "all");
  if (half->size() > 1) {
    const Tensor in({1}, DType::i32);
    const Tensor out = filled(1, DType::i32, [&](int64_t) { return comm.rank(); });
    const Pending sent = half->send(out, (half->rank() + 1) % half->size(), 3);
    half->receive(in, (half->rank() + half->size() - 1) % half->size(), 3).wait();
    sent.wait();
    EXPECT_EQ(in.data<int32_t>()[0], color + 2 * ((half->rank() + half->size() - 1) % half->size()));
  }
}

TEST(Traffic, IsThatOfTheSchedules) {
  Communicator& comm = test_comm();
  const CollectiveShape shape{comm.rank(), comm.size(), 100003, DType::f32};
  const Tensor x({100003}, DType::f32);
  const auto expect = [&](const Schedule& schedule, const Pending& pending, const Traffic& before, const char* what) {
    pending.wait();
    const Traffic after = comm.traffic();
    EXPECT_EQ(after.bytes_sent - before.bytes_sent, schedule.bytes_sent()) << what;
    EXPECT_EQ(after.bytes_received - before.bytes_received, schedule.bytes_received()) << what;
    EXPECT_EQ(after.messages_sent - before.messages_sent, schedule.messages_sent()) << what;
  };
  comm.set_algorithm(Algorithm::ring);
  Traffic before = comm.traffic();
  expect(ring_all_reduce(shape, Reduce::sum), comm.all_reduce(x), before, "ring");
  comm.set_algorithm(Algorithm::tree);
  before = comm.traffic();
  expect(tree_all_reduce(shape, Reduce::sum), comm.all_reduce(x), before, "tree");
  comm.set_algorithm(Algorithm::halving_doubling);
  before = comm.traffic();
  expect(halving_doubling_all_reduce(shape, Reduce::sum), comm.all_reduce(x), before, "halving-doubling");
  comm.set_algorithm(Algorithm::automatic);
  before = comm.traffic();
  expect(bf16_all_reduce(shape), comm.all_reduce_bf16(x), before, "bf16");

  before = comm.traffic();
  const int right = (comm.rank() + 1) % comm.size(), left = (comm.rank() + comm.size() - 1) % comm.size();
  const Pending sent = comm.send(x, right, 1);
  comm.receive(Tensor({100003}, DType::f32), left, 1).wait();
  sent.wait();
  const Traffic after = comm.traffic();
  EXPECT_EQ(after.bytes_sent - before.bytes_sent, 400012);
  EXPECT_EQ(after.bytes_received - before.bytes_received, 400012);
  EXPECT_EQ(after.messages_sent - before.messages_sent, 1);
}

TEST(Traffic, CountsTheTimeOfWaiting) {
  Communicator& comm = test_comm();
  comm.barrier().wait();
  const int64_t before = comm.traffic().waited_ns;
  if (comm.rank() == 0) sleep_s(0.3);
  comm.barrier().wait();
  const double waited = 1e-9 * static_cast<double>(comm.traffic().waited_ns - before);
  if (comm.rank() == 0)
    EXPECT_LT(waited, 0.2);
  else
    EXPECT_GT(waited, 0.2);
}

TEST(Pending, EndsWhileTheCallerDoesSomethingElse) {
  Communicator& comm = test_comm();
  comm.barrier().wait();
  comm.set_algorithm(Algorithm::ring);
  const Tensor x({100003}, DType::f32);
  const Pending pending = comm.all_reduce(x);
  comm.set_algorithm(Algorithm::automatic);
  for (int k = 0; k < 500 && !pending.done(); ++k) sleep_s(0.01);
  EXPECT_TRUE(pending.done());
}

std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const PeerError& e) {
    return e.what();
  }
  return "";
}

// A late rank does its part when it is told that the others have missed their deadlines.
constexpr Tag kGo = 9;
Pending told_to_go(int from) { return test_comm().receive(Tensor({1}, DType::i32), from, kGo); }
void tell_to_go(int to) { test_comm().send(Tensor({1}, DType::i32), to, kGo).wait(); }

TEST(Deadline, NamesTheRankThatIsLate) {
  Communicator& comm = test_comm();
  for (const int late : {0, comm.size() - 1}) {
    comm.barrier().wait();
    comm.barrier().wait(1.5);  // heartbeats keep the pace of the last wait: fast ones tell soon where the late rank is
    comm.note("exchange", 119);
    const Tensor x = filled(1000, DType::f32, [&](int64_t i) { return element(comm.rank(), i); });
    if (comm.rank() == late) {
      comm.note("validation", 120);
      for (int r = 0; r < comm.size(); ++r)
        if (r != late)
          for (const Pending go = told_to_go(r); !go.done();) sleep_s(0.005);  // no wait, which would change the pace
    }
    comm.set_algorithm(Algorithm::ring);
    const Pending pending = comm.all_reduce(x);
    comm.set_algorithm(Algorithm::automatic);
    if (comm.rank() != late) {
      const std::string message = message_of([&] { pending.wait(0.8); });
      EXPECT_THAT(message,
                  HasSubstr(fmt::format("all-reduce (ring) waited 0.8 s; rank {} on {} is behind: it is in 'validation' at update 120",
                                        late, comm.host(late))));
      EXPECT_THAT(message, HasSubstr("strategy.deadline-seconds"));
      tell_to_go(late);
    }
    pending.wait();  // a missed deadline leaves the operation as it is
    double sum = 0;
    for (int r = 0; r < comm.size(); ++r) sum += element(r, 999);
    EXPECT_EQ(x.data<float>()[999], static_cast<float>(sum));
  }
}

TEST(Deadline, NamesTheOtherSideOfAMessage) {
  Communicator& comm = test_comm();
  comm.barrier().wait();
  const Tensor x({10}, DType::f32);
  if (comm.rank() == 0) {
    const Pending pending = comm.receive(x, 1, 5);
    EXPECT_THAT(message_of([&] { pending.wait(0.2); }),
                HasSubstr(fmt::format("a message from rank 1 of 40 bytes with tag 5 waited 0.2 s; rank 1 on {} did not do its part",
                                      comm.host(1))));
    tell_to_go(1);
    pending.wait();
  }
  if (comm.rank() == 1) {
    told_to_go(0).wait();
    comm.send(x, 0, 5).wait();
  }
  comm.barrier().wait();
}

// Rank 0 serves the others in the order in which they come: the last rank first, as nobody else moves before it was served.
TEST(WaitAny, ServesInTheOrderOfComing) {
  Communicator& comm = test_comm();
  comm.barrier().wait();
  const Tensor token({1}, DType::i32);
  if (comm.rank() > 0) {
    if (comm.rank() + 1 < comm.size()) comm.receive(token, 0, 2).wait();
    comm.send(filled(1000, DType::f32, [&](int64_t i) { return element(comm.rank(), i); }), 0, 1).wait();
    comm.barrier().wait();
    return;
  }
  std::vector<Pending> open;
  std::vector<Tensor> x;
  for (int r = 1; r < comm.size(); ++r) x.emplace_back(Shape{1000}, DType::f32), open.push_back(comm.receive(x.back(), r, 1));
  for (int r = comm.size() - 1; r > 0; --r) {
    const size_t i = wait_any(open);
    EXPECT_EQ(i, static_cast<size_t>(r - 1));
    expect_elements(
        x[i], {0, 1000}, [&](int64_t k) { return element(r, k); }, fmt::format("from rank {}", r));
    open.pop_back();
    if (r > 1) comm.send(token, r - 1, 2).wait();
  }
  comm.barrier().wait();
}

TEST(WaitAny, OfSeveralThatHaveEndedTheFirstOneCounts) {
  Communicator& comm = test_comm();
  comm.barrier().wait();
  const Tensor token({1}, DType::i32);
  if (comm.rank() == 0) {
    std::vector<Pending> open = {comm.receive(Tensor({1}, DType::i32), 1, 1), comm.receive(Tensor({1}, DType::i32), 1, 2)};
    comm.receive(token, 1, 3).wait();  // sent after both had come
    EXPECT_EQ(wait_any(open), 1u);
    EXPECT_EQ(wait_any(open), 1u);  // still
    open[0].wait();
    open.push_back(comm.receive(token, 1, 4));
    EXPECT_EQ(wait_any(std::vector<Pending>{open[2], open[0]}), 1u);
    comm.send(token, 1, 5).wait();
    open[2].wait();
  }
  if (comm.rank() == 1) {
    comm.send(token, 0, 2).wait();
    sleep_s(0.1);
    comm.send(token, 0, 1).wait();
    sleep_s(0.1);
    comm.send(token, 0, 3).wait();
    comm.receive(token, 0, 5).wait();
    comm.send(token, 0, 4).wait();
  }
  comm.barrier().wait();
}

TEST(WaitAny, DeadlineNamesThoseWaitedFor) {
  Communicator& comm = test_comm();
  comm.barrier().wait();
  const Tensor x({1}, DType::i32);
  const int last = comm.size() - 1;
  if (comm.rank() == 0) {
    const std::vector<Pending> open = {comm.receive(x, 1, 5), comm.receive(x, last, 6)};
    const std::string who = last == 1 ? "rank 1" : fmt::format("ranks 1, {}", last);
    EXPECT_THAT(
        message_of([&] { wait_any(open, 0.2); }),
        HasSubstr(fmt::format("any of 2 operations, of which the first is a message from rank 1 of 4 bytes with tag 5, waited 0.2 s; none "
                              "of {} did its part",
                              who)));
    tell_to_go(last);
    EXPECT_EQ(wait_any(open), 1u);
    tell_to_go(1);
    open[0].wait();
    open[1].wait();
  }
  if (comm.rank() == last) {
    told_to_go(0).wait();
    comm.send(x, 0, 6).wait();
  }
  if (comm.rank() == 1) {
    told_to_go(0).wait();
    comm.send(x, 0, 5).wait();
  }
  comm.barrier().wait();
}

// In the numbers of the part that asks; they take some beats to come.
TEST(News, TellsWhatTheCardsOfOthersHaveDone) {
  Communicator& comm = test_comm();
  const std::unique_ptr<Communicator> half = comm.split([](int r) { return r % 2; });
  const auto progress = [](int r) {
    CardCounts counts;
    for (size_t g = 0; g < counts.size(); ++g) {
      const auto k = static_cast<int64_t>(g) * 1000 + r;
      counts[g] = {100 + k, 200 + k, 300 + k};
    }
    return counts;
  };
  comm.note("counting", 40 + comm.rank());
  comm.note(progress(comm.rank()));
  const auto all_known = [&] {
    const std::vector<RankNews> news = half->news();
    for (int k = 0; k < half->size(); ++k) {
      const int r = 2 * k + comm.rank() % 2;
      const RankNews& n = news.at(static_cast<size_t>(k));
      const CardCounts expected = progress(r);
      for (size_t g = 0; g < expected.size(); ++g)
        if (n.card[g].enqueued != expected[g].enqueued || n.card[g].reached != expected[g].reached ||
            n.card[g].completed != expected[g].completed)
          return false;
      if (n.phase != "counting" || n.step != 40 + r || n.age_s > 30) return false;
    }
    return true;
  };
  int turns = 0;
  while (!all_known() && ++turns < 3000) sleep_s(0.01);
  EXPECT_TRUE(all_known());
  comm.barrier().wait();
}

TEST(Threads, ShareTheCoresOfAHost) {
  // mpirun is told to bind nothing, so all ranks of a host have one mask.
  const int n = threads_for_rank(test_comm());
  EXPECT_GE(n, 1);
  EXPECT_LE(n * test_world().local_size, std::max(static_cast<int>(std::thread::hardware_concurrency()), test_world().local_size));
}

TEST(World, KnowsWhereRanksAre) {
  EXPECT_TRUE(started_by_mpi());
  EXPECT_LT(test_world().local_rank, test_world().local_size);
  EXPECT_LE(test_world().local_size, test_comm().size());
  EXPECT_EQ(rank_label(), fmt::format("rank {} on {}: ", test_comm().rank(), test_comm().host(test_comm().rank())));
  EXPECT_THAT(mpi_version(), testing::StartsWith("Open MPI "));
}

}  // namespace
}  // namespace starling
