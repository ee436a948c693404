// Unpacks the corpus and writes it into files.
#include "demo/corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <span>
#include <string_view>

#include "base/error.h"
#include "base/system_reason.h"
#include "data/line_reader.h"
#include "storage/outputs.h"

namespace starling {

extern const std::string_view kDemoCorpus;  // corpus.zst, embedded by the build: lines "English TAB German", first valid, test, then train

const DemoCorpus& demo_corpus() {
  static const DemoCorpus kCorpus = [] {
    LineReader lines("the demo corpus", kDemoCorpus);
    std::string_view line;
    const auto take = [&](int64_t count) {
      std::vector<SentencePair> pairs(static_cast<size_t>(count));
      for (SentencePair& pair : pairs) {
        CHECK(lines.next(line), "the demo corpus is too short");
        const size_t tab = line.find('\t');
        CHECK(tab != std::string_view::npos, "a line of the demo corpus has no TAB");
        pair = {std::string(line.substr(0, tab)), std::string(line.substr(tab + 1))};
      }
      return pairs;
    };
    DemoCorpus all;
    all.valid = take(kDemoValid);
    all.test = take(kDemoTest);
    all.train = take(kDemoTrain);
    CHECK(!lines.next(line), "the demo corpus is too long");
    return all;
  }();
  return kCorpus;
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
  SplitFiles(const std::filesystem::path& directory, const std::string& stem)
      : source_(directory / (stem + ".en")), target_(directory / (stem + ".de")) {}
  void write(std::span<const SentencePair> pairs) {
    for (const SentencePair& pair : pairs) {
      source_.add(pair.source);
      target_.add(pair.target);
    }
    source_.close();
    target_.close();
  }
  void take_names() { source_.take_name(), target_.take_name(); }

 private:
  SideFile source_, target_;
};

std::span<const SentencePair> first(const std::vector<SentencePair>& pairs, int64_t count) {
  CHECK(count >= 0 && count <= static_cast<int64_t>(pairs.size()), "the demo corpus has {} such pairs, not {}", pairs.size(), count);
  return std::span(pairs).first(static_cast<size_t>(count));
}

}  // namespace

void write_demo_corpus(const std::filesystem::path& directory, int64_t train_count, int64_t valid_count, int64_t test_count) {
  const DemoCorpus& corpus = demo_corpus();
  const auto train_pairs = first(corpus.train, train_count), valid_pairs = first(corpus.valid, valid_count),
             test_pairs = first(corpus.test, test_count);
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) throw IoError(fmt::format("{}: cannot be made: {}", directory.string(), error.message()));
  SplitFiles train(directory, "train"), valid(directory, "valid"), test(directory, "test");
  train.write(train_pairs);
  valid.write(valid_pairs);
  test.write(test_pairs);
  train.take_names();
  valid.take_names();
  test.take_names();
}

}  // namespace starling
