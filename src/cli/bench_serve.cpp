// The verb `starling bench serve`: how a translation server behaves under load, at shares of what it can do.
#include <iostream>

#include "cli/search_arguments.h"
#include "cli/verbs.h"
#include "data/line_reader.h"
#include "serve/load.h"

namespace starling {
namespace {

struct BenchServeArguments {
  LoadTarget target{.url = "http://127.0.0.1:5000", .source = "", .target = "", .key = "", .sentences = {}};
  std::string input;
  std::vector<double> shares{0.5, 0.8, 1.0, 1.2};
  double seconds = 20, capacity = 0, deadline = 1;
  int64_t lone = 100, beside = 0;
  uint64_t seed = 1;
};

void head() {
  std::cout << "    load   requests/s  sent   answered   goodput/s   refused   no answer   p50 ms   p95 ms   p99 ms   memory MiB\n";
}

void row(const std::string& what, const LoadResult& r, const BenchServeArguments& a, double rate) {
  int64_t refused = 0, silent = 0;
  for (const auto& [status, count] : r.refused) (status == 0 ? silent : refused) += count;
  std::cout << fmt::format("{:>8} {:12.1f} {:5} {:10} {:11.1f} {:9} {:11} {:8.1f} {:8.1f} {:8.1f} {:12}\n", what, rate, r.sent,
                           r.answered.size(), r.goodput(a.deadline), refused, silent, 1e3 * r.percentile(0.5), 1e3 * r.percentile(0.95),
                           1e3 * r.percentile(0.99), memory_of(a.target) >> 20);
  if (r.beside > 0)
    std::cout << fmt::format("         beside: {} requests of {} sentences, {:.2f} s each\n", r.beside, a.beside,
                             r.beside_seconds / static_cast<double>(r.beside));
  std::cout.flush();
}

void run(BenchServeArguments& a) {
  LineReader reader(a.input);
  for (std::string_view line; reader.next(line);)
    if (!line.empty()) a.target.sentences.emplace_back(line);
  if (a.target.sentences.empty()) throw DataError(fmt::format("{}:1: has no sentence to send; give a text with one a line", a.input));
  while (a.target.url.ends_with('/')) a.target.url.pop_back();
  head();
  const LoadResult lone = lone_load(a.target, a.lone);
  row("lone", lone, a, static_cast<double>(lone.answered.size()) / lone.seconds);
  if (a.capacity <= 0) {
    const LoadResult full = full_load(a.target, a.seconds);
    a.capacity = static_cast<double>(full.answered.size()) / full.seconds;
    row("full", full, a, a.capacity);
  }
  for (const double share : a.shares) {
    const double rate = share * a.capacity;
    row(fmt::format("{:.0f} %", 100 * share), open_load(a.target, rate, a.seconds, a.seed, a.beside), a, rate);
  }
}

}  // namespace

void add_bench_serve(CLI::App& bench) {
  auto* sub = bench.add_subcommand(
      "serve", "a translation server under load: requests of one sentence that come by chance, at shares of what it can do");
  auto a = std::make_shared<BenchServeArguments>();
  sub->add_option("--url", a->target.url, "any server with LibreTranslate's interface")->capture_default_str();
  sub->add_option("--source", a->target.source, "language code of the sentences")->required();
  sub->add_option("--target", a->target.target, "language code of the translations")->required();
  sub->add_option("--input", a->input, "text with one sentence a line, which are sent in turn; a server may remember those it has had")
      ->required();
  sub->add_option("--api-key", a->target.key, "what the server asks for");
  sub->add_option("--clients", a->target.clients, "that ask again at once, when the capacity is measured")->check(CLI::Range(1, 10000))->capture_default_str();
  sub->add_option("--seconds", a->seconds, "of each load")->check(real_range(0.1, 86400))->capture_default_str();
  sub->add_option("--load", a->shares, "shares of the capacity")->check(real_range(0.001, 100))->capture_default_str();
  sub->add_option("--capacity", a->capacity, "requests a second; 0: what the clients get when each asks again at once")
      ->check(real_range(0, 1e9))
      ->capture_default_str();
  sub->add_option("--deadline", a->deadline, "within which an answer counts as goodput, seconds")
      ->check(real_range(0.001, 86400))
      ->capture_default_str();
  sub->add_option("--lone", a->lone, "requests one after the other, for comparison")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  sub->add_option("--beside", a->beside, "another client asks for so many sentences at once, again and again; 0: none")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  sub->add_option("--seed", a->seed, "of the times")->capture_default_str();
  sub->callback([a] { run(*a); });
}

}  // namespace starling
