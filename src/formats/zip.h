// Reads and writes zip archives (PKWARE's APPNOTE.TXT, sections 4.3 and 4.4): stored and deflated entries below 4 GiB. Foreign input: for
// any bytes, it returns what the entries hold, checked against their sizes and CRC-32, or throws DataError.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace starling {

struct ZipEntry {
  std::string name;  // as in the archive, of directories too ("folder/")
  uint64_t size = 0;
  uint64_t packed_size = 0, offset = 0;  // offset of the local header
  uint32_t crc = 0;
  bool deflated = false;
  uint64_t record = 0;  // offset of its entry in the directory
};

class ZipArchive {
 public:
  // The bytes must outlive the archive; `name` begins messages.
  ZipArchive(std::span<const std::byte> bytes, std::string name);
  const std::vector<ZipEntry>& entries() const { return entries_; }
  // Returns the content of an entry, which takes no more memory than there are bytes in it, whatever its size is said to be.
  std::string read(const ZipEntry& entry) const;
  // The bytes of an entry that is stored as it is, within the archive's.
  std::string_view stored(const ZipEntry& entry) const;
  // Returns its first bytes, `most` at most, which are not checked.
  std::string read_begin(const ZipEntry& entry, uint64_t most) const;
  // The entries in the order of their bytes.
  std::vector<const ZipEntry*> in_order() const;

 private:
  friend class ZipRewriter;
  std::span<const std::byte> packed(const ZipEntry& entry) const;
  std::string inflated(const ZipEntry& entry, uint64_t most) const;
  void require_sum(const ZipEntry& entry, std::string_view content) const;
  [[noreturn]] void broken(const ZipEntry& entry, const char* why) const;

  std::span<const std::byte> bytes_;
  std::string name_, comment_;
  std::vector<ZipEntry> entries_;
};

// Writes an archive again, with new contents of some entries. All entries have to come, in the order of their bytes.
class ZipRewriter {
 public:
  using Write = std::function<void(std::string_view bytes)>;
  // The archive must outlive it.
  ZipRewriter(const ZipArchive& archive, Write write) : archive_(archive), write_(std::move(write)), records_(archive.entries().size()) {}
  // Writes an entry as it is, packed as it is.
  void copy(const ZipEntry& entry);
  // Writes an entry with what `content` writes. If that is what the entry holds, it keeps its packed bytes.
  void replace(const ZipEntry& entry, const std::function<void(const Write&)>& content);
  // Writes what stands behind all entries.
  void end();

 private:
  void write_entry(const ZipEntry& entry, std::string_view packed, uint32_t sum, uint64_t size);
  void write(std::string_view bytes);

  const ZipArchive& archive_;
  const Write write_;
  std::vector<std::string> records_;  // of the directory
  uint64_t written_ = 0;              // bytes
};

// An archive of these files, stored as they are. Throws ConfigError if it would have 4 GiB or more.
std::string zip_archive(std::span<const std::pair<std::string, std::string>> files);

// Whether bytes begin as those of a zip archive do.
bool is_zip(std::span<const std::byte> bytes);

}  // namespace starling
