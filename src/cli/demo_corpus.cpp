// The verb `starling demo-corpus`. The corpus needs no download and no licence: a grammar makes it, and it says so.
#include <filesystem>
#include <memory>
#include <string>

#include "base/error.h"
#include "cli/verbs.h"
#include "demo/corpus.h"
#include "storage/outputs.h"

namespace starling {

namespace {

struct DemoCorpusArguments {
  std::string output = "demo-corpus";
  uint64_t seed = 1;
  int64_t train = 25000, valid = 500, test = 1000;  // sentence pairs
};

constexpr const char* kWhatItIs =
    "Writes an artificial corpus made by a grammar: English-German sentence pairs about times, dates, prices, directions, the weather, "
    "orders in a cafe and everyday doings, with German word order, cases and genders. It is for trying Starling out, not for "
    "translating real text. No sentence of valid or test occurs in train, under any seed.";

void run(const DemoCorpusArguments& arguments) {
  refuse_run_files({"--output", arguments.output});
  for (const char* part : {"train", "valid", "test"})
    for (const char* language : {"en", "de"})
      if (const std::string path = fmt::format("{}/{}.{}", arguments.output, part, language); std::filesystem::exists(path))
        throw ConfigError(fmt::format("{} exists already; give --output a new name or remove it", path));
  write_demo_corpus(arguments.output, arguments.seed, arguments.train, arguments.valid, arguments.test);
  fmt::print(
      "{}: {} training, {} validation and {} test pairs of an artificial corpus made by a grammar (English train.en, German train.de, "
      "...)\n",
      arguments.output, arguments.train, arguments.valid, arguments.test);
}

}  // namespace

void add_demo_corpus(CLI::App& app) {
  auto arguments = std::make_shared<DemoCorpusArguments>();
  CLI::App* verb = app.add_subcommand("demo-corpus", kWhatItIs);
  verb->add_option("--output", arguments->output, "directory for {train,valid,test}.{en,de}; made if missing")
      ->type_name("DIR")
      ->capture_default_str();
  verb->add_option("--seed", arguments->seed, "which corpus; the same seed gives the same files on every machine")->capture_default_str();
  const auto count = CLI::Range(int64_t{0}, int64_t{1000000});
  verb->add_option("--train", arguments->train, "training pairs")->check(count)->type_name("N")->capture_default_str();
  verb->add_option("--valid", arguments->valid, "validation pairs")->check(count)->type_name("N")->capture_default_str();
  verb->add_option("--test", arguments->test, "test pairs")->check(count)->type_name("N")->capture_default_str();
  verb->callback([arguments] { run(*arguments); });
}

}  // namespace starling
