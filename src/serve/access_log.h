// One line of JSON for each request: who, what, how long, how it ended. Texts only where they are asked for.
#pragma once

#include <cstdio>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>

namespace starling {

class AccessLog {
 public:
  // To a file, which lines are added to; "-": standard output; "": nowhere. IoError when it cannot be opened.
  explicit AccessLog(const std::string& path);
  bool on() const { return !path_.empty(); }
  void write(const nlohmann::ordered_json& entry);
  // Opens the file again: after it was moved away.
  void reopen();

 private:
  struct Close {
    void operator()(FILE* file) const {
      if (file != stdout) fclose(file);
    }
  };
  std::string path_;
  std::mutex mutex_;
  std::unique_ptr<FILE, Close> file_;
};

// Now, as 2026-11-22T14:05:00.123Z.
std::string log_time();

}  // namespace starling
