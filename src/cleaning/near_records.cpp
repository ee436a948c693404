#include "cleaning/near_records.h"

namespace starling {

NearWriter::NearWriter(FileSystem& files, const std::string& base)
    : records_(files.create(base + "near")), shingles_(files.create(base + "shingles")) {}

void NearWriter::add(uint32_t number, float score, const PairShingles& pair) {
  const NearRecord record{number,    score, at_, static_cast<uint32_t>(pair.source.size()), static_cast<uint32_t>(pair.target.size()),
                          pair.bands};
  record_bytes_.append(bytes_of(&record, 1));
  for (const auto* side : {&pair.source, &pair.target}) shingle_bytes_.append(bytes_of(side->data(), side->size()));
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
    : records_(files, base + "near"), shingles_(files, base + "shingles") {}

}  // namespace starling
