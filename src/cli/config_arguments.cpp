#include "cli/config_arguments.h"

#include "base/error.h"

namespace starling {
namespace {

constexpr const char* kKeysGroup = "Configuration keys";

// Leaves the keys out of the list of options: the footer describes them, by section.
class HelpWithoutKeys : public CLI::Formatter {
 public:
  std::string make_group(std::string group, bool positional, std::vector<const CLI::Option*> options) const override {
    return group == kKeysGroup ? "" : CLI::Formatter::make_group(group, positional, options);
  }
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

}  // namespace

std::shared_ptr<ConfigArguments> ConfigArguments::add_to(CLI::App& verb) {
  auto a = std::make_shared<ConfigArguments>();
  verb.add_option("-c,--config", a->file_, "Configuration file, YAML; see docs/config.md")->type_name("FILE");
  for (const std::string& name : all_config_names()) {
    const bool short_form = name == "train.precision" || name == "train.threads" || name == "train.seed";
    const std::string option = "--" + name + (short_form ? ",--" + name.substr(name.find('.') + 1) : "");
    a->keys_.emplace_back(name, verb.add_option(option)->expected(1)->take_last()->group(kKeysGroup));
  }
  verb.allow_extras();
  verb.formatter(std::make_shared<HelpWithoutKeys>());
  verb.footer([] {
    return "Every key of the configuration is an option, --section.key VALUE or --section.key=VALUE;\n"
           "--precision, --threads and --seed are short for those of the section train.\n" +
           config_reference();
  });
  return a;
}

std::vector<Override> ConfigArguments::overrides(const CLI::App& verb) const {
  std::vector<Override> overrides;
  for (const auto& [name, option] : keys_) {
    if (option->count() > 0) overrides.emplace_back(name, option->results().back());
  }
  take_corpus_overrides(verb, overrides);
  return overrides;
}

}  // namespace starling
