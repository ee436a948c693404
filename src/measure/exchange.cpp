#include "measure/exchange.h"

#include <algorithm>

#include "backend/device_choice.h"
#include "comm/cards.h"
#include "comm/threads.h"
#include "measure/peers.h"
#include "strategies/steps.h"

namespace starling {

BenchExchangeResult bench_exchange(const BenchExchangeOptions& o, World& world) {
  Communicator& comm = *world.comm;
  if (comm.size() == 1)
    throw ConfigError("there is nothing to exchange with one rank; start several, as 'mpirun -n 8 starling bench exchange'");
  RankPeers peers(comm);
  comm.set_algorithm(Algorithm::library);  // while cards are connected, so that the library's collectives are, too
  prepare_card_environment(comm, false);
  const auto backend = make_backend(resolve({"f32", threads_for_rank(comm), o.device}, false, world.local_rank));
  BenchExchangeResult r;
  r.machine = backend->describe();
  r.ranks = comm.size();
  r.mib = o.mib;
  const CardConnection cards = connect_cards_of_ranks(comm, backend->memory());
  r.connection = cards.report.empty() ? "through the hosts' memory and MPI" : cards.report;
  const Tensor gradient({std::max<int64_t>(1, static_cast<int64_t>(o.mib * (1 << 20)) / 4)}, DType::f32, backend->memory());
  gradient.zero();

  const auto seconds = [&](const BenchExchangeResult::Time& variant) {
    comm.set_algorithm(variant.algorithm);
    gradient.slice(0, Shape{1}).to_doubles();  // a card has nothing left to do
    peers.together();
    const double start = world.clock->seconds();
    for (const Pending& pending : all_reduce_in_pieces(comm, gradient, variant.bucket_mib, false)) pending.wait(kNoDeadline);
    gradient.slice(0, Shape{1}).to_doubles();  // what makes the host wait for a card
    return peers.largest(world.clock->seconds() - start);
  };
  for (const Algorithm algorithm : o.algorithms)
    for (const double mib : o.bucket_mib) r.times.push_back({algorithm, mib, 0});
  std::vector<std::vector<double>> all(r.times.size());
  for (int64_t round = -1; round < o.rounds; ++round)  // the first warms up; all in turn, so that drifting speed affects them alike
    for (size_t i = 0; i < r.times.size(); ++i)
      if (const double s = seconds(r.times[i]); round >= 0) all[i].push_back(s);
  for (size_t i = 0; i < r.times.size(); ++i) {
    const auto middle = all[i].begin() + static_cast<int64_t>(all[i].size() / 2);
    std::nth_element(all[i].begin(), middle, all[i].end());
    r.times[i].seconds = *middle;
  }
  comm.barrier().wait(kNoDeadline);  // before any card is disconnected
  return r;
}

}  // namespace starling
