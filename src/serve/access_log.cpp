#include "serve/access_log.h"

#include <fmt/format.h>

#include <cerrno>
#include <ctime>

#include "base/error.h"
#include "base/system_reason.h"

namespace starling {

AccessLog::AccessLog(const std::string& path) : path_(path) { reopen(); }

void AccessLog::reopen() {
  if (path_.empty()) return;
  FILE* file = path_ == "-" ? stdout : fopen(path_.c_str(), "ae");
  if (!file) throw IoError(fmt::format("{}: cannot be opened for the access log: {}", path_, system_reason(errno)));
  const std::lock_guard lock(mutex_);
  file_.reset(file);
}

void AccessLog::write(const nlohmann::ordered_json& entry) {
  if (!on()) return;
  const std::string line = entry.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  const std::lock_guard lock(mutex_);
  fwrite(line.data(), 1, line.size(), file_.get());
  fflush(file_.get());
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
