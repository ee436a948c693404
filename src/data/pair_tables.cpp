#include "data/pair_tables.h"

#include <algorithm>
#include <optional>

#include "base/ascii.h"
#include "formats/csv.h"
#include "formats/tmx.h"

namespace starling {
namespace {

constexpr size_t kTableChunk = size_t{256} << 10;

bool is_named(std::string_view path, std::string_view ending) {
  for (const std::string_view packed : {".gz", ".zst"})
    if (path.ends_with(packed)) path.remove_suffix(packed.size());
  const std::string_view name = path.substr(path.size() - std::min(path.size(), ending.size()));
  return std::ranges::equal(name, ending, {}, ascii_lower);
}

// Text that is made from the bytes of another source, a part at a time.
class MadeLines : public ByteSource {
 public:
  explicit MadeLines(std::unique_ptr<ByteSource> bytes) : bytes_(std::move(bytes)) {}
  size_t read(char* data, size_t capacity) override {
    while (given_ == lines_.size()) {
      lines_.clear();
      given_ = 0;
      if (!make()) return 0;
    }
    const size_t count = lines_.copy(data, capacity, given_);
    given_ += count;
    return count;
  }
  uint64_t position() const override { return bytes_->position(); }

 protected:
  // Appends to lines_; returns false at the end.
  virtual bool make() = 0;
  std::unique_ptr<ByteSource> bytes_;
  std::string lines_;

 private:
  size_t given_ = 0;
};

class MemoryLines : public MadeLines {
 public:
  MemoryLines(std::unique_ptr<ByteSource> bytes, const CorpusFiles& files)
      : MadeLines(std::move(bytes)),
        reader_([this](char* data, size_t capacity) { return bytes_->read(data, capacity); }, files.source_language,
                files.target_language) {}

 private:
  bool make() override {
    if (!reader_.next(source_, target_)) {
      reader_.require_pairs();
      return false;
    }
    lines_ += source_ + '\t' + target_ + '\n';
    return true;
  }
  TmxReader reader_;
  std::string source_, target_;
};

class CsvTable : public MadeLines {
 public:
  CsvTable(std::unique_ptr<ByteSource> bytes, const CorpusFiles& files)
      : MadeLines(std::move(bytes)), source_(files.source_language), target_(files.target_language) {}

 private:
  bool make() override {
    std::string table(kTableChunk, '\0');
    const size_t got = bytes_->read(table.data(), table.size());
    table.resize(got);
    if (!csv_) csv_.emplace(csv_separator(table));
    got > 0 ? csv_->add(table, lines_) : csv_->end(lines_);
    if (!begun_ && lines_.find('\n') != std::string::npos) {
      begun_ = true;
      const size_t end = lines_.find('\n');
      if (names_csv_columns(std::string_view(lines_).substr(0, end), source_, target_)) lines_.erase(0, end + 1);
    }
    return got > 0 || !lines_.empty();
  }
  std::string source_, target_;
  std::optional<CsvLines> csv_;
  bool begun_ = false;
};

}  // namespace

bool is_memory(const std::string& path) { return is_named(path, ".tmx"); }
bool is_csv(const std::string& path) { return is_named(path, ".csv"); }

LineReader open_pairs(const CorpusFiles& files) {
  if (is_csv(files.tsv)) return LineReader(files.tsv, std::make_unique<CsvTable>(open_bytes(files.tsv), files));
  if (!is_memory(files.tsv)) return LineReader(files.tsv);
  if (files.source_language.empty() || files.target_language.empty())
    throw ConfigError(
        fmt::format("{}: a translation memory has several languages; choose two with data.source-language and "
                    "data.target-language, or those keys of the corpus",
                    files.tsv));
  return LineReader(files.tsv, std::make_unique<MemoryLines>(open_bytes(files.tsv), files));
}

}  // namespace starling
