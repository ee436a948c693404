#include "storage/result_file.h"

#include <cerrno>
#include <filesystem>

#include "base/counted.h"
#include "base/error.h"
#include "base/files.h"
#include "base/system_reason.h"

namespace starling {

ResultFile::ResultFile(const std::string& path, std::ostream& standard_output)
    : path_(path), written_(path), standard_output_(standard_output) {
  std::error_code none;
  aside_ = path != "-" && (!std::filesystem::exists(path, none) || std::filesystem::is_regular_file(path, none));
}

void ResultFile::refuse(const std::vector<NamedPath>& inputs) const {
  const NamedPath output{path_ == "-" ? "standard output" : "--output", path_};
  refuse_own_input(output, inputs);
  refuse_run_files(output);
}

std::ostream& ResultFile::stream() {
  errno = 0;
  if (path_ == "-") return standard_output_;
  if (file_.is_open()) return file_;
  if (const std::string directory = parent_path(path_); !std::filesystem::exists(directory))
    throw IoError(fmt::format("{}: cannot be written: the directory {} does not exist; make it, or name another", path_, directory));
  if (aside_) written_ = make_partial(path_);
  file_.open(written_path(), std::ios::binary);
  if (file_) return file_;
  const int reason = errno;
  throw IoError(fmt::format("{}: cannot be written: {}", written_path(), system_reason(reason)));
}

void ResultFile::flush(int64_t lines) {
  std::ostream& out = path_ == "-" ? standard_output_ : file_;
  out.flush();
  if (!out) throw IoError(fmt::format("{}: writing failed after {}: {}", path_, counted(lines, "line"), system_reason(errno)));
}

void ResultFile::close() {
  stream();
  if (!aside_) return;
  errno = 0;
  file_.close();
  if (!file_) throw IoError(fmt::format("{}: writing failed: {}", written_path(), system_reason(errno)));
  std::filesystem::rename(written_path(), path_);
}

std::string ResultFile::left(const char* what, int64_t lines) const {
  return aside_ && file_.is_open() ? fmt::format("; the {} of {} before it are in {}", what, counted(lines, "line"), written_path()) : "";
}

std::string ResultFile::stopped(const char* what, int64_t lines) const {
  if (lines == 0) return fmt::format("stopped before there were {}; the same command begins again", what);
  return fmt::format("stopped after {}, whose {} are {}; to continue, pass the lines from {} on, or start over with the same command",
                     counted(lines, "line"), what, path_ == "-" ? "on standard output" : "in " + written_path(), lines + 1);
}

}  // namespace starling
