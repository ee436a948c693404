// The checking pass: reads every file once to its end, several at a time, before the text is processed.
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <limits>

#include "base/error.h"
#include "base/start_threads.h"
#include "data/corpus.h"

namespace starling {
namespace {

constexpr int64_t kReportLines = 65536;  // lines between two looks at the clock

struct CheckedFile {
  const CorpusFiles* corpus = nullptr;
  std::string path;  // empty: the corpus is a tsv
  enum Content : uint8_t { text, weights, links } content = text;
  int64_t lines = 0;
  std::exception_ptr failure;
};

// How much all threads have read, for the progress line that one of them writes.
struct CheckProgress {
  TaskProgress task;
  uint64_t all_bytes;
  std::atomic<uint64_t> bytes{0};
  void add(uint64_t& counted, uint64_t now, bool speaks) {
    bytes += now - counted;
    counted = now;
    if (speaks && task.due())
      task.tell(static_cast<double>(bytes) / static_cast<double>(std::max<uint64_t>(all_bytes, 1)), "checking the text");
  }
};

template <class Next, class Read>
void read_to_end(const Next& next, const Read& bytes_read, int64_t& lines, bool speaks, CheckProgress& progress) {
  uint64_t counted = 0;
  while (next())
    if (++lines % kReportLines == 0) progress.add(counted, bytes_read(), speaks);
  progress.add(counted, bytes_read(), speaks);
}

// Whether the positions are within the text turns out when that becomes tokens.
void check_links(std::string_view line, const std::string& path, int64_t number) {
  try {
    parse_links(line);
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}:{}: {}", path, number, error.what()));
  }
}

bool next_links(LineReader& file) {
  std::string_view line;
  if (!file.next(line)) return false;
  check_links(line, file.path(), file.line_number());
  return true;
}

bool next_pair(PairReader& reader, const CorpusFiles& files) {
  std::string_view source, target;
  if (!reader.next(source, target)) return false;
  if (files.aligned_in_column()) check_links(reader.links(), files.tsv, reader.line_number());
  return true;
}

void check(CheckedFile& file, bool speaks, CheckProgress& progress) {
  std::string_view line;
  try {
    if (file.content == CheckedFile::weights) {
      LineReader reader(file.path);
      float weight = 0, most = 0;
      const auto next = [&] { return next_weight(reader, weight) && ((most = std::max(most, weight)), true); };
      read_to_end(
          next, [&] { return reader.bytes_read(); }, file.lines, speaks, progress);
      if (file.lines > 0 && most == 0)
        throw DataError(
            fmt::format("{}: all {} weights are 0, so nothing would be learnt from these pairs; leave the file or the corpus out",
                        file.path, file.lines));
    } else if (file.content == CheckedFile::links) {
      LineReader reader(file.path);
      read_to_end([&] { return next_links(reader); }, [&] { return reader.bytes_read(); }, file.lines, speaks, progress);
    } else if (file.path.empty()) {
      CorpusFiles text = *file.corpus;
      text.sentence_weights.clear();
      if (!text.aligned_in_column()) text.alignment.clear();
      PairReader reader(text);
      read_to_end([&] { return next_pair(reader, text); }, [&] { return reader.bytes_read(); }, file.lines, speaks, progress);
    } else {
      LineReader reader(file.path);
      read_to_end([&] { return reader.next(line); }, [&] { return reader.bytes_read(); }, file.lines, speaks, progress);
    }
  } catch (...) {
    file.failure = std::current_exception();
  }
}

// Throws the defect that a reader of pairs would meet first: that on the earlier line (the source side's if both are on the same line),
// then a difference in the numbers of lines.
void require_whole(const CheckedFile& source, const CheckedFile& target) {
  const auto line = [](const CheckedFile& file) { return file.failure ? file.lines : std::numeric_limits<int64_t>::max(); };
  const CheckedFile& first = line(source) <= line(target) ? source : target;
  if (first.failure) std::rethrow_exception(first.failure);
  if (source.lines != target.lines) throw unequal_lines(source.path, source.lines, target.path, target.lines);
}

}  // namespace

uint64_t corpus_bytes(const DataOptions& options) {
  uint64_t bytes = 0;
  for (const CorpusFiles& files : options.train)
    for (const std::string& path :
         {files.source, files.target, files.tsv, files.sentence_weights, files.aligned_in_column() ? "" : files.alignment})
      if (struct stat info{}; !path.empty() && ::stat(path.c_str(), &info) == 0) bytes += static_cast<uint64_t>(info.st_size);
  return bytes;
}

std::vector<int64_t> check_corpora(const DataOptions& options, int threads, const Say& say) {
  check_options(options);
  std::vector<CheckedFile> files;
  for (const CorpusFiles& corpus : options.train) {
    PairReader opened(corpus);  // reports a missing file before an hour of reading
    files.push_back({&corpus, corpus.source});
    if (corpus.tsv.empty()) files.push_back({&corpus, corpus.target});
    if (!corpus.sentence_weights.empty()) files.push_back({&corpus, corpus.sentence_weights, CheckedFile::weights});
    if (!corpus.alignment.empty() && !corpus.aligned_in_column()) files.push_back({&corpus, corpus.alignment, CheckedFile::links});
  }
  CheckProgress progress{TaskProgress("data", say), corpus_bytes(options)};
  std::atomic<size_t> next{0};
  std::atomic<bool> failed{false};
  work_side_by_side(std::min(files.size(), static_cast<size_t>(std::max(threads, 1))), [&](size_t worker) {
    const bool speaks = worker == 0;
    for (size_t i; (i = next++) < files.size();) {
      const bool begins_corpus = i == 0 || files[i].corpus != files[i - 1].corpus;
      if (begins_corpus && failed) continue;  // the defect of an earlier corpus will be reported
      check(files[i], speaks, progress);
      if (files[i].failure) failed = true;
    }
  });

  std::vector<int64_t> pairs;
  for (size_t i = 0; i < files.size(); ++i) {
    pairs.push_back(files[i].lines);
    if (files[i].path.empty()) {
      if (files[i].failure) std::rethrow_exception(files[i].failure);
    } else {
      require_whole(files[i], files[i + 1]);
      ++i;
    }
    while (i + 1 < files.size() && files[i + 1].content != CheckedFile::text) {
      const CheckedFile& facts = files[++i];
      if (facts.failure) std::rethrow_exception(facts.failure);
      if (facts.lines != pairs.back()) throw unequal_lines(facts.corpus->name(), pairs.back(), facts.path, facts.lines);
    }
  }
  return pairs;
}

}  // namespace starling
