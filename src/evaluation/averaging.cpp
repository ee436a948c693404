#include "evaluation/averaging.h"

#include <cmath>

#include "base/error.h"

namespace starling {

std::vector<AverageProfile> average_profiles(std::span<const int64_t> updates) {
  CHECK(!updates.empty(), "no checkpoints");
  std::vector<AverageProfile> all;
  const size_t count = updates.size();
  const auto last = [&](size_t n) {
    AverageProfile profile{fmt::format("the last {}", n), std::vector<double>(count, 0.0)};
    for (size_t i = count - n; i < count; ++i) profile.weights[i] = 1.0 / static_cast<double>(n);
    all.push_back(std::move(profile));
  };
  size_t most = 0;
  for (size_t n = 1; n <= count; n = n < 3 ? n + 1 : n % 3 == 0 ? n / 3 * 4 : n / 2 * 3) last(most = n);
  if (most < count) last(count);
  if (count < 3 || updates.back() == 0) return all;  // an average made earlier records no updates
  for (const double power : {1.0, 2.0, 4.0, 8.0, 16.0, 32.0}) {
    AverageProfile profile{fmt::format("all {} by power {:g}", count, power), {}};
    double sum = 0;
    for (const int64_t update : updates) {
      profile.weights.push_back(std::pow(static_cast<double>(update) / static_cast<double>(updates.back()), power));
      sum += profile.weights.back();
    }
    for (double& weight : profile.weights) weight /= sum;
    all.push_back(std::move(profile));
  }
  return all;
}

}  // namespace starling
