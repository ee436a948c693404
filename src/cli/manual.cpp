// The verb `starling manual`: writes man pages and completions for shells, from the same tables as the help.
#include "manual/manual.h"

#include <iostream>

#include "base/files.h"
#include "base/text_files.h"
#include "base/version.h"
#include "cli/help.h"
#include "cli/verbs.h"
#include "settings/config.h"

namespace starling {
namespace {

void run_manual(const CLI::App& program, const std::string& directory) {
  const VerbHelp help;
  Command command = command_of(program, program.get_name(), [&](const CLI::Option* o) { return help.make_option_opts(o); });
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
