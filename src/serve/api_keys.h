// Keys that clients must send, kept as hashes: who reads the file cannot use them. And how often a key or an address may ask.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/files.h"
#include "base/sha256.h"

namespace starling {

struct ApiKey {
  std::string name;
  Sha256Digest hash;
  double per_minute = 0;  // requests; 0: no limit
};

class ApiKeys {
 public:
  // A file with a key on each line: a name, the SHA-256 of the key in hexadecimal and, if the key is limited, its requests a minute.
  // Empty lines and those that begin with # are skipped. DataError with file and line, for the hash of an empty key too.
  static ApiKeys load(FileSystem& files, const std::string& path);
  static ApiKeys parse(std::string_view text, const std::string& path);

  // Null for a key that is not there. Takes the same time for every key of a length.
  const ApiKey* find(std::string_view key) const;
  size_t size() const { return keys_.size(); }

 private:
  std::vector<ApiKey> keys_;
};

// Buckets of requests, one for each name (a key's, or an address): it is full after a minute without requests.
class RateLimits {
 public:
  // Takes one of the requests that the name may have in a minute (0: as many as it likes); the seconds to wait where there is none left.
  std::optional<double> take(const std::string& name, double per_minute, double now);
  // Names that are remembered: those with full buckets are forgotten, so that many addresses take no more memory than those of a minute.
  size_t size() const { return buckets_.size(); }

 private:
  struct Bucket {
    double left, since, per_minute;
    double at(double now) const;  // what is left then
  };
  std::mutex mutex_;
  std::unordered_map<std::string, Bucket> buckets_;
  size_t sweep_at_ = kFewest;
  static constexpr size_t kFewest = 1000;
};

}  // namespace starling
