// Every collective by every algorithm, against closed forms that each rank computes for itself.
#include <cstring>

#include "tests/mpi/fixture.h"

namespace starling {
namespace {

constexpr int64_t kSizes[] = {1, 15, 17, 1000, 100003};
constexpr DType kTypes[] = {DType::f32, DType::f64, DType::i32};

class Collectives : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { test_comm().set_algorithm(from_word<Algorithm>(GetParam())); }
  void TearDown() override { test_comm().set_algorithm(Algorithm::automatic); }

  static double sum(int64_t i) {
    double s = 0;
    for (int r = 0; r < test_comm().size(); ++r) s += element(r, i);
    return s;
  }
  static double maximum(int64_t i) {
    double m = element(0, i);
    for (int r = 1; r < test_comm().size(); ++r) m = std::max(m, element(r, i));
    return m;
  }
  static Tensor own(int64_t count, DType type) {
    return filled(count, type, [](int64_t i) { return element(test_comm().rank(), i); });
  }
  template <class Body>
  static void each(const Body& body) {
    for (const DType type : kTypes)
      for (const int64_t n : kSizes) body(n, type, fmt::format("{} {} of {}", GetParam(), n, name_of(type)));
  }
};

TEST_P(Collectives, AllReduce) {
  each([](int64_t n, DType type, const std::string& where) {
    const Tensor x = own(n, type), y = own(n, type);
    test_comm().all_reduce(x).wait();
    test_comm().all_reduce(y, Reduce::maximum).wait();
    expect_elements(x, {0, n}, sum, where);
    expect_elements(y, {0, n}, maximum, where);
  });
}

TEST_P(Collectives, ReduceScatter) {
  each([](int64_t n, DType type, const std::string& where) {
    const Tensor x = own(n, type);
    test_comm().reduce_scatter(x).wait();
    expect_elements(x, part(n, test_comm().rank(), test_comm().size()), sum, where);
  });
}

TEST_P(Collectives, AllGather) {
  each([](int64_t n, DType type, const std::string& where) {
    const Range mine = part(n, test_comm().rank(), test_comm().size());
    const Tensor x = filled(n, type, [&](int64_t i) { return mine.begin <= i && i < mine.end ? element(0, i) : -99; });
    test_comm().all_gather(x).wait();
    expect_elements(
        x, {0, n}, [](int64_t i) { return element(0, i); }, where);
  });
}

TEST_P(Collectives, Broadcast) {
  each([](int64_t n, DType type, const std::string& where) {
    for (int root = 0; root < test_comm().size(); ++root) {
      const Tensor x = own(n, type);
      test_comm().broadcast(x, root).wait();
      expect_elements(
          x, {0, n}, [&](int64_t i) { return element(root, i); }, where);
    }
  });
}

TEST_P(Collectives, ManyAtOnceInAnyOrderOfWaiting) {
  std::vector<Tensor> tensors;
  std::vector<Pending> pending;
  for (int k = 0; k < 40; ++k) {
    const int64_t n = kSizes[k % 5] + k;
    tensors.push_back(filled(n, DType::f32, [&](int64_t i) { return element(test_comm().rank(), i + k); }));
    pending.push_back(test_comm().all_reduce(tensors.back()));
  }
  for (size_t k = 0; k < 40; ++k) {  // another order on every rank
    const size_t at = (k * 7 + static_cast<size_t>(test_comm().rank()) * 3) % 40;
    pending[at].wait();
    EXPECT_TRUE(pending[at].done());
    expect_elements(
        tensors[at], {0, tensors[at].count()}, [&](int64_t i) { return sum(i + static_cast<int64_t>(at)); }, fmt::format("{}", at));
  }
}

INSTANTIATE_TEST_SUITE_P(By, Collectives, testing::Values("auto", "ring", "tree", "halving-doubling", "library"), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(Bf16, SumIsCloseAndEqualEverywhere) {
  Communicator& comm = test_comm();
  const auto value = [](int r, int64_t i) { return 1e-3 * element(r, i) + 1e-5 * static_cast<double>(i % 977); };
  for (const int64_t n : kSizes) {
    const Tensor x = filled(n, DType::f32, [&](int64_t i) { return value(comm.rank(), i); });
    comm.all_reduce_bf16(x).wait();
    const std::vector<double> got = x.to_doubles();
    for (int64_t i = 0; i < n; ++i) {
      double sum = 0, magnitude = 0;  // rounded twice, by 1/256 at most each time
      for (int r = 0; r < comm.size(); ++r) sum += value(r, i), magnitude += std::abs(value(r, i));
      ASSERT_NEAR(got[static_cast<size_t>(i)], sum, magnitude / 127 + 1e-12) << "element " << i << " of " << n;
    }
    const std::string bytes(reinterpret_cast<const char*>(x.raw()), static_cast<size_t>(x.bytes()));
    for (const std::string& other : gather_texts(comm, bytes)) EXPECT_TRUE(other == bytes) << n << " elements";
  }
}

TEST(Varying, PartsOfAnySize) {
  Communicator& comm = test_comm();
  std::vector<int64_t> offsets{0};
  for (int r = 0; r < comm.size(); ++r) offsets.push_back(offsets.back() + (r == 1 ? 0 : 1000 * r + 3));
  const auto own = static_cast<size_t>(comm.rank());
  const Tensor x =
      filled(offsets.back(), DType::f32, [&](int64_t i) { return offsets[own] <= i && i < offsets[own + 1] ? element(0, i) : -99; });
  comm.all_gather_varying(x, offsets).wait();
  expect_elements(
      x, {0, x.count()}, [](int64_t i) { return element(0, i); }, "varying");
}

// A barrier ends nowhere before it has begun everywhere.
TEST(Barrier, WaitsForAll) {
  Communicator& comm = test_comm();
  for (int late = 0; late < comm.size(); ++late) {
    comm.barrier().wait();
    const int64_t begin = test_world().clock->now_ns();
    if (comm.rank() == late) std::this_thread::sleep_for(std::chrono::milliseconds(150));
    comm.barrier().wait();
    EXPECT_GT(test_world().clock->now_ns() - begin, 100'000'000) << "rank " << late << " was late";
  }
}

TEST(Texts, ReachEveryRank) {
  Communicator& comm = test_comm();
  for (int root = 0; root < comm.size(); ++root)
    for (const size_t length : {0u, 1u, 3u, 70000u}) {
      const std::string text(length, static_cast<char>('a' + root));
      EXPECT_EQ(broadcast_text(comm, comm.rank() == root ? text : "other", root), text);
    }
  const auto of = [](int r) { return std::string(static_cast<size_t>(r * 5), static_cast<char>('a' + r)); };
  const std::vector<std::string> all = gather_texts(comm, of(comm.rank()));
  for (int r = 0; r < comm.size(); ++r) EXPECT_EQ(all[static_cast<size_t>(r)], of(r));
}

}  // namespace
}  // namespace starling
