#include "saving/rank_state.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace starling {
namespace {

constexpr Tag kStateTag = 1;

// sum += x / n, of elements that are T.
template <class T>
void add_share(std::span<std::byte> sum, std::span<const std::byte> x, int n) {
  for (size_t at = 0; at < sum.size(); at += sizeof(T)) {
    T a, b;
    std::memcpy(&a, &sum[at], sizeof(T));
    std::memcpy(&b, &x[at], sizeof(T));
    a += b / static_cast<T>(n);
    std::memcpy(&sum[at], &a, sizeof(T));
  }
}

}  // namespace

bool RankState::sharded() const {
  for (int r = 0; r < comm_.size(); ++r)
    if (replica_.strategy().owned(r) != everything()) return true;
  return false;
}

std::optional<Part> RankState::shard(const Tensor& values, const std::vector<Strategy::StateTensor>& strategy) {
  const Replicas replicas = replica_.strategy().replicas();
  RankCheckpoint shard(replica_.model().parameters());
  const auto optimizer = replica_.optimizer().state();
  if (replicas == Replicas::merged) {
    shard.add("replica.parameters", values, everything());
    for (const auto& [name, tensor] : optimizer) shard.add("replica." + name, tensor, everything());
  } else if (replicas == Replicas::equal && (first() || sharded())) {
    for (const auto& [name, tensor] : optimizer) shard.add(name, tensor, replica_.strategy().owned(comm_.rank()));
  }
  for (const Strategy::StateTensor& t : strategy) {
    if (t.shared && !first()) continue;
    const bool served = replicas == Replicas::served && t.tensor.count() == values.count();
    if (!served)
      shard.add(t.name, t.tensor);
    else if (t.name != "parameters")  // they are the model's
      shard.add(t.name, t.tensor, everything());
  }
  if (const Tensor& average = replica_.average()) shard.add("parameters", average, everything());  // swapped: the raw values
  return shard.part(mesh_.all().rank());
}

std::vector<std::byte> RankState::moments(const RankCheckpoints* saved, const std::string& name, const std::vector<Range>& ranges,
                                          DType type) const {
  std::vector<std::byte> bytes(static_cast<size_t>(total(ranges) * size_of(type)));
  if (!saved) return bytes;
  if (saved->has(name)) {
    saved->require(saved->read(name, std::nullopt, ranges, bytes), name);
    return bytes;
  }
  std::vector<std::byte> one(bytes.size());
  for (int r = 0; r < saved->replicas(); ++r)
    if (saved->read("replica." + name, r, ranges, one))
      type == DType::f64 ? add_share<double>(bytes, one, saved->replicas()) : add_share<float>(bytes, one, saved->replicas());
  return bytes;
}

bool RankState::scatter_optimizer(const RankCheckpoints* saved) {
  const auto states = replica_.optimizer().state();
  const bool here = saved && std::all_of(states.begin(), states.end(), [&](const auto& state) {
                      return saved->has(state.first) || saved->has("replica." + state.first);
                    });
  if (broadcast_text(comm_, here ? "here" : "") != "here") {
    replica_.optimizer().reset_moments();
    return false;
  }
  const bool in_shards = sharded();
  for (const auto& [name, mine] : states) {
    const auto of = [&](int rank) {
      return moments(saved, name, in_shards ? replica_.strategy().owned(rank) : everything(), mine.dtype());
    };
    if (!in_shards) {
      if (first()) mine.upload(of(0));
      comm_.broadcast(mine, 0).wait(kNoDeadline);
    } else if (!first()) {
      if (mine.count() > 0) comm_.receive(mine, 0, kStateTag).wait(kNoDeadline);
    } else {
      for (int r = 1; r < comm_.size(); ++r) {
        const Tensor part({total(replica_.strategy().owned(r))}, mine.dtype());
        if (part.count() == 0) continue;
        part.upload(of(r));
        comm_.send(part, r, kStateTag).wait(kNoDeadline);
      }
      mine.upload(of(0));
    }
  }
  return true;
}

void RankState::scatter_shared(const RankCheckpoints* saved) {
  for (const Strategy::StateTensor& t : replica_.strategy_state()) {
    if (!t.shared) continue;
    if (const NamedBytes* file = saved ? saved->find(mesh_.rank_of(0), t.name, t.tensor.bytes()) : nullptr) {
      t.tensor.upload(file->data);
      saved->require_whole();
    }
    comm_.broadcast(t.tensor, 0).wait(kNoDeadline);
  }
}

std::vector<RankState::Own> RankState::own() {
  std::vector<Own> all;
  if (replica_.strategy().replicas() == Replicas::merged) {
    all.push_back({"replica.parameters", replica_.model().parameters().values(), true});
    for (const auto& [name, tensor] : replica_.optimizer().state()) all.push_back({"replica." + name, tensor, true});
  }
  for (const Strategy::StateTensor& t : replica_.strategy_state())
    if (!t.shared) all.push_back({t.name, t.tensor, false});
  return all;
}

bool RankState::read(const RankCheckpoints& saved, const Own& own, int replica, std::vector<std::byte>& bytes) const {
  bytes.resize(static_cast<size_t>(own.tensor.bytes()));
  if (own.of_parameters) return saved.read(own.name, replica, everything(), bytes);
  const NamedBytes* found = saved.find(mesh_.rank_of(replica), own.name, own.tensor.bytes());
  if (found) bytes.assign(found->data.begin(), found->data.end());
  saved.require_whole();
  return found != nullptr;
}

bool RankState::scatter_own(const RankCheckpoints* saved) {
  const std::vector<Own> all = own();
  std::vector<std::byte> bytes;
  bool whole = saved && !all.empty();
  for (int r = 0; whole && r < comm_.size(); ++r)
    for (const Own& o : all) whole = whole && read(*saved, o, r, bytes);
  if (broadcast_text(comm_, whole ? "whole" : "") != "whole") return false;
  for (const Own& o : all) {
    if (!first()) {
      comm_.receive(o.tensor, 0, kStateTag).wait(kNoDeadline);
      continue;
    }
    for (int r = comm_.size() - 1; r >= 0; --r) {
      const Tensor part = r == 0 ? o.tensor : Tensor(o.tensor.shape(), o.tensor.dtype());
      read(*saved, o, r, bytes);
      part.upload(bytes);
      if (r > 0) comm_.send(part, r, kStateTag).wait(kNoDeadline);
    }
  }
  replica_.model().parameters().changed();
  return true;
}

}  // namespace starling
