// The verb `starling manual`: writes man pages and completions for shells, from the same tables as the help.
#include "manual/manual.h"

#include <cstdio>
#include <iostream>

#include "base/error.h"
#include "base/files.h"
#include "base/system_reason.h"
#include "base/text_files.h"
#include "base/version.h"
#include "cli/verbs.h"
#include "launch/command.h"
#include "launch/laboratory.h"
#include "program/help.h"
#include "settings/config.h"

namespace starling {
namespace {

// Returns what the laboratory has, by what it prints about itself.
Command laboratory_commands() {
  const std::string file = laboratory_program("manual"), command = shell_quoted(file) + " commands";
  std::FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) throw IoError(fmt::format("{}: {}", command, system_reason(errno)));
  std::string text;
  char part[1 << 16];
  for (size_t count; (count = std::fread(part, 1, sizeof part, pipe)) > 0;) text.append(part, count);
  if (pclose(pipe) != 0) throw IoError(fmt::format("'{}' failed, which says what its verbs are", command));
  return command_of_text(text);
}

void run_manual(const CLI::App& program, const std::string& directory) {
  const VerbHelp help;
  Command command = command_of(program, program.get_name(), [&](const CLI::Option* o) { return help.make_option_opts(o); });
  for (Command& verb : laboratory_commands().verbs)
    for (Command& listed : command.verbs)
      if (listed.name == verb.name) listed = std::move(verb);
  std::vector<CommandOption> keys;
  for (const ConfigKeyHelp& key : config_key_help())
    keys.push_back({{"--" + key.name}, "VALUE", key.choices, key.allowed.empty() ? "" : "(" + key.allowed + ")", key.text});
  describe(command, keys);
  std::vector<std::pair<std::string, std::string>> files;
  for (auto& [name, page] : man_pages(command, std::string(kVersion))) files.emplace_back("man/man1/" + name, std::move(page));
  files.emplace_back("bash-completion/completions/starling", bash_completion(command));
  files.emplace_back("zsh/vendor-completions/_starling", zsh_completion(command));
  files.emplace_back("fish/vendor_completions.d/starling.fish", fish_completion(command));
  const auto system = real_file_system();
  for (const auto& [name, text] : files) {
    const std::string path = join_path(directory, name);
    system->make_directories(parent_path(path));
    system->replace_file(path, text);
  }
  std::cout << fmt::format("{} files below {}\n", files.size(), directory);
}

}  // namespace

void add_manual(CLI::App& app) {
  auto* sub = app.add_subcommand("manual", "write man pages, and completions for bash, zsh and fish");
  auto directory = std::make_shared<std::string>("share");
  sub->add_option("--output", *directory, "directory to write to, with the parts of /usr/share: man, bash-completion, zsh and fish")
      ->type_name("DIR")
      ->capture_default_str();
  sub->callback([&app, directory] { run_manual(app, *directory); });
}

}  // namespace starling
