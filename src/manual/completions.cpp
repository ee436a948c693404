#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "manual/manual.h"

namespace starling {
namespace {

// The program and all verbs below it.
std::vector<const Command*> all_of(const Command& program) {
  std::vector<const Command*> all{&program};
  for (size_t i = 0; i < all.size(); ++i)
    for (const Command& verb : all[i]->verbs) all.push_back(&verb);
  return all;
}

std::string last_word(const std::string& name) { return name.substr(name.rfind(' ') + 1); }

std::vector<std::string> verbs_of(const Command& c) {
  std::vector<std::string> names;
  for (const Command& verb : c.verbs) names.push_back(last_word(verb.name));
  return names;
}

std::vector<std::string> names_of(const Command& c) {
  std::vector<std::string> names;
  for (const CommandOption& o : c.options) names.insert(names.end(), o.names.begin(), o.names.end());
  return names;
}

// In single quotes.
std::string single_quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : c == '\n' ? std::string(" ") : std::string(1, c);
  return out + "'";
}

// A description within the brackets of _arguments.
std::string in_brackets(const std::string& text) {
  std::string out;
  for (const char c : brief(text)) out += c == '[' || c == ']' || c == ':' ? std::string("\\") + c : std::string(1, c);
  return out;
}

}  // namespace

std::string bash_completion(const Command& program) {
  const std::string name = program.name;
  std::string options, values, verbs;
  for (const Command* c : all_of(program)) {
    const std::string path = single_quoted(c->name);
    options += fmt::format("    {}) words='{}' ;;\n", path, fmt::join(names_of(*c), " "));
    if (!c->verbs.empty()) verbs += fmt::format("    {}) words='{}' ;;\n", path, fmt::join(verbs_of(*c), " "));
    for (const CommandOption& o : c->options)
      for (const std::string& option : o.names)
        if (!o.choices.empty())
          values += fmt::format("    {}) words='{}' ;;\n", single_quoted(c->name + " " + option), fmt::join(o.choices, " "));
  }
  return fmt::format(R"(# bash completion for {0}
_{0}() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}} command={0} words= word i
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case "$command ${{COMP_WORDS[i]}}" in
{1}    esac
  done
  COMPREPLY=()
  # --option=value comes as three words.
  if [[ $current == = ]]; then
    current=
  elif [[ $previous == = ]]; then
    previous=${{COMP_WORDS[COMP_CWORD - 2]}}
  fi
  case "$command $previous" in
{2}  esac
  if [[ -z $words && $current == -* ]]; then
    case "$command" in
{3}    esac
  elif [[ -z $words && $previous != -* ]]; then
    case "$command" in
{4}    esac
  fi
  [[ -z $words ]] || mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}}
complete -o bashdefault -o default -F _{0} {0}
)",
                     name,
                     [&] {
                       std::string paths;
                       for (const Command* c : all_of(program))
                         if (c != &program) paths += fmt::format("      {0}) command={0} ;;\n", single_quoted(c->name));
                       return paths;
                     }(),
                     values, options, verbs);
}

std::string zsh_completion(const Command& program) {
  std::string functions;
  for (const Command* c : all_of(program)) {
    std::string function = c->name;
    std::replace(function.begin(), function.end(), ' ', '_');
    functions += fmt::format("_{}() {{\n", function);
    if (!c->verbs.empty()) functions += "  local curcontext=\"$curcontext\" state line\n  typeset -A opt_args\n";
    if (!c->verbs.empty()) {
      functions += "  local -a verbs=(\n";
      for (const Command& verb : c->verbs)
        functions += fmt::format("    {}\n", single_quoted(last_word(verb.name) + ":" + brief(verb.text)));
      functions += "  )\n";
    }
    functions += "  _arguments -C";
    for (const CommandOption& o : c->options)
      for (const std::string& option : o.names) {
        std::string text = option + "[" + in_brackets(o.text) + "]";
        if (!o.choices.empty())
          text += fmt::format(":{}:({})", in_brackets(o.value), fmt::join(o.choices, " "));
        else if (!o.value.empty())
          text += ":" + in_brackets(o.value) + ":_files";
        functions += " \\\n    " + single_quoted(text);
      }
    if (c->verbs.empty()) {
      functions += " \\\n    '*:file:_files'\n}\n";
    } else {
      functions += " \\\n    '1: :->verb' \\\n    '*:: :->rest'\n";
      functions += "  case $state in\n    verb) _describe verb verbs ;;\n    rest)\n      case $words[1] in\n";
      for (const Command& verb : c->verbs) functions += fmt::format("        {0}) _{1}_{0} ;;\n", last_word(verb.name), function);
      functions += "        *) _files ;;\n      esac ;;\n  esac\n}\n";
    }
  }
  return fmt::format("#compdef {0}\n# zsh completion for {0}\n{1}_{0} \"$@\"\n", program.name, functions);
}

std::string fish_completion(const Command& program) {
  std::string text = fmt::format("# fish completion for {}\n", program.name);
  for (const Command* c : all_of(program)) {
    // The words of the verb's path have all been seen, and none of the verbs below it.
    std::string condition;
    for (size_t at = program.name.size(); at < c->name.size();) {
      const size_t end = std::min(c->name.find(' ', at + 1), c->name.size());
      condition += (condition.empty() ? "" : "; and ") + ("__fish_seen_subcommand_from " + c->name.substr(at + 1, end - at - 1));
      at = end;
    }
    if (!c->verbs.empty())
      condition += (condition.empty() ? "" : "; and ") + fmt::format("not __fish_seen_subcommand_from {}", fmt::join(verbs_of(*c), " "));
    const std::string begin = fmt::format("complete -c {} -n {}", program.name, single_quoted(condition));
    for (const Command& verb : c->verbs)
      text += fmt::format("{} -f -a {} -d {}\n", begin, last_word(verb.name), single_quoted(brief(verb.text)));
    for (const CommandOption& o : c->options) {
      std::string line = begin;
      for (const std::string& option : o.names) line += option.starts_with("--") ? " -l " + option.substr(2) : " -s " + option.substr(1);
      if (!o.choices.empty())
        line += fmt::format(" -x -a '{}'", fmt::join(o.choices, " "));
      else if (!o.value.empty())
        line += " -r";
      text += line + " -d " + single_quoted(brief(o.text)) + "\n";
    }
  }
  return text;
}

}  // namespace starling
