#include "migration/conversion.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "config/suggestion.h"
#include "migration/peer_names.h"

namespace starling {
namespace {

void flatten(const YAML::Node& node, const std::string& name, std::map<std::string, std::vector<std::string>>& values) {
  if (node.IsMap()) {
    for (const auto& entry : node) flatten(entry.second, (name.empty() ? "" : name + "/") + entry.first.as<std::string>(), values);
    return;
  }
  std::vector<std::string>& all = values[name];
  if (node.IsSequence())
    for (const YAML::Node& each : node) all.push_back(each.IsScalar() ? each.Scalar() : "");
  else if (node.IsScalar())
    all.push_back(node.Scalar());
}

}  // namespace

PeerOptions::PeerOptions(const std::string& text, const std::string& file, char peer) : file_(file), peer_(peer) {
  try {
    const YAML::Node root = YAML::Load(text);
    if (!root.IsMap()) throw ConfigError(fmt::format("{} is not a configuration: it has no options with values", file));
    flatten(root, "", values_);
  } catch (const YAML::Exception& e) {
    throw ConfigError(fmt::format("{}:{}: this is not YAML: {}", file, e.mark.line + 1, e.msg));
  }
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

Conversion PeerOptions::done() {
  for (const auto& [name, value] : values_) {
    if (taken_[name]) continue;
    const std::string last = name.substr(name.rfind('/') + 1);
    const PeerName* row = nullptr;
    for (const PeerName& each : peer_names())
      if (!row && (each.peers.empty() || each.peers.find(peer_) != std::string_view::npos) && folded_name(each.name) == folded_name(last))
        row = &each;
    if (!row)
      result_.missing.push_back(fmt::format("{}: unknown here, and left out", name));
    else if (!row->key.empty())
      result_.missing.push_back(fmt::format("{}: see {}{}", name, row->key, row->note.empty() ? "" : fmt::format(" ({})", row->note)));
    else
      result_.not_needed.push_back(fmt::format("{}: {}", name, row->note.empty() ? row->option : row->note));
  }
  return std::move(result_);
}

}  // namespace starling
