#include "measure/peers.h"

#include <algorithm>

namespace starling {

double Peers::largest(double own) {
  const std::vector<double> all = gather({&own, 1});
  return *std::max_element(all.begin(), all.end());
}

std::vector<double> RankPeers::gather(std::span<const double> own) {
  const auto count = static_cast<int64_t>(own.size());
  const Tensor all({size(), count}, DType::f64);
  std::copy(own.begin(), own.end(), doubles_of(all).begin() + rank() * count);
  comm_.all_reduce(all).wait(kNoDeadline);
  return {doubles_of(all).begin(), doubles_of(all).end()};
}

std::vector<double> ThreadPeers::gather(std::span<const double> own) {
  group_.numbers[static_cast<size_t>(rank_)].assign(own.begin(), own.end());
  together();
  std::vector<double> all;
  for (std::vector<double> numbers : group_.numbers) {
    numbers.resize(own.size());
    all.insert(all.end(), numbers.begin(), numbers.end());
  }
  together();  // before the next one
  return all;
}

}  // namespace starling
