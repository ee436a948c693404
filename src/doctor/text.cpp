#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <unordered_set>

#include "base/counted.h"
#include "base/error.h"
#include "base/random.h"
#include "base/utf8.h"
#include "data/corpus.h"
#include "data/line_reader.h"
#include "data/pair_tables.h"
#include "doctor/doctor.h"

namespace starling {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kPairs = 2000;
constexpr int kRandomLines = 200;
constexpr auto kSampleTime = std::chrono::seconds(2);  // for each file
constexpr double kMany = 0.05;                         // share of pairs from which something is said of them
constexpr int64_t kRatio = 4;                          // characters of one side over those of the other

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

// Whether a file begins as an archive does, whatever its name.
bool is_archive(const std::string& path) {
  char head[16] = {};
  std::ifstream file(path, std::ios::binary);
  file.read(head, sizeof head);
  return open_archive({head, static_cast<size_t>(file.gcount())}) != nullptr;
}

// Reads lines at random places of a plain file, the same ones each time. Returns what is wrong with the first that is not text, or "".
std::string wrong_line(const std::string& path) {
  std::error_code error;
  const auto size = static_cast<uint64_t>(fs::file_size(path, error));
  if (error || size == 0) return "";
  std::ifstream file(path, std::ios::binary);
  Random random(size, 1);
  const auto until = std::chrono::steady_clock::now() + kSampleTime;
  for (int i = 0; i < kRandomLines && std::chrono::steady_clock::now() < until; ++i) {
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

// Reads the beginning of an archive, in which there are no random places. Throws DataError for a line that is not text.
void read_archive(const std::string& path, int64_t most_bytes, std::vector<Finding>& found) {
  LineReader reader(path);
  int64_t bytes = 0;
  const auto until = std::chrono::steady_clock::now() + kSampleTime;
  for (std::string_view line; reader.next(line);) {
    bytes += static_cast<int64_t>(line.size()) + 1;
    const bool late = reader.line_number() % 1024 == 0 && std::chrono::steady_clock::now() > until;
    if (bytes < most_bytes && !late) continue;
    found.push_back({Level::fine,
                     fmt::format("{}: the first {} lines ({} MiB) are text; the rest of the archive was not read", path,
                                 reader.line_number(), std::max<int64_t>(bytes >> 20, 1)),
                     ""});
    return;
  }
}

void look_further(const std::string& path, int64_t archive_bytes, std::vector<Finding>& found) {
  std::error_code error;
  if (!fs::is_regular_file(path, error) || is_memory(path)) return;
  if (is_archive(path)) return read_archive(path, archive_bytes, found);
  if (const std::string wrong = wrong_line(path); !wrong.empty())
    found.push_back({Level::problem, fmt::format("{}: {}", path, wrong), "convert the file to UTF-8 (iconv), or remove such lines"});
}

void add_counts(const std::string& name, const PairCounts& c, std::vector<Finding>& found) {
  const auto many = [&](int64_t n) { return static_cast<double>(n) > kMany * static_cast<double>(c.pairs); };
  const auto percent = [&](int64_t n) { return fmt::format("{:.0f} %", 100.0 * static_cast<double>(n) / static_cast<double>(c.pairs)); };
  const size_t before = found.size();
  const auto note = [&](const std::string& what, const std::string& mend) {
    found.push_back({Level::note, fmt::format("{}: of the first {} pairs {}", name, c.pairs, what), mend});
  };
  if (c.pairs == 0) return found.push_back({Level::problem, name + ": is empty", "name a file with text"});
  if (many(c.empty)) note(percent(c.empty) + " have an empty side", "training skips them; check that the sides belong together");
  if (many(c.same)) note(percent(c.same) + " have equal sides", "models learn to copy from them; remove untranslated pairs");
  if (many(c.unequal))
    note(percent(c.unequal) + " have sides of very different lengths", "check that the sides belong together; see data.max-ratio");
  if (many(c.repeated)) note(percent(c.repeated) + " are repeated", "remove duplicates, or give the corpus less weight");
  if (found.size() == before) found.push_back({Level::fine, fmt::format("{}: the first {} pairs look good", name, c.pairs), ""});
}

void examine(const std::string& name, const CorpusFiles& files, int64_t archive_bytes, std::vector<Finding>& found) {
  try {
    add_counts(name, look_at(files), found);
    for (const std::string& path : {files.source, files.target, files.tsv}) look_further(path, archive_bytes, found);
  } catch (const Error& e) {
    found.push_back({Level::problem, e.what(), ""});  // it says what to do
  }
}

bool is_pipe_of_text(const CorpusFiles& files) { return !files.tsv.empty() && is_pipe(files.tsv); }

// Says how many validation pairs stand in the training text too, whatever the files are called: a model learns them by heart, and its
// scores promise too much. Short sentences are in every text.
void look_for_validation_pairs(const Config& config, std::vector<Finding>& found) {
  constexpr size_t kMostPairs = 20'000, kShort = 20;  // pairs; bytes of a source
  std::unordered_set<std::string> pairs;
  std::string_view source, target;
  const auto pair = [&] { return fmt::format("{}\t{}", source, target); };
  for (const ValidSet& set : config.valid.texts())
    for (PairReader reader(CorpusFiles{set.source, set.target, "", 1}); pairs.size() < kMostPairs && reader.next(source, target);)
      if (source.size() >= kShort) pairs.insert(pair());
  for (const CorpusFiles& files : config.data.train) {
    if (is_pipe_of_text(files)) continue;
    const auto until = std::chrono::steady_clock::now() + kSampleTime;
    std::unordered_set<std::string> both;
    PairReader reader(files);
    bool late = false;
    while (!late && reader.next(source, target)) {
      if (source.size() >= kShort)
        if (std::string text = pair(); pairs.contains(text)) both.insert(std::move(text));
      late = reader.line_number() % 1024 == 0 && std::chrono::steady_clock::now() > until;
    }
    if (both.empty()) continue;
    found.push_back(
        {Level::note,
         fmt::format("{}: {} of the validation text {} also in {}", files.name(), counted(both.size(), "pair"),
                     both.size() == 1 ? "is" : "are", late ? fmt::format("its first {} lines", reader.line_number()) : std::string("it")),
         "run 'starling clean' with this configuration, which drops them: scores on text that a model was trained on are too high"});
  }
}

// Returns why a file cannot be read, or "". It is not opened if it is a pipe, whose text would be lost.
std::string why_unreadable(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return std::strerror(errno);
  if (S_ISDIR(info.st_mode)) return "it is a directory";
  if (!S_ISREG(info.st_mode)) return "";
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  char byte = 0;
  const bool fine = file >= 0 && read(file, &byte, 1) >= 0;
  const std::string why = fine ? "" : std::strerror(errno);
  if (file >= 0) close(file);
  return why;
}

}  // namespace

Examined examine_texts(const Config& config, int64_t archive_bytes) {
  Examined texts{"text", {}};
  for (const CorpusFiles& files : config.data.train) {
    if (is_pipe_of_text(files))
      texts.findings.push_back({Level::fine, files.name() + ": a pipe, which only training may read", ""});
    else
      examine(files.name(), files, archive_bytes, texts.findings);
  }
  if (config.valid.enabled())
    for (const ValidSet& set : config.valid.texts())
      examine(set.source, CorpusFiles{set.source, set.target, "", 1}, archive_bytes, texts.findings);
  try {
    if (config.valid.enabled()) look_for_validation_pairs(config, texts.findings);
  } catch (const Error& e) {
    const auto is_same = [&](const Finding& finding) { return finding.what == e.what(); };
    if (std::none_of(texts.findings.begin(), texts.findings.end(), is_same)) texts.findings.push_back({Level::problem, e.what(), ""});
  }
  if (config.data.train.empty())
    texts.findings.push_back({Level::note, "no corpus is named", "give a configuration (-c run.yml) to have its text examined"});
  return texts;
}

Examined examine_text_files(const Config& config) {
  std::set<std::string> paths;
  for (const CorpusFiles& c : config.data.train)
    paths.insert({c.source, c.target, c.tsv, c.sentence_weights, c.aligned_in_column() ? "" : c.alignment});
  if (config.valid.enabled())
    for (const ValidSet& set : config.valid.texts()) paths.insert({set.source, set.target});
  paths.erase("");
  Examined texts{"text", {}};
  for (const std::string& path : paths)
    if (const std::string why = why_unreadable(path); !why.empty())
      texts.findings.push_back(
          {Level::problem, fmt::format("{}: cannot be read: {}", path, why),
           "copy the file there, under the same path and readable for this user (rsync), or put it into a directory that all hosts see"});
  if (texts.findings.empty() && !paths.empty())
    texts.findings.push_back({Level::fine, fmt::format("{} can be read", counted(paths.size(), "file")), ""});
  return texts;
}

}  // namespace starling
