#include "program/config_arguments.h"

#include "base/error.h"
#include "program/help.h"

namespace starling {
namespace {

bool is_configuration(const std::string& argument) {
  return !argument.starts_with('-') && (argument.ends_with(".yml") || argument.ends_with(".yaml"));
}

// Parses arguments that cannot be registered in advance: --data.train.N.KEY, --valid.sets.N.KEY, and a configuration without -c, which as a
// positional argument would swallow the values of those.
void take_unparsed(const CLI::App& verb, std::vector<Override>& overrides, std::string& file) {
  const std::vector<std::string> rest = verb.remaining();
  for (size_t i = 0; i < rest.size(); ++i) {
    if (is_configuration(rest[i])) {
      if (!file.empty())
        throw ConfigError(fmt::format("two configurations, {} and {}; give one, and change keys with --section.key VALUE", in_quotes(file),
                                      in_quotes(rest[i])));
      file = rest[i];
      continue;
    }
    if (!rest[i].starts_with("--data.train.") && !rest[i].starts_with("--valid.sets.")) unknown_argument(verb, rest[i]);
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
  verb.add_option("-c,--config", a->file_,
                  "Configuration file, YAML (docs/reference/config.md); its name alone, if it ends in .yml or .yaml, is enough")
      ->type_name("FILE");
  for (const std::string& name : all_config_names()) {
    const bool short_form = name == "train.device" || name == "train.precision" || name == "train.threads" || name == "train.seed";
    const std::string option = "--" + name + (short_form ? ",--" + name.substr(name.find('.') + 1) : "");
    const int fewest = name == "train.restart" ? 0 : 1;  // --train.restart alone means true
    a->keys_.emplace_back(name, verb.add_option(option)->expected(fewest, 1)->take_last()->group(kKeysGroup));
  }
  verb.allow_extras();
  return a;
}

std::pair<std::string, std::vector<Override>> ConfigArguments::given(const CLI::App& verb) const {
  std::vector<Override> overrides;
  for (const auto& [name, option] : keys_) {
    if (option->count() == 0) continue;
    const std::string value = option->results().empty() ? "" : option->results().back();
    overrides.emplace_back(name, value.empty() && option->get_expected_min() == 0 ? "true" : value);
  }
  std::string file = file_;
  take_unparsed(verb, overrides, file);
  return {file, overrides};
}

Config ConfigArguments::load_run(const CLI::App& verb) const {
  const auto [file, overrides] = given(verb);
  return load_run_config(file, overrides);
}

Config ConfigArguments::load_run(const CLI::App& verb, Communicator& comm) const {
  const auto [file, overrides] = given(verb);
  return load_run_config(file, overrides, comm);
}

}  // namespace starling
