// The program's verbs and options as plain data, for texts other than its help.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

namespace starling {

struct CommandOption {
  std::vector<std::string> names;    // with their hyphens: {"-m", "--model"}; of an argument its name alone, such as "FILE"
  std::string value;                 // what stands behind it: "NUMBER", "FILE"; "" for a flag
  std::vector<std::string> choices;  // the words that it may be; empty: others
  std::string remarks;               // "(0 to 15; default 2)" or ""
  std::string text;
};

struct Command {
  std::string name;  // "starling bench train"
  std::string text;
  std::vector<CommandOption> arguments, options;
  std::vector<Command> verbs;
};

// Returns what `app` has, without what its help hides. `remarks` returns the text after an option's name, as help shows it.
Command command_of(const CLI::App& app, const std::string& name, const std::function<std::string(const CLI::Option*)>& remarks);

// Writes a command as text (JSON) that another program reads.
std::string to_text(const Command& command);
Command command_of_text(const std::string& text);

// Completes options that were registered by their names alone: of every command that has one of these names.
void describe(Command& command, const std::vector<CommandOption>& known);

// Returns the first clause of a description, at most 80 bytes of it.
std::string brief(const std::string& text);

}  // namespace starling
