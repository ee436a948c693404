#include "saving/rank_checkpoint.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <stdexcept>

namespace starling {
namespace {

using Json = nlohmann::json;

std::string shard_name(int rank) { return fmt::format("rank-{}.safetensors", rank); }

// Returns the rank whose file has this name.
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

// Returns the elements of the whole parameter that a tensor's layout names; the layout of a shard counts them within the shard.
std::vector<Range> ranges_of(const Json& layout, const Parameter& p) {
  const auto require = [](bool good, const std::string& what) {
    if (!good) throw std::out_of_range(what);
  };
  const bool shard = layout.is_object();
  std::vector<Range> runs{{0, p.whole.count()}}, ranges;
  if (shard) {
    const auto cut = layout.at("cut").get<std::array<int, 4>>();
    require(cut[0] >= 0 && cut[0] < p.whole.rank() && cut[1] > 0 && p.whole[cut[0]] % cut[1] == 0 && cut[2] >= 0 && cut[2] < cut[3],
            "is that of a parameter of another shape");
    runs = shard_ranges(p.whole, {cut[0], cut[1]}, cut[2], cut[3]);
  }
  std::vector<std::pair<int64_t, int64_t>> listed;
  (shard ? layout.at("ranges") : layout).get_to(listed);
  for (int64_t last = 0; const auto& [begin, end] : listed) {
    require(last <= begin && begin < end && end <= total(runs), fmt::format("has the invalid range {} to {}", begin, end));
    last = end;
    each_run(runs, {begin, end}, [&](const Range& run, int64_t) { ranges.push_back(run); });
  }
  return ranges;
}

std::vector<int64_t> dimensions(const Shape& shape) {
  std::vector<int64_t> all;
  for (int i = 0; i < shape.rank(); ++i) all.push_back(shape[i]);
  return all;
}

}  // namespace

void RankCheckpoint::add(const std::string& name, std::vector<int64_t> shape, const Tensor& tensor) {
  const Tensor& here = here_.emplace_back(tensor.on_host());
  tensors_.push_back({name, tensor.dtype() == DType::f64 ? "F64" : "F32", std::move(shape), here.host_bytes()});
}

void RankCheckpoint::add(const std::string& name, const Tensor& tensor) { add(name, std::vector<int64_t>{tensor.count()}, tensor); }

void RankCheckpoint::add(const std::string& state, const Tensor& elements, std::span<const Range> ranges) {
  for (const Parameter& p : parameters_.all()) {
    Json parts = Json::array();
    int64_t at = 0, first = 0, count = 0;  // in `elements`
    for (const Range& r : ranges) {
      if (const auto own = overlap(r, range_of(p))) {
        if (count == 0) first = at + own->begin - r.begin;
        count += own->count();
        parts.push_back({own->begin - p.offset + p.first, own->end - p.offset + p.first});
      }
      at += r.count();
    }
    if (count == 0) continue;
    const bool all = !p.copy && count == p.shape.count();
    add(state + "/" + p.name, all ? dimensions(p.shape) : std::vector<int64_t>{count}, elements.slice(first, Shape{count}));
    if (parameters_.is_cut(p)) {
      const ShardGroup& shards = *parameters_.shards();
      layout_[tensors_.back().name] = {{"cut", {p.cut.axis, p.cut.blocks, shards.rank(), shards.size()}}, {"ranges", std::move(parts)}};
    } else if (!all) {
      layout_[tensors_.back().name] = std::move(parts);
    }
  }
}

std::optional<Part> RankCheckpoint::part(int rank) {
  if (tensors_.empty()) return std::nullopt;
  Part part = safetensors_part(shard_name(rank), std::move(tensors_), {{"layout", layout_.dump()}});
  part.write = [write = std::move(part.write), kept = std::move(here_)](ByteSink& sink) { write(sink); };
  return part;
}

RankCheckpoints::RankCheckpoints(FileSystem& files, const Loaded& checkpoint, const ParameterStore& parameters, int replica_ranks)
    : parameters_(parameters), directory_(checkpoint.directory), replica_ranks_(replica_ranks) {
  if (checkpoint.has("training.safetensors")) open_older(files, checkpoint);
  for (const PartInfo& part : checkpoint.files)
    if (const auto rank = rank_of(part.name)) open(files, checkpoint.path(part.name), *rank), ranks_ = std::max(ranks_, *rank + 1);
}

void RankCheckpoints::open(FileSystem& files, const std::string& path, int rank) {
  const SafetensorsFile& file = files_.emplace_back(files, path);
  const auto refuse = [&](const std::string& what) {
    throw DataError(fmt::format("{}: {}; to resume from another checkpoint, remove this one's directory", path, what));
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
    if (found == declared.end()) refuse(fmt::format("{} belongs to no parameter of this model", t.name));
    const Parameter* p = *found;
    if (p->hold != Parameter::owned && !parameters_.part_of(*p)) continue;
    std::vector<Range> ranges{{0, p->whole.count()}};
    try {
      if (layout.contains(t.name)) ranges = ranges_of(layout[t.name], *p);
    } catch (const Json::exception&) {
      refuse(fmt::format("the layout of {} is not a list of ranges", t.name));
    } catch (const std::out_of_range& e) {
      refuse(fmt::format("the layout of {} {}", t.name, e.what()));
    }
    const int64_t count = total(ranges), size = count == 0 ? 0 : static_cast<int64_t>(t.data.size()) / count;
    if (size * count != static_cast<int64_t>(t.data.size())) refuse(fmt::format("{} does not fit its layout", t.name));
    std::vector<Piece>& pieces = pieces_[t.name.substr(0, slash)][{p->index, rank}];
    size_t at = 0;
    for (const Range& r : ranges) {
      const auto bytes = static_cast<size_t>(r.count() * size);
      pieces.push_back({r, t.data.subspan(at, bytes)});
      at += bytes;
    }
  }
}

// Flat states are in training.safetensors for all ranks together, and in ranks.safetensors as rankR.NAME for rank R.
void RankCheckpoints::open_older(FileSystem& files, const Loaded& checkpoint) {
  ranks_ = 1;
  if (parameters_.all().size() != parameters_.declared().size() || parameters_.shards())
    throw DataError(
        fmt::format("{}: this checkpoint is from an old version, and only an undivided model can resume from it; to convert it, make one "
                    "update without parallel.pipeline and parallel.tensor",
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

void RankCheckpoints::add_older(int rank, const std::string& name, const NamedBytes& t, const std::string& prefix) {
  const auto count = static_cast<size_t>(parameters_.flat_count()), size = t.data.size() / count;
  if ((name != "parameters" && !name.starts_with("ada")) || size * count != t.data.size()) {
    whole_[{rank, name}] = &t;
    return;
  }
  for (const Parameter& p : parameters_.all()) {
    const Range r = range_of(p);
    const auto bytes = t.data.subspan(static_cast<size_t>(r.begin) * size, static_cast<size_t>(r.count()) * size);
    pieces_[prefix + name][{p.index, rank}].push_back({{0, r.count()}, bytes});
  }
}

bool RankCheckpoints::read(const std::string& state, std::optional<int> replica, std::span<const Range> ranges,
                           std::span<std::byte> to) const {
  std::fill(to.begin(), to.end(), std::byte{0});
  int64_t elements = 0, missing = 0, at = 0;
  for (const Range& r : ranges) elements += r.count();
  if (elements == 0) return true;
  const int64_t size = static_cast<int64_t>(to.size()) / elements;
  const auto found = pieces_.find(state);
  for (const Range& r : ranges) {
    for (const Parameter& p : parameters_.all()) {
      const auto own = overlap(r, range_of(p));
      if (!own) continue;
      missing += own->count();
      if (found == pieces_.end()) continue;
      each_run(parameters_.local_ranges(p), {own->begin - p.offset, own->end - p.offset}, [&](const Range& run, int64_t here) {
        std::byte* const begin = to.data() + (at + p.offset + here - r.begin) * size;
        const auto of_rank = [&](const auto& entry) { return !replica || *replica == entry.first.second / replica_ranks_; };
        for (auto e = found->second.lower_bound({p.index, 0}); e != found->second.end() && e->first.first == p.index; ++e)
          if (of_rank(*e)) missing -= copy(e->second, run, size, begin);
      });
    }
    at += r.count();
  }
  require_whole();
  return missing == 0;
}

void RankCheckpoints::require_whole() const {
  for (const SafetensorsFile& file : files_) file.require_whole();
}

// Copies what these pieces have of a run of elements, whose first one goes to `to`; returns how many elements that is.
int64_t RankCheckpoints::copy(const std::vector<Piece>& pieces, const Range& run, int64_t size, std::byte* to) {
  int64_t copied = 0;
  auto piece = std::partition_point(pieces.begin(), pieces.end(), [&](const Piece& p) { return p.range.end <= run.begin; });
  for (; piece != pieces.end() && piece->range.begin < run.end; ++piece) {
    if (static_cast<int64_t>(piece->bytes.size()) != piece->range.count() * size) continue;
    const auto both = *overlap(run, piece->range);
    std::memcpy(to + (both.begin - run.begin) * size, piece->bytes.data() + (both.begin - piece->range.begin) * size,
                static_cast<size_t>(both.count() * size));
    copied += both.count();
  }
  return copied;
}

bool RankCheckpoints::has_own() const {
  return std::any_of(whole_.begin(), whole_.end(), [](const auto& tensor) { return tensor.first.first > 0; });
}

void RankCheckpoints::require(bool whole, const std::string& state) const {
  if (!whole)
    throw DataError(
        fmt::format("{}: its {} are incomplete; remove this checkpoint's directory to resume from the one before it", directory_, state));
}

const NamedBytes* RankCheckpoints::find(int rank, const std::string& name, int64_t bytes) const {
  const auto found = whole_.find({rank, name});
  return found != whole_.end() && static_cast<int64_t>(found->second->data.size()) == bytes ? found->second : nullptr;
}

}  // namespace starling
