#include "migration/conversion.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/files.h"
#include "base/quotes.h"
#include "config/foreign_yaml.h"
#include "config/suggestion.h"
#include "migration/marian_options.h"
#include "migration/peer_names.h"

namespace starling {
namespace {

std::string name_of(const YAML::Node& key) { return key.IsScalar() ? key.Scalar() : ""; }

void flatten(const YAML::Node& node, const std::string& name, std::map<std::string, std::vector<std::string>>& values) {
  if (node.IsMap()) {
    for (const auto& entry : node) flatten(entry.second, (name.empty() ? "" : name + "/") + name_of(entry.first), values);
    return;
  }
  std::vector<std::string>& all = values[name];
  if (node.IsSequence())
    for (const YAML::Node& each : node) all.push_back(each.IsScalar() ? each.Scalar() : "");
  else if (node.IsScalar())
    all.push_back(node.Scalar());
}

// Values in a remark.
std::string shown(const std::vector<std::string>& values) {
  constexpr size_t kMost = 60;
  const std::string text = fmt::format("{}", fmt::join(values, " "));
  return text.size() > kMost ? text.substr(0, kMost) + "..." : text;
}

// With relative-paths, Marian looks for files beside the configuration.
void beside_the_file(const std::string& file, std::map<std::string, std::vector<std::string>>& values) {
  const auto asked = values.find("relative-paths");
  const std::string directory = parent_path(file);
  if (asked == values.end() || asked->second.empty() || folded_name(asked->second[0]) != "true" || directory == ".") return;
  for (const char* name : {"train-sets", "valid-sets", "vocabs", "model", "pretrained-model", "data-weighting", "valid-script-path"})
    if (const auto found = values.find(name); found != values.end())
      for (std::string& path : found->second)
        if (!path.empty() && path[0] != '/' && path != "stdin" && path != "-") path = join_path(directory, path);
}

}  // namespace

PeerOptions::PeerOptions(const std::vector<PeerFile>& files, char peer) : peer_(peer) {
  for (const auto& [text, file] : files) {
    file_ = file;
    const YAML::Node root = read_foreign_yaml(text, file);
    if (!root.IsMap()) throw ConfigError(fmt::format("{} is not a configuration; expected lines of 'option: value'", file));
    std::map<std::string, std::vector<std::string>> own;
    flatten(root, "", own);
    if (peer == 'M') beside_the_file(file, own);
    for (auto& [name, value] : own) values_[name] = std::move(value);
  }
}

void PeerOptions::imply(const std::string& name, const std::vector<std::string>& value) {
  if (values_.emplace(name, value).second) implied_.insert(name);
}

std::vector<std::string> PeerOptions::list(const std::string& name) {
  const auto found = values_.find(name);
  if (found == values_.end()) return {};
  taken_[name] = true;
  return found->second;
}

std::optional<std::string> PeerOptions::text(const std::string& name) {
  const std::vector<std::string> all = list(name);
  if (all.empty()) return std::nullopt;
  return all.front();
}

std::optional<double> PeerOptions::number(const std::string& name) {
  const std::optional<std::string> value = text(name);
  if (!value) return std::nullopt;
  if (const size_t count = values_.at(name).size(); peer_ == 'M' && count > 1)
    throw ConfigError(fmt::format("{}: {} has {} values, but Marian takes only one; give one", file_, name, count));
  double number = 0;
  const auto [end, error] = std::from_chars(value->data(), value->data() + value->size(), number);
  if (error != std::errc() || end != value->data() + value->size())
    throw ConfigError(fmt::format("{}: {} is '{}', which is not a number", file_, name, *value));
  return number;
}

bool PeerOptions::flag(const std::string& name) {
  const std::optional<std::string> value = text(name);
  return value && !value->empty() && folded_name(*value) != "false" && *value != "0" && *value != "no";
}

void PeerOptions::take(std::initializer_list<const char*> names) {
  for (const char* name : names) taken_[name] = true;
}

std::vector<std::string> PeerOptions::names_below(const std::string& prefix) const {
  std::vector<std::string> names;
  for (const auto& [name, value] : values_)
    if (name.starts_with(prefix)) names.push_back(name.substr(prefix.size()));
  return names;
}

void PeerOptions::set(const std::string& key, double value) { set(key, fmt::format("{}", value)); }

void PeerOptions::set_count(const std::string& key, double value) { set(key, fmt::format("{:.0f}", value)); }

void PeerOptions::copy(const std::string& name, const std::string& key) {
  if (const std::optional<std::string> value = text(name)) set(key, *value);
}

void PeerOptions::add(std::vector<std::string>& remarks, std::string_view line) {
  remarks.push_back(without_controls(line));
  for (char& c : remarks.back())
    if (c == '\n' || c == '\t') c = ' ';
}

// Says what becomes of an option that nothing was made of.
void PeerOptions::remark(const std::string& name, const std::vector<std::string>& values) {
  const std::string whole = values.empty() || values[0].empty() ? name : fmt::format("{} {}", name, shown(values));
  if (peer_ == 'M') {
    const MarianOption* const option = marian_option(name);
    if (!option) return missing(fmt::format("{}: Marian has no such training option", name));
    if (is_standard(*option, values) || implied_.contains(name)) return;
    if (option->fate == MarianFate::always) return not_needed(fmt::format("{}: {}", name, text_of(*option)));
    const char* const how = option->fate == MarianFate::none ? "no counterpart" : "set by hand";
    return missing(fmt::format("{}: {}: {}", whole, how, text_of(*option)));
  }
  const std::string last = name.substr(name.rfind('/') + 1);
  const PeerName* row = nullptr;
  for (const PeerName& each : peer_names())
    if (!row && (each.peers.empty() || each.peers.find(peer_) != std::string_view::npos) && folded_name(each.name) == folded_name(last))
      row = &each;
  if (!row)
    missing(fmt::format("{}: unknown here, and left out", name));
  else if (!row->key.empty())
    missing(fmt::format("{}: see {}{}", name, row->key, row->note.empty() ? "" : fmt::format(" ({})", row->note)));
  else
    not_needed(fmt::format("{}: {}", name, row->note.empty() ? row->option : row->note));
}

Conversion PeerOptions::done() {
  const auto known = [&](const auto& each) { return marian_option(each.first) != nullptr; };
  if (peer_ == 'M' && !values_.empty() && std::none_of(values_.begin(), values_.end(), known))
    throw ConfigError(fmt::format("{}: none of its keys ({}, ...) is a Marian option; give the file that marian --config reads", file_,
                                  values_.begin()->first));
  for (const auto& [name, values] : values_)
    if (!taken_[name]) remark(name, values);
  result_.file = file_;
  for (const PeerName& row : peer_names())
    if (const std::string name(row.name); !row.key.empty() && row.peers.find(peer_) != std::string_view::npos && values_.contains(name))
      result_.names.emplace(row.key, name);
  return std::move(result_);
}

std::string with_names_of_file(const Conversion& conversion, const std::function<std::string()>& use) {
  try {
    return use();
  } catch (const ConfigError& e) {
    const std::string message = e.what(), place = "command line: ";
    if (!message.starts_with(place)) throw;
    for (const auto& [key, name] : conversion.names)
      if (message.compare(place.size(), key.size() + 1, key + ":") == 0)
        throw ConfigError(fmt::format("{}: {}{}; it is {} here", conversion.file, name, message.substr(place.size() + key.size()), key));
    throw;
  }
}

}  // namespace starling
