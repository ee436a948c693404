#include "watch/run_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <string_view>

#include "config/foreign_yaml.h"

namespace starling {
namespace {

constexpr size_t kMostKeys = 5000, kLongestKey = 200, kLongestValue = 1000;  // of a configuration that is shown; bytes
constexpr size_t kMostNames = 100'000;                                       // in a directory of translations that are looked at
constexpr std::string_view kValidations = "validations";

// An open directory, or none.
class OpenDirectory {
 public:
  OpenDirectory(int in, const char* name, int flags) : file_(openat(in, name, O_PATH | O_DIRECTORY | O_CLOEXEC | flags)) {}
  ~OpenDirectory() {
    if (file_ >= 0) close(file_);
  }
  OpenDirectory(const OpenDirectory&) = delete;
  OpenDirectory& operator=(const OpenDirectory&) = delete;
  int file() const { return file_; }

 private:
  int file_;
};

FileMark mark_of(const struct stat& info) {
  return {static_cast<uint64_t>(info.st_size), info.st_ino, info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec};
}

// A path may be a fifo, whose other end may never come, or a device, which acts on being opened: it is looked at before it is opened.
int open_regular(int in, const char* name, struct stat& info) {
  if (fstatat(in, name, &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(info.st_mode)) return -1;
  const int file = openat(in, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC);
  if (file >= 0 && fstat(file, &info) == 0 && S_ISREG(info.st_mode)) return file;
  if (file >= 0) close(file);
  return -1;
}

void add_flat(const YAML::Node& node, const std::string& name, std::map<std::string, std::string>& values) {
  if (values.size() >= kMostKeys || name.size() > kLongestKey) return;
  const auto scalar = [](const YAML::Node& of) { return of.Scalar().substr(0, kLongestValue); };
  if (node.IsMap()) {
    for (const auto& entry : node)
      if (entry.first.IsScalar()) add_flat(entry.second, (name.empty() ? "" : name + ".") + entry.first.Scalar(), values);
  } else if (node.IsSequence() && node.size() > 0 && node[0].IsMap()) {
    for (size_t i = 0; i < node.size(); ++i) add_flat(node[i], fmt::format("{}.{}", name, i), values);
  } else if (node.IsSequence()) {
    std::string list;
    for (const auto& item : node)
      if (list.size() <= kLongestValue) list += (list.empty() ? "" : ", ") + (item.IsScalar() ? scalar(item) : "...");
    values[name] = list;
  } else {
    values[name] = node.IsScalar() ? scalar(node) : "";
  }
}

}  // namespace

Look Look::share(size_t runs) const {
  using Clock = std::chrono::steady_clock;
  constexpr Clock::duration kLeastTime = std::chrono::milliseconds(3);
  constexpr uint64_t kLeastBytes = 64 << 10;
  Look part = *this;
  const Clock::time_point now = Clock::now();
  const auto count = static_cast<Clock::rep>(runs);
  if (until != Clock::time_point::max()) part.until = now + std::max((until - now) / count, kLeastTime);
  part.bytes = std::max(bytes / runs, kLeastBytes);
  return part;
}

std::string FileMark::text() const { return fmt::format("{} {} {}", size, inode, changed_ns); }

std::optional<RunFile> RunFile::open(const std::string& run, const std::string& name) {
  const OpenDirectory directory(AT_FDCWD, run.c_str(), 0);
  struct stat info {};
  int file = -1;
  if (const size_t slash = name.find('/'); slash != std::string::npos) {
    const OpenDirectory below(directory.file(), name.substr(0, slash).c_str(), O_NOFOLLOW);
    if (below.file() >= 0) file = open_regular(below.file(), name.c_str() + slash + 1, info);
  } else if (directory.file() >= 0) {
    file = open_regular(directory.file(), name.c_str(), info);
  }
  if (file < 0) return std::nullopt;
  return RunFile(file, mark_of(info));
}

RunFile::~RunFile() {
  if (file_ >= 0) close(file_);
}

std::string RunFile::read(uint64_t offset, uint64_t most, Look& look) const {
  std::string bytes(std::min(most, mark_.size - std::min(mark_.size, offset)), '\0');
  size_t count = 0;
  while (count < bytes.size()) {
    const ssize_t n = pread(file_, bytes.data() + count, bytes.size() - count, static_cast<off_t>(offset + count));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    count += static_cast<size_t>(n);
  }
  bytes.resize(count);
  look.bytes -= std::min<uint64_t>(look.bytes, count);
  return bytes;
}

uint64_t RunFile::after_hole(uint64_t offset) const {
  const off_t at = lseek(file_, static_cast<off_t>(offset), SEEK_DATA);
  if (at < 0) return errno == ENXIO ? mark_.size : offset;
  return std::min(static_cast<uint64_t>(at), mark_.size);
}

bool is_regular_file(const std::string& path) {
  struct stat info {};
  return lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

std::vector<std::string> last_lines(const RunFile& file, size_t count, Look& look) {
  constexpr uint64_t kEnd = 64 << 10;
  const uint64_t size = file.mark().size, from = size > kEnd ? size - kEnd : 0;
  const std::string bytes = file.read(from, kEnd, look);
  std::vector<std::string> lines;
  for (size_t at = from == 0 ? 0 : bytes.find('\n') + 1; at < bytes.size();) {
    const size_t end = std::min(bytes.find('\n', at), bytes.size());
    lines.push_back(bytes.substr(at, end - at));
    at = end + 1;
  }
  if (lines.size() > count) lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(count));
  return lines;
}

std::map<std::string, std::string> flat_configuration(const RunFile& file, Look& look) {
  std::map<std::string, std::string> values;
  if (file.mark().size > kMostForeignYaml) return values;
  try {
    add_flat(read_foreign_yaml(file.read(0, kMostForeignYaml, look), "config.yml"), "", values);
  } catch (const std::exception&) {  // being written, or none of ours
    values.clear();
  }
  return values;
}

std::map<int64_t, std::string> kept_translations(const std::string& run, size_t most) {
  std::map<int64_t, std::string> newest;
  const OpenDirectory directory(AT_FDCWD, run.c_str(), 0);
  const int file = openat(directory.file(), kValidations.data(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  DIR* entries = file >= 0 ? fdopendir(file) : nullptr;
  if (!entries) return newest;
  const dirent* entry = nullptr;
  for (size_t seen = 0; seen < kMostNames && (entry = readdir(entries)); ++seen) {
    const std::string_view name = entry->d_name;
    int64_t step = 0;
    const auto read = std::from_chars(name.data(), name.data() + name.size(), step);
    if (read.ec != std::errc() || std::string_view(read.ptr) != ".txt" || step < 0) continue;  // files of other names are not ours
    newest[step] = fmt::format("{}/{}", kValidations, name);
    if (newest.size() > most) newest.erase(newest.begin());
  }
  closedir(entries);
  return newest;
}

std::optional<FileMark> kept_mark(const std::string& run) {
  const OpenDirectory directory(AT_FDCWD, run.c_str(), 0);
  struct stat info {};
  const bool there = fstatat(directory.file(), kValidations.data(), &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(info.st_mode);
  return there ? std::optional(mark_of(info)) : std::nullopt;
}

}  // namespace starling
