// A training configuration on the command line: a file, overridden key by key. Every key is an option of its own, so that the command-line
// parser treats `--train.learning-rate -1` and `--train.output train` as values.
#pragma once

#include <utility>
#include <vector>

#include "cli/verbs.h"
#include "run/fine_tuning.h"
#include "settings/config.h"

namespace starling {

class ConfigArguments {
 public:
  // Adds -c and all keys to the verb, which then takes a configuration's name without -c too.
  static std::shared_ptr<ConfigArguments> add_to(CLI::App& verb);
  // The configuration, with the command line's values in the order of the keys; what is not given comes from the run or the model that it
  // begins with. Throws ConfigError for arguments nobody knows.
  Config load_run(const CLI::App& verb) const;
  // The same on every rank: as rank 0 finds it.
  Config load_run(const CLI::App& verb, Communicator& comm) const;
  const std::string& file() const { return file_; }  // of -c; empty without it

  // The file and the values; ConfigError for arguments nobody knows.
  std::pair<std::string, std::vector<Override>> given(const CLI::App& verb) const;

 private:
  std::string file_;
  std::vector<std::pair<std::string, CLI::Option*>> keys_;
};

}  // namespace starling
