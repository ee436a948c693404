#include "cli/help.h"

#include <fmt/format.h>

#include <algorithm>

#include "train/config.h"

namespace starling {
namespace {

bool is_rare(const std::string& group) { return group == kStrategyGroup || group == kClusterGroup || group == kFurtherGroup; }

bool has_keys(const CLI::App& app) {
  const std::vector<std::string> groups = app.get_groups();
  return std::find(groups.begin(), groups.end(), kKeysGroup) != groups.end();
}

}  // namespace

std::string VerbHelp::make_group(std::string group, bool positional, std::vector<const CLI::Option*> options) const {
  return group == kKeysGroup ? "" : CLI::Formatter::make_group(group, positional, options);
}

std::string VerbHelp::make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const {
  if (mode == CLI::AppFormatMode::Sub) return make_expanded(app);
  const bool all = mode == CLI::AppFormatMode::All;
  std::string out = make_description(app) + make_usage(app, name) + make_positionals(app);
  size_t left_out = 0;
  for (const std::string& group : app->get_groups()) {
    const auto options = app->get_options([&](const CLI::Option* o) { return o->get_group() == group && o->nonpositional(); });
    if (group.empty() || options.empty()) continue;
    if (is_rare(group) && !all)
      left_out += options.size();
    else
      out += make_group(group, false, options);
  }
  if (left_out > 0) out += fmt::format("\n'{} --help-all' shows {} more options.\n", name, left_out);
  out += make_subcommands(app, mode) + "\n" + make_footer(app);
  if (!has_keys(*app)) return out;
  out +=
      "Every key of the configuration is an option, --section.key VALUE or --section.key=VALUE;\n"
      "--precision, --threads and --seed are short for those of the section train.\n";
  if (all) return out + config_reference();
  return out + "What most people set, with examples:\n\n" + everyday_reference() +
         fmt::format("\n'{} --help-all' lists all {} keys; docs/config.md has them as tables.\n", name, all_config_names().size());
}

void add_help(CLI::App& app) {
  app.formatter(std::make_shared<VerbHelp>());
  app.set_help_all_flag("--help-all", "Print all options and exit");
}

std::vector<std::string> help_as_option(std::vector<std::string> arguments) {
  if (arguments.empty() || arguments.front() != "help") return arguments;
  arguments.erase(arguments.begin());
  const bool all = std::erase(arguments, "--all") + std::erase(arguments, "--help-all") > 0;
  arguments.push_back(all ? "--help-all" : "--help");
  return arguments;
}

}  // namespace starling
