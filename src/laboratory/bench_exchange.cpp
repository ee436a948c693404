// The verb `starling bench exchange`: which algorithm and which buckets sum a gradient fastest among these ranks.
#include <iostream>

#include "laboratory/verbs.h"
#include "measure/bench_report.h"
#include "measure/exchange.h"
#include "program/search_arguments.h"

namespace starling {
namespace {

Findings findings(const BenchExchangeResult& r) {
  Findings found(28);
  found.line("machine", r.machine, {{"machine", r.machine}, {"ranks", r.ranks}});
  found.line("exchange", fmt::format("{:g} MiB among {} ranks: {}", r.mib, r.ranks, r.connection), {{"mib", r.mib}, {"by", r.connection}});
  nlohmann::ordered_json times = nlohmann::ordered_json::array();
  for (const auto& t : r.times) {
    // What a ring sends and receives: (N - 1) / N of everything, twice.
    const double gb_s = 2.0 * (r.ranks - 1) / r.ranks * r.mib * (1 << 20) / t.seconds / 1e9;
    found.line(fmt::format("{}, buckets of {:g} MiB", word(t.algorithm), t.bucket_mib),
               fmt::format("{:.2f} ms ({:.1f} GB/s in and out of each rank)", 1e3 * t.seconds, gb_s), {});
    times.push_back({{"algorithm", word(t.algorithm)}, {"bucket_mib", t.bucket_mib}, {"ms", 1e3 * t.seconds}, {"gb_s", gb_s}});
  }
  found.only_json({{"times", times}});
  return found;
}

}  // namespace

void add_bench_exchange(CLI::App& bench) {
  struct Arguments {
    BenchExchangeOptions options;
    std::string format = "text";
  };
  auto a = std::make_shared<Arguments>();
  auto* sub = bench.add_subcommand(
      "exchange", "the sum of a gradient among ranks of mpirun: our ring beside the library's own (MPI's, NCCL's on cards), in buckets");
  add_device_option(*sub, a->options.device);
  sub->add_option("--mib", a->options.mib, "size of the gradient, MiB of f32")->check(real_range(0.001, 65536))->capture_default_str();
  sub->add_option("--buckets", a->options.bucket_mib, "sizes of buckets, MiB")
      ->delimiter(',')
      ->check(real_range(0.001, 4096))
      ->capture_default_str();
  sub->add_option("--rounds", a->options.rounds, "measurements of each kind, of which the median counts")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  sub->add_option("--format", a->format, "text or json")->check(CLI::IsMember({"text", "json"}))->capture_default_str();
  sub->callback([a] {
    World world = started_by_mpi() ? make_mpi_world() : make_local_world();
    const BenchExchangeResult result = bench_exchange(a->options, world);
    if (world.comm->rank() == 0) findings(result).print(std::cout, a->format);
  });
}

}  // namespace starling
