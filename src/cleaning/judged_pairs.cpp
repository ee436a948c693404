#include "cleaning/judged_pairs.h"

#include <algorithm>
#include <cstring>

#include "data/line_reader.h"

namespace starling {
namespace {

// The part of a pair with a fixed size.
struct PairHead {
  uint32_t corpus, line;
  float weight, score;
  uint32_t broken, marks, repairs, source_bytes, target_bytes;
  std::array<int32_t, kMeasures> values;
};
constexpr int kFastest = 1;  // level of compression
constexpr const char *kPairs = "pairs", *kRecords = "records", *kMarks = "marks";

}  // namespace

uint32_t JudgedPair::words() const {
  const std::string& text = target.empty() ? source : target;
  return static_cast<uint32_t>(std::count(text.begin(), text.end(), ' ') + 1);
}

Segments::Segments(FileSystem& files, std::string directory, uint32_t segment_pairs)
    : files_(files), directory_(std::move(directory)), segment_pairs_(segment_pairs) {
  while (files_.exists(path(size(), kPairs))) pairs_.push_back(segment_pairs_);
  if (pairs_.empty()) return;
  JudgedReader last(*this, size() - 1);
  pairs_.back() = 0;
  for (JudgedPair pair; last.next(pair);) ++pairs_.back();
}

std::string Segments::path(size_t segment, const char* what) const { return join_path(directory_, fmt::format("{:05}.{}", segment, what)); }

uint64_t Segments::records() const {
  uint64_t bytes = 0;
  for (size_t i = 0; i < size(); ++i) bytes += files_.info(path(i, kRecords)).size;
  return bytes / sizeof(CopyRecord);
}

SegmentMarks Segments::marks(size_t segment) const {
  SegmentMarks marks{std::vector<uint8_t>(pairs_[segment]), std::vector<uint32_t>(pairs_[segment])};
  if (!files_.exists(path(segment, kMarks))) return marks;
  const std::string bytes = files_.read_file(path(segment, kMarks));
  CHECK(bytes.size() == marks.rules.size() * 5, "a file of marks has {} bytes", bytes.size());
  std::memcpy(marks.rules.data(), bytes.data(), marks.rules.size());
  std::memcpy(marks.first.data(), bytes.data() + marks.rules.size(), 4 * marks.first.size());
  return marks;
}

void Segments::save_marks(size_t segment, const SegmentMarks& marks) const {
  const auto file = files_.create(path(segment, kMarks));
  file->write(bytes_of(marks.rules.data(), marks.rules.size()));
  file->write(bytes_of(marks.first.data(), marks.first.size()));
  file->close();
}

void Segments::forget_marks() const {
  for (size_t i = 0; i < size(); ++i) files_.remove(path(i, kMarks));
}

struct JudgedWriter::Part {
  Part(FileSystem& files, const Segments& segments, bool near_copies)
      : pairs(files, segments.path(segments.size(), "part"), kFastest), records(files.create(segments.path(segments.size(), kRecords))) {
    if (near_copies) near.emplace(files, segments.path(segments.size(), ""));
  }
  ZstdWriter pairs;
  std::unique_ptr<OutputFile> records;
  std::optional<NearWriter> near;
  uint32_t count = 0;
  std::string pair_bytes, record_bytes;  // not yet written
  void flush() {
    pairs.write(pair_bytes);
    records->write(record_bytes);
    if (near) near->flush();
    pair_bytes.clear();
    record_bytes.clear();
  }
};

JudgedWriter::JudgedWriter(FileSystem& files, Segments& segments, bool near_copies)
    : files_(files), segments_(segments), near_copies_(near_copies) {}
JudgedWriter::~JudgedWriter() = default;

void JudgedWriter::add(const JudgedPair& pair, const CopyKeys& keys, const PairShingles& shingles) {
  constexpr size_t kFlushed = 1 << 18;  // bytes
  if (!part_) part_ = std::make_unique<Part>(files_, segments_, near_copies_);
  PairHead head{};  // its padding too, so that equal pairs are equal bytes
  head.corpus = pair.corpus;
  head.line = pair.line;
  head.weight = pair.weight;
  head.score = pair.score;
  head.broken = pair.broken.bits();
  head.marks = pair.measures.marks.bits();
  head.repairs = pair.repairs;
  head.source_bytes = static_cast<uint32_t>(pair.source.size());
  head.target_bytes = static_cast<uint32_t>(pair.target.size());
  head.values = pair.measures.values;
  part_->pair_bytes.append(bytes_of(&head, 1)).append(pair.source).append(pair.target);
  if (!pair.broken.any()) {
    const CopyRecord record{segments_.first(segments_.size()) + part_->count, pair.words(), pair.score, 0, keys};
    part_->record_bytes.append(bytes_of(&record, 1));
    if (part_->near && shingles.any()) part_->near->add(record.number, record.score, shingles);
  }
  if (part_->pair_bytes.size() > kFlushed) part_->flush();
  if (++part_->count == segments_.segment_pairs()) complete();
}

void JudgedWriter::close() {
  if (part_) complete();
}

void JudgedWriter::complete() {
  part_->flush();
  part_->records->sync();
  part_->records->close();
  if (part_->near) part_->near->close();
  part_->pairs.close();
  files_.sync_directory(parent_path(segments_.path(segments_.size(), kPairs)));
  files_.rename(segments_.path(segments_.size(), "part"), segments_.path(segments_.size(), kPairs));
  segments_.add(part_->count);
  part_.reset();
}

struct JudgedReader::Input {
  explicit Input(const std::string& path) : bytes(open_bytes(path, true)) {}
  std::unique_ptr<ByteSource> bytes;
  std::vector<char> buffer = std::vector<char>(1 << 18);
  size_t at = 0, end = 0;
  // Returns whether there were so many bytes, or none.
  bool read(char* to, size_t count) {
    size_t got = 0;
    while (got < count) {
      if (at == end) {
        at = 0;
        end = bytes->read(buffer.data(), buffer.size());
        if (end == 0) break;
      }
      const size_t now = std::min(count - got, end - at);
      std::memcpy(to + got, buffer.data() + at, now);
      got += now;
      at += now;
    }
    CHECK(got == count || got == 0, "a file of judged pairs ends within a pair");
    return got == count;
  }
};

JudgedReader::JudgedReader(const Segments& segments, size_t segment) : input_(std::make_unique<Input>(segments.path(segment, kPairs))) {}
JudgedReader::~JudgedReader() = default;

bool JudgedReader::next(JudgedPair& pair) {
  PairHead head;
  if (!input_->read(reinterpret_cast<char*>(&head), sizeof head)) return false;
  pair.corpus = head.corpus;
  pair.line = head.line;
  pair.weight = head.weight;
  pair.score = head.score;
  pair.broken = RuleSet(head.broken);
  pair.measures.marks = RuleSet(head.marks);
  pair.measures.values = head.values;
  pair.repairs = head.repairs;
  for (auto [text, bytes] : {std::pair(&pair.source, head.source_bytes), {&pair.target, head.target_bytes}}) {
    text->resize(bytes);
    if (bytes > 0) input_->read(text->data(), bytes);
  }
  return true;
}

}  // namespace starling
