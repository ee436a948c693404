#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/error.h"
#include "base/random.h"
#include "base/utf8.h"
#include "data/corpus.h"
#include "doctor/doctor.h"

namespace starling {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kPairs = 2000;
constexpr int kRandomLines = 200;
constexpr double kMany = 0.05;  // share of pairs from which something is said of them
constexpr int64_t kRatio = 4;   // characters of one side over those of the other

struct PairCounts {
  int64_t pairs = 0, empty = 0, same = 0, unequal = 0, repeated = 0;
};

PairCounts look_at(const CorpusFiles& files) {
  PairCounts counts;
  PairReader reader(files);
  std::set<std::string> seen;
  std::string_view source, target;
  while (counts.pairs < kPairs && reader.next(source, target)) {
    ++counts.pairs;
    const auto longer = static_cast<int64_t>(std::max(source.size(), target.size()));
    const auto shorter = static_cast<int64_t>(std::min(source.size(), target.size()));
    if (shorter == 0)
      ++counts.empty;
    else if (source == target)
      ++counts.same;
    else if (longer > 20 && longer > kRatio * shorter)
      ++counts.unequal;
    if (!seen.insert(fmt::format("{}\t{}", source, target)).second) ++counts.repeated;
  }
  return counts;
}

// Reads lines at random places of a plain file, the same ones each time. Returns what is wrong with the first that is not text, or "".
std::string wrong_line(const std::string& path) {
  if (path.ends_with(".gz") || path.ends_with(".zst")) return "";
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return "";
  const auto size = static_cast<uint64_t>(fs::file_size(path, error));
  if (error || size == 0) return "";
  std::ifstream file(path, std::ios::binary);
  Random random(size, 1);
  for (int i = 0; i < kRandomLines; ++i) {
    file.clear();
    file.seekg(static_cast<std::streamoff>(random.below(size)));
    std::string line;
    std::getline(file, line);  // the rest of the line at that place
    if (!std::getline(file, line)) continue;
    const auto at = static_cast<uint64_t>(file.tellg() < 0 ? static_cast<std::streamoff>(size) : static_cast<std::streamoff>(file.tellg()));
    if (line.find('\0') != std::string::npos) return fmt::format("a line before byte {} has a zero byte", at);
    if (invalid_utf8_offset(line)) return fmt::format("a line before byte {} is not UTF-8", at);
  }
  return "";
}

void add_counts(const std::string& name, const PairCounts& c, std::vector<Finding>& found) {
  const auto many = [&](int64_t n) { return static_cast<double>(n) > kMany * static_cast<double>(c.pairs); };
  const auto percent = [&](int64_t n) { return fmt::format("{:.0f} %", 100.0 * static_cast<double>(n) / static_cast<double>(c.pairs)); };
  const size_t before = found.size();
  const auto note = [&](const std::string& what, const std::string& mend) {
    found.push_back({Level::note, fmt::format("{}: of the first {} pairs {}", name, c.pairs, what), mend});
  };
  if (c.pairs == 0) return found.push_back({Level::problem, name + ": is empty", "name a file with text"});
  if (many(c.empty))
    note(percent(c.empty) + " have an empty side", "they are left out in training; look whether the sides belong together");
  if (many(c.same)) note(percent(c.same) + " have equal sides", "models learn to copy from them; remove untranslated pairs");
  if (many(c.unequal))
    note(percent(c.unequal) + " have sides of very different lengths", "look whether the sides belong together; data.max-ratio");
  if (many(c.repeated)) note(percent(c.repeated) + " are repeated", "remove duplicates, or give the corpus less weight");
  if (found.size() == before) found.push_back({Level::fine, fmt::format("{}: the first {} pairs look well", name, c.pairs), ""});
}

void examine(const std::string& name, const CorpusFiles& files, std::vector<Finding>& found) {
  try {
    add_counts(name, look_at(files), found);
  } catch (const Error& e) {
    found.push_back({Level::problem, e.what(), ""});  // it says what to do
    return;
  }
  for (const std::string& path : {files.source, files.target, files.tsv})
    if (const std::string wrong = path.empty() ? "" : wrong_line(path); !wrong.empty())
      found.push_back({Level::problem, fmt::format("{}: {}", path, wrong), "convert the file to UTF-8 (iconv), or remove such lines"});
}

}  // namespace

Examined examine_texts(const Config& config) {
  Examined texts{"text", {}};
  for (const CorpusFiles& files : config.data.train) {
    if (!files.tsv.empty() && is_pipe(files.tsv))
      texts.findings.push_back({Level::fine, files.name() + ": a pipe, which only a training may read", ""});
    else
      examine(files.name(), files, texts.findings);
  }
  if (config.valid.enabled())
    for (const ValidSet& set : config.valid.texts()) examine(set.source, CorpusFiles{set.source, set.target, "", 1}, texts.findings);
  if (config.data.train.empty())
    texts.findings.push_back({Level::note, "no corpus is named", "give a configuration (-c run.yml) to have its text looked at"});
  return texts;
}

}  // namespace starling
