// Load on a server that speaks LibreTranslate's interface, whoever wrote it: requests that come by chance at a given rate, whether or not
// those before are answered (open loop), since clients that wait for each other hide how long a queue is.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace starling {

struct LoadTarget {
  std::string url;  // of the server, without /translate
  std::string source, target, key;
  std::vector<std::string> sentences;  // what is sent, in turn
  int64_t clients = 10;                // that ask again as soon as they have an answer, in full_load
  double patience_seconds = 30;        // after which a request is given up
};

// What became of requests.
struct LoadResult {
  double seconds = 0;              // from the first request to the last answer
  int64_t sent = 0;                // all of them
  std::vector<double> answered;    // seconds from when a request was due to its answer, of those with status 200, rising
  std::map<int, int64_t> refused;  // by status; 0: no answer
  int64_t beside = 0;              // large requests answered
  double beside_seconds = 0;       // of them in all

  // The share of requests that were answered within this time, as a rate: a second's goodput.
  double goodput(double within_seconds) const;
  // Seconds within which this share (0 to 1) of the answers came; 0 without answers.
  double percentile(double share) const;
};

// `requests` requests, one after the other.
LoadResult lone_load(const LoadTarget& target, int64_t requests);
// As many as the server answers: each client asks again as soon as it has an answer.
LoadResult full_load(const LoadTarget& target, double seconds);
// Requests at times of a Poisson process of `rate` a second, each on a connection that is free or a new one (4,000 at most). With
// `beside` > 0 another client asks for so many sentences at once, again and again.
LoadResult open_load(const LoadTarget& target, double rate, double seconds, uint64_t seed, int64_t beside = 0);

// Resident memory that the server tells at /metrics, bytes; 0 if it does not.
int64_t memory_of(const LoadTarget& target);

}  // namespace starling
