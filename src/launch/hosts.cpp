#include "launch/hosts.h"

#include <algorithm>
#include <optional>
#include <sstream>

#include "base/ascii.h"
#include "base/error.h"
#include "base/text_files.h"
#include "base/utf8.h"
#include "config/config.h"

namespace starling {
namespace {

constexpr const char* kBlanks = " \t\r\n";
constexpr size_t kLongestName = 253;  // of a host in the domain name system; mpirun does not survive much longer ones

// Parses a number from 1 to 9999.
std::optional<int> number_of_slots(const std::string& text) {
  if (text.empty() || text.size() > 4 || text.find_first_not_of("0123456789") != std::string::npos || std::stoi(text) == 0) return {};
  return std::stoi(text);
}

// Whether the word has only characters of names and IPv4 addresses. mpirun gives others (^ + @ :) meanings of its own.
bool is_host(const std::string& name) {
  const auto fits = [](char c) { return is_ascii_letter_or_digit(c) || c == '.' || c == '-' || c == '_'; };
  return !name.empty() && name.size() <= kLongestName && name.front() != '-' && std::all_of(name.begin(), name.end(), fits);
}

LaunchHost* find(std::vector<LaunchHost>& hosts, const std::string& name) {
  const auto found = std::find_if(hosts.begin(), hosts.end(), [&](const LaunchHost& h) { return h.name == name; });
  return found == hosts.end() ? nullptr : &*found;
}

// Parses "alpha slots=2" without its comment; blanks are allowed around the =.
struct HostLine {
  std::string name;
  std::optional<int> slots;
};
HostLine read_line(std::string text, const std::string& place) {
  for (size_t at; (at = text.find('=')) != std::string::npos;) text.replace(at, 1, " \x01 ");
  std::istringstream words(text);
  HostLine line;
  words >> line.name;
  const auto wrong = [&](const std::string& what) {
    throw ConfigError(fmt::format("{}: {}; write HOST or HOST slots=N, for example: alpha slots=2", place, what));
  };
  if (!is_host(line.name)) wrong(fmt::format("{} is not a valid host name", in_quotes(line.name)));
  std::string key, sign, value;
  while (words >> key) {
    if (key != "slots") wrong(fmt::format("unknown option {} after the name of a host", in_quotes(key)));
    if (line.slots || !(words >> sign >> value) || sign != "\x01" || !(line.slots = number_of_slots(value)))
      wrong(fmt::format("slots takes one number, 1 to 9999{}", value.empty() ? "" : ", not " + in_quotes(value)));
  }
  return line;
}

}  // namespace

std::vector<LaunchHost> hosts_of_list(const std::string& list) {
  std::vector<LaunchHost> hosts;
  std::istringstream entries(list);
  for (std::string entry; std::getline(entries, entry, ',');) {
    entry = std::string(trimmed(entry, kBlanks));
    if (entry.empty()) continue;
    const size_t colon = entry.find(':');
    const std::string name = entry.substr(0, colon);
    const std::optional<int> slots = colon == std::string::npos ? 1 : number_of_slots(entry.substr(colon + 1));
    if (!is_host(name) || !slots)
      throw ConfigError(fmt::format("--hosts: {} is not HOST or HOST:RANKS; write for example --hosts alpha:2,beta:2", in_quotes(entry)));
    if (LaunchHost* known = find(hosts, name))
      known->slots += *slots;
    else
      hosts.push_back({name, *slots});
  }
  if (hosts.empty()) throw ConfigError("--hosts names no host; write for example --hosts alpha:2,beta:2");
  return hosts;
}

std::vector<LaunchHost> hosts_of_file(const std::string& path) {
  std::vector<LaunchHost> hosts;
  std::vector<std::string> alone;  // hosts named without slots
  std::istringstream lines(read_config_file(path));
  int64_t number = 0;
  for (std::string text; std::getline(lines, text);) {
    const std::string place = fmt::format("--hostfile: {}:{}", path, ++number);
    text = std::string(trimmed(std::string_view(text).substr(0, text.find('#')), kBlanks));
    if (number == 1) text = std::string(trimmed(std::string_view(text).substr(byte_order_mark(text)), kBlanks));
    if (text.empty()) continue;
    const HostLine line = read_line(text, place);
    const bool again = std::find(alone.begin(), alone.end(), line.name) != alone.end();
    LaunchHost* known = find(hosts, line.name);
    if (known && (line.slots || !again))
      throw ConfigError(fmt::format("{}: {} is named a second time; write one line with all its slots", place, in_quotes(line.name)));
    if (known)
      known->slots = std::max(known->slots, 1) + 1;
    else
      hosts.push_back({line.name, line.slots.value_or(0)});
    if (!line.slots) alone.push_back(line.name);
  }
  if (hosts.empty()) throw ConfigError(fmt::format("--hostfile: {} names no host; write one per line, for example: alpha slots=2", path));
  return hosts;
}

std::string host_list(const std::vector<LaunchHost>& hosts) {
  std::vector<std::string> entries;
  for (const LaunchHost& h : hosts) entries.push_back(h.slots > 0 ? fmt::format("{}:{}", h.name, h.slots) : h.name + ":*");
  return fmt::format("{}", fmt::join(entries, ","));
}

}  // namespace starling
