// The verb `starling synthesize`: parallel text from text of one language, by a model (docs/guides/synthetic-text.md).
#include <iostream>
#include <memory>

#include "base/messages.h"
#include "base/stop_note.h"
#include "cli/translation_arguments.h"
#include "cli/verbs.h"
#include "translate/synthesis.h"

namespace starling {
namespace {

struct SynthesizeArguments {
  SynthesisOptions job;
  SearchArguments search;
};

void run_synthesize(const SynthesisOptions& job) {
  StopNote note("");
  synthesize(*real_file_system(), job,
             {.output = std::cout,
              .tell = [](const std::string& text) { tell("{}", text); },
              .screen = standard_error_screen(),
              .on_stop = [&](const std::string& line) { note.set(line); }});
}

}  // namespace

void add_synthesize(CLI::App& app) {
  const auto a = std::make_shared<SynthesizeArguments>();
  TranslateOptions& o = a->job.translate;
  o.inputs.clear();
  CLI::App* const verb =
      app.add_subcommand("synthesize", "make parallel text from text of one language, by a model (docs/guides/synthetic-text.md)");
  add_models(*verb, o);
  verb->add_option("-i,--input", o.inputs, "text of the model's source language, one sentence a line (plain, .gz, .zst); may be repeated")
      ->required()
      ->type_name("FILE");
  verb->add_option("-o,--output", o.output, "directory to write; any number of processes with the same options share the work")
      ->required()
      ->type_name("DIR");
  verb->add_flag("--forward", a->job.forward,
                 "write pairs of a line and its translation, for a model of the same direction; default: back-translation, pairs of a "
                 "translation and its line, for a model of the other direction");
  a->search.add_to(*verb);
  verb->add_option("--n-best", o.n_best, "translations of each line, each of which makes a pair")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  add_sampling(*verb, o);
  verb->add_option("--max-source-tokens", o.max_source_tokens, "lines of more tokens are left out")
      ->check(CLI::Range(1, 8192))
      ->capture_default_str();
  add_target_language_option(*verb, o.target_language);
  verb->add_option("--part-lines", a->job.part_lines, "lines that a process takes at a time, which are lost if it is killed")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  add_computing(*verb, o);
  verb->add_flag("--quiet", o.quiet, "say nothing but errors");
  verb->callback([a] {
    take_search(a->search, a->job.translate);
    run_synthesize(a->job);
  });
}

}  // namespace starling
