// Collectives of tensors on cards give the bits that the same collectives of the host's tensors have in the simulator.
#include <gtest/gtest.h>

#include <cmath>

#include "backend/backend.h"
#include "comm/nccl/nccl.h"
#include "sim/simulate.h"
#include "tests/cards/thread_world.h"
#include "tests/emulated/emulator.h"

namespace starling {

using STARLING_CUDA::connect_cards;

namespace {

using Collectives = std::function<Pending(Communicator&, const Tensor&)>;

struct Case {
  std::string name;
  Collectives start;
  DType type;
  int64_t count;
  Algorithm algorithm = Algorithm::automatic;
};

double value(int rank, int64_t i, DType type) {
  if (type == DType::i32) return static_cast<double>((rank * 7919 + i * 104729) % 2001 - 1000);
  return std::sin(0.37 * static_cast<double>(rank + 1) + 0.11 * static_cast<double>(i % 9973));
}
Tensor filled(int rank, const Case& c, Memory& memory) {
  std::vector<double> values;
  for (int64_t i = 0; i < c.count; ++i) values.push_back(value(rank, i, c.type));
  const Tensor x({c.count}, c.type, memory);
  x.from_doubles(values);
  return x;
}

std::vector<Case> cases(int ranks) {
  const auto reduce = [](Communicator& c, const Tensor& x) { return c.all_reduce(x); };
  const auto greatest = [](Communicator& c, const Tensor& x) { return c.all_reduce(x, Reduce::maximum); };
  const auto narrow = [](Communicator& c, const Tensor& x) { return c.all_reduce_bf16(x); };
  const auto scatter = [](Communicator& c, const Tensor& x) { return c.reduce_scatter(x); };
  const auto gather = [](Communicator& c, const Tensor& x) { return c.all_gather(x); };
  const auto spread = [ranks](Communicator& c, const Tensor& x) { return c.broadcast(x, ranks / 2); };
  const auto varying = [](Communicator& c, const Tensor& x) {  // the first rank has nothing, the last one most
    std::vector<int64_t> offsets{0};
    for (int r = 0; r < c.size(); ++r) offsets.push_back(r + 1 == c.size() ? x.count() : x.count() * r / (2 * c.size()));
    return c.all_gather_varying(x, offsets);
  };
  const auto servers = [](bool bf16) {
    return [bf16](Communicator& c, const Tensor& x) {
      const ServerShape shape{c.rank(), c.size(), x.count(), x.dtype(), c.size(), {0, c.size() - 1}, bf16};
      c.run(server_push(shape), x, "push").wait();
      return c.run(server_pull(shape), x, "pull");
    };
  };
  std::vector<Case> all;
  for (const DType type : {DType::f32, DType::f64, DType::i32, DType::bf16})
    for (const Algorithm algorithm : {Algorithm::ring, Algorithm::tree, Algorithm::halving_doubling}) {
      const std::string how = fmt::format("{} {}", word(algorithm), name_of(type));
      all.push_back({"all-reduce " + how, reduce, type, 203, algorithm});
      all.push_back({"maximum " + how, greatest, type, 65, algorithm});
      all.push_back({"reduce-scatter " + how, scatter, type, 130, algorithm});
      all.push_back({"all-gather " + how, gather, type, 130, algorithm});
    }
  for (const DType type : {DType::f32, DType::i32}) {
    all.push_back({fmt::format("broadcast {}", name_of(type)), spread, type, 77});
    all.push_back({fmt::format("varying {}", name_of(type)), varying, type, 77});
  }
  all.push_back({"automatic, large", reduce, DType::f32, 20000});
  all.push_back({"automatic, one element", reduce, DType::f32, 1});
  all.push_back({"bf16 on the wire", narrow, DType::f32, 203});
  all.push_back({"bf16 on the wire of f64", narrow, DType::f64, 33});
  all.push_back({"servers", servers(false), DType::f32, 203});
  all.push_back({"servers, bf16", servers(true), DType::f32, 203});
  return all;
}

// What a rank's tensor holds afterwards, of one rank after the other; of a reduce-scatter only the own part.
using Results = std::vector<std::vector<std::byte>>;
std::vector<std::byte> outcome(const Case& c, Communicator& comm, const Tensor& x) {
  comm.set_algorithm(c.algorithm);
  c.start(comm, x).wait();
  if (!c.name.starts_with("reduce-scatter")) return x.download();
  const Range own = part(x.count(), comm.rank(), comm.size());
  return x.slice(own.begin, Shape{own.count()}).download();
}
// All cases of one run, so that the worlds are made once.
std::vector<Results> of_simulator(int ranks) {
  std::vector<Results> all(cases(ranks).size(), Results(static_cast<size_t>(ranks)));
  Scenario scenario;
  scenario.ranks = ranks;
  simulate(scenario, [&](World& world) {
    const auto rank = static_cast<size_t>(world.comm->rank());
    for (size_t i = 0; i < all.size(); ++i) {
      const Case c = cases(ranks)[i];
      all[i][rank] = outcome(c, *world.comm, filled(static_cast<int>(rank), c, host_memory()));
    }
  });
  return all;
}
std::vector<Results> of_cards(int ranks) {
  std::vector<Results> all(cases(ranks).size(), Results(static_cast<size_t>(ranks)));
  run_threads(ranks, [&](World& world) {
    const auto rank = static_cast<size_t>(world.comm->rank());
    const auto backend = make_backend("cuda-emulated:f32", 1);
    const CardConnection cards = connect_cards(*world.comm, backend->memory());
    ASSERT_TRUE(cards.held) << cards.report;
    for (size_t i = 0; i < all.size(); ++i) {
      const Case c = cases(ranks)[i];
      all[i][rank] = outcome(c, *world.comm, filled(static_cast<int>(rank), c, backend->memory()));
    }
  });
  return all;
}

class Cards : public testing::TestWithParam<int> {};

TEST_P(Cards, CollectivesHaveTheBitsOfTheSimulator) {
  const int ranks = GetParam();
  const auto expected = of_simulator(ranks), got = of_cards(ranks);
  const auto all = cases(ranks);
  for (size_t i = 0; i < all.size(); ++i)
    for (size_t r = 0; r < static_cast<size_t>(ranks); ++r) EXPECT_TRUE(got[i][r] == expected[i][r]) << all[i].name << ", rank " << r;
}
INSTANTIATE_TEST_SUITE_P(Ranks, Cards, testing::Values(2, 3, 4, 8));

// Whole numbers, whose sums are exact in whatever order NCCL adds them.
TEST(CardsLibrary, NcclsOwnCollectivesGiveTheSums) {
  run_threads(3, [](World& world) {
    Communicator& comm = *world.comm;
    const auto backend = make_backend("cuda-emulated:f32", 1);
    const CardConnection cards = connect_cards(comm, backend->memory());
    comm.set_algorithm(Algorithm::library);
    const int N = comm.size(), rank = comm.rank();
    const auto number = [](int r, int64_t i) { return static_cast<double>((r * 13 + i * 7) % 31 - 15); };
    for (const DType type : {DType::f32, DType::f64, DType::i32, DType::bf16})
      for (const int64_t count : {5, 40000}) {  // the smaller one has parts without elements
        std::vector<double> own, sum, greatest;
        for (int64_t i = 0; i < count; ++i) {
          own.push_back(number(rank, i)), sum.push_back(0), greatest.push_back(-99);
          for (int r = 0; r < N; ++r) sum.back() += number(r, i), greatest.back() = std::max(greatest.back(), number(r, i));
        }
        const auto after = [&](const auto& start) {
          const Tensor x({count}, type, backend->memory());
          x.from_doubles(own);
          start(x).wait();
          return x.to_doubles();
        };
        EXPECT_EQ(after([&](const Tensor& x) { return comm.all_reduce(x); }), sum);
        EXPECT_EQ(after([&](const Tensor& x) { return comm.all_reduce(x, Reduce::maximum); }), greatest);
        const Range mine = part(count, rank, N);
        const auto scattered = after([&](const Tensor& x) { return comm.reduce_scatter(x); });
        for (int64_t i = mine.begin; i < mine.end; ++i) ASSERT_EQ(scattered[static_cast<size_t>(i)], sum[static_cast<size_t>(i)]);
        const auto gathered = after([&](const Tensor& x) { return comm.all_gather(x); });
        for (int r = 0; r < N; ++r)
          for (int64_t i = part(count, r, N).begin; i < part(count, r, N).end; ++i)
            ASSERT_EQ(gathered[static_cast<size_t>(i)], number(r, i));
        const auto spread = after([&](const Tensor& x) { return comm.broadcast(x, 1); });
        for (int64_t i = 0; i < count; ++i) ASSERT_EQ(spread[static_cast<size_t>(i)], number(1, i));
      }
  });
}

// Several under way at once, on the whole and on parts of the ranks; what the card computes meanwhile and afterwards keeps its order, and
// memory that its owner has let go of lasts until the end.
TEST(CardsOverlap, OperationsUnderWayKeepTheirOrderAndTheirMemory) {
  run_threads(4, [](World& world) {
    Communicator& comm = *world.comm;
    const auto backend = make_backend("cuda-emulated:f32", 1);
    const CardConnection cards = connect_cards(comm, backend->memory());
    const auto pairs = comm.split([](int r) { return r % 2; });
    const int64_t n = 3000;
    for (int turn = 0; turn < 5; ++turn) {
      Tensor a({n}, DType::f32, backend->memory()), b({n}, DType::f32, backend->memory()), c({n}, DType::f32, backend->memory());
      std::vector<double> ones(n, 1 + comm.rank()), twos(n, 2);
      a.from_doubles(ones), b.from_doubles(twos), c.from_doubles(ones);
      backend->flat().scale(a, 3, a, Write::overwrite);  // on the card when the sum begins
      const Pending whole = comm.all_reduce(a), half = pairs->all_reduce(c);
      { const Pending lost = comm.all_reduce(b); }
      b = Tensor();
      const Tensor other({n}, DType::f32, backend->memory());  // may lie where b lay
      backend->flat().scale(other, 1, other, Write::overwrite);
      half.wait(), whole.wait();
      backend->flat().scale(a, 0.5, a, Write::overwrite);  // after the sum
      EXPECT_EQ(a.to_doubles(), std::vector<double>(n, 15));
      EXPECT_EQ(c.to_doubles(), std::vector<double>(n, comm.rank() % 2 == 0 ? 4 : 6));
      EXPECT_EQ(other.to_doubles(), std::vector<double>(n));
    }
    EXPECT_GT(comm.traffic().bytes_sent, 5 * 3 * n);
  });
}

// Tensors of the host, messages and texts go the way they did.
TEST(CardsOverlap, TheHostsTensorsStayWithTheHosts) {
  run_threads(2, [](World& world) {
    Communicator& comm = *world.comm;
    const auto backend = make_backend("cuda-emulated:f32", 1);
    const CardConnection cards = connect_cards(comm, backend->memory());
    EXPECT_NE(cards.report.find("2 cards are connected by NCCL 2.28.9"), std::string::npos) << cards.report;
    const Tensor here({3}, DType::f64), there({3}, DType::f32, backend->memory());
    here.from_doubles(std::vector<double>{1, 2, 3}), there.from_doubles(std::vector<double>{4, 5, 6});
    comm.all_reduce(here).wait();
    EXPECT_EQ(here.to_doubles(), (std::vector<double>{2, 4, 6}));
    if (comm.rank() == 0) {
      comm.send(there, 1, 5).wait();
    } else {
      there.zero();
      comm.receive(there, 0, 5).wait();
    }
    EXPECT_EQ(there.to_doubles(), (std::vector<double>{4, 5, 6}));
    EXPECT_EQ(gather_texts(comm, comm.rank() == 0 ? "a" : "b"), (std::vector<std::string>{"a", "b"}));
  });
}

// Messages between neighbours, taken in another order than they were sent in, both ways at once; others go through the hosts.
TEST(CardsMessages, ComeByTheirTagsInOrder) {
  run_threads(3, [](World& world) {
    Communicator& comm = *world.comm;
    const auto backend = make_backend("cuda-emulated:f32", 1);
    const CardConnection cards = connect_cards(comm, backend->memory());
    comm.link_neighbours();
    const int rank = comm.rank();
    const auto tensor = [&](int64_t count, double x) {
      const Tensor t({count}, DType::f32, backend->memory());
      t.from_doubles(std::vector<double>(static_cast<size_t>(count), x));
      return t;
    };
    const auto expect = [&](const Tensor& t, double x) {
      EXPECT_EQ(t.to_doubles(), std::vector<double>(static_cast<size_t>(t.count()), x)) << "rank " << rank;
    };
    for (int turn = 0; turn < 3; ++turn)
      for (int other = 0; other < 3; ++other) {
        if (other == rank) continue;
        const double own = 10 * rank + other, theirs = 10 * other + rank;
        const Tensor given[] = {tensor(100, own + 0.1), tensor(20000, own + 0.2), tensor(100, own + 0.3)};
        std::vector<Pending> sent{comm.send(given[0], other, 5), comm.send(given[1], other, 6), comm.send(given[2], other, 5)};
        const Tensor first = tensor(100, 0), large = tensor(20000, 0), last = tensor(100, 0);
        const Pending coming = comm.receive(large, other, 6);
        coming.wait();
        backend->flat().scale(large, 2, large, Write::overwrite);
        const Pending early = comm.receive(first, other, 5);
        const Pending late = comm.receive(last, other, 5);
        late.wait(), early.wait();
        for (const Pending& p : sent) p.wait();
        expect(first, static_cast<float>(theirs + 0.1)), expect(last, static_cast<float>(theirs + 0.3));
        expect(large, 2 * static_cast<float>(theirs + 0.2));
        while (!early.done() || !late.done()) {
        }
      }
    EXPECT_GE(comm.traffic().bytes_sent, 3 * 4 * 20200);
  });
}

// Who cannot be connected is told, and everything goes through the hosts.
TEST(CardsApart, RanksThatShareACardOrHaveNoneGoThroughTheHosts) {
  for (const bool shared : {true, false})
    run_threads(2, [&](World& world) {
      Communicator& comm = *world.comm;
      if (shared) emulated_cuda::card_of_thread() = 0;
      const auto backend = make_backend(shared || comm.rank() == 0 ? "cuda-emulated:f32" : "cpu:f32", 1);
      const CardConnection cards = connect_cards(comm, backend->memory());
      EXPECT_FALSE(cards.held);
      EXPECT_NE(cards.report.find(shared ? "ranks 0 and 1 on host0 share a card" : "1 of 2 ranks compute without a card"),
                std::string::npos)
          << cards.report;
      const Tensor x({3}, DType::f32, backend->memory());
      x.from_doubles(std::vector<double>{1, 2, 3});
      comm.all_reduce(x).wait();
      EXPECT_EQ(x.to_doubles(), (std::vector<double>{2, 4, 6}));
    });
}

}  // namespace
}  // namespace starling
