// The verb `starling train`: a configuration file, overridden key by key on the command line. Every key of the configuration is an
// option of its own, so that the command-line parser treats `--train.learning-rate -1` and `--train.output train` as values.
#include <csignal>
#include <iostream>

#include "base/error.h"
#include "cli/verbs.h"
#include "train/config.h"
#include "train/trainer.h"

namespace starling {
namespace {

constexpr const char* keys_group = "Configuration keys";

// Leaves the keys out of the list of options: the footer describes them, by section.
class HelpWithoutKeys : public CLI::Formatter {
 public:
  std::string make_group(std::string group, bool positional, std::vector<const CLI::Option*> options) const override {
    return group == keys_group ? "" : CLI::Formatter::make_group(group, positional, options);
  }
};

std::string check_dump_kind(const std::string& kind) {
  return kind.empty() || kind == "minimal" || kind == "full" ? ""
                                                             : fmt::format("{} is not allowed; choose minimal or full", in_quotes(kind));
}

struct TrainArguments {
  std::string config, dump;
  bool markdown = false;
  std::vector<std::pair<std::string, CLI::Option*>> keys;
};

// --data.train.N.KEY cannot be registered beforehand: these arguments arrive unparsed.
void take_corpus_overrides(const CLI::App& verb, std::vector<Override>& overrides) {
  const std::vector<std::string> rest = verb.remaining();
  for (size_t i = 0; i < rest.size(); ++i) {
    if (!rest[i].starts_with("--data.train.")) unknown_argument(verb, rest[i]);
    const size_t equals = rest[i].find('=');
    const std::string name = rest[i].substr(2, equals == std::string::npos ? equals : equals - 2);
    if (equals == std::string::npos && i + 1 == rest.size())
      throw ConfigError(fmt::format("--{} needs a value; write it behind the option", name));
    overrides.emplace_back(name, equals == std::string::npos ? rest[++i] : rest[i].substr(equals + 1));
  }
}

std::vector<Override> overrides_of(const CLI::App& verb, const TrainArguments& a) {
  std::vector<Override> overrides;
  for (const auto& [name, option] : a.keys) {
    if (option->count() > 0) overrides.emplace_back(name, option->results().back());
  }
  take_corpus_overrides(verb, overrides);
  return overrides;
}

void run_train(const CLI::App& verb, const CLI::Option& dump, const TrainArguments& a) {
  const std::vector<Override> overrides = overrides_of(verb, a);
  if (a.markdown) {
    std::cout << config_reference_markdown();
    return;
  }
  const Config config = load_config(a.config, overrides);
  if (dump.count() > 0) {
    std::cout << dump_config(config, a.dump == "full");
    return;
  }
  require_data(config);
  std::signal(SIGPIPE, SIG_IGN);  // training outlives its terminal; the log files tell the rest
  if (const int status = run_training(config); status != 0) throw CLI::RuntimeError(status);
}

}  // namespace

void add_train(CLI::App& app) {
  auto* verb = app.add_subcommand("train", "Train a model; the same command continues a run that was stopped");
  auto a = std::make_shared<TrainArguments>();
  verb->add_option("-c,--config", a->config, "Configuration file, YAML; see docs/config.md")->type_name("FILE");
  auto* dump =
      verb->add_option("--dump-config", a->dump, "Print the configuration and exit: minimal (what differs from the defaults) or full")
          ->expected(0, 1)
          ->type_name("[minimal|full]")
          ->check(check_dump_kind, "");
  verb->add_flag("--help-markdown", a->markdown, "Print the reference of all keys as Markdown")->group("");
  for (const std::string& name : all_config_names()) {
    const bool short_form = name == "train.precision" || name == "train.threads" || name == "train.seed";
    const std::string option = "--" + name + (short_form ? ",--" + name.substr(name.find('.') + 1) : "");
    a->keys.emplace_back(name, verb->add_option(option)->expected(1)->take_last()->group(keys_group));
  }
  verb->allow_extras();
  verb->formatter(std::make_shared<HelpWithoutKeys>());
  verb->footer([] {
    return "Every key of the configuration is an option, --section.key VALUE or --section.key=VALUE;\n"
           "--precision, --threads and --seed are short for those of the section train.\n" +
           config_reference();
  });
  verb->callback([verb, dump, a] { run_train(*verb, *dump, *a); });
}

}  // namespace starling
