// The verb `starling clean`: writes the pairs of training corpora that are worth learning from.
#include <iostream>

#include "base/affinity.h"
#include "base/byte_size.h"
#include "base/quotes.h"
#include "base/stop_note.h"
#include "cleaning/cleaner.h"
#include "cli/verbs.h"
#include "program/config_arguments.h"

namespace starling {
namespace {

// The configuration with the cleaned corpora in place of the given ones, for `starling train`.
std::string cleaned_configuration(Config config, const CleanReport& report, const std::string& output) {
  for (size_t i = 0; i < report.corpora.size(); ++i) {
    CorpusFiles& corpus = config.data.train[i];
    const std::string kept = join_path(output, report.corpora[i].kept_file);
    corpus.source = corpus.target = "";
    corpus.tsv = kept;
    corpus.scores = "";
    if (!corpus.sentence_weights.empty()) corpus.sentence_weights = join_path(output, report.corpora[i].weights_file);
  }
  config.clean = {};
  std::erase_if(config.named, [](const std::string& key) { return key.starts_with("clean."); });
  return dump_config(config, false);
}

void run_clean(const CLI::App& verb, const ConfigArguments& arguments, const std::string& output, const std::string& memory) {
  const auto [file, overrides] = arguments.given(verb);
  const Config config = load_config(file, overrides);
  require_data(config);
  CleanJob job{.data = config.data, .languages = config.languages, .held_out = {}, .options = config.clean, .output = output};
  job.threads = config.train.threads > 0 ? config.train.threads : usable_cores();
  if (const auto bytes = byte_size(memory))
    job.memory = *bytes;
  else
    throw ConfigError(fmt::format("--memory {}: is not an amount of memory; give one such as 500M or 4G", printable(memory)));
  for (const ValidSet& set : config.valid.texts()) {
    CorpusFiles& files = job.held_out.emplace_back();
    files.source = set.source;
    files.target = set.target;
  }
  job.configuration = [&](const CleanReport& report) { return cleaned_configuration(config, report, output); };
  const auto files = real_file_system();
  const StopNote note(fmt::format("stopped: {} is not there yet; the same command goes on", printable(output)));
  const CleanReport report = clean(job, *files, standard_error_screen());
  std::cout << clean_text(report)
            << fmt::format("{}: kept and dropped pairs; look at report.html, train with train.yml\n", printable(output));
}

}  // namespace

void add_clean(CLI::App& app) {
  CLI::App* const verb =
      app.add_subcommand("clean", "repair training corpora and drop the pairs that are not worth learning (docs/guides/cleaning.md)");
  const auto output = std::make_shared<std::string>();
  const auto arguments = ConfigArguments::add_to(*verb);
  verb->add_option("-o,--output", *output, "directory to write; must not exist")->type_name("DIR")->required();
  const auto memory = std::make_shared<std::string>("1G");
  verb->add_option("--memory", *memory, "memory to keep within, at least 200M; less takes longer and gives the same")
      ->type_name("SIZE")
      ->capture_default_str();
  verb->callback([=] { run_clean(*verb, *arguments, *output, *memory); });
}

}  // namespace starling
