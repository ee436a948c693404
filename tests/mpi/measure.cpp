#include "tests/mpi/measure.h"

#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace starling {
namespace {

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
// Of all threads; the one that calls this sleeps here, so it is the communication thread's.
double processor_seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

struct Span {
  double wall = seconds(), processor = processor_seconds();
  double share() const { return (processor_seconds() - processor) / (seconds() - wall); }
};

Tensor of_megabytes(double megabytes) { return Tensor({static_cast<int64_t>(megabytes * 1e6 / 4)}, DType::f32); }

}  // namespace

void measure(Communicator& comm, double megabytes) {
  const auto say = [&](const std::string& text) {
    if (comm.rank() == 0) fmt::print("{}\n", text), std::fflush(stdout);
  };
  {
    const Tensor x({1}, DType::f32);
    std::vector<double> times;
    for (int k = 0; k < 2000; ++k) {
      const double begin = seconds();
      comm.all_reduce(x).wait();
      times.push_back(1e6 * (seconds() - begin));
    }
    std::sort(times.begin(), times.end());
    say(fmt::format("all-reduce of 4 bytes: median {:.1f} us, 9 of 10 below {:.1f} us", times[1000], times[1800]));
  }
  const Tensor x = of_megabytes(megabytes);
  comm.set_algorithm(Algorithm::ring);
  const double sent = 2e6 * megabytes * (comm.size() - 1) / comm.size();
  for (const bool waits : {true, false}) {
    double best = 1e9, share = 0;
    for (int k = 0; k < 5; ++k) {
      comm.barrier().wait();
      const Span span;
      const Pending pending = comm.all_reduce(x);
      while (!waits && !pending.done()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      pending.wait();
      if (const double wall = seconds() - span.wall; wall < best) best = wall, share = span.share();
    }
    say(fmt::format("ring all-reduce of {:g} MB, {}: {:.1f} ms, {:.1f} MB/s sent by a rank ({:.3f} Gbit/s), {:.0f} % of a core", megabytes,
                    waits ? "waited for" : "in the background", 1e3 * best, 1e-6 * sent / best, 8e-9 * sent / best, 100 * share));
  }
  comm.barrier().wait();
  const Span span;
  std::this_thread::sleep_for(std::chrono::seconds(2));
  say(fmt::format("nothing under way: {:.2f} % of a core", 100 * span.share()));
  comm.barrier().wait();
}

void one_ring(Communicator& comm, double megabytes) {
  comm.set_algorithm(Algorithm::ring);
  const int64_t before = comm.traffic().bytes_sent;
  comm.all_reduce(of_megabytes(megabytes)).wait();
  const int64_t sent = comm.traffic().bytes_sent - before;
  comm.barrier().wait();
  if (comm.rank() == 0) fmt::print("sent {}\n", sent);
}

}  // namespace starling
