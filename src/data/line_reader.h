// Reads lines of text from plain, gzip or Zstandard files, from standard input or from memory.
// The first bytes of the content decide the format, so that a wrongly named file is read or refused but never misread; unsupported formats
// are named (data/foreign_formats.h). A Zstandard archive needs as much memory as its window, at most 2 GiB (zstd --long=31). All checks
// that make text safe for the rest of the program (UTF-8, NUL bytes, absurd lengths, truncated archives) are made once, here, with
// file:line.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace starling {

// A stream of bytes; read returns 0 at the end. IoErrors name the path; LineReader adds path and line to DataErrors.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual size_t read(char* data, size_t capacity) = 0;
  /// Returns the bytes of the file read so far; for an archive, compressed bytes.
  virtual uint64_t position() const = 0;
};

/// Opens a file ("-" is standard input) and decompresses it if its first bytes say so; throws IoError or DataError. `any`: also takes what
/// is no text, such as office documents.
std::unique_ptr<ByteSource> open_bytes(const std::string& path, bool any = false);

/// Returns what unpacks `bytes`, which must outlive it, if they are an archive of gzip or Zstandard, of text or not; else null. Its
/// DataErrors name no file.
std::unique_ptr<ByteSource> open_archive(std::string_view bytes);

class LineReader {
 public:
  static constexpr size_t kMaxLineBytes = size_t{16} << 20;  // longer lines are certainly not text; bounds the memory

  /// Opens `path` ("-" is standard input); throws IoError if it cannot be opened.
  explicit LineReader(const std::string& path);
  /// Reads `bytes`, which must outlive the reader, as it reads a file; errors call them `name`.
  LineReader(const std::string& name, std::string_view bytes);
  /// Reads text from another source; errors call it `name`.
  LineReader(const std::string& name, std::unique_ptr<ByteSource> text);

  /// From here on, NUL and what is not UTF-8 become U+FFFD, byte by byte, instead of being refused, but for a first line that is no text at
  /// all: of a file that is in UTF-16 or binary.
  void mark_invalid_bytes() { marks_invalid_ = true; }

  /// Gets the next line without its line end, valid until the next call; returns false at the end. Throws DataError ("file:line: ...") for
  /// invalid UTF-8, NUL bytes, lines longer than kMaxLineBytes and damaged archives, IoError if reading fails.
  bool next(std::string_view& line);

  /// 1-based number of the line last returned (0 before the first).
  int64_t line_number() const { return line_number_; }
  const std::string& path() const { return path_; }
  /// Returns the bytes of the file read so far (for an archive, compressed bytes), slightly more than those of the lines returned.
  uint64_t bytes_read() const { return bytes_->position(); }

 private:
  void fill();
  std::string_view checked(std::string_view line);
  void refuse_carriage_returns(std::string_view text) const;
  [[noreturn]] void fail(int64_t line, const std::string& message) const;

  std::string path_;
  std::unique_ptr<ByteSource> bytes_;
  std::vector<char> buffer_;
  size_t begin_ = 0, end_ = 0;  // unread bytes of buffer_
  int64_t line_number_ = 0;
  bool at_end_ = false, marks_invalid_ = false;
  std::string marked_;  // the last line, if it had such bytes
};

}  // namespace starling
