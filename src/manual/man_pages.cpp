#include <algorithm>

#include "manual/manual.h"

namespace starling {
namespace {

// Text for roff, where a backslash begins a command, a hyphen may become another character, and so may a line's first dot or apostrophe.
std::string roff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool first = out.empty() || out.back() == '\n';
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else if (first && (c == '.' || c == '\''))
      out += std::string("\\&") + c;
    else
      out += c;
  }
  return out;
}

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

std::string file_name(std::string command) {
  std::replace(command.begin(), command.end(), ' ', '-');
  return command;
}

std::string item(const CommandOption& o) {
  std::string names;
  for (const std::string& name : o.names) names += (names.empty() ? "" : ", ") + ("\\fB" + roff(name) + "\\fR");
  if (!o.value.empty()) names += " \\fI" + roff(o.value) + "\\fR";
  if (!o.remarks.empty()) names += " " + roff(o.remarks);
  return ".TP\n" + names + "\n" + roff(o.text) + "\n";
}

void add_page(const Command& c, const std::string& program, const std::string& version,
              std::vector<std::pair<std::string, std::string>>& pages) {
  const std::string file = file_name(c.name);
  std::string page = ".TH " + upper(roff(file)) + " 1 \"\" \"" + program + " " + version + "\" \"User commands\"\n";
  page += ".SH NAME\n" + roff(file) + " \\- " + roff(brief(c.text)) + "\n";
  page += ".SH SYNOPSIS\n.B " + roff(c.name) + "\n" + (c.verbs.empty() ? "" : "VERB ") + "[OPTIONS]";
  for (const CommandOption& argument : c.arguments) page += " \\fI" + roff(argument.names.front()) + "\\fR";
  page += "\n.SH DESCRIPTION\n" + roff(c.text) + "\n";
  if (!c.verbs.empty()) {
    page += ".SH VERBS\n";
    for (const Command& verb : c.verbs)
      page += ".TP\n\\fB" + roff(verb.name.substr(c.name.size() + 1)) + "\\fR\n" + roff(brief(verb.text)) + "; see \\fB" +
              roff(file_name(verb.name)) + "\\fR(1)\n";
  }
  for (const auto& [heading, options] : {std::pair{"ARGUMENTS", &c.arguments}, {"OPTIONS", &c.options}}) {
    if (options->empty()) continue;
    page += std::string(".SH ") + heading + "\n";
    for (const CommandOption& o : *options) page += item(o);
  }
  if (c.name != program) page += ".SH SEE ALSO\n\\fB" + program + "\\fR(1)\n";
  pages.emplace_back(file + ".1", std::move(page));
  for (const Command& verb : c.verbs) add_page(verb, program, version, pages);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> man_pages(const Command& program, const std::string& version) {
  std::vector<std::pair<std::string, std::string>> pages;
  add_page(program, program.name, version, pages);
  return pages;
}

}  // namespace starling
