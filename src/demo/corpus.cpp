// Which template makes which sentence, and the writer of the corpus.
#include "demo/corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <numeric>
#include <unordered_set>
#include <vector>

#include "base/error.h"
#include "base/system_reason.h"
#include "demo/clauses.h"
#include "storage/outputs.h"

namespace starling {
namespace {

using namespace demo;

// The order is part of what a seed means.
const std::vector<Template>& templates() {
  static const std::vector<Template> kAll = [] {
    std::vector<Template> all;
    for (const auto part : {everyday_templates(), statement_templates(), compound_templates()})
      all.insert(all.end(), part.begin(), part.end());
    return all;
  }();
  return kAll;
}

const Template& choose_template(Draw& d) {
  static const int kTotal =
      std::accumulate(templates().begin(), templates().end(), 0, [](int sum, const Template& t) { return sum + t.weight; });
  int at = d.range(0, kTotal - 1);
  for (const Template& t : templates()) {
    if (at < t.weight) return t;
    at -= t.weight;
  }
  return templates().front();
}

constexpr int64_t kShortest = 3, kLongest = 25;  // English words

int64_t word_count(std::string_view text) { return 1 + std::count(text.begin(), text.end(), ' '); }

}  // namespace

SentencePair demo_sentence(uint64_t seed, uint64_t index) {
  Draw d(seed, index);
  const Template& t = choose_template(d);
  while (true) {  // a sentence too long or too short is drawn again from the same stream
    const Pair p = t.make(d);
    SentencePair pair{finish(p.en), finish(p.de)};
    const int64_t words = word_count(pair.source);
    if (words >= kShortest && words <= kLongest) return pair;
  }
}

std::string_view demo_template(uint64_t seed, uint64_t index) {
  Draw d(seed, index);
  return choose_template(d).name;
}

std::span<const std::string_view> demo_template_names() {
  static const std::vector<std::string_view> kNames = [] {
    std::vector<std::string_view> names;
    for (const Template& t : templates()) names.push_back(t.name);
    return names;
  }();
  return kNames;
}

DemoSplit demo_split(std::string_view source) {
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (const char c : source) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  const uint64_t bucket = (hash ^ (hash >> 32)) % 16;
  return bucket == 0 ? DemoSplit::valid : bucket == 1 ? DemoSplit::test : DemoSplit::train;
}

namespace {

// One side of a split, written aside until it is whole.
class SideFile {
 public:
  explicit SideFile(const std::filesystem::path& path) : path_(path), aside_(make_partial(path.string())), file_(aside_, std::ios::binary) {
    if (!file_) throw IoError(fmt::format("{}: cannot be written: {}", aside_.string(), system_reason(errno)));
  }
  ~SideFile() {
    std::error_code none;
    std::filesystem::remove(aside_, none);  // unless it has its name
  }
  void add(const std::string& line) {
    file_ << line << '\n';
    if (!file_) failed();
  }
  void close() {
    file_.close();
    if (!file_) failed();
  }
  void take_name() { std::filesystem::rename(aside_, path_); }

 private:
  [[noreturn]] void failed() const {
    throw IoError(fmt::format("{}: could not be written whole: {}", path_.string(), system_reason(errno)));
  }
  std::filesystem::path path_, aside_;
  std::ofstream file_;
};

// One split's two files.
class SplitFiles {
 public:
  SplitFiles(const std::filesystem::path& directory, const std::string& stem, int64_t wanted)
      : source_(directory / (stem + ".en")), target_(directory / (stem + ".de")), left_(wanted) {}
  bool full() const { return left_ == 0; }
  void add(const SentencePair& pair) {
    source_.add(pair.source), target_.add(pair.target);
    --left_;
  }
  void close() { source_.close(), target_.close(); }
  void take_names() { source_.take_name(), target_.take_name(); }

 private:
  SideFile source_, target_;
  int64_t left_;
};

}  // namespace

void write_demo_corpus(const std::filesystem::path& directory, uint64_t seed, int64_t train_count, int64_t valid_count,
                       int64_t test_count) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) throw IoError(fmt::format("{}: cannot be made: {}", directory.string(), error.message()));
  std::array<SplitFiles, 3> files{SplitFiles(directory, "train", train_count), SplitFiles(directory, "valid", valid_count),
                                  SplitFiles(directory, "test", test_count)};
  std::unordered_set<std::string> seen;
  for (uint64_t index = 0; !(files[0].full() && files[1].full() && files[2].full()); ++index) {
    const SentencePair pair = demo_sentence(seed, index);
    SplitFiles& split = files[static_cast<size_t>(demo_split(pair.source))];
    if (!split.full() && seen.insert(pair.source).second) split.add(pair);
  }
  for (SplitFiles& split : files) split.close();
  for (SplitFiles& split : files) split.take_names();
}

}  // namespace starling
