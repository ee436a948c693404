// What `--help` and `--help-all` print. A verb's help begins with what most people need; options of the groups below, and most keys of the
// configuration, are left to --help-all.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace starling {

// Groups of options that --help leaves out. Those of kKeysGroup are described as configuration keys, by section.
constexpr const char* kKeysGroup = "Configuration keys";
constexpr const char* kStrategyGroup = "Strategy";
constexpr const char* kClusterGroup = "Simulated cluster";
constexpr const char* kFurtherGroup = "Further options";

bool is_rare(const std::string& group);  // kStrategyGroup, kClusterGroup, kFurtherGroup

// Lines of at most so many columns, broken at blanks; what is broken off stands below the text that its line has behind a name.
std::string wrapped(const std::string& text, size_t columns);
// Of the terminal that standard output is, at most 140; else 80.
size_t help_columns();

class VerbHelp : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
  std::string make_group(std::string group, bool positional, std::vector<const CLI::Option*> options) const override;
  // What stands behind an option's name: "NUMBER (0 to 15, default 2)".
  std::string make_option_opts(const CLI::Option* option) const override;

 private:
  std::string whole_help(const CLI::App* app, const std::string& name, CLI::AppFormatMode mode) const;
};

// Gives the program, before it has verbs, and so every verb that is added to it later, this help.
void add_help(CLI::App& app);

// `help [VERB...] [--all]` as the verb's --help or --help-all, `version` as --version; other arguments as they are.
std::vector<std::string> help_as_option(std::vector<std::string> arguments);

}  // namespace starling
