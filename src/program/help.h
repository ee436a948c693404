// Formats --help and --help-all. A verb's help begins with what most people need; options of the groups below and most configuration keys
// appear only in --help-all.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace starling {

// Option groups that --help leaves out. Options of kKeysGroup are described as configuration keys, by section.
constexpr const char* kKeysGroup = "Configuration keys";
constexpr const char* kStrategyGroup = "Strategy";
constexpr const char* kClusterGroup = "Simulated cluster";
constexpr const char* kFurtherGroup = "Further options";

bool is_rare(const std::string& group);  // kStrategyGroup, kClusterGroup, kFurtherGroup

// Breaks text at blanks into lines of at most `columns` columns. Continuation lines are aligned with the text after the line's name.
std::string wrapped(const std::string& text, size_t columns);
// Returns the width of the terminal on standard output, at most 140; without a terminal, 80.
size_t help_columns();

class VerbHelp : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
  std::string make_group(std::string group, bool positional, std::vector<const CLI::Option*> options) const override;
  // Returns the text after an option's name: "NUMBER (0 to 15, default 2)".
  std::string make_option_opts(const CLI::Option* option) const override;

 private:
  std::string whole_help(const CLI::App* app, const std::string& name, CLI::AppFormatMode mode) const;
};

// Sets this help for the program and for every verb that is added to it later. Call it before adding verbs.
void add_help(CLI::App& app);

// Rewrites `help [VERB...] [--all]` as the verb's --help or --help-all, and `version` as --version; returns other arguments unchanged.
std::vector<std::string> help_as_option(std::vector<std::string> arguments);

}  // namespace starling
