#include "formats/zip.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "base/error.h"
#include "base/quotes.h"

namespace starling {
namespace {

constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50;
constexpr size_t kLocalBytes = 30, kCentralBytes = 46, kEndBytes = 22, kMostComment = 65535;
constexpr uint64_t kMostExpansion = 1100;  // deflate makes at most 1,032 bytes of one

constexpr uint16_t kVersionNeeded = 20, kSizesFollow = 8;  // the latter a flag: sizes and sum stand behind the content
constexpr uint64_t kMostInArchive = 0xffffffff;

void append_number(std::string& to, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i, value >>= 8) to += static_cast<char>(value);
}

void set_number(std::string& record, size_t at, uint64_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) record[at + i] = static_cast<char>(value >> (8 * i));
}

uint32_t sum_of(std::string_view content) {
  return static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size())));
}

// Packs what comes piece by piece.
class Deflater {
 public:
  explicit Deflater(bool packs) : packs_(packs), end_(&stream_, deflateEnd) {
    if (packs && deflateInit2(&stream_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
      throw std::bad_alloc();
  }
  void add(std::string_view content) {
    while (!content.empty()) {
      const std::string_view now = content.substr(0, size_t{1} << 30);  // zlib counts in 32 bits
      sum_ = static_cast<uint32_t>(crc32(sum_, reinterpret_cast<const Bytef*>(now.data()), static_cast<uInt>(now.size())));
      size_ += now.size();
      packs_ ? pack(now, Z_NO_FLUSH) : void(packed_ += now);
      content.remove_prefix(now.size());
    }
  }
  const std::string& end() {
    if (packs_) pack("", Z_FINISH);
    return packed_;
  }
  uint32_t sum() const { return sum_; }
  uint64_t size() const { return size_; }

 private:
  void pack(std::string_view content, int flush) {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
    stream_.avail_in = static_cast<uInt>(content.size());
    do {
      stream_.next_out = piece_.data();
      stream_.avail_out = static_cast<uInt>(piece_.size());
      deflate(&stream_, flush);
      packed_.append(reinterpret_cast<const char*>(piece_.data()), static_cast<size_t>(stream_.next_out - piece_.data()));
    } while (stream_.avail_out == 0);
  }

  const bool packs_;
  z_stream stream_{};
  std::unique_ptr<z_stream, int (*)(z_stream*)> end_;
  std::vector<Bytef> piece_ = std::vector<Bytef>(size_t{64} << 10);
  std::string packed_;
  uint32_t sum_ = 0;
  uint64_t size_ = 0;
};

template <class T>
T number_at(std::span<const std::byte> bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);  // the format is little-endian, as is every machine that we run on
  return value;
}

}  // namespace

std::string zip_archive(std::span<const std::pair<std::string, std::string>> files) {
  constexpr uint64_t kFirstDay = 0x21;  // 1 January 1980
  std::string archive, directory;
  for (const auto& [name, content] : files) {
    std::string head;
    append_number(head, kVersionNeeded, 2);
    append_number(head, 0, 4);  // flags, stored
    append_number(head, 0, 2);
    append_number(head, kFirstDay, 2);
    append_number(head, sum_of(content), 4);
    append_number(head, content.size(), 4);
    append_number(head, content.size(), 4);
    append_number(head, name.size(), 2);
    append_number(head, 0, 2);
    append_number(directory, kCentral, 4);
    append_number(directory, kVersionNeeded, 2);
    directory += head;
    append_number(directory, 0, 10);
    append_number(directory, archive.size(), 4);
    directory += name;
    append_number(archive, kLocal, 4);
    archive += head + name + content;
    if (archive.size() + directory.size() + kEndBytes > kMostInArchive)
      throw ConfigError(fmt::format("{} and the files before it are too large for a zip archive", name));
  }
  const uint64_t start = archive.size();
  archive += directory;
  append_number(archive, kEnd, 4);
  append_number(archive, 0, 4);
  append_number(archive, files.size(), 2);
  append_number(archive, files.size(), 2);
  append_number(archive, directory.size(), 4);
  append_number(archive, start, 4);
  append_number(archive, 0, 2);
  return archive;
}

bool is_zip(std::span<const std::byte> bytes) {
  return bytes.size() >= kEndBytes && (number_at<uint32_t>(bytes, 0) == kLocal || number_at<uint32_t>(bytes, 0) == kEnd);
}

ZipArchive::ZipArchive(std::span<const std::byte> bytes, std::string name) : bytes_(bytes), name_(std::move(name)) {
  const auto broken = [&](const std::string& why) {
    throw DataError(fmt::format("{}: cannot be read as a zip archive ({}); fetch the file again", name_, why));
  };
  if (bytes.size() < kEndBytes) broken("it is too short");
  size_t end = bytes.size() - kEndBytes;
  const size_t first = end > kMostComment ? end - kMostComment : 0;
  while (number_at<uint32_t>(bytes, end) != kEnd)
    if (end-- == first) broken("its end is missing: was it cut short?");
  const auto count = number_at<uint16_t>(bytes, end + 10);
  const uint64_t size = number_at<uint32_t>(bytes, end + 12), start = number_at<uint32_t>(bytes, end + 16);
  if (count == 0xffff || start == 0xffffffff) broken("it is in the zip64 format for more than 4 GiB, which is not supported");
  if (start + size > end) broken("its directory lies beyond its end");
  comment_.assign(reinterpret_cast<const char*>(bytes.data()) + end + kEndBytes,
                  std::min<size_t>(number_at<uint16_t>(bytes, end + 20), bytes.size() - end - kEndBytes));
  size_t at = start;
  uint64_t packed = 0;
  for (int i = 0; i < count; ++i) {
    if (at + kCentralBytes > end || number_at<uint32_t>(bytes, at) != kCentral) broken(fmt::format("entry {} is damaged", i + 1));
    const size_t name_bytes = number_at<uint16_t>(bytes, at + 28);
    const size_t further = size_t{number_at<uint16_t>(bytes, at + 30)} + number_at<uint16_t>(bytes, at + 32);
    if (at + kCentralBytes + name_bytes + further > end) broken(fmt::format("entry {} is damaged", i + 1));
    ZipEntry e;
    e.record = at;
    e.name.assign(reinterpret_cast<const char*>(bytes.data() + at + kCentralBytes), name_bytes);
    const auto flags = number_at<uint16_t>(bytes, at + 8), method = number_at<uint16_t>(bytes, at + 10);
    e.crc = number_at<uint32_t>(bytes, at + 16);
    e.packed_size = number_at<uint32_t>(bytes, at + 20);
    e.size = number_at<uint32_t>(bytes, at + 24);
    e.offset = number_at<uint32_t>(bytes, at + 42);
    if (flags & 1) broken(fmt::format("{} is encrypted", printable(e.name)));
    if (method != 0 && method != 8)
      broken(fmt::format("{} is packed with method {}, but only stored and deflated entries are supported", printable(e.name), method));
    e.deflated = method == 8;
    if (e.packed_size == 0xffffffff || e.size == 0xffffffff) broken(fmt::format("{} has 4 GiB or more", printable(e.name)));
    if (!e.deflated && e.size != e.packed_size)
      broken(fmt::format("the packed and unpacked sizes of {} differ, but it is stored uncompressed", printable(e.name)));
    if (e.size > (e.packed_size + 1) * kMostExpansion)
      broken(fmt::format("{} claims {} bytes, more than it can unpack to", printable(e.name), e.size));
    packed += e.packed_size;
    if (packed > bytes.size()) broken("its entries overlap");
    entries_.push_back(std::move(e));
    at += kCentralBytes + name_bytes + further;
  }
}

void ZipArchive::broken(const ZipEntry& entry, const char* why) const {
  throw DataError(fmt::format("{}: {} {}; fetch the archive again", name_, printable(entry.name), why));
}

std::span<const std::byte> ZipArchive::packed(const ZipEntry& entry) const {
  if (entry.offset + kLocalBytes > bytes_.size() || number_at<uint32_t>(bytes_, entry.offset) != kLocal)
    broken(entry, "is not where the directory says");
  const uint64_t begin =
      entry.offset + kLocalBytes + number_at<uint16_t>(bytes_, entry.offset + 26) + number_at<uint16_t>(bytes_, entry.offset + 28);
  if (begin + entry.packed_size > bytes_.size()) broken(entry, "is cut short");
  return bytes_.subspan(begin, entry.packed_size);
}

// The first bytes of a deflated entry, `most` at most. The text grows as bytes are delivered.
std::string ZipArchive::inflated(const ZipEntry& entry, uint64_t most) const {
  constexpr size_t kPiece = size_t{64} << 10;
  const std::span<const std::byte> packed = this->packed(entry);
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, inflateEnd);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  std::string content;
  content.reserve(most);  // addresses, not memory
  std::vector<Bytef> piece(std::min<uint64_t>(most, kPiece));
  for (int status = Z_OK; content.size() < most && status == Z_OK;) {
    stream.next_out = piece.data();
    stream.avail_out = static_cast<uInt>(std::min<uint64_t>(piece.size(), most - content.size()));
    status = inflate(&stream, Z_NO_FLUSH);
    if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) broken(entry, "is damaged");
    content.append(reinterpret_cast<const char*>(piece.data()), static_cast<size_t>(stream.next_out - piece.data()));
  }
  return content;
}

void ZipArchive::require_sum(const ZipEntry& entry, std::string_view content) const {
  if (content.size() != entry.size) broken(entry, "is damaged");
  if (sum_of(content) != entry.crc) broken(entry, "is damaged: its checksum is wrong");
}

std::string ZipArchive::read_begin(const ZipEntry& entry, uint64_t most) const {
  most = std::min(most, entry.size);
  if (entry.deflated) return inflated(entry, most);
  return std::string(reinterpret_cast<const char*>(packed(entry).data()), most);
}

std::string_view ZipArchive::stored(const ZipEntry& entry) const {
  const std::span<const std::byte> bytes = packed(entry);
  const std::string_view content(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  require_sum(entry, content);
  return content;
}

std::string ZipArchive::read(const ZipEntry& entry) const {
  if (!entry.deflated) return std::string(stored(entry));
  std::string content = inflated(entry, entry.size);
  require_sum(entry, content);
  return content;
}

std::vector<const ZipEntry*> ZipArchive::in_order() const {
  std::vector<const ZipEntry*> entries;
  for (const ZipEntry& e : entries_) entries.push_back(&e);
  std::ranges::stable_sort(entries, {}, &ZipEntry::offset);
  return entries;
}

void ZipRewriter::write(std::string_view bytes) {
  written_ += bytes.size();
  if (written_ > kMostInArchive) throw DataError(fmt::format("{}: the translation has 4 GiB or more", archive_.name_));
  write_(bytes);
}

void ZipRewriter::copy(const ZipEntry& entry) {
  const std::span<const std::byte> packed = archive_.packed(entry);
  write_entry(entry, {reinterpret_cast<const char*>(packed.data()), packed.size()}, entry.crc, entry.size);
}

void ZipRewriter::replace(const ZipEntry& entry, const std::function<void(const Write&)>& content) {
  Deflater deflater(entry.deflated);
  content([&](std::string_view bytes) { deflater.add(bytes); });
  if (deflater.size() == entry.size && deflater.sum() == entry.crc) return copy(entry);
  write_entry(entry, deflater.end(), deflater.sum(), deflater.size());
}

void ZipRewriter::write_entry(const ZipEntry& entry, std::string_view packed, uint32_t sum, uint64_t size) {
  constexpr size_t kFlags = 6, kMethod = 8, kSum = 14, kName = 26;  // in a local header; two bytes further in the directory
  const std::span<const std::byte> all = archive_.bytes_;
  const auto* bytes = reinterpret_cast<const char*>(all.data());
  // Further fields of the local header, such as sizes in another form, are left out: the directory has what counts.
  std::string head(bytes + entry.offset, kLocalBytes + number_at<uint16_t>(all, entry.offset + kName));
  const size_t further = size_t{number_at<uint16_t>(all, entry.record + 28)} + number_at<uint16_t>(all, entry.record + 30) +
                         number_at<uint16_t>(all, entry.record + 32);
  std::string record(bytes + entry.record, kCentralBytes + further);
  set_number(head, kName + 2, 0, 2);
  for (const auto& [to, shift] : {std::pair(&head, size_t{0}), {&record, size_t{2}}}) {
    set_number(*to, kFlags + shift, number_at<uint16_t>(all, entry.record + kFlags + 2) & ~unsigned{kSizesFollow}, 2);
    set_number(*to, kMethod + shift, entry.deflated ? 8 : 0, 2);
    set_number(*to, kSum + shift, sum, 4);
    set_number(*to, kSum + shift + 4, packed.size(), 4);
    set_number(*to, kSum + shift + 8, size, 4);
  }
  set_number(record, 42, written_, 4);
  write(head);
  write(packed);
  records_[static_cast<size_t>(&entry - archive_.entries_.data())] = std::move(record);
}

void ZipRewriter::end() {
  const uint64_t start = written_;
  for (const std::string& record : records_) write(record);
  const uint64_t directory = written_ - start;
  std::string end;
  append_number(end, kEnd, 4);
  append_number(end, 0, 4);
  append_number(end, records_.size(), 2);
  append_number(end, records_.size(), 2);
  append_number(end, directory, 4);
  append_number(end, start, 4);
  append_number(end, archive_.comment_.size(), 2);
  write(end + archive_.comment_);
}

}  // namespace starling
