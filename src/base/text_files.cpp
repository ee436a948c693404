#include "base/text_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "base/quotes.h"
#include "base/system_reason.h"

namespace starling {
namespace {

constexpr uint64_t kMostText = uint64_t{1} << 30;
constexpr size_t kMostConfig = size_t{1} << 20;

[[noreturn]] void cannot_read(const std::string& path, int error) {
  throw IoError(fmt::format("cannot read {}: {}", in_quotes(path), system_reason(error)));
}

// A pipe that the shell made is not a named one: it has no name in the file system, although /dev/fd/N leads to it, and it has a writer.
bool is_named_pipe(const struct stat& status, const std::string& path) {
  std::error_code none;
  return S_ISFIFO(status.st_mode) && std::filesystem::exists(std::filesystem::canonical(path, none), none);
}

}  // namespace

std::string read_text_file(const std::string& path) { return read_text_file(*real_file_system(), path); }
std::string read_text_file(FileSystem& files, const std::string& path) { return files.read_file(path, kMostText); }

std::string read_config_file(const std::string& path) {
  struct stat status;
  if (::stat(path.c_str(), &status) != 0) cannot_read(path, errno);
  if (S_ISDIR(status.st_mode)) throw IoError(fmt::format("{}: is a directory; name a configuration file in it", path));
  if (is_named_pipe(status, path)) throw ConfigError(fmt::format("{}: is a named pipe, which may never be written to; name a file", path));
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) cannot_read(path, errno);
  std::string text;
  int error = 0;
  while (text.size() <= kMostConfig) {
    char piece[1 << 14];
    const ssize_t count = ::read(descriptor, piece, sizeof piece);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) error = errno;
    if (count <= 0) break;
    text.append(piece, static_cast<size_t>(count));
  }
  ::close(descriptor);
  if (error != 0) cannot_read(path, error);
  if (text.size() > kMostConfig)
    throw ConfigError(fmt::format("{}: is longer than 1 MiB, which no configuration is; name a YAML file", path));
  return text;
}

}  // namespace starling
