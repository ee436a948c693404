#include "bench/load.h"

#include <curl/curl.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>

#include "base/error.h"

namespace starling {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

constexpr int64_t kMostConnections = 4000;

size_t append_body(char* data, size_t size, size_t count, void* to) {
  static_cast<std::string*>(to)->append(data, size * count);
  return size * count;
}

// Requests in flight on a pool of connections; single-threaded.
class Requests {
 public:
  explicit Requests(const LoadTarget& target) : target_(target), multi_(curl_multi_init()) {
    headers_ = curl_slist_append(nullptr, "Content-Type: application/json");
  }
  ~Requests() {
    for (auto& request : all_) {
      curl_multi_remove_handle(multi_, request->handle);
      curl_easy_cleanup(request->handle);
    }
    for (auto& request : free_) curl_easy_cleanup(request->handle);
    curl_slist_free_all(headers_);
    curl_multi_cleanup(multi_);
  }
  Requests(const Requests&) = delete;
  Requests& operator=(const Requests&) = delete;

  struct Request {
    CURL* handle;
    double due;
    bool large;
    std::string body, answer;
  };
  using Done = std::function<void(const Request&, int status)>;

  // Sends a request for the next sentence, or for `sentences` of them at once.
  void start(double due, int64_t sentences = 0) {
    nlohmann::json json{{"source", target_.source}, {"target", target_.target}};
    if (!target_.key.empty()) json["api_key"] = target_.key;
    if (sentences == 0) json["q"] = next_sentence();
    for (int64_t i = 0; i < sentences; ++i) json["q"].push_back(next_sentence());
    auto request = free_.empty() ? std::make_unique<Request>(Request{curl_easy_init(), 0, false, "", ""}) : std::move(free_.back());
    if (!free_.empty()) free_.pop_back();
    request->due = due;
    request->large = sentences > 0;
    request->body = json.dump();
    request->answer.clear();
    CURL* h = request->handle;
    curl_easy_setopt(h, CURLOPT_URL, (target_.url + "/translate").c_str());
    curl_easy_setopt(h, CURLOPT_POSTFIELDS, request->body.data());
    curl_easy_setopt(h, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request->body.size()));
    curl_easy_setopt(h, CURLOPT_HTTPHEADER, headers_);
    curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, append_body);
    curl_easy_setopt(h, CURLOPT_WRITEDATA, &request->answer);
    curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(h, CURLOPT_TIMEOUT_MS, static_cast<long>(1e3 * target_.patience_seconds));
    curl_easy_setopt(h, CURLOPT_PRIVATE, request.get());
    (sentences > 0 ? large_ : small_) += 1;
    all_.push_back(std::move(request));
    curl_multi_add_handle(multi_, h);
  }
  int64_t small() const { return small_; }  // requests of one sentence in flight
  int64_t large() const { return large_; }

  // Waits for at most `seconds`, less when something happens, and passes requests that have ended to `done`.
  void run(double seconds, const Done& done) {
    int running = 0;
    curl_multi_perform(multi_, &running);
    collect(done);
    curl_multi_poll(multi_, nullptr, 0, static_cast<int>(std::clamp(std::ceil(1e3 * seconds), 0.0, 100.0)), nullptr);
    curl_multi_perform(multi_, &running);
    collect(done);
  }

 private:
  const std::string& next_sentence() { return target_.sentences[next_++ % target_.sentences.size()]; }
  void collect(const Done& done) {
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      Request* request = nullptr;
      curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &request);
      long status = 0;
      if (message->data.result == CURLE_OK) curl_easy_getinfo(message->easy_handle, CURLINFO_RESPONSE_CODE, &status);
      curl_multi_remove_handle(multi_, request->handle);
      const auto at = std::find_if(all_.begin(), all_.end(), [&](const auto& r) { return r.get() == request; });
      std::unique_ptr<Request> ended = std::move(*at);
      all_.erase(at);
      (ended->large ? large_ : small_) -= 1;
      done(*ended, static_cast<int>(status));
      free_.push_back(std::move(ended));
    }
  }

  const LoadTarget& target_;
  CURLM* multi_;
  curl_slist* headers_ = nullptr;
  std::deque<std::unique_ptr<Request>> all_;
  std::vector<std::unique_ptr<Request>> free_;
  size_t next_ = 0;
  int64_t small_ = 0, large_ = 0;
};

// Returns a callback that records ended requests in the result.
Requests::Done recorder(LoadResult& result) {
  return [&result](const Requests::Request& request, int status) {
    const double seconds = now() - request.due;
    if (request.large) {
      if (status == 200) {
        ++result.beside;
        result.beside_seconds += seconds;
      }
    } else if (status == 200) {
      result.answered.push_back(seconds);
    } else {
      ++result.refused[status];
    }
  };
}

void finish(LoadResult& result, double begin) {
  result.seconds = now() - begin;
  std::sort(result.answered.begin(), result.answered.end());
}

void require_answer(const LoadTarget& target, const LoadResult& result) {
  if (!result.answered.empty()) return;
  const int status = result.refused.empty() ? 0 : result.refused.begin()->first;
  throw IoError(fmt::format("{}: {}; check the address, --source and --target", target.url,
                            status == 0 ? std::string("no answer") : fmt::format("answers with status {}", status)));
}

}  // namespace

double LoadResult::goodput(double within_seconds) const {
  const auto late = std::upper_bound(answered.begin(), answered.end(), within_seconds);
  return seconds > 0 ? static_cast<double>(late - answered.begin()) / seconds : 0;
}

double LoadResult::percentile(double share) const {
  if (answered.empty()) return 0;
  const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(answered.size())));
  return answered[std::clamp<size_t>(rank, 1, answered.size()) - 1];
}

LoadResult lone_load(const LoadTarget& target, int64_t requests) {
  LoadResult result;
  Requests under_way(target);
  const double begin = now();
  for (int64_t i = 0; i < requests; ++i) {
    under_way.start(now());
    ++result.sent;
    while (under_way.small() > 0) under_way.run(0.1, recorder(result));
  }
  finish(result, begin);
  require_answer(target, result);
  return result;
}

LoadResult full_load(const LoadTarget& target, double seconds) {
  LoadResult result;
  Requests under_way(target);
  const double begin = now();
  while (now() < begin + seconds) {
    while (under_way.small() < target.clients) {
      under_way.start(now());
      ++result.sent;
    }
    under_way.run(0.1, recorder(result));
  }
  result.sent -= under_way.small();  // requests in flight do not count, but they must end before the next measurement
  finish(result, begin);
  while (under_way.small() > 0) under_way.run(0.1, [](const Requests::Request&, int) {});
  require_answer(target, result);
  return result;
}

LoadResult open_load(const LoadTarget& target, double rate, double seconds, uint64_t seed, int64_t beside) {
  LoadResult result;
  Requests under_way(target);
  std::mt19937_64 random(seed);
  std::exponential_distribution<double> gap(rate);
  const double begin = now(), end = begin + seconds;
  double next = begin + gap(random);
  std::deque<double> due;  // requests that wait for a connection
  const auto done = recorder(result);
  while (next < end || !due.empty() || under_way.small() > 0) {
    for (; next < end && next <= now(); next += gap(random)) {
      due.push_back(next);
      ++result.sent;
    }
    for (; !due.empty() && under_way.small() < kMostConnections; due.pop_front()) under_way.start(due.front());
    if (beside > 0 && under_way.large() == 0 && now() < end) under_way.start(now(), beside);
    under_way.run(next < end ? next - now() : 0.1, done);
    while (!due.empty() && now() - due.front() > target.patience_seconds) {
      due.pop_front();
      ++result.refused[0];
    }
  }
  finish(result, begin);
  while (under_way.large() > 0) under_way.run(0.1, done);
  return result;
}

int64_t memory_of(const LoadTarget& target) {
  std::string text;
  CURL* h = curl_easy_init();
  curl_easy_setopt(h, CURLOPT_URL, (target.url + "/metrics").c_str());
  curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, append_body);
  curl_easy_setopt(h, CURLOPT_WRITEDATA, &text);
  curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(h, CURLOPT_TIMEOUT_MS, 5000L);
  const CURLcode code = curl_easy_perform(h);
  curl_easy_cleanup(h);
  const std::string name = "\nprocess_resident_memory_bytes ";
  const size_t at = text.find(name);
  return code == CURLE_OK && at != std::string::npos ? static_cast<int64_t>(std::strtod(text.c_str() + at + name.size(), nullptr)) : 0;
}

}  // namespace starling
