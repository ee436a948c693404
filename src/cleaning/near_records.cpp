#include "cleaning/near_records.h"

namespace starling {
namespace {

template <class T>
void append(std::string& bytes, const T* values, size_t count) {
  bytes.append(reinterpret_cast<const char*>(values), count * sizeof(T));
}

// Maps a file of values; an empty file has none. Files are mapped at the beginning of a page.
template <class T>
std::span<const T> map_values(FileSystem& files, const std::string& path, std::unique_ptr<MappedFile>& file) {
  const FileInfo info = files.info(path);
  if (info.kind != FileKind::file)
    throw IoError(fmt::format("{}: is missing, so the pairs must be judged again; remove its directory", path));
  if (info.size == 0) return {};
  file = files.map(path);
  return {reinterpret_cast<const T*>(file->bytes().data()), file->bytes().size() / sizeof(T)};
}

}  // namespace

NearWriter::NearWriter(FileSystem& files, const std::string& base)
    : records_(files.create(base + "near")), shingles_(files.create(base + "shingles")) {}

void NearWriter::add(uint32_t number, float score, const PairShingles& pair) {
  const NearRecord record{number,    score, at_, static_cast<uint32_t>(pair.source.size()), static_cast<uint32_t>(pair.target.size()),
                          pair.bands};
  append(record_bytes_, &record, 1);
  append(shingle_bytes_, pair.source.data(), pair.source.size());
  append(shingle_bytes_, pair.target.data(), pair.target.size());
  at_ += record.shingles();
}

void NearWriter::flush() {
  records_->write(record_bytes_);
  shingles_->write(shingle_bytes_);
  record_bytes_.clear();
  shingle_bytes_.clear();
}

void NearWriter::close() {
  flush();
  for (OutputFile* file : {records_.get(), shingles_.get()}) {
    file->sync();
    file->close();
  }
}

NearRecords::NearRecords(FileSystem& files, const std::string& base)
    : records_(map_values<NearRecord>(files, base + "near", record_file_)),
      shingles_(map_values<uint32_t>(files, base + "shingles", shingle_file_)) {}

}  // namespace starling
