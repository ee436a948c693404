// Drives `starling serve` with mixed load for minutes: good requests of all shapes, slow and broken clients, floods, changed models,
// signals and kills; and looks whether it stays up, answers rightly, answers /health in time, keeps its memory, and ends in order.
//   bench_serve_soak STARLING MODEL MINUTES [SEED [DIRECTORY]]        STARLING: best of the preset asan
#include <functional>
#include <iostream>
#include <mutex>
#include <set>
#include <thread>

#include "hostile.h"
#include "process.h"

namespace soak {
namespace {

constexpr double kHealthSeconds = 1;  // that /health may take
constexpr size_t kIdle = 200, kSlow = 50;

std::vector<std::string> some_lines() {
  return {"a small house",
          "the dog runs",
          "we go now",
          "Two men are talking.",
          "A girl in a red dress jumps.",
          "It is cold today.",
          "the house of the dog",
          "no",
          "one two three four five six seven eight nine ten",
          "The weather is nice",
          "Äpfel und Öl",
          "a b c d e f g h i j",
          "日本",
          "Dr. Smith and Mr. Jones"};
}

class Soak {
 public:
  Soak(Process& server, double minutes, uint64_t seed)
      : server_(server), good_(some_lines()), begin_(seconds()), end_(begin_ + 60 * minutes), seed_(seed) {}

  int run() {
    std::string why;
    if (!restart()) return failed("the server does not start"), report();
    if (!good_.learn(server_.port(), why)) return failed("a lone request failed: " + why), report();
    std::vector<std::thread> threads;
    const auto several = [&](int count, void (Soak::*deed)(Random&)) {
      for (int i = 0; i < count; ++i)
        threads.emplace_back([this, deed, seed = seed_ + threads.size()] {
          Random random(seed);
          while (!over()) {
            if (!server_.up()) {
              usleep(10'000);
              continue;
            }
            (this->*deed)(random);
          }
        });
    };
    several(1, &Soak::health), several(4, &Soak::ask), several(3, &Soak::attack);
    several(1, &Soak::drip), several(1, &Soak::hold_idle), several(1, &Soak::watch_memory), several(1, &Soak::disturb);
    for (std::thread& t : threads) t.join();
    stop();
    return report();
  }

 private:
  bool over() const { return seconds() >= end_; }
  void count(const std::string& kind, const std::string& what) {
    const std::lock_guard lock(mutex_);
    ++counts_[kind][what];
  }
  void failed(const std::string& what) {
    const std::lock_guard lock(mutex_);
    if (failures_[what]++ == 0) std::cout << "FAILED after " << seconds() - begin_ << " s: " << what << std::endl;
  }

  void ask(Random& random) {
    const Good g = good_.make(random);
    const int generation = server_.generation();
    Client client(server_.port(), 120);
    client.send(g.bytes);
    const Answer a = client.receive(g.bytes.starts_with("HEAD"));
    if (!server_.same_since(generation)) return count(g.kind, "during a restart");
    count(g.kind, outcome(a));
    if (a.status == 429 || a.status == 503) {
      if (a.head.find("\r\nretry-after: ") == std::string::npos) failed(g.kind + ": " + outcome(a) + " without Retry-After");
      usleep(100'000);
    } else if (a.status != 200) {
      failed(g.kind + ": status " + outcome(a) + ": " + a.body.substr(0, 200));
    } else if (!right(g, a)) {
      failed(g.kind + ": " + a.body.substr(0, 300) + " instead of " + g.expected.dump().substr(0, 300));
    }
  }

  void attack(Random& random) {
    const int port = server_.port(), generation = server_.generation();
    const std::pair<const char*, std::function<std::string()>> deeds[] = {
        {"gone", [&] { return gone(port, random, good_); }},           {"gone", [&] { return gone(port, random, good_); }},
        {"100 MB", [&] { return large_body(port, random); }},          {"awkward text", [&] { return awkward_body(port, random); }},
        {"many texts", [&] { return many_texts(port, random); }},      {"invalid UTF-8", [&] { return invalid_utf8(port, random); }},
        {"damaged", [&] { return damaged(port, random, good_); }},     {"bad JSON", [&] { return bad_json(port, random); }},
        {"header flood", [&] { return header_flood(port, random); }},  {"nonsense", [&] { return nonsense(port, random); }},
        {"long word", [&] { return long_word(port, random); }},        {"smuggled", [&] { return smuggled(port, random); }},
        {"pipelined", [&] { return pipelined(port, random, good_); }}, {"never reads", [&] { return never_reads(port, random); }},
    };
    const auto& [kind, deed] = deeds[below(random, std::size(deeds))];
    const std::string what = deed();
    count(kind, what);
    if (!server_.same_since(generation)) return;
    if (what == "WRONG") failed(std::string(kind) + ": a wrong answer");
    if (what.starts_with("5") && what != "503" && what != "504" && what != "505") failed(std::string(kind) + ": status " + what);
  }

  // Clients that send a byte a second, or a few.
  void drip(Random& random) {
    struct Slow {
      Client client;
      Good good;
      size_t pace, sent = 0;
    };
    std::vector<Slow> all;
    for (const int generation = server_.generation(); !over() && server_.same_since(generation); sleep(1)) {
      const auto another = [&] { return Slow{Client(server_.port()), good_.make(random), below(random, 2) ? 1 : 1 + below(random, 40)}; };
      while (all.size() < kSlow) all.push_back(another());
      for (Slow& s : all) {
        const std::string& bytes = s.good.bytes;
        if (s.sent < bytes.size() && !s.client.ended() && s.client.send(bytes.substr(s.sent, s.pace))) {
          s.sent += s.pace;
          continue;
        }
        if (s.sent < bytes.size()) {
          count("slow", "cut");
        } else {
          const Answer a = s.client.receive(bytes.starts_with("HEAD"));
          count("slow", outcome(a));
          if (a.status == 400 || a.status == 500) failed("slow " + s.good.kind + ": status " + outcome(a));
          if (a.status == 200 && !right(s.good, a)) failed("slow " + s.good.kind + ": a wrong translation");
        }
        s = another();
      }
    }
  }

  // Connections that say nothing.
  void hold_idle(Random& random) {
    std::vector<Client> all;
    for (const int generation = server_.generation(); !over() && server_.same_since(generation); sleep(1)) {
      while (all.size() < kIdle) all.emplace_back(server_.port());
      for (Client& c : all)
        if (c.ended() || below(random, 100) == 0) c = Client(server_.port()), count("idle", "renewed");
    }
  }

  void health(Random&) {
    const int generation = server_.generation();
    const double asked = seconds();
    Client client(server_.port(), 10);
    client.send(request("GET", "/health", "", "", true));
    const Answer a = client.receive();
    const double took = seconds() - asked;
    if (server_.same_since(generation)) {
      count("health", outcome(a));
      const std::lock_guard lock(mutex_);
      worst_health_ = std::max(worst_health_, took), late_ += took > kHealthSeconds;
    }
    if (server_.same_since(generation) && (a.status != 200 || took > kHealthSeconds))
      failed("health: " + outcome(a) + " after more than " + std::to_string(static_cast<int>(took)) + " s");
    usleep(100'000);
  }

  void watch_memory(Random&) {
    const int64_t now = server_.resident_mib();
    const size_t minute = static_cast<size_t>((seconds() - begin_) / 60);
    {
      const std::lock_guard lock(mutex_);
      if (memory_.size() <= minute) memory_.resize(minute + 1, 0);
      memory_[minute] = std::max(memory_[minute], now);
    }
    if (server_.dead() && server_.up()) failed("the server has ended by itself"), end_ = 0;
    usleep(200'000);
  }

  // The operator's part.
  void disturb(Random& random) {
    sleep(3);
    switch (below(random, 10)) {
      case 0:
      case 1:
        server_.signal(SIGHUP);
        return count("operator", "SIGHUP");
      case 2:
      case 3:
        server_.replace_model(false);
        return count("operator", "new model");
      case 4:
        server_.replace_model(true);
        server_.signal(SIGHUP);
        sleep(3);
        server_.replace_model(false);
        return count("operator", "broken model");
      case 5:
        server_.cut_model_short();
        return count("operator", "model cut short");
      default:
        break;
    }
    if (seconds() - restarted_ < 100) return;
    const bool hard = below(random, 2) == 0;
    if (hard) {
      server_.end(SIGKILL);
    } else {
      stop();
    }
    count("operator", hard ? "kill -9" : "SIGTERM");
    if (!restart()) failed("the server does not start again"), end_ = 0;
  }
  bool restart() {
    restarted_ = seconds();
    // Every other time all is remembered or nothing.
    return server_.start(std::string("--precision f32 --request-seconds 30 --cache-mib ") + (++starts_ % 2 ? "0" : "1"));
  }
  void stop() {
    if (const int status = server_.end(SIGTERM); status != 0) failed("SIGTERM: exit status " + std::to_string(status));
  }

  int report() {
    for (const auto& [kind, outcomes] : counts_) {
      std::cout << kind << ":";
      for (const auto& [what, n] : outcomes) std::cout << " " << n << " x " << what;
      std::cout << "\n";
    }
    std::cout << "worst /health: " << worst_health_ << " s, " << late_ << " late\nMiB resident, by minute:";
    for (const int64_t m : memory_) std::cout << " " << m;
    const size_t half = memory_.size() / 2;
    if (half >= 2) {
      const int64_t early = *std::max_element(memory_.begin(), memory_.begin() + static_cast<std::ptrdiff_t>(half));
      const int64_t late = *std::max_element(memory_.begin() + static_cast<std::ptrdiff_t>(half), memory_.end());
      if (late > early + early / 3 + 64) failed("memory grows from " + std::to_string(early) + " to " + std::to_string(late) + " MiB");
    }
    const std::string said = server_.said();
    for (const char* mark :
         {"ERROR: AddressSanitizer", "ERROR: LeakSanitizer", "runtime error:", "WARNING: ThreadSanitizer", "terminate called"})
      if (said.find(mark) != std::string::npos) failed(std::string(mark) + " in " + server_.path("err*"));
    std::cout << "\n" << (failures_.empty() ? "passed" : "FAILED:") << "\n";
    for (const auto& [what, n] : failures_) std::cout << "  " << n << " x " << what << "\n";
    return failures_.empty() ? 0 : 1;
  }

  Process& server_;
  GoodRequests good_;
  const double begin_;
  std::atomic<double> end_;
  const uint64_t seed_;
  std::mutex mutex_;  // of what follows
  std::map<std::string, std::map<std::string, int64_t>> counts_;
  std::map<std::string, int64_t> failures_;
  std::vector<int64_t> memory_;  // the most of each minute
  double worst_health_ = 0, restarted_ = 0;
  int64_t late_ = 0, starts_ = 0;
};

}  // namespace
}  // namespace soak

int main(int argc, char** argv) {
  if (argc < 4) {
    std::cerr << "usage: bench_serve_soak STARLING MODEL MINUTES [SEED [DIRECTORY]]\n";
    return 2;
  }
  const std::string directory = argc > 5 ? argv[5] : "/tmp/serve_soak." + std::to_string(getpid());
  soak::Process server(argv[1], argv[2], directory);
  std::cout << "in " << directory << std::endl;
  return soak::Soak(server, std::atof(argv[3]), argc > 4 ? std::strtoull(argv[4], nullptr, 10) : 1).run();
}
