#include "train/rank_state.h"


#include "base/error.h"

namespace starling {
namespace {

constexpr Tag kStateTag = 1;

// Between the ranges of `whole` and `part`, which holds them one behind the other.
void copy_ranges(const Tensor& part, const Tensor& whole, const std::vector<Range>& ranges, bool to_part) {
  int64_t at = 0;
  for (const Range& r : ranges) {
    const Tensor a = part.slice(at, Shape{r.count()}), b = whole.slice(r.begin, Shape{r.count()});
    to_part ? a.copy_from(b) : b.copy_from(a);
    at += r.count();
  }
}

// The tensor as the file has it; null if it is not there in the same size.
const NamedBytes* saved_as(const SafetensorsFile* file, const std::string& name, const Tensor& t) {
  const NamedBytes* saved = file ? file->find(name) : nullptr;
  return saved && static_cast<int64_t>(saved->data.size()) == t.bytes() ? saved : nullptr;
}

void copy(const Tensor& to, const NamedBytes& from) { to.upload(std::as_bytes(from.data)); }

}  // namespace

bool RankState::sharded() const {
  const std::vector<Range> everything{{0, replica_.model().parameters().values().count()}};
  for (int r = 0; r < comm_.size(); ++r)
    if (replica_.strategy().owned(r) != everything) return true;
  return false;
}

NamedTensors RankState::gather_optimizer() {
  NamedTensors own = replica_.optimizer().state();
  if (!sharded()) return own;
  NamedTensors all;
  for (const auto& [name, mine] : own) {
    if (!first()) {
      if (mine.count() > 0) comm_.send(mine, 0, kStateTag).wait(kPatience);
      continue;
    }
    const Tensor& whole = all.emplace_back(name, Tensor({replica_.model().parameters().values().count()}, mine.dtype())).second;
    for (int r = 0; r < comm_.size(); ++r) {
      const std::vector<Range> ranges = replica_.strategy().owned(r);
      const Tensor part = r == 0 ? mine : Tensor({total(ranges)}, mine.dtype());
      if (r > 0 && part.count() > 0) comm_.receive(part, r, kStateTag).wait(kPatience);
      copy_ranges(part, whole, ranges, false);
    }
  }
  return all;
}

void RankState::scatter_optimizer(const NamedTensors& all) {
  const NamedTensors own = replica_.optimizer().state();
  const bool in_shards = sharded();
  for (size_t i = 0; i < own.size(); ++i) {
    const Tensor& mine = own[i].second;
    if (!in_shards) {
      if (first()) mine.copy_from(all[i].second);
      comm_.broadcast(mine, 0).wait(kPatience);
      continue;
    }
    if (!first()) {
      if (mine.count() > 0) comm_.receive(mine, 0, kStateTag).wait(kPatience);
      continue;
    }
    for (int r = 0; r < comm_.size(); ++r) {
      const std::vector<Range> ranges = replica_.strategy().owned(r);
      const Tensor part = r == 0 ? mine : Tensor({total(ranges)}, mine.dtype());
      copy_ranges(part, all[i].second, ranges, true);
      if (r > 0 && part.count() > 0) comm_.send(part, r, kStateTag).wait(kPatience);
    }
  }
}

NamedTensors RankState::shared() {
  NamedTensors all;
  for (const Strategy::StateTensor& t : replica_.strategy_state())
    if (t.shared) all.emplace_back(t.name, t.tensor);
  return all;
}

void RankState::scatter_shared(const SafetensorsFile* file) {
  for (const auto& [name, tensor] : shared()) {
    if (const NamedBytes* saved = saved_as(file, name, tensor)) copy(tensor, *saved);
    comm_.broadcast(tensor, 0).wait(kPatience);
  }
}

NamedTensors RankState::own() {
  NamedTensors all;
  if (replica_.strategy().replicas() != Replicas::equal) {
    all.emplace_back("parameters", replica_.model().parameters().values());
    for (const auto& t : replica_.optimizer().state()) all.push_back(t);
  }
  for (const Strategy::StateTensor& t : replica_.strategy_state())
    if (!t.shared) all.emplace_back(t.name, t.tensor);
  return all;
}

NamedTensors RankState::gather_own() {
  NamedTensors all;
  for (const auto& [name, mine] : own()) {
    if (!first()) {
      comm_.send(mine, 0, kStateTag).wait(kPatience);
      continue;
    }
    for (int r = 0; r < comm_.size(); ++r) {
      const Tensor& copy = all.emplace_back(fmt::format("rank{}.{}", r, name), Tensor(mine.shape(), mine.dtype())).second;
      if (r == 0)
        copy.copy_from(mine);
      else
        comm_.receive(copy, r, kStateTag).wait(kPatience);
    }
  }
  return all;
}

bool RankState::scatter_own(const SafetensorsFile* file) {
  const NamedTensors all = own();
  const auto name_of = [](int rank, const std::string& name) { return fmt::format("rank{}.{}", rank, name); };
  bool whole = file && !all.empty();
  for (int r = 0; whole && r < comm_.size(); ++r)
    for (const auto& [name, mine] : all) whole = whole && saved_as(file, name_of(r, name), mine);
  if (broadcast_text(comm_, whole ? "whole" : "") != "whole") return false;
  for (const auto& [name, mine] : all) {
    if (!first()) {
      comm_.receive(mine, 0, kStateTag).wait(kPatience);
      continue;
    }
    for (int r = comm_.size() - 1; r >= 0; --r) {
      const Tensor part = r == 0 ? mine : Tensor(mine.shape(), mine.dtype());
      copy(part, file->at(name_of(r, name)));
      if (r > 0) comm_.send(part, r, kStateTag).wait(kPatience);
    }
  }
  replica_.model().parameters().changed();
  return true;
}

void add_mean_moments(const SafetensorsFile& file, int64_t ranks, const NamedTensors& optimizer) {
  for (const auto& [name, mean] : optimizer)
    for (int64_t r = 0; r < ranks; ++r) {
      const NamedBytes* saved = saved_as(&file, fmt::format("rank{}.{}", r, name), mean);
      if (!saved) continue;
      const Tensor one(mean.shape(), mean.dtype());
      copy(one, *saved);
      for (int64_t i = 0; i < mean.count(); ++i) mean.data<float>()[i] += one.data<float>()[i] / static_cast<float>(ranks);
    }
}

}  // namespace starling
