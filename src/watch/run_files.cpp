#include "watch/run_files.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>

#include "base/text_files.h"
#include "config/foreign_yaml.h"

namespace starling {
namespace {

namespace fs = std::filesystem;

constexpr size_t kSentences = 5;    // shown of a validation text
constexpr size_t kValidations = 8;  // whose translations are shown
constexpr size_t kMostLines = 1'000'000;

void add_flat(const YAML::Node& node, const std::string& name, std::map<std::string, std::string>& values) {
  if (node.IsMap()) {
    for (const auto& entry : node) add_flat(entry.second, (name.empty() ? "" : name + ".") + entry.first.as<std::string>(), values);
  } else if (node.IsSequence() && node.size() > 0 && node[0].IsMap()) {
    for (size_t i = 0; i < node.size(); ++i) add_flat(node[i], fmt::format("{}.{}", name, i), values);
  } else if (node.IsSequence()) {
    std::string list;
    for (const auto& item : node) list += (list.empty() ? "" : ", ") + (item.IsScalar() ? item.as<std::string>() : "...");
    values[name] = list;
  } else {
    values[name] = node.IsScalar() ? node.as<std::string>() : "";
  }
}

// The kept translations of a run by update: validations/1200.txt. Files of other names are not ours.
std::map<int64_t, std::string> kept(const std::string& run_directory) {
  std::map<int64_t, std::string> steps;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(run_directory + "/validations", error)) {
    const std::string name = entry.path().stem().string();
    int64_t step = 0;
    const auto read = std::from_chars(name.data(), name.data() + name.size(), step);
    if (read.ec == std::errc() && read.ptr == name.data() + name.size() && entry.path().extension() == ".txt")
      steps[step] = entry.path().string();
  }
  return steps;
}

// Whether a path is that of a plain file that is no larger than a validation text.
bool is_text(const std::string& path) {
  constexpr uint64_t kMost = 64 << 20;
  std::error_code error;
  return fs::is_regular_file(path, error) && fs::file_size(path, error) <= kMost;
}

// Returns the lines of a file at these places; an empty one where it ends before.
std::vector<std::string> lines_at(const std::string& path, const std::vector<size_t>& places) {
  std::vector<std::string> found(places.size());
  std::ifstream file(path);
  std::string line;
  size_t next = 0;
  for (size_t at = 0; next < places.size() && std::getline(file, line); ++at)
    if (at == places[next]) found[next++] = line;
  return found;
}

size_t count_lines(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  size_t count = 0;
  while (count < kMostLines && std::getline(file, line)) ++count;
  return count;
}

}  // namespace

std::string FileMark::text() const { return fmt::format("{} {} {}", size, inode, changed_ns); }

std::optional<FileMark> file_mark(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return std::nullopt;
  return FileMark{static_cast<uint64_t>(info.st_size), info.st_ino, info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec};
}

std::string bytes_from(const std::string& path, uint64_t offset, uint64_t most) {
  std::ifstream file(path, std::ios::binary);
  if (!file.seekg(static_cast<std::streamoff>(offset))) return "";
  std::string bytes(most, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(most));
  bytes.resize(static_cast<size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return bytes;
}

std::vector<std::string> last_lines(const std::string& path, size_t count) {
  constexpr uint64_t kEnd = 64 << 10;
  const auto mark = file_mark(path);
  if (!mark) return {};
  const uint64_t from = mark->size > kEnd ? mark->size - kEnd : 0;
  const std::string bytes = bytes_from(path, from, kEnd);
  std::vector<std::string> lines;
  for (size_t at = from == 0 ? 0 : bytes.find('\n') + 1; at < bytes.size();) {
    const size_t end = std::min(bytes.find('\n', at), bytes.size());
    lines.push_back(bytes.substr(at, end - at));
    at = end + 1;
  }
  if (lines.size() > count) lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(count));
  return lines;
}

std::map<std::string, std::string> flat_configuration(const std::string& path) {
  std::map<std::string, std::string> values;
  try {
    if (!fs::is_regular_file(path)) return values;
    add_flat(read_foreign_yaml(read_config_file(path), path), "", values);
  } catch (const std::exception&) {  // missing, being written, or none of ours
    values.clear();
  }
  return values;
}

std::string kept_sentences_mark(const std::string& run_directory) {
  const auto steps = kept(run_directory);
  if (steps.empty()) return "";
  const auto mark = file_mark(steps.rbegin()->second);
  return fmt::format("{} {} {}", steps.size(), steps.rbegin()->first, mark ? mark->text() : "");
}

nlohmann::json kept_sentences(const std::string& run_directory, const std::map<std::string, std::string>& configuration) {
  const auto steps = kept(run_directory);
  if (steps.empty() || !is_text(steps.rbegin()->second)) return nlohmann::json::object();
  const size_t all = count_lines(steps.rbegin()->second);
  std::vector<size_t> places;
  for (size_t i = 0; i < std::min(kSentences, all); ++i) places.push_back(i * all / std::min(kSentences, all));
  nlohmann::json by_step = nlohmann::json::array();
  for (auto step = steps.rbegin(); step != steps.rend() && by_step.size() < kValidations; ++step)
    by_step.push_back({{"step", step->first}, {"lines", lines_at(step->second, places)}});
  std::reverse(by_step.begin(), by_step.end());
  nlohmann::json sentences{{"by_step", by_step}};
  for (const char* side : {"source", "target"}) {
    const auto path = configuration.find(fmt::format("valid.{}", side));
    // Several texts, or a path of another host; or no plain text at all.
    if (path == configuration.end() || !is_text(path->second) || count_lines(path->second) != all) continue;
    sentences[side == std::string("source") ? "source" : "reference"] = lines_at(path->second, places);
  }
  return sentences;
}

}  // namespace starling
