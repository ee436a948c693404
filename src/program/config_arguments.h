// A training configuration on the command line: a file, overridden key by key. Every key is an option of its own, so that the parser takes
// the last words of `--train.learning-rate -1` and `--train.output train` as values.
#pragma once

#include <utility>
#include <vector>

#include "program/arguments.h"
#include "run/fine_tuning.h"
#include "settings/config.h"

namespace starling {

class ConfigArguments {
 public:
  // Adds -c and all keys to the verb, which then also accepts a configuration file without -c.
  static std::shared_ptr<ConfigArguments> add_to(CLI::App& verb);
  // Returns the configuration with the command line's values in the order of the keys. Values that are not given come from the run or model
  // that it starts from. Throws ConfigError for unknown arguments.
  Config load_run(const CLI::App& verb) const;
  // Returns rank 0's configuration on every rank.
  Config load_run(const CLI::App& verb, Communicator& comm) const;
  const std::string& file() const { return file_; }  // the file of -c, or ""

  // Returns the file and the given values. Throws ConfigError for unknown arguments.
  std::pair<std::string, std::vector<Override>> given(const CLI::App& verb) const;

 private:
  std::string file_;
  std::vector<std::pair<std::string, CLI::Option*>> keys_;
};

}  // namespace starling
