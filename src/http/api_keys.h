// Keys that clients must send, stored as hashes so that whoever reads the file cannot use them, and limits on how often a key or an address
// may send requests.
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
  double per_minute = 0;  // requests per minute; 0: no limit
};

class ApiKeys {
 public:
  // Parses a file with one key per line: a name, the SHA-256 of the key in hexadecimal and, if the key is limited, its requests per minute.
  // Empty lines and lines beginning with # are skipped. Throws DataError with file and line, also for the hash of an empty key.
  static ApiKeys load(FileSystem& files, const std::string& path);
  static ApiKeys parse(std::string_view text, const std::string& path);

  // Returns null if the key is unknown. Takes the same time for all keys of the same length.
  const ApiKey* find(std::string_view key) const;
  size_t size() const { return keys_.size(); }

 private:
  std::vector<ApiKey> keys_;
};

// A token bucket per name (of a key, or an address); it is full after a minute without requests.
class RateLimits {
 public:
  // Takes one of the requests that the name may send per minute (0: unlimited). If none is left, returns the seconds to wait.
  std::optional<double> take(const std::string& name, double per_minute, double now);
  // Returns the number of names kept. Full buckets are dropped, so that memory is bounded by the addresses of one minute.
  size_t size() const { return buckets_.size(); }

 private:
  struct Bucket {
    double left, since, per_minute;
    double at(double now) const;  // what is left at that time
  };
  std::mutex mutex_;
  std::unordered_map<std::string, Bucket> buckets_;
  size_t sweep_at_ = kFewest;
  static constexpr size_t kFewest = 1000;
};

}  // namespace starling
