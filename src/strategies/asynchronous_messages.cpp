#include "strategies/asynchronous_messages.h"

#include <algorithm>

namespace starling {
namespace {

Tensor numbers(std::initializer_list<double> first, const StepSums* sums) {
  const auto n = static_cast<int64_t>(first.size());
  Tensor x({n + (sums ? kSums : 0)}, DType::f64);
  std::copy(first.begin(), first.end(), doubles_of(x).begin());
  if (sums) write_sums(*sums, doubles_of(x).last(kSums));
  return x;
}

int64_t whole(double x) { return static_cast<int64_t>(x); }

}  // namespace

Tensor Request::pack() const {
  return numbers(
      {static_cast<double>(kind), static_cast<double>(updates), static_cast<double>(base_version), static_cast<double>(base_pushes)},
      &sums);
}

Request Request::unpack(const Tensor& numbers) {
  const std::span<const double> x = doubles_of(numbers);
  const int64_t kind = whole(x[0]);
  CHECK(kind >= push && kind <= leave, "a request of kind {}", kind);
  return {static_cast<Kind>(kind), whole(x[1]), whole(x[2]), whole(x[3]), read_sums(x.last(kSums))};
}

Tensor Answer::pack() const {
  const StepSums sums{totals, {}};
  return numbers({static_cast<double>(version), static_cast<double>(pushes), stop ? 1.0 : 0.0, finished ? 1.0 : 0.0, rate, fraction},
                 &sums);
}

Answer Answer::unpack(const Tensor& numbers) {
  const std::span<const double> x = doubles_of(numbers);
  return {whole(x[0]), whole(x[1]), x[2] > 0, x[3] > 0, x[4], x[5], read_sums(x.last(kSums)).totals};
}

Tensor AsynchronousSummary::pack() const {
  return numbers({pushes, steps, in_pushes.mean, in_pushes.median, in_pushes.most, in_pushes.largest, in_steps.mean, in_steps.median,
                  in_steps.most, in_steps.largest, fewest_updates, most_updates, updates, held},
                 nullptr);
}

AsynchronousSummary AsynchronousSummary::unpack(const Tensor& numbers) {
  const std::span<const double> x = doubles_of(numbers);
  return {x[0], x[1], {x[2], x[3], x[4], x[5]}, {x[6], x[7], x[8], x[9]}, x[10], x[11], x[12], x[13]};
}

std::string AsynchronousSummary::text() const {
  if (pushes == 0) return "";
  const auto delay = [](const Delay& d, const char* unit) {
    return fmt::format("mean {:.2f}, median {:g}, 95 % up to {:g}, largest {:g} {}", d.mean, d.median, d.most, d.largest, unit);
  };
  return fmt::format("staleness of {:.0f} pushes: {}; {}; updates per worker: {:.0f} to {:.0f}{}", pushes, delay(in_pushes, "pushes"),
                     delay(in_steps, "server steps"), fewest_updates, most_updates,
                     held > 0 ? fmt::format("; {:.0f} fetches waited for a step", held) : "");
}

}  // namespace starling
