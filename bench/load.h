// Generates load on any server with LibreTranslate's interface. Requests arrive at random at a given rate, whether or not earlier ones have
// been answered (open loop), because clients that wait for answers hide how long the queue is.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace starling {

struct LoadTarget {
  std::string url;  // the server's address, without /translate
  std::string source, target, key;
  std::vector<std::string> sentences;  // the texts to send, in turn
  int64_t clients = 10;                // clients of full_load, each of which sends its next request when it has an answer
  double patience_seconds = 30;        // time after which a request counts as unanswered
};

// The outcome of the requests.
struct LoadResult {
  double seconds = 0;              // from the first request to the last answer
  int64_t sent = 0;                // all requests
  std::vector<double> answered;    // seconds from when a request was due to its answer, for status 200, ascending
  std::map<int, int64_t> refused;  // number of requests by status; 0: no answer
  int64_t beside = 0;              // number of large requests answered
  double beside_seconds = 0;       // total time of the large requests

  // Requests per second that were answered within this time: the goodput.
  double goodput(double within_seconds) const;
  // Returns the seconds within which this share (0 to 1) of the answers arrived; 0 without answers.
  double percentile(double share) const;
};

// Sends `requests` requests, one after the other.
LoadResult lone_load(const LoadTarget& target, int64_t requests);
// Sends as many requests as the server can answer: each client sends its next one when it has an answer.
LoadResult full_load(const LoadTarget& target, double seconds);
// Sends requests as a Poisson process with `rate` requests per second, each on a free connection or a new one (at most 4,000). With
// `beside` > 0, another client repeatedly requests that many sentences at once.
LoadResult open_load(const LoadTarget& target, double rate, double seconds, uint64_t seed, int64_t beside = 0);

// Returns the resident memory that the server reports at /metrics in bytes, or 0 if it reports none.
int64_t memory_of(const LoadTarget& target);

}  // namespace starling
