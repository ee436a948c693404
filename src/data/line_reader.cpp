// Reads lines: a raw file descriptor, optionally wrapped by a decompressor, feeds one growing buffer in which memchr finds the lines.
// The loops around zlib and libzstd are our own, because the file interfaces of both libraries silently accept truncated files.
#include "data/line_reader.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "data/foreign_formats.h"
#include "text/unicode.h"

namespace starling {
namespace {

constexpr size_t kChunk = size_t{256} << 10;  // bytes per system call; larger gains nothing measurable

std::string shown(const std::string& path) { return path == "-" ? "standard input" : path; }

class RawFile : public ByteSource {
 public:
  explicit RawFile(const std::string& path) : path_(path) {
    if (path.empty()) throw IoError("no file was named: its path is empty; give one, or - for standard input");
    fd_ = path == "-" ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd_ < 0) throw IoError(fmt::format("{}: cannot be opened: {}; check the path and its permissions", path, std::strerror(errno)));
  }
  ~RawFile() override {
    if (fd_ > STDIN_FILENO) ::close(fd_);
  }
  RawFile(const RawFile&) = delete;
  RawFile& operator=(const RawFile&) = delete;

  size_t read(char* data, size_t capacity) override {
    while (true) {
      const ssize_t got = ::read(fd_, data, capacity);
      if (got >= 0) return position_ += static_cast<uint64_t>(got), static_cast<size_t>(got);
      if (errno != EINTR) throw IoError(fmt::format("{}: cannot be read: {}", shown(path_), std::strerror(errno)));
    }
  }

  uint64_t position() const override { return position_; }

 private:
  std::string path_;
  int fd_ = -1;
  uint64_t position_ = 0;
};

class MemoryBytes : public ByteSource {
 public:
  explicit MemoryBytes(std::string_view bytes) : bytes_(bytes) {}
  size_t read(char* data, size_t capacity) override {
    const size_t count = bytes_.copy(data, capacity, position_);
    position_ += count;
    return count;
  }
  uint64_t position() const override { return position_; }

 private:
  std::string_view bytes_;
  size_t position_ = 0;
};

bool is_gzip(std::string_view head) { return head.substr(0, 2) == "\x1f\x8b"; }

bool is_zstd(std::string_view head) {  // a frame, or a skippable frame
  if (head.size() < 4) return false;
  return head.substr(0, 4) == "\x28\xb5\x2f\xfd" || ((head[0] & 0xf0) == 0x50 && head.substr(1, 3) == "\x2a\x4d\x18");
}

// Peeks at the first bytes of a file and then returns them again. It makes more than one read only while they may be those of an archive,
// since somebody may be typing the lines.
class Peeked : public ByteSource {
 public:
  explicit Peeked(std::unique_ptr<ByteSource> inner) : inner_(std::move(inner)) {
    do {
      char bytes[kFormatBytes];
      const size_t got = inner_->read(bytes, kFormatBytes - head_.size());
      if (got == 0) break;
      head_.append(bytes, got);
    } while (head_.size() < kFormatBytes && is_open());
  }
  const std::string& head() const { return head_; }
  size_t read(char* data, size_t capacity) override {
    if (given_ == head_.size()) return inner_->read(data, capacity);
    const size_t count = std::min(capacity, head_.size() - given_);
    std::memcpy(data, head_.data() + given_, count);
    given_ += count;
    return count;
  }
  uint64_t position() const override { return inner_->position(); }

 private:
  bool is_open() const {
    const std::string_view head = head_;
    const bool archive = std::string_view("\x1f\x8b").starts_with(head) || std::string_view("\x28\xb5\x2f\xfd").starts_with(head) ||
                         ((head[0] & 0xf0) == 0x50 && std::string_view("\x2a\x4d\x18").starts_with(head.substr(1)));
    return archive || may_become_foreign(head);
  }
  std::unique_ptr<ByteSource> inner_;
  std::string head_;
  size_t given_ = 0;
};

constexpr const char* kMendArchive = "copy or compress the file again";

// Reads all members of a gzip file in sequence; zero bytes after the last are padding, as for gzip itself.
class GzipBytes : public ByteSource {
 public:
  explicit GzipBytes(std::unique_ptr<ByteSource> inner) : inner_(std::move(inner)), input_(kChunk) {
    CHECK(inflateInit2(&stream_, 15 + 16) == Z_OK, "zlib could not start");
  }
  ~GzipBytes() override { inflateEnd(&stream_); }
  GzipBytes(const GzipBytes&) = delete;
  GzipBytes& operator=(const GzipBytes&) = delete;

  size_t read(char* data, size_t capacity) override {
    stream_.next_out = reinterpret_cast<Bytef*>(data);
    stream_.avail_out = static_cast<uInt>(capacity);
    while (stream_.avail_out == capacity) {
      if (stream_.avail_in == 0 && !refill()) {
        if (in_member_) throw DataError(fmt::format("the gzip archive is cut short; {}", kMendArchive));
        return 0;
      }
      if (!in_member_ && !begin_member()) continue;
      step();
    }
    return capacity - stream_.avail_out;
  }
  uint64_t position() const override { return inner_->position(); }

 private:
  bool refill() {
    stream_.avail_in = static_cast<uInt>(inner_->read(input_.data(), input_.size()));
    stream_.next_in = reinterpret_cast<Bytef*>(input_.data());
    return stream_.avail_in > 0;
  }
  bool begin_member() {  // skips padding; false if the input ran out
    while (members_ > 0 && stream_.avail_in > 0 && *stream_.next_in == 0) {
      ++stream_.next_in;
      --stream_.avail_in;
    }
    if (stream_.avail_in == 0) return false;
    inflateReset(&stream_);
    in_member_ = true;
    return true;
  }
  void step() {
    const int status = inflate(&stream_, Z_NO_FLUSH);
    if (status == Z_STREAM_END) {
      in_member_ = false;
      ++members_;
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
      throw DataError(fmt::format("the gzip archive is damaged ({}); {}", stream_.msg ? stream_.msg : "unknown cause", kMendArchive));
    }
  }

  std::unique_ptr<ByteSource> inner_;
  std::vector<char> input_;
  z_stream stream_{};
  bool in_member_ = false;
  int64_t members_ = 0;
};

constexpr int kWindowLog = 31;  // the longest window that zstd writes (--long=31): a reader may have to keep 2 GiB

// Returns the window size of a frame from its header (RFC 8878, 3.1.1.1); 0 if the frame has no window because it is a single segment, or
// if the header is incomplete.
uint64_t window_of(std::string_view frame) {
  if (frame.size() < 6 || frame.substr(0, 4) != "\x28\xb5\x2f\xfd") return 0;
  const auto descriptor = static_cast<unsigned char>(frame[4]), window = static_cast<unsigned char>(frame[5]);
  if (descriptor & 0x20) return 0;  // a single segment
  const uint64_t base = uint64_t{1} << (10 + (window >> 3));
  return base + base / 8 * (window & 7);
}

// Throws DataError unless a window fits. Windows of up to 128 MiB, which zstd uses without --long, are always tried.
void require_window(uint64_t bytes) {
  if (bytes <= uint64_t{128} << 20) return;
  const auto refuse = [&](const std::string& why) {
    throw DataError(
        fmt::format("the Zstandard archive was made with a window of {} MiB (zstd --long), {}; unpack it first: zstd -dc "
                    "--long=31 ARCHIVE > TEXT, or compress it again without --long",
                    bytes >> 20, why));
  };
  if (bytes > uint64_t{1} << kWindowLog) refuse(fmt::format("more than the {} MiB that are supported", (uint64_t{1} << kWindowLog) >> 20));
  if (const UsableMemory memory = usable_memory(); static_cast<uint64_t>(memory.bytes) < bytes)
    refuse("but usable is only " + memory.text());
}

// Reads all frames of a Zstandard file.
class ZstdBytes : public ByteSource {
 public:
  explicit ZstdBytes(std::unique_ptr<ByteSource> inner)
      : inner_(std::move(inner)), input_(kChunk), stream_(ZSTD_createDStream(), &ZSTD_freeDStream) {
    CHECK(stream_ != nullptr, "libzstd could not start");
    CHECK(!ZSTD_isError(ZSTD_DCtx_setParameter(stream_.get(), ZSTD_d_windowLogMax, kWindowLog)), "libzstd refuses this window size");
  }

  size_t read(char* data, size_t capacity) override {
    ZSTD_outBuffer output{data, capacity, 0};
    while (output.pos == 0) {
      if (pending_.pos == pending_.size) {
        pending_ = {input_.data(), inner_->read(input_.data(), input_.size()), 0};
        if (pending_.size == 0 && !drain(output)) return 0;
        continue;
      }
      step(output);
    }
    return output.pos;
  }
  uint64_t position() const override { return inner_->position(); }

 private:
  void step(ZSTD_outBuffer& output) {
    if (remaining_ == 0) require_window(window_of(std::string_view(input_.data(), pending_.size).substr(pending_.pos)));
    remaining_ = ZSTD_decompressStream(stream_.get(), &output, &pending_);
    if (ZSTD_getErrorCode(remaining_) == ZSTD_error_memory_allocation)
      throw DataError("the Zstandard archive's window does not fit into memory; unpack it first: zstd -dc --long=31 ARCHIVE > TEXT");
    if (ZSTD_isError(remaining_))
      throw DataError(fmt::format("the Zstandard archive is damaged ({}); {}", ZSTD_getErrorName(remaining_), kMendArchive));
  }
  // At the end of the input: returns what the decoder still holds. A frame that is still open then was truncated.
  bool drain(ZSTD_outBuffer& output) {
    if (remaining_ == 0) return false;
    step(output);
    if (output.pos == 0 && remaining_ != 0) throw DataError(fmt::format("the Zstandard archive is cut short; {}", kMendArchive));
    return output.pos > 0;
  }

  std::unique_ptr<ByteSource> inner_;
  std::vector<char> input_;
  std::unique_ptr<ZSTD_DStream, size_t (*)(ZSTD_DStream*)> stream_;
  ZSTD_inBuffer pending_{nullptr, 0, 0};
  size_t remaining_ = 0;  // 0: between frames
};

// Says what a line is if its bytes cannot be text in any byte-based encoding, and how to fix it; "" if it may be text.
std::string not_text(std::string_view line) {
  const auto is_control = [](char c) { return c >= 0 && c < ' ' && std::string_view("\t\n\v\f\r\x1b").find(c) == std::string_view::npos; };
  int64_t zeros[2] = {0, 0}, controls = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    zeros[i % 2] += line[i] == '\0';
    controls += is_control(line[i]);
  }
  if (controls == 0) return "";
  const auto size = static_cast<int64_t>(line.size());
  if (zeros[0] + zeros[1] > 1 && 3 * std::max(zeros[0], zeros[1]) > size)
    return fmt::format("the text looks like UTF-16; convert it with: iconv -f UTF-16{} -t UTF-8", zeros[1] > zeros[0] ? "LE" : "BE");
  if (invalid_utf8_offset(line) && 100 * controls > size)
    return "this is binary data and not text; name a text file with one sentence a line, plain or as an archive of gzip or Zstandard";
  return "";
}

// Returns the line with U+FFFD in the place of each NUL and of each byte that is not UTF-8.
std::string with_marked_bytes(std::string_view line) {
  std::string marked;
  const auto add = [&](std::string_view valid) {
    for (const char c : valid) marked += c == '\0' ? "\uFFFD" : std::string_view(&c, 1);
  };
  while (const auto at = invalid_utf8_offset(line)) {
    add(line.substr(0, *at));
    marked += "\uFFFD";
    line.remove_prefix(*at + 1);
  }
  add(line);
  return marked;
}

// Throws DataError if the content is not text. `inside`: the archive that contains it; "" if none.
void refuse_foreign(std::string_view head, const std::string& path, const char* inside) {
  std::optional<ForeignFormat> found = foreign_format(head);
  if (*inside && is_gzip(head)) found = ForeignFormat{"a gzip archive", ""};
  if (*inside && is_zstd(head)) found = ForeignFormat{"a Zstandard archive", ""};
  if (!found) return;
  throw DataError(*inside ? fmt::format("the {} archive contains {} instead of text; unpack both first", inside, found->name)
                          : describe(*found, path));
}

std::unique_ptr<ByteSource> unpacked(std::unique_ptr<ByteSource> archive, const std::string& path, const char* name) {
  auto text = std::make_unique<Peeked>(std::move(archive));
  refuse_foreign(text->head(), path, name);
  return text;
}

std::unique_ptr<ByteSource> open_text(std::unique_ptr<ByteSource> raw, const std::string& path, bool any) {
  auto file = std::make_unique<Peeked>(std::move(raw));
  const std::string head = file->head();
  if (is_gzip(head)) return unpacked(std::make_unique<GzipBytes>(std::move(file)), path, "gzip");
  if (is_zstd(head)) return unpacked(std::make_unique<ZstdBytes>(std::move(file)), path, "Zstandard");
  if (!any) refuse_foreign(head, path, "");
  for (std::string_view extension : {".gz", ".zst"}) {
    if (path.ends_with(extension))
      throw DataError(
          fmt::format("the name ends with {} but the content is not such an archive; {}, or rename it", extension, kMendArchive));
  }
  return file;
}

// DataError names the first line, which is not read yet.
std::unique_ptr<ByteSource> open_raw(std::unique_ptr<ByteSource> raw, const std::string& path, bool any = false) {
  try {
    return open_text(std::move(raw), path, any);
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}:1: {}", shown(path), error.what()));
  }
}

}  // namespace

std::unique_ptr<ByteSource> open_bytes(const std::string& path, bool any) { return open_raw(std::make_unique<RawFile>(path), path, any); }

std::unique_ptr<ByteSource> open_archive(std::string_view bytes) {
  if (is_gzip(bytes)) return std::make_unique<GzipBytes>(std::make_unique<MemoryBytes>(bytes));
  if (is_zstd(bytes)) return std::make_unique<ZstdBytes>(std::make_unique<MemoryBytes>(bytes));
  return nullptr;
}

LineReader::LineReader(const std::string& path) : LineReader(shown(path), open_bytes(path)) {}

LineReader::LineReader(const std::string& name, std::string_view bytes)
    : LineReader(name, open_raw(std::make_unique<MemoryBytes>(bytes), name)) {}

LineReader::LineReader(const std::string& name, std::unique_ptr<ByteSource> text) : path_(name), bytes_(std::move(text)) {
  buffer_.resize(2 * kChunk);
}

bool LineReader::next(std::string_view& line) {
  size_t searched = 0;
  while (true) {
    char* unread = buffer_.data() + begin_;
    const size_t count = end_ - begin_;
    if (void* newline = count > searched ? std::memchr(unread + searched, '\n', count - searched) : nullptr) {
      const size_t length = static_cast<size_t>(static_cast<char*>(newline) - unread);
      begin_ += length + 1;
      line = checked({unread, length});
      break;
    }
    searched = count;
    if (count > kMaxLineBytes) {
      refuse_carriage_returns({unread, count});
      checked({unread, count});
    }
    if (!at_end_) {
      fill();  // moves what `unread` points to
      continue;
    }
    if (count == 0) return false;
    begin_ = end_;
    line = checked({unread, count});
    if (line_number_ == 0) refuse_carriage_returns(line);
    break;
  }
  ++line_number_;
  return true;
}

// Moves the unread bytes to the front and reads more, or sets at_end_.
void LineReader::fill() {
  if (begin_ > 0) std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  if (buffer_.size() - end_ < kChunk) buffer_.resize(2 * buffer_.size());
  try {
    const size_t got = bytes_->read(buffer_.data() + end_, kChunk);
    end_ += got;
    at_end_ = got == 0;
  } catch (const DataError& error) {
    fail(line_number_ + 1, error.what());
  }
}

void LineReader::fail(int64_t line, const std::string& message) const { throw DataError(fmt::format("{}:{}: {}", path_, line, message)); }

// Refuses text without a line feed if it has carriage returns.
void LineReader::refuse_carriage_returns(std::string_view text) const {
  if (text.find('\r') != std::string_view::npos)
    fail(line_number_ + 1,
         "the lines end in carriage returns alone, as on old Macintoshes; convert the file with: tr '\\r' '\\n' < FILE > TEXT");
}

// Checks a line and returns it without carriage return and byte order mark.
std::string_view LineReader::checked(std::string_view line) {
  const int64_t number = line_number_ + 1;
  if (line.size() > kMaxLineBytes)
    fail(number, fmt::format("the line is longer than {} MiB; is this a text file with one sentence a line?", kMaxLineBytes >> 20));
  if (number == 1 && (line.starts_with("\xff\xfe") || line.starts_with("\xfe\xff")))
    fail(number, "the text is UTF-16; convert it with: iconv -f UTF-16 -t UTF-8");
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (number == 1) line.remove_prefix(byte_order_mark(line));
  const size_t nul = line.find('\0');
  const auto at = invalid_utf8_offset(line);
  if (nul == std::string_view::npos && !at) return line;
  if (const std::string kind = not_text(line); !kind.empty() && (number == 1 || !marks_invalid_)) fail(number, kind);
  if (marks_invalid_) return marked_ = with_marked_bytes(line);
  if (nul != std::string_view::npos)
    fail(number, fmt::format("NUL byte at byte {}; text must not contain any, remove them with: tr -d '\\000'", nul));
  fail(number, fmt::format("invalid UTF-8 at byte {} (0x{:02x}); convert the file, e.g. with: iconv -f LATIN1 -t UTF-8", *at,
                           static_cast<unsigned char>(line[*at])));
}

}  // namespace starling
