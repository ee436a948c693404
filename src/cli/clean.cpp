// The verb `starling clean`: writes the pairs of training corpora that are worth learning from.
#include <iostream>

#include "base/byte_size.h"
#include "base/quotes.h"
#include "base/stop_note.h"
#include "cleaning/cleaner.h"
#include "cli/verbs.h"
#include "program/config_arguments.h"
#include "run/cleaned_text.h"
#include "storage/outputs.h"

namespace starling {
namespace {

struct CleanArguments {
  std::string output, memory = "1G";
  std::vector<std::string> monolingual;
};

void run_clean(const CLI::App& verb, const ConfigArguments& arguments, const CleanArguments& a) {
  const auto [file, overrides] = arguments.given(verb);
  const Config config = load_config(file, overrides);
  CleanJob job = clean_job(config, a.output);
  if (a.monolingual.empty()) {
    require_data(config, true);
    job.configuration = [&](const CleanReport&) {
      Config cleaned = config;
      take_cleaned(cleaned, a.output);
      return dump_config(cleaned, false);
    };
  } else {
    if (!config.data.train.empty())
      throw ConfigError("--monolingual names text of one language, but data.train has pairs; clean the two one after the other");
    job.monolingual = true;
    for (const std::string& path : a.monolingual) job.data.train.emplace_back().source = path;
  }
  if (const auto bytes = byte_size(a.memory))
    job.memory = *bytes;
  else
    throw ConfigError(fmt::format("--memory {}: is not an amount of memory; give one such as 500M or 4G", printable(a.memory)));
  refuse_run_files({"--output", a.output});
  const auto files = real_file_system();
  const StopNote note(fmt::format("stopped: {} is not there yet; the same command goes on", printable(a.output)));
  const CleanReport report = clean(job, *files, standard_error_screen());
  std::cout << clean_text(report)
            << fmt::format("{}: what is kept, and what is dropped; look at report.html{}\n", printable(a.output),
                           job.monolingual ? "" : ", train with train.yml");
}

}  // namespace

void add_clean(CLI::App& app) {
  CLI::App* const verb =
      app.add_subcommand("clean", "repair training corpora and drop the pairs that are not worth learning (docs/guides/cleaning.md)");
  const auto a = std::make_shared<CleanArguments>();
  const auto arguments = ConfigArguments::add_to(*verb);
  verb->add_option("-o,--output", a->output, "directory to write; must not exist")->type_name("DIR")->required();
  verb->add_option("--monolingual", a->monolingual, "in place of data.train: files of one language, data.source-language (may be repeated)")
      ->type_name("FILE");
  verb->add_option("--memory", a->memory, "memory to keep within, at least 200M; less takes longer and gives the same")
      ->type_name("SIZE")
      ->capture_default_str();
  verb->callback([=] { run_clean(*verb, *arguments, *a); });
}

}  // namespace starling
