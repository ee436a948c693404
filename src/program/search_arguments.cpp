#include "program/search_arguments.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/duration.h"
#include "config/config.h"
#include "program/help.h"

namespace starling {

CLI::Validator real_range(double low, double high) {
  const std::string range = fmt::format("[{} - {}]", low, high);
  return {[=](std::string& text) {
            double value = 0;
            const bool inside = CLI::detail::lexical_cast(text, value) && value >= low && value <= high;
            return inside ? std::string() : fmt::format("Value {} not in range {}", text, range);
          },
          "FLOAT in " + range};
}

CLI::Validator duration_range(double low, double high) {
  const std::string range = fmt::format("[{} - {}]", low, high);
  return {[=](std::string& text) {
            double value = 0;
            if (const std::optional<double> seconds = duration_seconds(text))
              value = *seconds;
            else if (!CLI::detail::lexical_cast(text, value))
              return fmt::format("{} is neither a number of seconds nor a duration such as 90s, 12m or 1h30m", in_quotes(text));
            if (!(value >= low && value <= high)) return fmt::format("Value {} not in range {}", text, range);
            text = fmt::format("{}", value);
            return std::string();
          },
          "FLOAT in " + range};
}

void SearchArguments::add_to(CLI::App& verb, const std::vector<std::string>& without) {
  SearchOptions defaults;
  for (const ConfigField& field : config_section("decode", "", defaults).fields) {
    if (std::find(without.begin(), without.end(), field.key) != without.end()) continue;
    const bool flag = std::holds_alternative<bool*>(field.value);
    CLI::Option* option = flag ? verb.add_flag("--" + field.key) : verb.add_option("--" + field.key);
    option->description(field.help + "; default: the model's")->take_last();
    if (const auto* whole = std::get_if<Ranged<int64_t>>(&field.value))
      option->type_name("INT")->check(CLI::Range(whole->minimum, whole->maximum));
    else if (const auto* real = std::get_if<Ranged<double>>(&field.value))
      option->type_name("FLOAT")->check(real_range(real->minimum, real->maximum));
    if (field.key != "beam" && field.key != "length-penalty") option->group(kFurtherGroup);
    options_.emplace_back(field.key, option);
  }
}

bool SearchArguments::given(const std::string& key) const {
  return std::any_of(options_.begin(), options_.end(), [&](const auto& o) { return o.first == key && o.second->count() > 0; });
}

SearchOptions SearchArguments::apply(SearchOptions options) const {
  const std::vector<ConfigSection> sections{config_section("decode", "", options)};
  for (const auto& [key, option] : options_)
    if (option->count() > 0) apply_override(sections, "decode." + key, option->results().back());
  return options;
}

}  // namespace starling
