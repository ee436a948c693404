// The accumulation buffer of a shared embedding's gradient, as Cavdar et al. 2019 (Dell EMC) measured it: 82 times smaller at 64 workers
// once the gradient is exchanged as the dense matrix it is. Here the closed form N (1 + T/V) (ratio of gathered rows to the table; with the
// 8-byte index of each row a little more), the same exchange really made among up to 8 ranks of the simulator (real memory, real bytes),
// and one rank's buffer really filled and added up for more. Usage: bench_embedding_accumulation [V=33945] [D=1024] [T=9718]
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "sim/simulate.h"
#include "strategies/embedding_exchange.h"

namespace starling {
namespace {

double now() { return WallClock().seconds(); }

TokenGradients token_rows(int64_t tokens, int64_t V, int64_t D, int seed) {
  TokenGradients rows;
  for (int64_t i = 0; i < tokens; ++i) rows.tokens.push_back(static_cast<int32_t>((i * 7919 + seed) % V));
  rows.rows.push_back(Tensor({tokens, D}, DType::f32));
  std::fill_n(rows.rows.back().data<float>(), tokens * D, 1e-3f);
  return rows;
}

void exchange(int N, int64_t V, int64_t D, int64_t T) {
  const auto flat = make_host_flat_ops(1);
  Scenario scenario;
  scenario.ranks = N;
  double buffer = 0, sparse_bytes = 0, dense_bytes = 0, sparse_s = 0, dense_s = 0;
  simulate(scenario, [&](World& world) {
    Communicator& comm = *world.comm;
    const Tensor gradient({V, D}, DType::f32);
    std::fill_n(gradient.data<float>(), V * D, 1.0f);
    const TokenGradients tokens = token_rows(T, V, D, comm.rank());
    const Traffic before = comm.traffic();
    const double start = world.clock->seconds();
    AssumedSparseExchange rows(comm, *flat, gradient, tokens, true, std::vector<int64_t>(static_cast<size_t>(N), V + T));
    const double bytes = static_cast<double>(rows.buffer_bytes());
    rows.wait();
    rows.add_up();
    const Traffic middle = comm.traffic();
    const double between = world.clock->seconds();
    // The sum over all elements is known: N (V + 1e-3 T) D.
    double sum = 0;
    for (int64_t i = 0; i < V * D; ++i) sum += gradient.data<float>()[i];
    const double expected = N * (static_cast<double>(V) + 1e-3 * static_cast<double>(T)) * static_cast<double>(D);
    CHECK(std::abs(sum / expected - 1) < 1e-5, "sum {} instead of {}", sum, expected);
    comm.all_reduce(gradient).wait();
    if (comm.rank() != 0) return;
    buffer = bytes, sparse_bytes = static_cast<double>(middle.bytes_received - before.bytes_received);
    dense_bytes = static_cast<double>(comm.traffic().bytes_received - middle.bytes_received);
    sparse_s = between - start, dense_s = world.clock->seconds() - between;
  });
  const double table = static_cast<double>(V * D * 4);
  fmt::print("{:7} {:11.1f} {:16.1f} {:9.1f} {:13.1f} {:12.1f} {:16.2f} {:13.2f}   exchanged among {} ranks\n", N,
             static_cast<double>(N) * (1 + static_cast<double>(T) / static_cast<double>(V)), buffer / 1e6, buffer / table,
             sparse_bytes / 1e6, dense_bytes / 1e6, sparse_s, dense_s, N);
}

// One rank's part of the work: the buffer that it would have gathered, added up into the table.
void one_rank(int N, int64_t V, int64_t D, int64_t T) {
  const double bytes = assumed_sparse_buffer_bytes(V + T, D, 4, N), table = static_cast<double>(V * D * 4);
  const double ratio = static_cast<double>(N) * (1 + static_cast<double>(T) / static_cast<double>(V));
  const int64_t free_bytes = static_cast<int64_t>(sysconf(_SC_AVPHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  if (bytes > 0.8 * static_cast<double>(free_bytes)) {
    fmt::print("{:7} {:11.1f} {:16.1f} {:9.1f}   (formula only: not enough memory free)\n", N, ratio, bytes / 1e6, bytes / table);
    return;
  }
  const int64_t width = D + 2;
  const Tensor all({static_cast<int64_t>(N) * (V + T), width}, DType::f32);
  for (int64_t r = 0; r < all.rows(); ++r) {
    float* row = all.data<float>() + r * width;
    const int64_t within = r % (V + T);
    row[0] = static_cast<float>(within < V ? within : (within * 7919) % V);
    std::fill_n(row + 2, D, 1.0f);
  }
  const Tensor gradient({V, D}, DType::f32);
  const double start = now();
  for (int64_t r = 0; r < all.rows(); ++r) {
    const float* row = all.data<float>() + r * width;
    float* to = gradient.data<float>() + static_cast<int64_t>(row[0]) * D;
    for (int64_t i = 0; i < D; ++i) to[i] += row[2 + i];
  }
  const double sparse_s = now() - start;
  fmt::print("{:7} {:11.1f} {:16.1f} {:9.1f} {:48} one rank's buffer, added up in {:.2f} s\n", N, ratio,
             static_cast<double>(all.bytes()) / 1e6, static_cast<double>(all.bytes()) / table, "", sparse_s);
}

}  // namespace
}  // namespace starling

int main(int argc, char** argv) {
  using namespace starling;
  const int64_t V = argc > 1 ? std::atoll(argv[1]) : 33945, D = argc > 2 ? std::atoll(argv[2]) : 1024,
                T = argc > 3 ? std::atoll(argv[3]) : 9718;
  fmt::print(
      "shared embedding of {} rows of {} (f32, {:.1f} MB), {} token rows a rank; times are virtual (10 Gbit/s, rates of a model)\n\n", V, D,
      static_cast<double>(V * D * 4) / 1e6, T);
  fmt::print("workers  N (1 + T/V)  gathered MB   ratio  received MB  dense recv. MB  gather, s (sim.)  dense, s (sim.)\n");
  for (const int N : {2, 4, 8}) exchange(N, V, D, T);
  for (const int N : {16, 32, 64}) one_rank(N, V, D, T);
  return 0;
}
