// How long small requests take beside clients that each send "words" of a million letters again and again, and beside an access log that
// nobody reads; exit status 1 where one of the two slows them down.
//   bench_serve_attacked STARLING MODEL [SECONDS [REQUESTS [DIRECTORY]]]
// Small requests come alone for SECONDS, then for as long beside four attackers, then REQUESTS more with the log.
#include <sys/stat.h>

#include <algorithm>
#include <iostream>
#include <thread>
#include <vector>

#include "process.h"

namespace soak {
namespace {

constexpr int kAttackers = 4;
constexpr size_t kLetters = 1'000'000;
constexpr double kMostTimes = 5;  // that the 99th percentile beside the attackers may be of the one alone
constexpr int kConnections = 4;   // that ask beside the log

std::string translation(const std::string& text) {
  return request("POST", "/translate", "application/json", Json{{"q", text}, {"source", "en"}, {"target", "de"}}.dump());
}

// Milliseconds.
double percentile(std::vector<double> times, double share) {
  if (times.empty()) return 0;
  const auto at = std::min(times.size() - 1, static_cast<size_t>(share * static_cast<double>(times.size())));
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(at), times.end());
  return 1000 * times[at];
}

struct Measured {
  std::vector<double> times;
  int others = 0;  // answers that were none
  void print(const char* what) const {
    std::cout << what << ": " << times.size() << " answers, p50 " << percentile(times, 0.5) << " ms, p99 " << percentile(times, 0.99)
              << " ms, worst " << percentile(times, 1) << " ms; " << others << " without" << std::endl;
  }
};

// Small requests, of which no two are alike, one after the other.
Measured small_requests(int port, double duration, int& number) {
  Measured m;
  Client client(port);
  for (const double end = seconds() + duration; seconds() < end; usleep(20'000)) {
    const double begin = seconds();
    if (client.closed()) client = Client(port);
    client.send(translation("a small house " + std::to_string(++number)));
    const Answer a = client.receive();
    if (a.status == 200)
      m.times.push_back(seconds() - begin);
    else
      ++m.others, client.hang_up();
  }
  return m;
}

double dropped(const std::string& metrics) {
  const std::string name = "\nstarling_log_dropped_total{log=\"access\"} ";
  const size_t at = metrics.find(name);
  return at == std::string::npos ? -1 : std::atof(metrics.c_str() + at + name.size());
}

bool beside_attackers(Process& server, double duration) {
  if (!server.start("--cache-mib 0 --deadline 30")) return std::cout << "the server does not start\n", false;
  const int port = server.port();
  int number = 0;
  small_requests(port, 2, number);  // the first take longer
  const Measured alone = small_requests(port, duration, number);
  alone.print("alone");
  std::atomic<bool> over{false};
  std::atomic<int> answered{0}, refused{0}, ended{0};
  std::vector<std::thread> attackers;
  for (int i = 0; i < kAttackers; ++i)
    attackers.emplace_back([&, word = translation(std::string(kLetters, static_cast<char>('a' + i)))] {
      while (!over) {
        Client client(port, 1);
        client.send(word);
        Answer a;
        while (a.status == 0 && !over && !client.ended()) usleep(20'000);
        if (!over) a = client.receive();
        ++(a.status == 200 ? answered : a.status == 429 ? refused : ended);
        usleep(10'000);
      }
    });
  usleep(500'000);
  const Measured beside = small_requests(port, duration, number);
  over = true;
  for (std::thread& t : attackers) t.join();
  beside.print("beside the attackers");
  std::cout << "attackers: " << answered << " answered, " << refused << " refused with 429, " << ended << " otherwise" << std::endl;
  const double times = percentile(beside.times, 0.99) / percentile(alone.times, 0.99);
  std::cout << "p99 beside / p99 alone: " << times << std::endl;
  const int status = server.end(SIGTERM);
  std::cout << "SIGTERM: exit status " << status << std::endl;
  return times <= kMostTimes && beside.others == 0 && status == 0;
}

bool beside_a_log(Process& server, int requests) {
  mkfifo(server.path("pipe").c_str(), 0600);
  const int pipe = open(server.path("pipe").c_str(), O_RDWR);  // a reader that never reads
  if (!server.start("--cache-mib 64", "pipe")) return std::cout << "the server does not start\n", false;
  std::vector<Measured> all(kConnections);
  std::vector<std::thread> clients;
  for (int c = 0; c < kConnections; ++c)
    clients.emplace_back([&, c] {
      Client client(server.port(), 10);
      for (int i = 0; i < requests / kConnections; ++i) {
        const double begin = seconds();
        client.send(request("GET", i % 10 == 0 ? "/languages" : "/health", "", ""));
        if (client.receive().status == 200)
          all[c].times.push_back(seconds() - begin);
        else
          ++all[c].others, client = Client(server.port(), 10);
      }
    });
  for (std::thread& t : clients) t.join();
  Measured m;
  for (const Measured& one : all) m.times.insert(m.times.end(), one.times.begin(), one.times.end()), m.others += one.others;
  m.print("with a log that nobody reads");
  Client client(server.port());
  client.send(request("GET", "/metrics", "", ""));
  const double lines = dropped(client.receive().body);
  std::cout << "starling_log_dropped_total: " << lines << std::endl;
  const int status = server.end(SIGTERM);
  std::cout << "SIGTERM: exit status " << status << std::endl;
  close(pipe);
  return m.others == 0 && lines > 0 && lines <= requests && percentile(m.times, 1) < 1000 && status == 0;
}

}  // namespace
}  // namespace soak

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: bench_serve_attacked STARLING MODEL [SECONDS [REQUESTS [DIRECTORY]]]\n";
    return 2;
  }
  const std::string directory = argc > 5 ? argv[5] : "/tmp/serve_attacked." + std::to_string(getpid());
  soak::Process server(argv[1], argv[2], directory);
  const bool words = soak::beside_attackers(server, argc > 3 ? std::atof(argv[3]) : 30);
  const bool log = soak::beside_a_log(server, argc > 4 ? std::atoi(argv[4]) : 100'000);
  std::cout << (words && log ? "passed" : "FAILED") << "\n";
  return words && log ? 0 : 1;
}
