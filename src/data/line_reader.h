// Lines of text from plain, gzip or Zstandard files, from standard input or from memory.
// The format is told by the content's first bytes, so that a wrongly named file is read or refused, never misread, and other archives are
// named (data/foreign_formats.h). A Zstandard archive takes its window of memory, at most 2 GiB (zstd --long=31). All checks
// that make text safe for the rest of the program (UTF-8, NUL bytes, absurd lengths, torn archives) are made here, once, with file:line.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace starling {

// A stream of bytes; read returns 0 at the end. Errors name the path; what they say is completed with the line by LineReader.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual size_t read(char* data, size_t capacity) = 0;
  /// Bytes of the file read so far, which for an archive are compressed ones.
  virtual uint64_t position() const = 0;
};

/// Opens a file ("-" is standard input) and decompresses it if its first bytes say so; throws IoError or DataError.
std::unique_ptr<ByteSource> open_bytes(const std::string& path);

class LineReader {
 public:
  static constexpr size_t kMaxLineBytes = size_t{16} << 20;  // longer lines are surely not text; bounds the memory

  /// Opens `path` ("-" is standard input); throws IoError if it cannot be opened.
  explicit LineReader(const std::string& path);
  /// Reads `bytes`, which must outlive the reader, as it reads a file; errors call them `name`.
  LineReader(const std::string& name, std::string_view bytes);

  /// The next line without its line end, valid until the next call; false at the end. Throws DataError ("file:line: ...") on
  /// invalid UTF-8, NUL bytes, lines above kMaxLineBytes and damaged archives, IoError if the system refuses to read.
  bool next(std::string_view& line);

  /// 1-based number of the line last returned (0 before the first).
  int64_t line_number() const { return line_number_; }
  const std::string& path() const { return path_; }
  /// Bytes of the file read so far, of an archive compressed ones; a little more than the lines that were given out.
  uint64_t bytes_read() const { return bytes_->position(); }

 private:
  void fill();
  std::string_view checked(std::string_view line) const;
  void refuse_carriage_returns(std::string_view text) const;
  [[noreturn]] void fail(int64_t line, const std::string& message) const;

  std::string path_;
  std::unique_ptr<ByteSource> bytes_;
  std::vector<char> buffer_;
  size_t begin_ = 0, end_ = 0;  // unread bytes of buffer_
  int64_t line_number_ = 0;
  bool at_end_ = false;
};

}  // namespace starling
