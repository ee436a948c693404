// Schedules without a world: executed for all ranks at once by the smallest executor that can, and counted against closed forms.
#include "comm/algorithms/algorithms.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <numeric>

namespace starling {
namespace {

using Maker = std::function<Schedule(const CollectiveShape&)>;

// Runs every rank as far as it can until nothing changes. A round's messages are all sent before any is received.
void execute(const std::vector<Schedule>& schedules, const std::vector<Tensor>& tensors) {
  const size_t N = schedules.size();
  std::map<std::pair<size_t, int>, std::deque<std::vector<std::byte>>> wires;
  std::vector<Tensor> scratch;
  for (const Schedule& s : schedules) scratch.emplace_back(Shape{s.scratch_bytes}, DType::i8);
  std::vector<size_t> round(N), received(N);
  std::vector<bool> sent(N);
  const auto at = [&](size_t r, Area area, int64_t offset) { return (area == Area::data ? tensors[r] : scratch[r]).raw() + offset; };
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t r = 0; r < N; ++r) {
      while (round[r] < schedules[r].rounds.size()) {
        const auto& now = schedules[r].rounds[round[r]];
        const auto local = [&](const auto& list) {
          for (const auto& l : list) apply(l, tensors[r].dtype(), tensors[r].raw(), scratch[r].raw());
        };
        if (!sent[r]) {
          local(now.before);
          for (const auto& s : now.sends)
            if (s.bytes > 0) wires[{r, s.to}].emplace_back(at(r, s.area, s.offset), at(r, s.area, s.offset) + s.bytes);
          sent[r] = moved = true;
        }
        for (; received[r] < now.receives.size(); ++received[r]) {
          const auto& receive = now.receives[received[r]];
          if (receive.bytes == 0) continue;
          auto& wire = wires[{static_cast<size_t>(receive.from), static_cast<int>(r)}];
          if (wire.empty()) break;
          ASSERT_EQ(static_cast<int64_t>(wire.front().size()), receive.bytes);
          std::memcpy(at(r, receive.area, receive.offset), wire.front().data(), wire.front().size());
          wire.pop_front();
        }
        if (received[r] < now.receives.size()) break;
        local(now.after);
        ++round[r];
        received[r] = 0;
        sent[r] = false;
        moved = true;
      }
    }
  }
  for (size_t r = 0; r < N; ++r) ASSERT_EQ(round[r], schedules[r].rounds.size()) << "rank " << r << " waits for ever";
  for (const auto& [pair, wire] : wires)
    ASSERT_TRUE(wire.empty()) << "message from " << pair.first << " to " << pair.second << " not received";
}

std::vector<Schedule> all(const Maker& make, int N, int64_t count, DType type = DType::f32) {
  std::vector<Schedule> schedules;
  for (int r = 0; r < N; ++r) schedules.push_back(make({r, N, count, type}));
  return schedules;
}

double value(int rank, int64_t i, DType type) {
  if (type == DType::i32) return static_cast<double>((rank * 7919 + i * 104729) % 2001 - 1000);
  return std::sin(0.37 * static_cast<double>(rank + 1) + 0.11 * static_cast<double>(i % 9973));
}

std::vector<Tensor> inputs(int N, int64_t count, DType type) {
  std::vector<Tensor> tensors;
  for (int r = 0; r < N; ++r) {
    tensors.emplace_back(Shape{count}, type);
    std::vector<double> values(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) values[static_cast<size_t>(i)] = value(r, i, type);
    tensors.back().from_doubles(values);
  }
  return tensors;
}

// The sum or maximum over ranks in double, and how far a sum in the type may be from it.
struct Expected {
  double value, tolerance;
};
Expected expected(int N, int64_t i, DType type, Reduce reduce) {
  double sum = 0, magnitude = 0, maximum = -1e300;
  for (int r = 0; r < N; ++r) {
    const double v = type == DType::f32 ? static_cast<double>(static_cast<float>(value(r, i, type))) : value(r, i, type);
    sum += v;
    magnitude += std::abs(v);
    maximum = std::max(maximum, v);
  }
  if (reduce == Reduce::maximum) return {maximum, 0};
  const double epsilon = type == DType::i32 ? 0 : type == DType::f32 ? 0x1p-24 : 0x1p-53;
  return {sum, epsilon * N * magnitude};
}

const std::vector<int>& sizes() {
  static const std::vector<int> kSizes = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 32, 64};
  return kSizes;
}
std::vector<int64_t> counts(int N) {
  std::vector<int64_t> list = {1, 15, 16, 17, 1000};
  if (N == 3 || N == 8) list.push_back(100003);
  return list;
}

struct AllReduce {
  const char* name;
  std::function<Schedule(const CollectiveShape&, Reduce)> make;
};
class AllReduceTest : public testing::TestWithParam<AllReduce> {};

TEST_P(AllReduceTest, SumsAndMaximaOnEveryRankBitForBit) {
  for (const int N : sizes())
    for (const int64_t count : counts(N))
      for (const DType type : {DType::f32, DType::f64, DType::i32})
        for (const Reduce reduce : {Reduce::sum, Reduce::maximum}) {
          if (N > 17 && (type == DType::f64 || count < 17)) continue;
          const auto tensors = inputs(N, count, type);
          execute(all([&](const auto& s) { return GetParam().make(s, reduce); }, N, count, type), tensors);
          if (HasFatalFailure()) return;
          const auto result = tensors[0].to_doubles();
          for (int64_t i = 0; i < count; ++i) {
            const Expected e = expected(N, i, type, reduce);
            ASSERT_NEAR(result[static_cast<size_t>(i)], e.value, e.tolerance) << "N " << N << " count " << count << " element " << i;
          }
          for (int r = 1; r < N; ++r)
            ASSERT_EQ(std::memcmp(tensors[0].raw(), tensors[static_cast<size_t>(r)].raw(), static_cast<size_t>(tensors[0].bytes())), 0)
                << "rank " << r << " of " << N << ", " << count << " elements";
        }
}

INSTANTIATE_TEST_SUITE_P(Algorithms, AllReduceTest,
                         testing::Values(AllReduce{"ring", ring_all_reduce}, AllReduce{"tree", tree_all_reduce},
                                         AllReduce{"halving_doubling", halving_doubling_all_reduce}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Algorithms, ReduceScatterLeavesEachOwnersPart) {
  for (const auto& make : {ring_reduce_scatter, direct_reduce_scatter})
    for (const int N : sizes())
      for (const int64_t count : counts(N)) {
        const auto tensors = inputs(N, count, DType::f32);
        execute(all([&](const auto& s) { return make(s, Reduce::sum); }, N, count), tensors);
        for (int r = 0; r < N; ++r) {
          const Range own = part(count, r, N);
          for (int64_t i = own.begin; i < own.end; ++i) {
            const Expected e = expected(N, i, DType::f32, Reduce::sum);
            ASSERT_NEAR(tensors[static_cast<size_t>(r)].data<float>()[i], e.value, e.tolerance) << "N " << N << " rank " << r;
          }
        }
      }
}

void expect_gathered(const std::vector<Tensor>& tensors, const std::function<int(int64_t)>& owner, int64_t count) {
  for (const Tensor& t : tensors)
    for (int64_t i = 0; i < count; ++i) ASSERT_EQ(t.data<float>()[i], static_cast<float>(value(owner(i), i, DType::f32)));
}

TEST(Algorithms, AllGatherBringsEveryPart) {
  for (const auto& make : {ring_all_gather, direct_all_gather})
    for (const int N : sizes())
      for (const int64_t count : counts(N)) {
        const auto tensors = inputs(N, count, DType::f32);
        execute(all(make, N, count), tensors);
        std::vector<int> owners(static_cast<size_t>(count));
        for (int r = 0; r < N; ++r)
          for (int64_t i = part(count, r, N).begin; i < part(count, r, N).end; ++i) owners[static_cast<size_t>(i)] = r;
        expect_gathered(
            tensors, [&](int64_t i) { return owners[static_cast<size_t>(i)]; }, count);
      }
}

TEST(Algorithms, GatherOfVaryingParts) {
  for (const int N : sizes()) {
    std::vector<int64_t> offsets{0};
    for (int r = 0; r < N; ++r) offsets.push_back(offsets.back() + (r * 37) % 11);  // some are empty
    const int64_t count = offsets.back();
    const auto tensors = inputs(N, count, DType::f32);
    const auto schedules = all([&](const auto& s) { return gather_varying(s, offsets); }, N, count);
    for (int r = 0; r < N; ++r)
      EXPECT_EQ(schedules[static_cast<size_t>(r)].bytes_sent(),
                (N - 1) * 4 * (offsets[static_cast<size_t>(r) + 1] - offsets[static_cast<size_t>(r)]));
    execute(schedules, tensors);
    expect_gathered(
        tensors, [&](int64_t i) { return static_cast<int>(std::upper_bound(offsets.begin(), offsets.end(), i) - offsets.begin()) - 1; },
        count);
  }
}

// A few ranges of odd lengths, of ranks that do not come in order; some ranks have nothing, others several.
std::vector<Owned> scattered(int N, int64_t count, int64_t seed) {
  std::vector<Owned> all;
  for (int64_t at = 0, i = 0; at < count; ++i) {
    const int64_t end = std::min(count, at + 1 + (seed + 7 * i) % 13);
    all.push_back({{at, end}, static_cast<int>((seed * 3 + i * i) % N)});
    at = end;
  }
  return all;
}

TEST(Algorithms, ElementsChangeHandsAndOwnersGiveThemToAll) {
  for (const int N : sizes())
    for (const int64_t count : {1, 17, 200}) {
      const std::vector<Owned> from = scattered(N, count, 5), to = scattered(N, count, 11);
      const auto owner = [](const std::vector<Owned>& all, int64_t i) {
        return std::find_if(all.begin(), all.end(), [&](const Owned& o) { return o.range.begin <= i && i < o.range.end; })->rank;
      };
      auto tensors = inputs(N, count, DType::f32);
      const auto handed = all([&](const auto& s) { return hand_over(s, from, to); }, N, count);
      execute(handed, tensors);
      int64_t sent = 0, moved = 0;
      for (const Schedule& s : handed) sent += s.bytes_sent();
      for (int64_t i = 0; i < count; ++i) {
        moved += owner(from, i) != owner(to, i);
        ASSERT_EQ(tensors[static_cast<size_t>(owner(to, i))].data<float>()[i], static_cast<float>(value(owner(from, i), i, DType::f32)));
      }
      EXPECT_EQ(sent, 4 * moved);
      tensors = inputs(N, count, DType::f32);
      const int receivers = (N + 1) / 2;
      execute(all([&](const auto& s) { return gather_owned(s, to, receivers); }, N, count), tensors);
      tensors.resize(static_cast<size_t>(receivers));
      expect_gathered(
          tensors, [&](int64_t i) { return owner(to, i); }, count);
    }
}

TEST(Algorithms, BroadcastFromEveryRoot) {
  for (const int N : sizes())
    for (int root = 0; root<N; root += N> 17 ? 7 : 1) {
      const auto tensors = inputs(N, 33, DType::f32);
      const auto schedules = all([&](const auto& s) { return tree_broadcast(s, root); }, N, 33);
      int64_t sent = 0;
      for (const Schedule& s : schedules) {
        sent += s.bytes_sent();
        EXPECT_LE(s.rounds.size(), static_cast<size_t>(std::ceil(std::log2(N))));
      }
      EXPECT_EQ(sent, (N - 1) * 33 * 4);
      execute(schedules, tensors);
      expect_gathered(
          tensors, [&](int64_t) { return root; }, 33);
    }
}

TEST(Algorithms, Bf16SumsAreRoundedOnceAndEqualOnAllRanks) {
  for (const int N : sizes())
    for (const int64_t count : counts(N)) {
      if (N == 1) continue;
      const auto tensors = inputs(N, count, DType::f32);
      execute(all(bf16_all_reduce, N, count), tensors);
      for (int64_t i = 0; i < count; ++i) {
        double sum = 0, magnitude = 0;
        for (int r = 0; r < N; ++r) {
          sum += value(r, i, DType::f32);
          magnitude += std::abs(value(r, i, DType::f32));
        }
        const float got = tensors[0].data<float>()[i];
        ASSERT_NEAR(got, sum, 0x1p-8 * magnitude + 0x1p-8 * std::abs(sum));
        ASSERT_EQ(got, widen(round_to_bf16(got)));
      }
      for (const Tensor& t : tensors) ASSERT_EQ(std::memcmp(t.raw(), tensors[0].raw(), static_cast<size_t>(t.bytes())), 0);
    }
}

TEST(Algorithms, ServersSumThePushAndGiveItBack) {
  for (const int N : {1, 2, 3, 5, 8})
    for (const bool shared : {false, true})
      for (const bool bf16 : {false, true})
        for (const int S : {1, 2, 3}) {
          const int workers = shared ? N : N - S;
          if (workers < 1 || S > N) continue;
          std::vector<int> servers;
          for (int i = 0; i < S; ++i) servers.push_back(shared ? i * N / S : workers + i);
          const int64_t count = 1000;
          const auto tensors = inputs(N, count, DType::f32);
          const auto shape = [&](const CollectiveShape& s) { return ServerShape{s.rank, s.size, s.count, s.type, workers, servers, bf16}; };
          execute(all([&](const auto& s) { return server_push(shape(s)); }, N, count), tensors);
          for (int i = 0; i < S; ++i)
            for (int64_t j = part(count, i, S).begin; j < part(count, i, S).end; ++j) {
              const Expected e = expected(workers, j, DType::f32, Reduce::sum);
              ASSERT_NEAR(tensors[static_cast<size_t>(servers[static_cast<size_t>(i)])].data<float>()[j], e.value,
                          bf16 ? 0x1p-8 * workers : e.tolerance)
                  << "N " << N << " servers " << S << " shared " << shared;
            }
          execute(all([&](const auto& s) { return server_pull(shape(s)); }, N, count), tensors);
          for (int w = 0; w < workers; ++w)
            for (int i = 0; i < S; ++i)
              for (int64_t j = part(count, i, S).begin; j < part(count, i, S).end; ++j)
                ASSERT_EQ(tensors[static_cast<size_t>(w)].data<float>()[j],
                          tensors[static_cast<size_t>(servers[static_cast<size_t>(i)])].data<float>()[j]);
        }
}

// One server of its own receives and sends 2 N M in a step, each of S servers 2 N M / S, a worker M each way.
TEST(Algorithms, BytesOfServersAreTheClosedForms) {
  const int64_t count = 1 << 20;
  const double M = 4.0 * count;
  for (int N = 2; N <= 64; N += N < 17 ? 1 : 5)
    for (const int S : {1, 2, 8}) {
      std::vector<int> servers;
      for (int i = 0; i < S; ++i) servers.push_back(N + i);
      for (const int rank : {0, N - 1, N, N + S - 1}) {
        const ServerShape shape{rank, N + S, count, DType::f32, N, servers, false};
        const Schedule push = server_push(shape), pull = server_pull(shape);
        const double bytes = static_cast<double>(push.bytes_sent() + push.bytes_received() + pull.bytes_sent() + pull.bytes_received());
        EXPECT_NEAR(bytes / (rank < N ? 2 * M : 2 * N * M / S), 1, 0.01) << N << " workers, " << S << " servers, rank " << rank;
      }
    }
}

// What the closed forms of algorithms.h say, per rank, for M bytes large against the blocks of part().
TEST(Algorithms, BytesAndRoundsAreTheClosedForms) {
  const int64_t count = 1 << 20;
  const double M = 4.0 * count;
  for (int N = 2; N <= 64; N += N < 17 ? 1 : 5) {
    const double share = static_cast<double>(N - 1) / N;
    const auto check = [&](const Maker& make, double bytes, size_t rounds, const char* name) {
      for (const Schedule& s : all(make, N, count)) {
        EXPECT_NEAR(static_cast<double>(s.bytes_sent()), bytes, 0.01 * bytes) << name << " N " << N;
        EXPECT_NEAR(static_cast<double>(s.bytes_received()), bytes, 0.01 * bytes) << name << " N " << N;
        EXPECT_EQ(s.rounds.size(), rounds) << name << " N " << N;
      }
    };
    const auto n = static_cast<size_t>(N);
    check([](const auto& s) { return ring_all_reduce(s, Reduce::sum); }, 2 * share * M, 2 * (n - 1), "ring");
    check([](const auto& s) { return ring_reduce_scatter(s, Reduce::sum); }, share * M, n - 1, "ring reduce-scatter");
    check(ring_all_gather, share * M, n - 1, "ring all-gather");
    check([](const auto& s) { return direct_reduce_scatter(s, Reduce::sum); }, share * M, 1, "direct reduce-scatter");
    check(direct_all_gather, share * M, 1, "direct all-gather");
    check(bf16_all_reduce, share * M, 2, "bf16");

    int p = 1, log_p = 0;
    for (; 2 * p <= N; p *= 2) ++log_p;
    for (int r = 0; r < N; ++r) {
      const Schedule s = halving_doubling_all_reduce({r, N, count, DType::f32}, Reduce::sum);
      const double folds = r >= p || r + p < N ? M : 0, bytes = (r >= p ? 0 : 2.0 * (p - 1) / p * M) + folds;
      EXPECT_NEAR(static_cast<double>(s.bytes_sent()), bytes, 0.01 * bytes) << "N " << N << " rank " << r;
      EXPECT_EQ(s.rounds.size(), static_cast<size_t>((r >= p ? 0 : 2 * log_p) + (folds > 0 ? 2 : 0)));
      EXPECT_EQ(s.messages_sent(), (r >= p ? 1 : 2 * log_p + (folds > 0 ? 1 : 0)));
    }
    int64_t sent = 0;
    const auto up = static_cast<size_t>(std::ceil(std::log2(N)));
    for (const Schedule& s : all([](const auto& shape) { return tree_all_reduce(shape, Reduce::sum); }, N, count)) {
      sent += s.bytes_sent();
      EXPECT_LE(s.bytes_sent(), static_cast<int64_t>(up) * 4 * count);
      EXPECT_LE(s.rounds.size(), 2 * up);
    }
    EXPECT_EQ(sent, 2 * (N - 1) * 4 * count);
    for (int r = 0; r < N; ++r) EXPECT_EQ(dissemination_barrier(r, N).rounds.size(), up);
  }
}

TEST(Algorithms, EverySendHasItsReceive) {
  const std::vector<Maker> makers = {[](const auto& s) { return ring_all_reduce(s, Reduce::sum); },
                                     [](const auto& s) { return tree_all_reduce(s, Reduce::maximum); },
                                     [](const auto& s) { return halving_doubling_all_reduce(s, Reduce::sum); },
                                     [](const auto& s) { return direct_reduce_scatter(s, Reduce::sum); },
                                     direct_all_gather,
                                     bf16_all_reduce,
                                     [](const auto& s) { return tree_broadcast(s, s.size / 2); },
                                     [](const auto& s) { return dissemination_barrier(s.rank, s.size); }};
  for (const Maker& make : makers)
    for (const int N : sizes())
      for (const int64_t count : counts(N)) {
        std::map<std::pair<int, int>, std::vector<int64_t>> sent, awaited;
        for (int r = 0; r < N; ++r)
          for (const auto& round : make({r, N, count, DType::f32}).rounds) {
            for (const auto& s : round.sends) {
              EXPECT_NE(s.to, r);
              if (s.bytes > 0) sent[{r, s.to}].push_back(s.bytes);
            }
            for (const auto& receive : round.receives)
              if (receive.bytes > 0) awaited[{receive.from, r}].push_back(receive.bytes);
          }
        ASSERT_EQ(sent, awaited) << "N " << N << " count " << count;
      }
}

TEST(Part, CoversInOrderAtBlocksOfSixteen) {
  for (const int64_t n : {int64_t{0}, int64_t{1}, int64_t{15}, int64_t{16}, int64_t{17}, int64_t{1000}, int64_t{100003}, int64_t{3} << 31})
    for (int N = 1; N <= 70; ++N) {
      int64_t at = 0;
      for (int k = 0; k < N; ++k) {
        const Range r = part(n, k, N);
        ASSERT_EQ(r.begin, at);
        ASSERT_GE(r.end, r.begin);
        ASSERT_TRUE(r.end % 16 == 0 || r.end == n);
        ASSERT_LE(std::abs(static_cast<double>(r.count()) - static_cast<double>(n) / N), 32.0);
        at = r.end;
      }
      ASSERT_EQ(at, n);
    }
  EXPECT_THROW(part(10, 3, 3), InternalError);
}

}  // namespace
}  // namespace starling
