// Dumps of random configurations, read back: the same run, also where the corpus has grown since, and nothing of it is chosen anew. Keys
// have their built-in default as often as another value, since those are the ones that a dump may wrongly leave out.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "base/error.h"
#include "base/random.h"
#include "run/fine_tuning.h"
#include "settings/corpus_defaults.h"
#include "tests/whole_matrix.h"

namespace starling {
namespace {

namespace fs = std::filesystem;

// Values of one key as text: what it has by default, its bounds, and what lies between.
struct RandomValue {
  Random& random;
  const std::vector<std::string>& choices;

  bool chance(uint64_t of) const { return random.below(of) == 0; }
  std::string any(const std::vector<std::string>& all) const { return all[random.below(all.size())]; }
  std::string word() const { return any({"a", "b c", "x#y: z", "null", "-1", "\\\"", "ä{}", "0.5", "\xc2\x85\xe2\x80\xa9x"}); }

  template <class T>
  std::string operator()(const Ranged<T>& range) const {
    if (chance(2)) return fmt::format("{}", *range.value);
    if (chance(3)) return fmt::format("{}", range.minimum);
    if (std::is_same_v<T, double>) {
      const double high = std::min(static_cast<double>(range.maximum), 1.0), low = static_cast<double>(range.minimum);
      return fmt::format("{}", static_cast<T>(low + (high - low) * static_cast<double>(random.below(1000)) / 1000));
    }
    const auto low = static_cast<double>(range.minimum), high = std::min(static_cast<double>(range.maximum), low + 5000);
    return fmt::format("{}", static_cast<T>(low + static_cast<double>(random.below(static_cast<uint64_t>(high - low) + 1))));
  }
  std::string operator()(const bool* value) const { return (chance(2) ? *value : !*value) ? "true" : "false"; }
  std::string operator()(const std::string* value) const { return choices.empty() ? chance(2) ? *value : word() : any(choices); }
  std::string operator()(const EnumValue& value) const { return chance(2) ? choices[*value.value] : any(choices); }
  std::string operator()(const std::vector<std::string>*) const {
    std::vector<std::string> items;
    for (uint64_t n = random.below(3); n > 0; --n) items.push_back(choices.empty() ? any({"a", "bc"}) : any(choices));
    return fmt::format("[{}]", fmt::join(items, ", "));
  }
  template <class T>
  std::string operator()(const RangedList<T>&) const {
    return any({"[]", "[1]", "[0.25, 0.5]"});
  }
  std::string operator()(const RecordList&) const { return ""; }
  std::string operator()(const std::vector<ForeignKey>*) const { return ""; }
};

class ConfigRoundTrip : public testing::Test {
 protected:
  ConfigRoundTrip() : directory_(testing::TempDir() + "starling_round_trip_" + std::to_string(::getpid())) {
    fs::create_directories(directory_);
    // Archives that cannot be read are estimated by their sizes alone.
    for (const auto& [name, bytes] :
         std::map<std::string, uintmax_t>{{"tiny.gz", 50'000}, {"small.gz", 2'000'000}, {"base.gz", 20'000'000}})
      std::ofstream{path(name)}, fs::resize_file(path(name), bytes);
    const auto add = [&](const std::string& name, auto& part) {
      for (ConfigSection& section : config_sections(name, "", part)) sections_.push_back(std::move(section));
    };
    add("vocab", standard_.vocab), add("model", standard_.model), add("train", standard_.train), add("refine", standard_.refine);
    add("strategy", standard_.strategy), add("parallel", standard_.parallel), add("valid", standard_.valid);
    add("checkpoint", standard_.checkpoint), add("log", standard_.log);
    for (const ConfigSection& section : sections_)
      for (const ConfigField& field : section.fields) fields_.emplace_back(section.name + "." + field.key, &field);
  }
  ~ConfigRoundTrip() override { fs::remove_all(directory_); }
  std::string path(const std::string& name) const { return directory_ + "/" + name; }

  std::string value(const std::string& key, const ConfigField& field) {
    if (key == "train.output") return path("run");
    if (key == "train.initial-model") return "";
    if (key == "valid.tokenize") return "13a";
    return std::visit(RandomValue{random_, field.choices}, field.value);
  }

  // Some keys, of which those that a corpus chooses and those that they depend on are frequent.
  std::vector<Override> random_keys(const std::string& corpus) {
    std::map<std::string, std::string> keys{{"data.source", path(corpus)}, {"data.target", path(corpus)}, {"train.output", path("run")}};
    static const std::vector<std::string> frequent = [] {
      std::vector<std::string> all = keys_by_corpus();
      for (const char* more :
           {"train.max-steps", "train.max-minutes", "train.max-epochs", "train.warmup-tokens", "model.width", "vocab.joint"})
        all.emplace_back(more);
      return all;
    }();
    for (const std::string& key : frequent)
      if (random_.below(4) == 0) keys[key] = "";
    for (uint64_t n = random_.below(3); n > 0; --n) keys[fields_[random_.below(fields_.size())].first] = "";
    for (const auto& [key, values] : std::map<std::string, std::vector<std::string>>{{"data.max-length", {"256", "100"}},
                                                                                     {"data.max-ratio", {"0", "2.5"}},
                                                                                     {"data.subword-alpha", {"0", "0.3"}},
                                                                                     {"data.source-language", {"", "en"}}})
      if (random_.below(8) == 0) keys[key] = RandomValue{random_, {}}.any(values);
    if (random_.below(2) == 0) keys["valid.source"] = keys["valid.target"] = path("valid");
    for (const auto& [key, field] : fields_)
      if (const auto found = keys.find(key); found != keys.end() && found->second.empty()) found->second = value(key, *field);
    if (keys.contains("model.preset"))
      keys["model.preset"] = RandomValue{random_, {}}.any({"transformer-tiny", "transformer-small", "transformer-base", "gnmt-small"});
    if (random_.below(30) == 0) keys["train.initial-model"] = STARLING_SOURCE_DIR "/tests/fixtures/models/pre/model";
    return {keys.begin(), keys.end()};
  }

  // Some of the keys in a file, the others as from a command line.
  std::pair<std::string, std::vector<Override>> as_given(const std::vector<Override>& keys) {
    std::map<std::string, std::string> sections;
    std::vector<Override> rest;
    for (const Override& o : keys) {
      const size_t dot = o.first.find('.');
      if (o.first.rfind('.') != dot || random_.below(2) == 0 || o.second.find('\\') != std::string::npos)
        rest.push_back(o);
      else
        sections[o.first.substr(0, dot)] +=
            fmt::format("  {}: {}\n", o.first.substr(dot + 1), o.second.starts_with('[') ? o.second : "'" + o.second + "'");
    }
    std::string text;
    for (const auto& [name, body] : sections) text += name + ":\n" + body;
    return {text, rest};
  }

  static std::string joined(const std::vector<Override>& overrides) {
    std::string all;
    for (const auto& [key, value] : overrides) all += "--" + key + " " + value + "\n";
    return all;
  }
  Config read(const std::string& text, const std::vector<Override>& overrides = {}) const {
    std::ofstream(path("c.yml")) << text;
    return load_run_config(path("c.yml"), overrides);
  }

  const std::string directory_;
  Config standard_;
  std::vector<ConfigSection> sections_;
  std::vector<std::pair<std::string, const ConfigField*>> fields_;
  Random random_{1, 1};
};

TEST_F(ConfigRoundTrip, DumpsOfRandomConfigurationsAreTheSameRun) {
  int refused = 0, chosen = 0, tuned = 0;
  const int all = of_cases(10000, 1000);
  for (int done = 0; done < all;) {  // configurations
    const std::string corpus = RandomValue{random_, {}}.any({"absent", "tiny.gz", "small.gz", "base.gz"});
    const auto [text, overrides] = as_given(random_keys(corpus));
    std::optional<Config> config;
    try {
      config = read(text, overrides);
    } catch (const ConfigError&) {  // these keys do not go together
      ASSERT_LT(++refused, 40000);
      continue;
    }
    ++done, chosen += !config->chosen.empty(), tuned += !config->train.initial_model.empty();
    const std::vector<std::string> lines = config_lines(*config);
    for (const bool full : {false, true}) {
      if (full && done % 10 > 0) continue;  // which are long
      const std::string dump = dump_config(*config, full);
      const bool grown = random_.below(4) == 0 && fs::exists(path(corpus));
      const uintmax_t size = grown ? fs::file_size(path(corpus)) : 0;
      if (grown) fs::resize_file(path(corpus), 30 * size);
      const Config back = read(dump);
      if (grown) fs::resize_file(path(corpus), size);
      ASSERT_EQ(config_lines(back), lines) << (full ? "full" : "minimal") << " dump of\n" << text << joined(overrides) << dump;
      ASSERT_EQ(dump_config(back, full), dump);
    }
  }
  EXPECT_GT(chosen, all / 10) << refused;
  EXPECT_GT(tuned, all / 100) << refused;
}

// What is told by hand, each key alone, where the corpus would choose otherwise.
TEST_F(ConfigRoundTrip, ABuiltInDefaultThatIsGivenIsWritten) {
  const std::vector<Override> files{{"data.source", path("small.gz")}, {"data.target", path("small.gz")}};
  const std::vector<std::string> defaults = config_lines(Config());
  for (const std::string& key : keys_by_corpus()) {
    std::string value;
    for (const std::string& line : defaults)
      if (line.starts_with(key + ": ")) value = line.substr(key.size() + 2);
    std::vector<Override> keys = files;
    keys.emplace_back(key, value);
    const Config config = load_run_config("", keys);
    EXPECT_EQ(config_lines(read(dump_config(config, false))), config_lines(config)) << key;
    EXPECT_NE(dump_config(config, false).find(fmt::format("  {}: {}\n", key.substr(key.find('.') + 1), value)), std::string::npos) << key;
  }
}

}  // namespace
}  // namespace starling
