#include "program/help.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "settings/config.h"

namespace starling {
namespace {

bool has_keys(const CLI::App& app) {
  const std::vector<std::string> groups = app.get_groups();
  return std::find(groups.begin(), groups.end(), kKeysGroup) != groups.end();
}

std::string without_brackets(const std::string& text) {
  return text.size() > 1 && text.front() == '[' && text.back() == ']' ? text.substr(1, text.size() - 2) : text;
}

// Turns ":INT in [0 - 15]" into "0 to 15", and ":{auto,bf16}" into "auto, bf16".
std::string allowed_text(const std::string& check) {
  const size_t begin = check.find_first_of("[{"), end = check.find_last_of("]}");
  if (begin == std::string::npos || end == std::string::npos) return "";
  const bool range = check[begin] == '[';
  const std::string separator = range ? " - " : ",";
  std::string text = check.substr(begin + 1, end - begin - 1);
  for (size_t at = 0; (at = text.find(separator, at)) != std::string::npos; at += 2)
    text.replace(at, separator.size(), range ? " to " : ", ");
  return text;
}

// Returns the column of the text after a name, which two blanks separate from it; else the indent.
size_t hanging_indent(const std::string& line) {
  const size_t first = line.find_first_not_of(' ');
  if (first == std::string::npos) return 0;
  const size_t gap = line.find("  ", first), text = gap == std::string::npos ? gap : line.find_first_not_of(' ', gap);
  return text == std::string::npos ? first : text;
}

}  // namespace

bool is_rare(const std::string& group) { return group == kStrategyGroup || group == kClusterGroup || group == kFurtherGroup; }

std::string wrapped(const std::string& text, size_t columns) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    const size_t hanging = hanging_indent(line), indent = 2 * hanging > columns ? 4 : hanging;
    while (line.size() > columns) {
      size_t blank = line.rfind(' ', columns);
      if (blank == std::string::npos || blank <= indent) blank = line.find(' ', columns);  // a long word is not split
      if (blank == std::string::npos) break;
      out += line.substr(0, line.find_last_not_of(' ', blank) + 1) + "\n";
      line = std::string(indent, ' ') + line.substr(std::min(line.find_first_not_of(' ', blank), line.size()));
    }
    out += line + (end < text.size() ? "\n" : "");
    at = end + 1;
  }
  return out;
}

size_t help_columns() {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40 ? std::min<size_t>(size.ws_col, 140) : 80;
}

std::string VerbHelp::make_group(std::string group, bool positional, std::vector<const CLI::Option*> options) const {
  return group == kKeysGroup ? "" : CLI::Formatter::make_group(group, positional, options);
}

std::string VerbHelp::make_option_opts(const CLI::Option* option) const {
  std::vector<std::string> remarks;
  std::string value;
  if (option->get_type_size() != 0) {
    const std::string type = option->get_type_name();  // "INT:INT in [0 - 15]", "TEXT:{auto,bf16}", "FILE"
    const size_t colon = std::min(type.find(':'), type.size());
    value = type.substr(0, colon);
    if (value == "INT" || value == "UINT" || value == "FLOAT") value = "NUMBER";
    if (option->get_expected_max() == CLI::detail::expected_max_vector_size) value += " ...";
    if (option->get_required()) remarks.push_back("required");
    if (const std::string allowed = allowed_text(type.substr(colon)); !allowed.empty()) remarks.push_back(allowed);
    if (const std::string value_text = without_brackets(option->get_default_str()); !value_text.empty())
      remarks.push_back("default " + value_text);
  }
  // By name, since the sets go by the options' addresses.
  std::set<std::string> needs, excludes;
  for (const CLI::Option* other : option->get_needs()) needs.insert("with " + other->get_name());
  for (const CLI::Option* other : option->get_excludes()) excludes.insert("not with " + other->get_name());
  remarks.insert(remarks.end(), needs.begin(), needs.end());
  remarks.insert(remarks.end(), excludes.begin(), excludes.end());
  return (value.empty() ? "" : " " + value) + (remarks.empty() ? "" : fmt::format(" ({})", fmt::join(remarks, "; ")));
}

std::string VerbHelp::make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const {
  if (mode == CLI::AppFormatMode::Sub) return make_expanded(app) + (app->get_footer().empty() ? "" : "  " + app->get_footer() + "\n");
  return wrapped(whole_help(app, name, mode), help_columns());
}

std::string VerbHelp::whole_help(const CLI::App* app, const std::string& name, CLI::AppFormatMode mode) const {
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
      "--device, --precision, --threads and --seed are short for those of the section train.\n";
  if (all) return out + config_reference();
  return out + "What most people set, with examples:\n\n" + everyday_reference(app->get_name()) +
         fmt::format("\n'{} --help-all' lists all {} keys; docs/reference/config.md has them as tables.\n", name,
                     all_config_names().size());
}

void add_help(CLI::App& app) {
  const auto help = std::make_shared<VerbHelp>();
  help->label("Positionals", "Arguments");
  help->label("SUBCOMMAND", "VERB");
  app.formatter(help);
  app.group("Verbs");  // verbs added later are listed under this heading
  app.set_help_all_flag("--help-all", "Print all options and exit");
}

std::vector<std::string> help_as_option(std::vector<std::string> arguments) {
  if (arguments == std::vector<std::string>{"version"}) return {"--version"};
  if (arguments.empty() || arguments.front() != "help") return arguments;
  while (!arguments.empty() && arguments.front() == "help") arguments.erase(arguments.begin());  // `help help` too
  const bool all = std::erase(arguments, "--all") + std::erase(arguments, "--help-all") > 0;
  arguments.push_back(all ? "--help-all" : "--help");
  return arguments;
}

}  // namespace starling
