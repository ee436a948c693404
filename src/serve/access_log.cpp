#include "serve/access_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "base/error.h"
#include "base/system_reason.h"
#include "serve/api.h"

namespace starling {

AccessLog::AccessLog(const std::string& path, Metrics& metrics) : path_(path) {
  if (!path_.empty()) writer_.emplace("access", metrics, open(), path_ != "-");
}

// Opens without blocking: opening a named pipe would otherwise wait for its reader.
int AccessLog::open() const {
  if (path_ == "-") return STDOUT_FILENO;
  const int file = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0666);
  if (file >= 0) return file;
  const std::string reason = errno == ENXIO ? "nobody reads this pipe; start its reader first" : system_reason(errno);
  throw IoError(fmt::format("{}: cannot be opened for the access log: {}", path_, reason));
}

void AccessLog::reopen() {
  if (writer_ && path_ != "-") writer_->use(open(), true);
}

void AccessLog::write(const nlohmann::ordered_json& entry) {
  if (writer_) writer_->add(json_text(entry) + "\n");
}

void AccessLog::flush() {
  if (writer_) writer_->flush();
}

std::string log_time() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  tm parts{};
  gmtime_r(&now.tv_sec, &parts);
  char text[32];
  strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  return fmt::format("{}.{:03}Z", text, now.tv_nsec / 1000000);
}

}  // namespace starling
