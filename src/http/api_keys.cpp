#include "http/api_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <sstream>
#include <unordered_set>

#include "base/error.h"
#include "base/quotes.h"

namespace starling {
namespace {

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<Sha256Digest> from_hex(std::string_view text) {
  Sha256Digest digest;
  if (text.size() != 2 * digest.size()) return std::nullopt;
  for (size_t i = 0; i < digest.size(); ++i) {
    const int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    digest[i] = static_cast<uint8_t>(16 * high + low);
  }
  return digest;
}

Sha256Digest hash_of(std::string_view key) {
  Sha256 hash;
  hash.update(std::as_bytes(std::span(key)));
  return hash.digest();
}

// Whether the hash is that of an empty key, as from an unset variable: it would admit clients that send no key.
bool is_hash_of_nothing(const Sha256Digest& digest) {
  for (const char* nothing : {"", "\n", "\r\n", " ", " \n"})
    if (digest == hash_of(nothing)) return true;
  return false;
}

}  // namespace

ApiKeys ApiKeys::parse(std::string_view text, const std::string& path) {
  ApiKeys keys;
  std::istringstream lines{std::string(text)};
  std::string line;
  std::unordered_set<std::string> names;
  for (int number = 1; std::getline(lines, line); ++number) {
    std::istringstream words(line);
    std::string name, hash, limit, more;
    words >> name >> hash >> limit >> more;
    if (name.empty() || name.front() == '#') continue;
    const auto digest = from_hex(hash);
    if (!digest)
      throw DataError(fmt::format("{}:{}: {} is not the SHA-256 of a key; write NAME HASH, with HASH from: printf %s KEY | sha256sum", path,
                                  number, in_quotes(hash)));
    if (is_hash_of_nothing(*digest))
      throw DataError(fmt::format("{}:{}: the key of {} is empty, so everybody would have access; hash a key: printf %s KEY | sha256sum",
                                  path, number, printable(name)));
    double per_minute = 0;
    const auto [end, error] = std::from_chars(limit.data(), limit.data() + limit.size(), per_minute);
    if (!more.empty() ||
        (!limit.empty() && (error != std::errc() || end != limit.data() + limit.size() || !(per_minute >= 1 && per_minute <= 1e9))))
      throw DataError(fmt::format("{}:{}: {} is not a number of requests per minute; write NAME HASH or NAME HASH NUMBER", path, number,
                                  in_quotes(more.empty() ? limit : more)));
    if (!names.insert(name).second)
      throw DataError(fmt::format("{}:{}: the name {} occurs twice; give each key its own name", path, number, printable(name)));
    keys.keys_.push_back({name, *digest, per_minute});
  }
  if (keys.keys_.empty())
    throw DataError(fmt::format("{}:1: has no key, so every request would be refused; add one or leave --api-keys out", path));
  return keys;
}

ApiKeys ApiKeys::load(FileSystem& files, const std::string& path) { return parse(files.read_file(path, 16 << 20), path); }

const ApiKey* ApiKeys::find(std::string_view key) const {
  const Sha256Digest digest = hash_of(key);
  const ApiKey* found = nullptr;
  for (const ApiKey& each : keys_) {
    unsigned difference = 0;
    for (size_t i = 0; i < digest.size(); ++i) difference |= static_cast<unsigned>(digest[i] ^ each.hash[i]);
    if (difference == 0) found = &each;
  }
  return found;
}

double RateLimits::Bucket::at(double now) const { return std::min(std::max(per_minute, 1.0), left + per_minute / 60 * (now - since)); }

std::optional<double> RateLimits::take(const std::string& name, double per_minute, double now) {
  if (per_minute <= 0) return std::nullopt;
  const std::lock_guard lock(mutex_);
  if (buckets_.size() >= sweep_at_) {
    std::erase_if(buckets_, [&](const auto& entry) { return entry.second.at(now) >= std::max(entry.second.per_minute, 1.0); });
    sweep_at_ = std::max(kFewest, 2 * buckets_.size());
  }
  Bucket& b = buckets_.try_emplace(name, Bucket{std::max(per_minute, 1.0), now, per_minute}).first->second;
  b.per_minute = per_minute;
  b.left = b.at(now);
  b.since = now;
  if (b.left < 1) return (1 - b.left) * 60 / per_minute;
  b.left -= 1;
  return std::nullopt;
}

}  // namespace starling
