#include "run/run_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/sha256.h"
#include "storage/path_rollback.h"

namespace starling {
namespace {

// Whether there are tokens that were made from other files.
bool has_others(FileSystem& files, const std::string& run, const DataOptions& data, const Vocabularies& v) {
  return TokenStore::look(files, join_path(run, "data"), data, v.source(), v.target()) == StoreState::other;
}

}  // namespace

TokenStore open_run_tokens(FileSystem& files, const std::string& run, const DataOptions& data, const Vocabularies& v,
                           const StoreBuild& build, bool begun, const std::function<void(const TokenStore&)>& check) {
  const std::string place = join_path(run, "data"), aside = join_path(run, "data.new");
  const auto open = [&](const std::string& directory) {
    return TokenStore::open_or_build(files, directory, data, v.source(), v.target(), build);
  };
  if (!begun || TokenStore::look(files, place, data, v.source(), v.target()) == StoreState::current) {
    TokenStore store = open(place);
    check(store);
    TokenStore::remove(files, aside);
    return store;
  }
  // New files may have the same text, or another one, which is not this run's: that is known once they are tokenised.
  TokenStore::require_own(files, place);
  try {
    check(open(aside));
  } catch (const std::exception& e) {
    if (is_refusal(e)) TokenStore::remove(files, aside);
    throw;
  }
  TokenStore::remove(files, place);
  files.rename(aside, place);
  return TokenStore::open(files, place, build.threads);
}

TokenStore open_tokens_together(FileSystem& files, const std::string& run, const DataOptions& data, const Vocabularies& v,
                                const StoreBuild& build, World& world, const std::function<TokenStore()>& first, std::string& digest) {
  Communicator& comm = *world.comm;
  const auto wait = [&] { comm.barrier().wait(kNoDeadline); };
  std::optional<TokenStore> store;
  PathRollback made(files);
  const auto check = [&](const TokenStore& mine) {
    if (data_digest(mine) != digest)
      throw DataError(fmt::format("rank {} on {} reads different training data from rank 0 on {}; give every host the same files",
                                  comm.rank(), comm.host(comm.rank()), comm.host(0)));
  };
  const auto open = [&] { store.emplace(open_run_tokens(files, run, data, v, build, has_others(files, run, data, v), check)); };
  try {
    if (comm.rank() == 0) store.emplace(first());
    wait();
    digest = broadcast_text(comm, store ? data_digest(*store) : "");
    if (!store && world.local_rank == 0) {
      made.note_work(join_path(run, "data"));
      files.make_directories(run);
      open();
    }
    wait();
    if (!store) open();
    wait();  // a large store takes long to verify; what follows has the usual deadline
  } catch (const std::exception& e) {
    made.keep_work_unless_refused(e);
    throw;
  }
  made.keep();
  return std::move(*store);
}

std::string data_digest(const TokenStore& store) {
  Sha256 hash;
  const auto add = [&](const auto& values) { hash.update(std::as_bytes(std::span(values))); };
  add(std::vector<int64_t>{store.size(), store.tokens()});
  const int64_t count = std::min<int64_t>(store.size(), 4096);
  for (int64_t i = 0; i < count; ++i) {
    PackedTokens source, target;
    store.append(store.size() * i / count, source, target);
    add(source.tokens);
    add(target.tokens);
    std::vector<TokenLink> links;
    store.append_links(store.size() * i / count, links);
    if (!links.empty()) add(links);
  }
  return to_hex(hash.digest());
}

}  // namespace starling
