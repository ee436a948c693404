#include "train/shard.h"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace starling {
namespace {

using Json = nlohmann::json;

std::string shard_name(int rank) { return fmt::format("rank-{}.safetensors", rank); }

// The rank whose shard has this name.
std::optional<int> rank_of(const std::string& name) {
  constexpr std::string_view before = "rank-";
  int rank = 0;
  if (!name.starts_with(before)) return std::nullopt;
  std::from_chars(name.data() + before.size(), name.data() + name.size(), rank);
  return shard_name(rank) == name ? std::optional(rank) : std::nullopt;
}

std::optional<Range> overlap(const Range& a, const Range& b) {
  const Range both{std::max(a.begin, b.begin), std::min(a.end, b.end)};
  return both.begin < both.end ? std::optional(both) : std::nullopt;
}

Range range_of(const Parameter& p) { return {p.offset, p.offset + p.shape.count()}; }

std::vector<int64_t> dimensions(const Shape& shape) {
  std::vector<int64_t> all;
  for (int i = 0; i < shape.rank(); ++i) all.push_back(shape[i]);
  return all;
}

}  // namespace

void Shard::add(const std::string& name, std::vector<int64_t> shape, const Tensor& tensor) {
  const Tensor& here = here_.emplace_back(tensor.on_host());
  tensors_.push_back({name, tensor.dtype() == DType::f64 ? "F64" : "F32", std::move(shape), here.host_bytes()});
}

void Shard::add(const std::string& name, const Tensor& tensor) { add(name, std::vector<int64_t>{tensor.count()}, tensor); }

void Shard::add(const std::string& state, const Tensor& elements, std::span<const Range> ranges) {
  for (const Parameter& p : parameters_.all()) {
    Json parts = Json::array();
    int64_t at = 0, first = 0, count = 0;  // in `elements`
    for (const Range& r : ranges) {
      if (const auto own = overlap(r, range_of(p))) {
        if (count == 0) first = at + own->begin - r.begin;
        count += own->count();
        parts.push_back({own->begin - p.offset, own->end - p.offset});
      }
      at += r.count();
    }
    if (count == 0) continue;
    const bool whole = count == p.shape.count();
    add(state + "/" + p.name, whole ? dimensions(p.shape) : std::vector<int64_t>{count}, elements.slice(first, Shape{count}));
    if (!whole) layout_[tensors_.back().name] = std::move(parts);
  }
}

std::optional<Part> Shard::part(int rank) {
  if (tensors_.empty()) return std::nullopt;
  Part part = safetensors_part(shard_name(rank), std::move(tensors_), {{"layout", layout_.dump()}});
  part.write = [write = std::move(part.write), kept = std::move(here_)](ByteSink& sink) { write(sink); };
  return part;
}

SavedShards::SavedShards(FileSystem& files, const Loaded& checkpoint, const ParameterStore& parameters, int replica_ranks)
    : parameters_(parameters), directory_(checkpoint.directory), replica_ranks_(replica_ranks) {
  if (checkpoint.has("training.safetensors")) open_older(files, checkpoint);
  for (const PartInfo& part : checkpoint.files)
    if (const auto rank = rank_of(part.name)) open(files, checkpoint.path(part.name), *rank), ranks_ = std::max(ranks_, *rank + 1);
}

void SavedShards::open(FileSystem& files, const std::string& path, int rank) {
  const SafetensorsFile& file = files_.emplace_back(files, path);
  const auto refuse = [&](const std::string& what) {
    throw DataError(fmt::format("{}: {}; resume from another checkpoint: remove this one's directory", path, what));
  };
  const auto text = file.metadata().find("layout");
  const Json layout = text == file.metadata().end() ? Json::object() : parse_json_object(text->second, path);
  for (const NamedBytes& t : file.tensors()) {
    const size_t slash = t.name.find('/');
    if (slash == std::string::npos) {
      whole_[{rank, t.name}] = &t;
      continue;
    }
    const std::string name = t.name.substr(slash + 1);
    const auto& declared = parameters_.declared();
    const auto found = std::find_if(declared.begin(), declared.end(), [&](const Parameter* q) { return q->name == name; });
    if (found == declared.end()) refuse(fmt::format("{} is of no parameter of this model", t.name));
    const Parameter* p = *found;
    if (p->hold != Parameter::owned) continue;
    std::vector<std::pair<int64_t, int64_t>> ranges{{0, p->shape.count()}};
    try {
      if (layout.contains(t.name)) layout[t.name].get_to(ranges);
    } catch (const Json::exception&) {
      refuse(fmt::format("the layout of {} is no list of ranges", t.name));
    }
    int64_t count = 0;
    for (const auto& [begin, end] : ranges) {
      if (begin < 0 || begin >= end || end > p->shape.count()) refuse(fmt::format("the layout of {} has {} to {}", t.name, begin, end));
      count += end - begin;
    }
    const auto size = count == 0 ? 0 : static_cast<int64_t>(t.data.size()) / count;
    if (size * count != static_cast<int64_t>(t.data.size())) refuse(fmt::format("{} does not fit its layout", t.name));
    for (size_t at = 0; const auto& [begin, end] : ranges) {
      const auto bytes = static_cast<size_t>((end - begin) * size);
      pieces_[t.name.substr(0, slash)].push_back({rank, {p->offset + begin, p->offset + end}, t.data.subspan(at, bytes)});
      at += bytes;
    }
  }
}

// Flat states: those of all ranks together in training.safetensors, those of rank R as rankR.NAME in ranks.safetensors.
void SavedShards::open_older(FileSystem& files, const Loaded& checkpoint) {
  ranks_ = 1;
  if (parameters_.all().size() != parameters_.declared().size())
    throw DataError(fmt::format("{}: an old version wrote this checkpoint, and only whole models resume from it; make one update with "
                                "parallel.pipeline 1 first",
                                directory_));
  for (const NamedBytes& t : files_.emplace_back(files, checkpoint.path("training.safetensors")).tensors()) add_older(0, t.name, t, "");
  if (!checkpoint.has("ranks.safetensors")) return;
  for (const NamedBytes& t : files_.emplace_back(files, checkpoint.path("ranks.safetensors")).tensors()) {
    const size_t dot = t.name.find('.');
    if (dot == std::string::npos || !t.name.starts_with("rank")) continue;
    const int rank = std::atoi(t.name.c_str() + 4);
    add_older(rank, t.name.substr(dot + 1), t, "replica.");
    ranks_ = std::max(ranks_, rank + 1);
  }
}

void SavedShards::add_older(int rank, const std::string& name, const NamedBytes& t, const std::string& prefix) {
  const auto count = static_cast<size_t>(parameters_.values().count()), size = t.data.size() / count;
  if ((name != "parameters" && !name.starts_with("ada")) || size * count != t.data.size()) {
    whole_[{rank, name}] = &t;
    return;
  }
  for (const Parameter& p : parameters_.all()) {
    const Range r = range_of(p);
    const auto bytes = t.data.subspan(static_cast<size_t>(r.begin) * size, static_cast<size_t>(r.count()) * size);
    pieces_[prefix + name].push_back({rank, r, bytes});
  }
}

bool SavedShards::read(const std::string& state, std::optional<int> replica, std::span<const Range> ranges, std::span<std::byte> to) const {
  std::fill(to.begin(), to.end(), std::byte{0});
  int64_t elements = 0, missing = 0;
  for (const Range& r : ranges) elements += r.count();
  if (elements == 0) return true;
  const int64_t size = static_cast<int64_t>(to.size()) / elements;
  const auto found = pieces_.find(state);
  int64_t at = 0;
  for (const Range& r : ranges) {
    for (const Parameter& p : parameters_.all())
      if (const auto own = overlap(r, range_of(p))) missing += own->count();
    for (size_t i = 0; found != pieces_.end() && i < found->second.size(); ++i) {
      const Piece& piece = found->second[i];
      const auto own = replica && *replica != piece.rank / replica_ranks_ ? std::nullopt : overlap(r, piece.range);
      if (!own || static_cast<int64_t>(piece.bytes.size()) != piece.range.count() * size) continue;
      std::memcpy(to.data() + (at + own->begin - r.begin) * size, piece.bytes.data() + (own->begin - piece.range.begin) * size,
                  static_cast<size_t>(own->count() * size));
      missing -= own->count();
    }
    at += r.count();
  }
  return missing == 0;
}

bool SavedShards::has_own() const {
  return std::any_of(whole_.begin(), whole_.end(), [](const auto& tensor) { return tensor.first.first > 0; });
}

void SavedShards::require(bool whole, const std::string& state) const {
  if (!whole)
    throw DataError(
        fmt::format("{}: its {} are not whole; remove this checkpoint's directory to resume from the one before", directory_, state));
}

const NamedBytes* SavedShards::find(int rank, const std::string& name, int64_t bytes) const {
  const auto found = whole_.find({rank, name});
  return found != whole_.end() && static_cast<int64_t>(found->second->data.size()) == bytes ? found->second : nullptr;
}

}  // namespace starling
