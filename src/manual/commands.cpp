#include "manual/commands.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace starling {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CommandOption, names, value, choices, remarks, text)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Command, name, text, arguments, options, verbs)

namespace {

// The words of a check "TEXT:{auto,bf16}".
std::vector<std::string> choices_of(const std::string& type) {
  const size_t begin = type.find('{'), end = type.rfind('}');
  if (begin == std::string::npos || end == std::string::npos || end < begin) return {};
  std::vector<std::string> words;
  for (size_t at = begin + 1; at < end;) {
    const size_t comma = std::min(type.find(',', at), end);
    words.push_back(type.substr(at, comma - at));
    at = comma + 1;
  }
  return words;
}

CommandOption option_of(const CLI::Option& o, const std::function<std::string(const CLI::Option*)>& remarks) {
  CommandOption option;
  for (const std::string& name : o.get_snames()) option.names.push_back("-" + name);
  for (const std::string& name : o.get_lnames()) option.names.push_back("--" + name);
  if (option.names.empty()) option.names.push_back(o.get_name());
  option.text = o.get_description();
  if (o.get_type_size() == 0) return option;
  option.choices = choices_of(o.get_type_name());
  const std::string all = remarks(&o);  // " NUMBER (0 to 15)"
  const size_t bracket = std::min(all.find(" ("), all.size());
  option.value = bracket > 0 ? all.substr(1, bracket - 1) : "";
  option.remarks = bracket < all.size() ? all.substr(bracket + 1) : "";
  return option;
}

}  // namespace

std::string to_text(const Command& command) { return nlohmann::json(command).dump(); }

Command command_of_text(const std::string& text) { return nlohmann::json::parse(text).get<Command>(); }

void describe(Command& command, const std::vector<CommandOption>& known) {
  for (CommandOption& option : command.options) {
    if (!option.text.empty()) continue;
    for (const CommandOption& each : known) {
      if (std::find(option.names.begin(), option.names.end(), each.names.front()) == option.names.end()) continue;
      const std::vector<std::string> names = std::move(option.names);
      option = each;
      option.names = names;
      break;
    }
  }
  for (Command& verb : command.verbs) describe(verb, known);
}

std::string brief(const std::string& text) {
  size_t end = text.find_first_of(":;\n");
  if (const size_t stop = text.find(". "); stop < end) end = stop;
  std::string clause = text.substr(0, end);
  if (clause.size() > 80) clause.resize(std::min<size_t>(clause.rfind(' ', 80), 80));
  while (clause.ends_with('.')) clause.pop_back();
  return clause;
}

Command command_of(const CLI::App& app, const std::string& name, const std::function<std::string(const CLI::Option*)>& remarks) {
  Command command{name, app.get_description(), {}, {}, {}};
  for (const CLI::Option* o : app.get_options([](const CLI::Option* each) { return !each->get_group().empty(); }))
    (o->nonpositional() ? command.options : command.arguments).push_back(option_of(*o, remarks));
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App* each) { return !each->get_group().empty(); }))
    command.verbs.push_back(command_of(*verb, name + " " + verb->get_name(), remarks));
  return command;
}

}  // namespace starling
