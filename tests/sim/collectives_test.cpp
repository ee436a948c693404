// Every collective through the simulated cluster: results, equal replicas, sub-communicators, and equal runs.
#include <chrono>
#include <mutex>
#include <thread>

#include "base/random.h"
#include "tests/sim/common.h"

namespace starling {
namespace {

using testing::Each;
using testing::ElementsAre;

double value(int rank, int64_t i) { return static_cast<double>((rank * 37 + i * 11) % 101 - 50); }

Tensor input(int rank, int64_t count, DType type) {
  const Tensor t({count}, type);
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(value(rank, i));
  t.from_doubles(values);
  return t;
}

std::vector<double> sums(int N, int64_t count) {
  std::vector<double> result(static_cast<size_t>(count));
  for (int r = 0; r < N; ++r)
    for (int64_t i = 0; i < count; ++i) result[static_cast<size_t>(i)] += value(r, i);
  return result;
}

class Collectives : public testing::TestWithParam<std::tuple<bool, int64_t>> {
 protected:
  Scenario scenario(int N) const {
    Scenario s = plain(N);
    s.network.ranks_per_node = 1 + N % 3;
    s.modelled_collectives = std::get<0>(GetParam());
    s.network.eager_bytes = std::get<1>(GetParam());
    s.compute.memory_gb_s = 4;
    return s;
  }
};

TEST_P(Collectives, AllOfThemForOneToNineRanks) {
  for (int N = 1; N <= 9; ++N)
    for (const int64_t count : {1, 500})
      simulate(scenario(N), [&](World& w) {
        Communicator& comm = *w.comm;
        const int me = comm.rank();
        const auto reduced = sums(N, count);
        for (const Algorithm a :
             {Algorithm::automatic, Algorithm::ring, Algorithm::tree, Algorithm::halving_doubling, Algorithm::library}) {
          comm.set_algorithm(a);
          for (const DType type : {DType::f32, DType::f64, DType::i32}) {
            const Tensor x = input(me, count, type), y = input(me, count, type);
            const Pending a1 = comm.all_reduce(x), a2 = comm.all_reduce(y, Reduce::maximum);  // two at once
            a2.wait();
            a1.wait();
            EXPECT_EQ(x.to_doubles(), reduced);  // sums of small whole numbers are exact
            for (int64_t i = 0; i < count; ++i) {
              double maximum = -100;
              for (int r = 0; r < N; ++r) maximum = std::max(maximum, value(r, i));
              EXPECT_EQ(y.to_doubles()[static_cast<size_t>(i)], maximum);
            }
          }
          const Tensor x = input(me, count, DType::f32);
          const Range own = part(count, me, N);
          comm.reduce_scatter(x).wait();
          for (int64_t i = own.begin; i < own.end; ++i) EXPECT_EQ(x.data<float>()[i], reduced[static_cast<size_t>(i)]);
          comm.all_gather(x).wait();
          EXPECT_EQ(x.to_doubles(), reduced);
        }
        for (int root = 0; root < N; ++root) {
          const Tensor x = input(me, count, DType::f32);
          comm.broadcast(x, root).wait();
          EXPECT_EQ(x.to_doubles(), input(root, count, DType::f32).to_doubles());
        }
        const Tensor x = input(me, count, DType::f32);
        comm.all_reduce_bf16(x).wait();
        for (int64_t i = 0; i < count; ++i) EXPECT_NEAR(x.data<float>()[i], reduced[static_cast<size_t>(i)], 2.0);
        comm.barrier().wait();
        EXPECT_EQ(broadcast_text(comm, me == N - 1 ? "from the last rank" : "", N - 1), "from the last rank");
        std::vector<std::string> texts;
        for (int r = 0; r < N; ++r) texts.push_back(std::string(static_cast<size_t>(r % 4), static_cast<char>('a' + r)));
        EXPECT_EQ(gather_texts(comm, texts[static_cast<size_t>(me)]), texts);
      });
}

TEST_P(Collectives, MessagesKeepTheirOrderAndTheirContents) {
  simulate(scenario(3), [](World& w) {
    const int me = w.comm->rank(), right = (me + 1) % 3, left = (me + 2) % 3;
    std::vector<Pending> sends;
    for (int i = 0; i < 6; ++i) sends.push_back(w.comm->send(floats(i % 2 ? 10 : 5000, 100 * me + i), right, i % 3));
    for (const int i : {2, 5, 1, 4, 0, 3}) {  // tags out of order, in order within a tag
      const Tensor x = floats(i % 2 ? 10 : 5000);
      w.comm->receive(x, left, i % 3).wait();
      EXPECT_THAT(x.to_doubles(), Each(100 * left + i));
    }
    for (const Pending& p : sends) p.wait();
    const Tensor self = floats(7);
    const Pending to_me = w.comm->send(floats(7, 3), me, 9);
    w.comm->receive(self, me, 9).wait();
    to_me.wait();
    EXPECT_THAT(self.to_doubles(), Each(3));
    w.comm->receive(floats(0), left, 1).wait();  // nothing to wait for
  });
}

TEST_P(Collectives, SubCommunicatorsAreGroupsOfTheirOwn) {
  simulate(scenario(6), [](World& w) {
    Communicator& all = *w.comm;
    const int me = all.rank();
    const auto half = all.split([](int r) { return r % 2; });
    EXPECT_EQ(half->size(), 3);
    EXPECT_EQ(half->rank(), me / 2);
    EXPECT_EQ(half->host(half->rank()), all.host(me));
    // Both groups and the whole at once, with equal tags and numbers.
    const Tensor a = floats(40, me), b = floats(40, 10 * me), c = floats(3);
    const Pending in_half = half->all_reduce(a), in_all = all.all_reduce(b);
    const Pending get = half->receive(c, (half->rank() + 1) % 3, 0), give = half->send(floats(3, me), (half->rank() + 2) % 3, 0);
    // The same neighbours and the same tag in the whole, posted in the other order by the receiver.
    const Tensor d = floats(3), e = floats(3);
    const Pending give_all = all.send(floats(3, 100 + me), (me + 4) % 6, 0),
                  give_more = half->send(floats(3, 200 + me), (half->rank() + 2) % 3, 0);
    const Pending get_more = half->receive(e, (half->rank() + 1) % 3, 0), get_all = all.receive(d, (me + 2) % 6, 0);
    for (const Pending& p : {in_all, in_half, get, give, give_all, give_more, get_more, get_all}) p.wait();
    EXPECT_THAT(d.to_doubles(), Each(100 + (me + 2) % 6));
    EXPECT_THAT(e.to_doubles(), Each(200 + (me + 2) % 6));
    EXPECT_THAT(a.to_doubles(), Each(me % 2 ? 1 + 3 + 5 : 0 + 2 + 4));
    EXPECT_THAT(b.to_doubles(), Each(150));
    EXPECT_THAT(c.to_doubles(), Each((me + 2) % 6));
    const auto alone = half->split([](int r) { return r; });
    EXPECT_EQ(alone->size(), 1);
    alone->all_reduce(a).wait();
  });
}

INSTANTIATE_TEST_SUITE_P(Fidelity, Collectives,
                         testing::Values(std::tuple(false, int64_t{1} << 40), std::tuple(false, int64_t{64}),
                                         std::tuple(true, int64_t{64})),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param) ? "modelled" : std::get<1>(info.param) > 64 ? "eager" : "rendezvous");
                         });

TEST(Worlds, KnowTheirNodes) {
  Scenario s = plain(5);
  s.network.ranks_per_node = 2;
  simulate(s, [](World& w) {
    EXPECT_TRUE(w.simulated);
    EXPECT_EQ(w.local_rank, w.comm->rank() % 2);
    EXPECT_EQ(w.local_size, w.comm->rank() == 4 ? 1 : 2);
    EXPECT_EQ(w.comm->host(3), "node1");
    EXPECT_TRUE(w.computes);
  });
}

TEST(Worlds, SixtyFourRanksWithData) {
  for (const bool modelled : {false, true}) {
    Scenario s = plain(64);
    s.modelled_collectives = modelled;
    const auto result = simulate(s, [](World& w) {
      w.comm->set_algorithm(Algorithm::ring);
      const Tensor x = input(w.comm->rank(), 20'000, DType::f32);
      w.comm->all_reduce(x).wait();
      EXPECT_EQ(x.to_doubles(), sums(64, 20'000));
    });
    EXPECT_EQ(result.messages, 64 * 126);
  }
}

TEST(Worlds, ValuesThatExistMoveEvenWhenOnlyTimed) {
  Scenario s = plain(4);
  s.timing_only = true;
  simulate(s, [](World& w) {
    EXPECT_FALSE(w.computes);
    w.clock->spend(work(1000), [] {});
    EXPECT_EQ(w.clock->now_ns(), 1000);
    const Tensor totals = floats(8, w.comm->rank());
    w.comm->all_reduce(totals).wait();
    EXPECT_THAT(totals.to_doubles(), Each(6));
    EXPECT_EQ(broadcast_text(*w.comm, w.comm->rank() == 0 ? "plan" : ""), "plan");
  });
}

// A run with everything at once; what it ends with is recorded.
struct Outcome {
  SimulationResult result;
  std::vector<std::vector<double>> tensors;
};
Outcome busy_run(Scenario s, int sleep_seed) {
  s.jitter = 0.3;
  s.hash_payloads = true;
  s.network = network_preset("10gbe");
  s.network.ranks_per_node = 2;
  s.network.eager_bytes = 1000;
  s.compute.memory_gb_s = 3;
  Outcome outcome;
  outcome.tensors.resize(static_cast<size_t>(s.ranks));
  std::mutex mutex;
  outcome.result = simulate(s, [&](World& w) {
    const int me = w.comm->rank(), N = w.comm->size();
    Random random(static_cast<uint64_t>(sleep_seed), static_cast<uint64_t>(me));
    const Tensor x = input(me, 3000, DType::f32), y = floats(700, me), first = floats(1);
    const auto pairs = w.comm->split([](int r) { return r / 2; });
    for (int step = 0; step < 6; ++step) {
      w.clock->spend(work(50'000), [&] {
        if (sleep_seed) std::this_thread::sleep_for(std::chrono::microseconds(random.below(1500)));
        for (int64_t i = 0; i < 3000; ++i) x.data<float>()[i] = 0.7f * x.data<float>()[i] + 0.01f * static_cast<float>(me);
      });
      const Pending sum = step % 2 ? w.comm->all_reduce_bf16(x) : w.comm->all_reduce(x);
      const Pending pair = pairs->all_reduce(y);
      w.clock->spend(work(20'000), [&] {
        if (sleep_seed) std::this_thread::sleep_for(std::chrono::microseconds(random.below(700)));
      });
      // Who comes first at rank 0 depends on virtual time alone.
      if (me == 0) {
        for (int r = 1; r < N; ++r) w.comm->receive(floats(1), r, 1).wait();
      } else {
        w.comm->send(first, 0, 1).wait();
      }
      sum.wait();
      pair.wait();
    }
    auto values = x.to_doubles();
    const auto more = y.to_doubles();
    values.insert(values.end(), more.begin(), more.end());
    const std::lock_guard lock(mutex);
    outcome.tensors[static_cast<size_t>(me)] = std::move(values);
  });
  return outcome;
}

TEST(Determinism, RealTimeAndThreadsChangeNothing) {
  for (const bool modelled : {false, true}) {
    Scenario s = plain(7);
    s.modelled_collectives = modelled;
    s.threads = 1;
    const Outcome expected = busy_run(s, 0);
    for (const auto& [threads, sleeps] : {std::pair{1, 1}, {2, 2}, {7, 3}, {3, 4}}) {
      s.threads = threads;
      const Outcome other = busy_run(s, sleeps);
      EXPECT_EQ(other.result.trace_hash, expected.result.trace_hash);
      EXPECT_EQ(other.result.virtual_ns, expected.result.virtual_ns);
      EXPECT_EQ(other.result.events, expected.result.events);
      EXPECT_EQ(other.tensors, expected.tensors);
    }
    s.seed = 2;
    EXPECT_NE(busy_run(s, 0).result.trace_hash, expected.result.trace_hash);
  }
}

TEST(Determinism, PayloadsAreHashedOnRequest) {
  const auto hash = [](bool payloads, double value) {
    Scenario s = plain(2);
    s.hash_payloads = payloads;
    return simulate(s, [&](World& w) { w.comm->all_reduce(floats(10, value)).wait(); }).trace_hash;
  };
  EXPECT_EQ(hash(false, 1), hash(false, 2));
  EXPECT_NE(hash(true, 1), hash(true, 2));
  EXPECT_NE(hash(true, 1), hash(false, 1));
}

}  // namespace
}  // namespace starling
