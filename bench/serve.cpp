// Measures how a translation server behaves under load, at fractions of its capacity: any server with LibreTranslate's interface.
// `bench_serve --help` lists its options (docs/guides/serving.md).
#include <algorithm>
#include <iostream>

#include "base/error.h"
#include "bench/load.h"
#include "data/line_reader.h"
#include "program/help.h"
#include "program/program.h"
#include "program/search_arguments.h"

namespace starling {
namespace {

struct BenchServeArguments {
  LoadTarget target{.url = "", .source = "", .target = "", .key = "", .sentences = {}};
  std::vector<std::string> urls{"http://127.0.0.1:5000"};
  std::string input;
  std::vector<double> shares{0.5, 0.8, 1.0, 1.2};
  double seconds = 20, capacity = 0, deadline = 1;
  int64_t lone = 100, beside = 0, rounds = 1;
  uint64_t seed = 1;
};

// A row of the table: one load, or the medians of several rounds of it.
struct LoadRow {
  double rate = 0, sent = 0, answered = 0, goodput = 0, refused = 0, silent = 0, p50 = 0, p95 = 0, p99 = 0, memory = 0;
  double beside = 0, beside_seconds = 0;  // number of large requests answered, and the time of each
};
constexpr double LoadRow::*kColumns[] = {&LoadRow::rate,    &LoadRow::sent,   &LoadRow::answered, &LoadRow::goodput,
                                         &LoadRow::refused, &LoadRow::silent, &LoadRow::p50,      &LoadRow::p95,
                                         &LoadRow::p99,     &LoadRow::memory, &LoadRow::beside,   &LoadRow::beside_seconds};

LoadRow row_of(const LoadResult& r, const BenchServeArguments& a, double rate) {
  LoadRow row{.rate = rate, .sent = static_cast<double>(r.sent), .answered = static_cast<double>(r.answered.size())};
  row.goodput = r.goodput(a.deadline);
  for (const auto& [status, count] : r.refused) (status == 0 ? row.silent : row.refused) += static_cast<double>(count);
  row.p50 = 1e3 * r.percentile(0.5);
  row.p95 = 1e3 * r.percentile(0.95);
  row.p99 = 1e3 * r.percentile(0.99);
  row.memory = static_cast<double>(memory_of(a.target)) / (1 << 20);
  row.beside = static_cast<double>(r.beside);
  if (r.beside > 0) row.beside_seconds = r.beside_seconds / row.beside;
  return row;
}

LoadRow medians(const std::vector<LoadRow>& rows) {
  LoadRow all;
  for (const auto column : kColumns) {
    std::vector<double> values;
    for (const LoadRow& row : rows) values.push_back(row.*column);
    std::sort(values.begin(), values.end());
    all.*column = (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
  }
  return all;
}

void head() {
  std::cout << "    load   requests/s  sent   answered   goodput/s   refused   no answer   p50 ms   p95 ms   p99 ms   memory MiB\n";
}

void print(const std::string& what, const LoadRow& r, const BenchServeArguments& a) {
  std::cout << fmt::format("{:>8} {:12.1f} {:5.0f} {:10.0f} {:11.1f} {:9.0f} {:11.0f} {:8.1f} {:8.1f} {:8.1f} {:12.0f}\n", what, r.rate,
                           r.sent, r.answered, r.goodput, r.refused, r.silent, r.p50, r.p95, r.p99, r.memory);
  if (r.beside > 0)
    std::cout << fmt::format("         beside: {:.0f} requests of {} sentences, {:.2f} s each\n", r.beside, a.beside, r.beside_seconds);
  std::cout.flush();
}

// Applies all loads to a server once, in order.
using Series = std::vector<std::pair<std::string, LoadRow>>;

Series measure(BenchServeArguments& a, const std::string& url) {
  Series series;
  const auto add = [&](const std::string& what, const LoadResult& result, double rate) {
    series.emplace_back(what, row_of(result, a, rate));
    print(what, series.back().second, a);
  };
  a.target.url = url;
  const LoadResult lone = lone_load(a.target, a.lone);
  add("lone", lone, static_cast<double>(lone.answered.size()) / lone.seconds);
  double capacity = a.capacity;
  if (capacity <= 0) {
    const LoadResult full = full_load(a.target, a.seconds);
    capacity = static_cast<double>(full.answered.size()) / full.seconds;
    add("full", full, capacity);
  }
  for (const double share : a.shares)
    add(fmt::format("{:.0f} %", 100 * share), open_load(a.target, share * capacity, a.seconds, a.seed, a.beside), share * capacity);
  return series;
}

void run(BenchServeArguments& a) {
  LineReader reader(a.input);
  for (std::string_view line; reader.next(line);)
    if (!line.empty()) a.target.sentences.emplace_back(line);
  if (a.target.sentences.empty()) throw DataError(fmt::format("{}:1: has no sentence to send; give a text with one per line", a.input));
  for (std::string& url : a.urls)
    while (url.ends_with('/')) url.pop_back();
  std::vector<std::vector<Series>> all(a.urls.size());
  const bool several = a.rounds > 1 || a.urls.size() > 1;
  const uint64_t seed = a.seed;
  for (int64_t round = 0; round < a.rounds; ++round)
    for (size_t i = 0; i < a.urls.size(); ++i) {
      if (several) std::cout << fmt::format("round {}, {}\n", round + 1, a.urls[i]);
      head();
      a.seed = seed + static_cast<uint64_t>(round);  // the same arrival times for all servers
      all[i].push_back(measure(a, a.urls[i]));
    }
  if (a.rounds == 1) return;
  for (size_t i = 0; i < a.urls.size(); ++i) {
    std::cout << fmt::format("medians of {} rounds, {}\n", a.rounds, a.urls[i]);
    head();
    for (size_t load = 0; load < all[i][0].size(); ++load) {
      std::vector<LoadRow> rows;
      for (const Series& series : all[i]) rows.push_back(series[load].second);
      print(all[i][0][load].first, medians(rows), a);
    }
  }
}

}  // namespace
}  // namespace starling

int main(int argc, char** argv) {
  using namespace starling;
  CLI::App app("A translation server under load: requests of one sentence that come by chance, at shares of what it can do.");
  add_help(app);
  BenchServeArguments a;
  app.add_option("--url", a.urls, "any server with LibreTranslate's interface; several are measured in turn")->capture_default_str();
  app.add_option("--source", a.target.source, "language code of the sentences")->required();
  app.add_option("--target", a.target.target, "language code of the translations")->required();
  app.add_option("--input", a.input, "text with one sentence a line, which are sent in turn; a server may remember those it has had")
      ->required();
  app.add_option("--api-key", a.target.key, "what the server asks for");
  app.add_option("--clients", a.target.clients, "that ask again at once, when the capacity is measured")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app.add_option("--seconds", a.seconds, "of each load")->transform(duration_range(0.1, 86400))->capture_default_str();
  app.add_option("--load", a.shares, "shares of the capacity")->check(real_range(0.001, 100))->capture_default_str();
  app.add_option("--capacity", a.capacity, "requests a second; 0: what the clients get when each asks again at once")
      ->check(real_range(0, 1e9))
      ->capture_default_str();
  app.add_option("--deadline", a.deadline, "within which an answer counts as goodput, seconds")
      ->transform(duration_range(0.001, 86400))
      ->capture_default_str();
  app.add_option("--lone", a.lone, "requests one after the other, for comparison")->check(CLI::Range(1, 1'000'000))->capture_default_str();
  app.add_option("--beside", a.beside, "another client asks for so many sentences at once, again and again; 0: none")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  app.add_option("--rounds", a.rounds, "of all loads; the medians are printed at the end")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--seed", a.seed, "of the times")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  return status_of([&] {
    run(a);
    return 0;
  });
}
