#include "interop/hf_weights.h"

#include <algorithm>
#include <cmath>

#include "interop/foreign_array.h"
#include "interop/hf_names.h"

namespace starling {
namespace {

constexpr const char *kWhole = "model.safetensors", *kIndex = "model.safetensors.index.json";

// The files of an index, each once.
std::set<std::string> files_of_index(const ForeignFiles& folder) {
  const BudgetScope scope(folder.budget());
  const HfSettings index(folder.read(kIndex), folder.where(kIndex), folder.budget());
  const nlohmann::json* const map = index.find("weight_map");
  if (!map || !map->is_object()) throw DataError(fmt::format("{}: weight_map is missing; fetch the file again", index.where()));
  std::set<std::string> files;
  for (const auto& [tensor, file] : map->items()) {
    if (!file.is_string()) throw DataError(fmt::format("{}: the file of {} is not named", index.where(), printable(tensor)));
    files.insert(file.get<std::string>());
  }
  for (const std::string& file : files)
    if (!folder.has(file))
      throw DataError(fmt::format("{}: it names {}, which is not there; fetch it too", index.where(), printable(file)));
  return files;
}

std::set<std::string> files_of_weights(const ForeignFiles& folder) {
  if (folder.has(kWhole)) return {kWhole};
  if (folder.has(kIndex)) return files_of_index(folder);
  std::set<std::string> files, pickles;
  for (const std::string& name : folder.names()) {
    if (at_top(name) && name.ends_with(".safetensors")) files.insert(name);
    if (at_top(name) && name.starts_with("pytorch_model")) pickles.insert(name);
  }
  if (files.size() == 1) return files;
  if (files.empty())
    throw ConfigError(fmt::format(
        "{}: its weights are not there as safetensors{}; convert them where transformers is installed: "
        "AutoModelForSeq2SeqLM.from_pretrained(DIRECTORY).save_pretrained(DIRECTORY, safe_serialization=True)",
        folder.where(""), pickles.empty() ? "" : " but as " + *pickles.begin() + ", a Python pickle, which can run any program"));
  throw ConfigError(fmt::format("{}: there are several files of weights, such as {} and {}, but no {}; leave only those of one model there",
                                folder.where(""), *files.begin(), *files.rbegin(), kIndex));
}

}  // namespace

HfWeights::HfWeights(const ForeignFiles& folder) {
  const std::set<std::string> files = files_of_weights(folder);
  where_ = folder.where(files.size() == 1 ? *files.begin() : "");
  for (const std::string& file : files) add(folder.read(file), folder.where(file), folder.budget());
}

HfWeights::HfWeights(std::string bytes, std::string where) : where_(std::move(where)) {
  ByteBudget budget(bytes.size());
  add(std::move(bytes), where_, budget);
}

void HfWeights::add(std::string bytes, const std::string& where, ByteBudget& budget) {
  files_.push_back(std::make_unique<std::string>(std::move(bytes)));
  for (NamedBytes& tensor : parse_safetensors(std::as_bytes(std::span(*files_.back())), where, budget).tensors) {
    const std::string name = tensor.name;
    if (!tensors_.emplace(name, std::move(tensor)).second) throw DataError(fmt::format("{}: {} occurs twice", where, printable(name)));
  }
}

std::vector<float> HfWeights::floats(const std::string& name, const std::vector<int64_t>& shape) {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) throw DataError(fmt::format("{}: tensor {} is missing; fetch the model again", where_, name));
  const NamedBytes& t = found->second;
  if (t.shape != shape)
    throw DataError(
        fmt::format("{}: {} is [{}], but config.json asks for [{}]", where_, name, fmt::join(t.shape, ", "), fmt::join(shape, ", ")));
  const char* const type = t.dtype == "F32" ? "f4" : t.dtype == "F16" ? "f2" : t.dtype == "BF16" ? "b2" : nullptr;
  if (!type) throw ConfigError(fmt::format("{}: {} has elements of type {}, not F32, F16 or BF16", where_, name, t.dtype));
  used_.insert(name);
  return float_values(type, {reinterpret_cast<const char*>(t.data.data()), t.data.size()});
}

bool HfWeights::same(const std::string& a, const std::string& b) const {
  const NamedBytes &x = tensors_.at(a), &y = tensors_.at(b);
  return x.dtype == y.dtype && x.shape == y.shape && std::equal(x.data.begin(), x.data.end(), y.data.begin(), y.data.end());
}

void HfWeights::require_all_used() const {
  std::vector<std::string> rest;
  for (const auto& [name, tensor] : tensors_)
    if (!used_.contains(name)) rest.push_back(printable(name));
  if (rest.empty()) return;
  const size_t more = rest.size();
  rest.resize(std::min<size_t>(more, 5));
  throw ConfigError(fmt::format("{}: it has weights that Starling's models do not have: {}{}; it cannot be imported", where_,
                                fmt::join(rest, ", "), more > rest.size() ? fmt::format(" and {} more", more - rest.size()) : ""));
}

}  // namespace starling
