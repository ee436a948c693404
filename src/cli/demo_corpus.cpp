// The verb `starling demo-corpus`. The corpus needs no download and no licence: a program made its sentences, and it says so.
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
  int64_t train = kDemoTrain, valid = kDemoValid, test = kDemoTest;  // sentence pairs
};

constexpr const char* kWhatItIs =
    "Writes an artificial corpus: English-German sentence pairs about times, dates, prices, directions, the weather, orders in a cafe "
    "and everyday doings, with German word order, cases and genders. A program made them from templates, so no licence is needed. They "
    "are for trying Starling out, not for translating real text. No sentence of valid or test occurs in train.";

void run(const DemoCorpusArguments& arguments) {
  refuse_run_files({"--output", arguments.output});
  for (const char* part : {"train", "valid", "test"})
    for (const char* language : {"en", "de"})
      if (const std::string path = fmt::format("{}/{}.{}", arguments.output, part, language); std::filesystem::exists(path))
        throw ConfigError(fmt::format("{} exists already; give --output a new name or remove it", path));
  write_demo_corpus(arguments.output, arguments.train, arguments.valid, arguments.test);
  fmt::print(
      "{}: {} training, {} validation and {} test pairs of an artificial corpus made from templates (English train.en, German train.de, "
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
  const auto add_count = [&](const char* option, int64_t& count, const char* what) {  // the default is all there are
    verb->add_option(option, count, what)->check(CLI::Range(int64_t{0}, count))->type_name("N")->capture_default_str();
  };
  add_count("--train", arguments->train, "training pairs: the first N");
  add_count("--valid", arguments->valid, "validation pairs: the first N");
  add_count("--test", arguments->test, "test pairs: the first N");
  verb->callback([arguments] { run(*arguments); });
}

}  // namespace starling
