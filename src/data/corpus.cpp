// Reads and checks parallel text; docs/guides/data.md describes the rules.
#include "data/corpus.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <memory>

#include "base/ascii.h"
#include "base/counted.h"
#include "base/error.h"
#include "data/pair_tables.h"

namespace starling {
namespace {

constexpr int64_t kMaxLength = int64_t{1} << 20;  // tokens per sentence; the token store's index has 24 bits for a length
constexpr double kMaxWeight = 1e4;

constexpr const char* kReadTwice =
    "parallel text cannot come from {}, as it may be read more than once; store it in a file and name that, or give the pairs as one pipe, "
    "data.tsv";

// Describes a source that can be read only once; "" for any other, or if it does not exist. /dev/null is just as empty the second time.
const char* read_once(const std::string& path) {
  struct stat status {};
  if (path.empty() || ::stat(path.c_str(), &status) != 0) return "";
  if (S_ISFIFO(status.st_mode)) return "a pipe";
  if (S_ISSOCK(status.st_mode)) return "a socket";
  return S_ISCHR(status.st_mode) && status.st_rdev != makedev(1, 3) ? "a terminal or device" : "";
}

const CorpusFiles& check_files(const CorpusFiles& files) {
  const bool pair = !files.source.empty() || !files.target.empty();
  if (pair == !files.tsv.empty())
    throw ConfigError("a corpus is either two files, source and target, or one tsv; give exactly one of the two forms");
  if (pair && (files.source.empty() || files.target.empty()))
    throw ConfigError(fmt::format("the corpus with {} = {} lacks its other side; name its {} file",
                                  files.source.empty() ? "target" : "source", files.source.empty() ? files.target : files.source,
                                  files.source.empty() ? "source" : "target"));
  if (files.aligned_in_column() && files.tsv.empty())
    throw ConfigError(
        fmt::format("the corpus {} has alignment: {}, but only a tsv has columns; name a file", files.name(), kAlignmentColumn));
  if (files.source == "-" || files.target == "-" || files.tsv == "-" || files.sentence_weights == "-" || files.alignment == "-")
    throw ConfigError(fmt::format(kReadTwice, "standard input (-)"));
  return files;
}

}  // namespace

bool CorpusFiles::aligned_in_column() const { return alignment == kAlignmentColumn; }

bool is_pipe(const std::string& path) {
  struct stat status {};
  return path == "-" || (!path.empty() && ::stat(path.c_str(), &status) == 0 && S_ISFIFO(status.st_mode));
}

void require_files(const CorpusFiles& files) {
  check_files(files);
  for (const std::string& path :
       {files.source, files.target, files.tsv, files.sentence_weights, files.aligned_in_column() ? "" : files.alignment})
    if (const std::string what = read_once(path); !what.empty())
      throw ConfigError(fmt::format(kReadTwice, fmt::format("{}, which is {}", path, what)));
}

void check_options(const DataOptions& options, bool streams) {
  if (options.train.empty())
    throw ConfigError("there is no training corpus; name one with --data.source and --data.target, or under data.train");
  const bool stream = streams && options.train.size() == 1 && is_pipe(options.train.front().tsv);
  if (stream && (!options.train.front().source.empty() || !options.train.front().target.empty()))
    throw ConfigError("a corpus is either two files, source and target, or one tsv; give exactly one of the two forms");
  if (stream && (!options.stages.empty() || !options.train.front().sentence_weights.empty()))
    throw ConfigError("data.stages and sentence-weights are for text in files, but data.tsv is a pipe; leave them out");
  if (const std::string& links = options.train.front().alignment; stream && !links.empty() && !options.train.front().aligned_in_column())
    throw ConfigError(
        fmt::format("data.tsv is a pipe, so its links must be in its third column, not in {}; set alignment: {}", links, kAlignmentColumn));
  const bool aligned = std::any_of(options.train.begin(), options.train.end(), [](const CorpusFiles& c) { return !c.alignment.empty(); });
  if (aligned && options.noise.any())
    throw ConfigError(
        "data.upper-case, title-case, typos and merge change sentences in each epoch, but an alignment links the pieces that are stored; "
        "leave one of the two out");
  if (options.noise.upper_case + options.noise.title_case > 1)
    throw ConfigError(fmt::format("data.upper-case {:g} and title-case {:g} are shares of the same pairs; together they must not exceed 1",
                                  options.noise.upper_case, options.noise.title_case));
  for (const CorpusFiles& files : options.train) {
    if (!stream) require_files(files);
    if (!std::isfinite(files.weight) || files.weight < 0 || files.weight > kMaxWeight)
      throw ConfigError(fmt::format("the corpus {} has weight {}; choose one between 0 and {}", files.name(), files.weight, kMaxWeight));
    if (!files.weights.empty() && options.stages.empty())
      throw ConfigError(fmt::format("the corpus {} has weights by stage, but there are no data.stages; give one weight", files.name()));
    if (!files.weights.empty() && files.weights.size() != options.stages.size() + 1)
      throw ConfigError(fmt::format("the corpus {} has {} weights, but data.stages make {} stages; give one for each", files.name(),
                                    files.weights.size(), options.stages.size() + 1));
  }
  if (options.max_length < 2 || options.max_length > kMaxLength)
    throw ConfigError(fmt::format("max-length is {} tokens; choose 2 to {}", options.max_length, kMaxLength));
  if (!std::isfinite(options.max_ratio) || (options.max_ratio != 0 && options.max_ratio < 1))
    throw ConfigError(fmt::format("max-ratio is {}; choose 0 (off) or a number of at least 1", options.max_ratio));
}

std::string facts_of_file(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0)
    throw IoError(fmt::format("{}: cannot be opened: {}; check the path and its permissions", path, std::strerror(errno)));
  std::error_code error;
  const std::string absolute = std::filesystem::absolute(path, error).lexically_normal().string();
  return fmt::format("{}\n{} {}.{}\n", absolute, info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
}

PairReader::PairReader(const CorpusFiles& files)
    : first_(check_files(files).tsv.empty() ? LineReader(files.source) : open_pairs(files)), column_(files.aligned_in_column()) {
  if (files.tsv.empty()) second_.emplace(files.target);
  if (!files.alignment.empty() && !column_) links_.emplace(files.alignment);
  if (!files.sentence_weights.empty()) weights_.emplace(files.sentence_weights);
}

void PairReader::take_damaged_lines() {
  takes_damaged_ = true;
  first_.mark_invalid_bytes();
  if (second_) second_->mark_invalid_bytes();
}

bool next_weight(LineReader& file, float& weight) {
  std::string_view line;
  if (!file.next(line)) return false;
  std::string_view number = line;  // spaces around it and a plus mean nothing
  while (!number.empty() && is_ascii_space(number.back())) number.remove_suffix(1);
  while (!number.empty() && is_ascii_space(number.front())) number.remove_prefix(1);
  if (number.size() > 1 && number[0] == '+' && (is_ascii_digit(number[1]) || number[1] == '.')) number.remove_prefix(1);
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), weight);
  if (error != std::errc() || end != number.data() + number.size() || !(weight >= 0 && weight <= kMaxWeight))
    throw DataError(fmt::format("{}:{}: '{}' is not a weight; each line must be a number from 0 to {}", file.path(), file.line_number(),
                                line.substr(0, 40), kMaxWeight));
  return true;
}

bool PairReader::next(std::string_view& source, std::string_view& target) {
  const bool more = next_pair(source, target);
  if (weights_ && next_weight(*weights_, weight_) != more) unequal_facts(*weights_);
  if (links_ && links_->next(links_line_) != more) unequal_facts(*links_);
  return more;
}

bool PairReader::next_pair(std::string_view& source, std::string_view& target) {
  if (!second_) return next_columns(source, target);
  const bool first = first_.next(source), second = second_->next(target);
  if (first != second) unequal_lines(first);
  return first;
}

bool PairReader::next_columns(std::string_view& source, std::string_view& target) {
  std::string_view line;
  if (!first_.next(line)) return false;
  const auto tabs = std::count(line.begin(), line.end(), '\t');
  if (takes_damaged_ && tabs != (column_ ? 2 : 1) && first_.line_number() > 1) {
    source = line;
    target = {};
    return true;
  }
  if (tabs != (column_ ? 2 : 1) && (is_csv(first_.path()) || is_memory(first_.path())))
    throw DataError(fmt::format("{}:{}: {} instead of {}; the table needs a source and a target{}", first_.path(), first_.line_number(),
                                counted(tabs + 1, "column"), column_ ? "three" : "two", column_ ? ", and links in its third column" : ""));
  if (tabs != (column_ ? 2 : 1))
    throw DataError(fmt::format("{}:{}: {} instead of {}; each line must be: source <tab> target{}", first_.path(), first_.line_number(),
                                tabs == 0              ? "no tab"
                                : tabs > 1 && !column_ ? "more than one tab"
                                                       : counted(tabs, "tab"),
                                column_ ? "two" : "one",
                                column_     ? " <tab> links, such as 0-0 1-2"
                                : tabs == 2 ? "; if the third column has links, set alignment: column"
                                            : ""));
  const size_t tab = line.find('\t'), second = line.find('\t', tab + 1);
  source = line.substr(0, tab);
  target = line.substr(tab + 1, second == line.npos ? line.npos : second - tab - 1);
  if (column_) links_line_ = line.substr(second + 1);
  return true;
}

void PairReader::unequal_lines(bool first_longer) {
  LineReader& longer = first_longer ? first_ : *second_;
  LineReader& shorter = first_longer ? *second_ : first_;
  std::string_view line;
  while (longer.next(line)) {
  }
  throw starling::unequal_lines(shorter.path(), shorter.line_number(), longer.path(), longer.line_number());
}

void PairReader::unequal_facts(LineReader& facts) {
  std::string_view source, target, fact;
  while (next_pair(source, target)) {
  }
  while (facts.next(fact)) {
  }
  throw starling::unequal_lines(first_.path(), first_.line_number(), facts.path(), facts.line_number());
}

DataError unequal_lines(const std::string& a, int64_t a_lines, const std::string& b, int64_t b_lines) {
  if (a_lines > b_lines) return unequal_lines(b, b_lines, a, a_lines);
  return DataError(fmt::format("{}:{}: has {} but {} has {}; the two must correspond line by line, align them again", a, a_lines,
                               counted(a_lines, "line"), b, b_lines));
}

// Walks over the corpora line by line.
class CorpusLines::LineWalk {
 public:
  LineWalk(const DataOptions& options, Side side) : corpora_(options.train), side_(side) {}

  bool next(std::string_view& line) {
    if (target_waits_) {
      target_waits_ = false;
      line = target_;
      return true;
    }
    if (!next_pair()) return false;
    line = side_ == Side::target ? target_ : source_;
    target_waits_ = side_ == Side::both;
    return true;
  }
  uint64_t bytes_read() const { return earlier_bytes_ + (reader_ ? reader_->bytes_read() : 0); }

 private:
  bool next_pair() {
    while (true) {
      if (reader_ && reader_->next(source_, target_)) return true;
      if (corpus_ == corpora_.size()) return false;
      earlier_bytes_ = bytes_read();
      reader_.emplace(corpora_[corpus_++]);
    }
  }

  std::vector<CorpusFiles> corpora_;
  Side side_;
  size_t corpus_ = 0;
  uint64_t earlier_bytes_ = 0;
  std::optional<PairReader> reader_;
  std::string_view source_, target_;
  bool target_waits_ = false;
};

CorpusLines::CorpusLines(const DataOptions& options, Side side) : bytes_(corpus_bytes(options)) {
  check_options(options);
  walk_ = std::make_shared<LineWalk>(options, side);
}

bool CorpusLines::operator()(std::string_view& line) const { return walk_->next(line); }

double CorpusLines::fraction() const {
  return static_cast<double>(walk_->bytes_read()) / static_cast<double>(std::max<uint64_t>(bytes_, 1));
}

}  // namespace starling
