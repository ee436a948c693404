#include "data/text_stream.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/counted.h"
#include "base/error.h"
#include "base/sha256.h"
#include "base/start_threads.h"
#include "base/system_reason.h"
#include "base/text_files.h"
#include "base/utf8.h"
#include "data/corpus.h"

namespace starling {
namespace {

constexpr int kLookMs = 100;
constexpr int64_t kAhead = 2;       // windows that are made before they are asked for
constexpr int64_t kToldBroken = 5;  // broken lines that are named
constexpr size_t kLongestLine = 1 << 20;
constexpr double kPatience = 10;  // seconds, before a message that says what is waited for

[[noreturn]] void failed(const std::string& path, const char* what) {
  throw IoError(fmt::format("{}: {} failed: {}", path, what, system_reason(errno)));
}

}  // namespace

bool is_stream(const DataOptions& data) { return data.train.size() == 1 && is_pipe(data.train.front().tsv); }

TextStream::TextStream(FileSystem& files, const std::string& directory, const DataOptions& data, const Vocabulary& source,
                       const Vocabulary& target, int64_t first, Say say)
    : files_(files),
      directory_(directory),
      data_(data),
      source_(source),
      target_(target),
      say_(std::move(say)),
      wanted_(first),
      oldest_(first) {
  files_.make_directories(directory_);
  if (const std::string record = path("record.json"); files_.exists(record)) {
    const auto json = nlohmann::json::parse(files_.read_file(record), nullptr, false);
    if (!json.is_object() || !json.contains("windows") || !json["windows"].is_number_integer() || !json.contains("lines") ||
        !json["lines"].is_number_integer())
      throw DataError(fmt::format(
          "{}, which says how many lines of the text were read, is damaged; copy it back, or choose another train.output", record));
    windows_ = json["windows"];
    window_lines_ = json["lines"];
    if (const auto digests = json.find("digests"); digests != json.end() && digests->is_object())
      for (const auto& [name, digest] : digests->items())
        if (digest.is_string()) digests_[name] = digest;
  }
  for (int64_t w = first; w < windows_; ++w) {
    if (!files_.exists(window_path(w)))
      throw DataError(fmt::format("{} is missing, but the run needs it to continue; copy it back, or continue from a newer checkpoint",
                                  window_path(w)));
    if (const auto known = digests_.find(window_name(w)); known != digests_.end() && known->second != sha256_file(files_, window_path(w)))
      throw DataError(fmt::format(
          "{} is not what was read from the pipe, so the run would continue differently; copy the original back, or choose another "
          "train.output",
          window_path(w)));
  }
  for (const std::string& name : files_.list(directory_))  // that an older checkpoint still needs
    if (name.starts_with("window-")) oldest_ = std::min<int64_t>(oldest_, std::atoll(name.c_str() + std::strlen("window-")));
  if (first > windows_)
    throw DataError(
        fmt::format("the run has trained on {} windows of the text, but {} has {}; it belongs to another run: choose another train.output",
                    first, path("record.json"), windows_));
  open();
  lines_ = window_lines_ + next_lines_;
  if (lines_ > 0)
    say_(fmt::format("data: {} of the text were read in earlier starts; the producer must continue with line {}", counted(lines_, "line"),
                     lines_ + 1));
  thread_ = start_thread("text stream", [this, first] { read(first); });
}

TextStream::~TextStream() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
  if (next_ >= 0) close(next_);
  if (pipe_ > STDIN_FILENO) close(pipe_);
}

std::string TextStream::window_name(int64_t window) { return fmt::format("window-{:06}.tsv", window); }
std::string TextStream::window_path(int64_t window) const { return path(window_name(window)); }
std::string TextStream::tokens_path(int64_t window) const { return path(fmt::format("tokens-{:06}", window)); }

// Opens the window that is being filled, without the half of a line that a kill has left, and counts its lines.
void TextStream::open() {
  const std::string name = path("next.tsv");
  next_ = ::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (next_ < 0) failed(name, "opening");
  int64_t whole = 0, at = 0;
  char part[1 << 16];
  for (ssize_t count; (count = ::read(next_, part, sizeof part)) != 0; at += count) {
    if (count < 0) failed(name, "reading");
    for (ssize_t i = 0; i < count; ++i) {
      if (part[i] == '\n') ++next_lines_, whole = at + i + 1;
      next_has_text_ = next_has_text_ || (part[i] != '\n' && part[i] != '\t');
    }
  }
  if (ftruncate(next_, whole) != 0 || lseek(next_, whole, SEEK_SET) < 0) failed(name, "writing");
}

void TextStream::read(int64_t window) {
  try {
    while (make_window(window)) ++window;
  } catch (...) {
    const std::lock_guard lock(mutex_);
    failure_ = std::current_exception();
  }
  changed_.notify_all();
}

// Returns whether there may be more.
bool TextStream::make_window(int64_t window) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return closing_ || window <= wanted_ + kAhead; });
    if (closing_) return false;
  }
  bool more = true;
  if (window >= windows_) {
    more = fill_next();
    if (more && wants_lines()) return false;  // closing
    if (next_lines_ == 0) {
      const std::lock_guard lock(mutex_);
      end_ = window;
      return false;
    }
    finish_next(window);
  }
  build(window);
  if (!more) {
    const std::lock_guard lock(mutex_);
    end_ = window + 1;
  }
  return more;
}

// Reads until the window is full, the text ends (returns false) or the stream is closed.
bool TextStream::fill_next() {
  const std::string& name = data_.train.front().tsv;
  // A named pipe is opened without waiting for its writer, and read as ended only after there was one.
  written_ = written_ || name == "-";
  if (pipe_ < 0) pipe_ = name == "-" ? STDIN_FILENO : ::open(name.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (pipe_ < 0) failed(name, "opening");
  take({});  // what the window before has left
  while (wants_lines()) {
    {
      const std::lock_guard lock(mutex_);
      if (closing_) return true;
    }
    pollfd ready{pipe_, POLLIN, 0};
    if (poll(&ready, 1, kLookMs) <= 0) continue;
    char part[1 << 16];
    const ssize_t count = ::read(pipe_, part, sizeof part);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count < 0) failed(name, "reading");
    if (count == 0 && !written_) {
      usleep(1000 * kLookMs);
      continue;
    }
    written_ = true;
    if (count == 0) {
      if (!rest_.empty()) take("\n");  // the last line has no end
      return false;
    }
    take({part, static_cast<size_t>(count)});
  }
  return true;
}

// Appends complete lines to the window, until it is full: windows of the same text are the same, however it comes. What is left, lines and
// half a line, waits for the next call, and does not count as read.
void TextStream::take(std::string_view bytes) {
  std::string out;
  int64_t count = 0;
  rest_ += bytes;
  size_t begin = 0;
  for (size_t end; wants_lines(count) && (end = rest_.find('\n', begin)) != std::string::npos; begin = end + 1, ++count) {
    const std::string line = too_long_ ? broken_line("it is longer than a megabyte", lines_ + count + 1)
                                       : checked(std::string_view(rest_).substr(begin, end - begin), lines_ + count + 1);
    next_has_text_ = next_has_text_ || line.find_first_not_of("\t\n") != std::string::npos;
    out += line;
    too_long_ = false;
  }
  rest_.erase(0, begin);
  if (rest_.size() > kLongestLine && rest_.find('\n') == std::string::npos) {  // no text
    too_long_ = true;
    rest_.clear();
  }
  for (std::string_view left = out; !left.empty();) {
    const ssize_t written = ::write(next_, left.data(), left.size());
    if (written < 0 && errno != EINTR) failed(path("next.tsv"), "writing");
    if (written > 0) left.remove_prefix(static_cast<size_t>(written));
  }
  next_lines_ += count;
  const std::lock_guard lock(mutex_);
  lines_ += count;
}

// Returns a line as the window has it: with two columns, three if links are used, or empty where it is no pair of valid text.
std::string TextStream::checked(std::string_view line, int64_t number) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  const size_t tab = line.find('\t'), second = tab == line.npos ? tab : line.find('\t', tab + 1);
  const char* const wrong = tab == line.npos                                                  ? "it has no tab"
                            : line.find('\0') != line.npos                                    ? "it has a NUL byte"
                            : invalid_utf8_offset(line)                                       ? "it is not UTF-8"
                            : line.find('\r') != line.npos                                    ? "it contains a carriage return"
                            : second != line.npos && line.find('\t', second + 1) != line.npos ? "it has more than three columns"
                                                                                              : nullptr;
  if (wrong) return broken_line(wrong, number);
  if (!data_.train.front().aligned_in_column()) return std::string(line.substr(0, second)) + "\n";
  // A wrong link in a window would end the run, and leave it at this line for ever.
  const std::string_view links = second == line.npos ? std::string_view() : line.substr(second + 1);
  const std::string_view source = line.substr(0, tab), target = line.substr(tab + 1, second == line.npos ? second : second - tab - 1);
  try {
    const bool words = data_.alignment_unit == AlignmentUnit::words;
    token_links(parse_links(links), data_.alignment_unit, {source, words ? EncodedLine() : source_.encode_as_it_stands_with_bytes(source)},
                {target, words ? EncodedLine() : target_.encode_as_it_stands_with_bytes(target)}, 0);
  } catch (const DataError& error) {
    return broken_line(error.what(), number);
  }
  return fmt::format("{}\t{}\t{}\n", source, target, links);
}

// Returns what stands in the window for a line that is left out: a pair that every filter drops.
std::string TextStream::broken_line(const char* wrong, int64_t number) {
  const std::lock_guard lock(mutex_);
  if (++broken_ <= kToldBroken)
    messages_.push_back(fmt::format("warning: data: line {} of the text is left out: {}{}", number, wrong,
                                    broken_ == kToldBroken ? "; further lines are only counted" : ""));
  return data_.train.front().aligned_in_column() ? "\t\t\n" : "\t\n";
}

void TextStream::finish_next(int64_t window) {
  if (fsync(next_) != 0) failed(path("next.tsv"), "writing");
  close(next_);
  next_ = -1;
  files_.rename(path("next.tsv"), window_path(window));
  files_.sync_directory(directory_);
  windows_ = window + 1;
  window_lines_ += next_lines_;
  next_lines_ = 0;
  next_has_text_ = false;
  const std::string digest = sha256_file(files_, window_path(window));
  {
    const std::lock_guard lock(mutex_);
    digests_[window_name(window)] = digest;
  }
  save_record();
  open();
}

void TextStream::save_record() const {
  nlohmann::ordered_json json{{"windows", windows_}, {"lines", window_lines_}};
  {
    const std::lock_guard lock(mutex_);
    json["digests"] = digests_;
  }
  files_.replace_file(path("record.json"), json.dump() + "\n");
}

// Makes the tokens of a window that is complete.
void TextStream::build(int64_t window) {
  DataOptions options = data_;
  options.train.front().tsv = window_path(window);
  TokenStore store = TokenStore::open_or_build(files_, tokens_path(window), options, source_, target_, {.threads = 1, .checked = true});
  {
    const std::lock_guard lock(mutex_);
    tokens_.emplace(window, std::move(store));
  }
  changed_.notify_all();
}

TextStream::Ready TextStream::wait(int64_t window, const std::function<bool()>& stop) {
  std::unique_lock lock(mutex_);
  if (wanted_ < window) {
    wanted_ = window;
    changed_.notify_all();
  }
  // Only the caller's thread speaks.
  const auto say_unlocked = [&](std::vector<std::string> lines) {
    lock.unlock();
    for (const std::string& line : lines) say_(line);
    lock.lock();
  };
  const auto begin = std::chrono::steady_clock::now();
  double told = kPatience;
  for (;;) {
    if (!messages_.empty()) say_unlocked(std::exchange(messages_, {}));
    if (const auto found = tokens_.find(window); found != tokens_.end()) return found->second.size() > 0 ? Ready::yes : Ready::empty;
    if (failure_) std::rethrow_exception(failure_);
    if (end_ >= 0 && window >= end_) return Ready::ended;
    if (stop && stop()) return Ready::stopped;
    changed_.wait_for(lock, std::chrono::milliseconds(kLookMs));
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (seconds < told) continue;
    told *= 6;
    say_unlocked({fmt::format("data: waiting for text for {:.0f} s; {} read so far, and a window needs {}", seconds,
                              counted(lines_, "line"), data_.window_lines)});
  }
}

const TokenStore& TextStream::tokens(int64_t window) const {
  const std::lock_guard lock(mutex_);
  const auto found = tokens_.find(window);
  CHECK(found != tokens_.end(), "window {} is not there", window);
  return found->second;
}

void TextStream::keep_from(int64_t window) {
  {
    const std::lock_guard lock(mutex_);
    tokens_.erase(tokens_.begin(), tokens_.lower_bound(window));
    digests_.erase(digests_.begin(), digests_.lower_bound(window_name(window)));
  }
  for (; oldest_ < window; ++oldest_) {
    TokenStore::remove(files_, tokens_path(oldest_));
    if (files_.exists(window_path(oldest_))) files_.remove(window_path(oldest_));
  }
}

void TextStream::require_windows(const std::string& digests) const {
  const std::lock_guard lock(mutex_);
  std::istringstream words(digests);
  for (std::string name, digest; words >> name >> digest;)
    if (const auto known = digests_.find(name); known != digests_.end() && known->second != digest)
      throw DataError(
          fmt::format("{} is not the text that the checkpoint was trained on; copy it back, or choose another train.output", path(name)));
}

std::string TextStream::digests() const {
  const std::lock_guard lock(mutex_);
  std::string all;
  for (const auto& [name, digest] : digests_) all += fmt::format("{}{} {}", all.empty() ? "" : " ", name, digest);
  return all;
}

int64_t TextStream::lines() const {
  const std::lock_guard lock(mutex_);
  return lines_;
}

int64_t TextStream::broken() const {
  const std::lock_guard lock(mutex_);
  return broken_;
}

}  // namespace starling
