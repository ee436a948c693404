// The cost of compression beside the memory's bandwidth, measured in the same run: GB of gradient (4 bytes an element) a second.
//   bench_compression [elements, default 60 million] [threads, default all] [rounds, default 5] [only rows with this in their names]
// Each figure is the fastest of the rounds; the operations take turns, so that a busy machine disturbs all alike.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>

#include "backend/backend.h"
#include "base/random.h"

namespace starling {
namespace {

constexpr int kRanks = 4;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Normally distributed with a scale that varies between rows, as a gradient's does.
void fill(const Tensor& x, uint64_t seed) {
  Random random(seed, 1);
  std::vector<float> noise(1 << 16);
  for (float& v : noise) v = static_cast<float>(random.normal());
  for (int64_t i = 0; i < x.count(); ++i)
    x.data<float>()[i] = noise[static_cast<size_t>(i % 65521)] * (0.5f + static_cast<float>(i / 512 % 7));
}

struct Row {
  std::string name;
  double touched;  // bytes of memory an element, read and written
  std::function<void()> prepare, run;
  double best = 1e9;
};

struct Variant {
  const char* name;
  Coding coding;
  bool by_tensor;
  LocalPart local;
};

}  // namespace

void measure(int64_t n, int threads, int rounds, const std::string& only) {
  const auto backend = make_backend("cpu:f32", threads);
  const Tensor gradient({n}, DType::f32), x({n}, DType::f32), residual({n}, DType::f32), sum({n}, DType::f32);
  const Tensor number({1}, DType::f64);
  fill(gradient, 1), fill(residual, 2);
  std::vector<Range> tensors;  // of a million elements
  for (int64_t at = 0; at < n; at += 1 << 20) tensors.push_back({at, std::min<int64_t>(n, at + (1 << 20))});
  const auto restore = [&] { backend->moving_average(gradient, x, 0); };
  std::vector<Row> rows;
  rows.push_back({"read (sum of squares)", 4, [] {}, [&] { number.zero(), backend->sum_of_squares(gradient, number); }});
  rows.push_back({"read two, write one (moving average)", 12, [] {}, [&] { backend->moving_average(gradient, sum, 0.5); }});
  std::vector<CodeLayout> layouts;
  std::vector<Tensor> codes;
  const Variant variants[] = {{"top 1 % of chunks, f32", Coding::full, false, LocalPart::none},
                              {"top 1 % of chunks, bf16", Coding::bf16, false, LocalPart::none},
                              {"top 1 % of chunks, bf16, local sum", Coding::bf16, false, LocalPart::sum},
                              {"top 1 % of chunks, bf16, local partial", Coding::bf16, false, LocalPart::partial},
                              {"top 1 % of chunks, 2-bit", Coding::two_bit, false, LocalPart::none},
                              {"top 1 % of tensors, bf16", Coding::bf16, true, LocalPart::none},
                              {"ternary", Coding::ternary, false, LocalPart::none},
                              {"4-bit", Coding::four_bit, false, LocalPart::none}};
  for (const Variant& v : variants) {
    layouts.push_back(make_layout(v.coding, v.by_tensor, tensors, 0.01, DType::f32));
    codes.push_back(Tensor({kRanks * layouts.back().bytes}, DType::i8));
  }
  for (size_t i = 0; i < layouts.size(); ++i) {
    const Variant v = variants[i];
    const Tensor own = codes[i].slice(0, Shape{layouts[i].bytes});
    const auto repeat = [&, i, own] {
      for (int r = 1; r < kRanks; ++r) std::memcpy(codes[i].data<int8_t>() + r * own.bytes(), own.raw(), static_cast<size_t>(own.bytes()));
    };
    rows.push_back({fmt::format("code: {}", v.name), 16, restore, [&, i, v, own] {
                      number.zero();
                      backend->compress({&layouts[i], x, residual, {}, 1, 0, v.local, 2, own, number});
                      CHECK(number.data<double>()[0] == 0, "element {}", number.data<double>()[0] - 1);
                    }});
    rows.push_back(
        {fmt::format("decode and add, of one rank: {}", v.name), 0, [] {}, [&, i, own] { backend->decompress(layouts[i], own, 1, sum); }});
    rows.push_back({fmt::format("decode and add, of {} ranks: {}", kRanks, v.name), 0, repeat,
                    [&, i] { backend->decompress(layouts[i], codes[i], 1, sum); }});
  }
  std::erase_if(rows, [&](const Row& row) { return row.name.find(only) == std::string::npos; });
  for (int r = 0; r < rounds; ++r)
    for (Row& row : rows) {
      row.prepare();
      const double start = now();
      row.run();
      row.best = std::min(row.best, now() - start);
    }
  fmt::print("{} elements, {} thread(s), {}\n\n{:60} {:>9} {:>14} {:>16}\n", n, backend->threads(), cpu_instruction_set(), "", "ms",
             "GB/s gradient", "GB/s of memory");
  for (const Row& row : rows)
    fmt::print("{:60} {:9.1f} {:14.2f} {:16.2f}\n", row.name, 1e3 * row.best, 4e-9 * static_cast<double>(n) / row.best,
               1e-9 * row.touched * static_cast<double>(n) / row.best);
  for (size_t i = 0; i < layouts.size(); ++i)
    fmt::print("{}: {:.3f} bits an element\n", variants[i].name, 8 * static_cast<double>(layouts[i].bytes) / static_cast<double>(n));
}

}  // namespace starling

int main(int argc, char** argv) {
  const auto number = [&](int i, int64_t otherwise) { return argc > i ? std::atoll(argv[i]) : otherwise; };
  if (number(1, 1) < 1 || number(2, 0) < 0 || number(3, 1) < 1) {
    fmt::print(stderr, "usage: bench_compression [elements] [threads, 0 = all] [rounds] [only rows with this in their names]\n");
    return 2;
  }
  starling::measure(number(1, 60'000'000), static_cast<int>(number(2, 0)), static_cast<int>(number(3, 5)), argc > 4 ? argv[4] : "");
  return 0;
}
