// The verb `starling tune-search`: finds the length and coverage penalties with which a model translates a given text best, and writes them
// to the model. See docs/guides/search.md.
#include "decode/tune_search.h"

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "base/messages.h"
#include "base/stop_note.h"
#include "base/task_progress.h"
#include "cli/verbs.h"
#include "decode/cut_warning.h"
#include "decode/framing.h"
#include "evaluation/development_text.h"
#include "evaluation/text_roles.h"
#include "program/search_arguments.h"
#include "storage/outputs.h"

namespace starling {
namespace {

struct SweepArguments {
  std::string model, source, target, target_language, tokenize = "auto";
  SweepOptions tune;
  SearchArguments search;
  int64_t batch_sentences = 64, max_source_tokens = 1000;
  DeviceChoice compute;
  bool dry_run = false;
};

// Prints a line per setting on standard error, unless a terminal shows the best so far in its live line, and sets the message for a signal,
// which says how to start again from the best.
class SweepProgress {
 public:
  SweepProgress(size_t total, const SweepArguments& a, StopNote& note) : total_(total), a_(a), note_(note) {}
  // Reports the progress of the current setting.
  void translated(double share) {
    if (!progress_.due()) return;
    const std::string best = trials_.empty() ? "" : fmt::format(", best {:.2f}", best_trial(trials_, a_.tune.metric).value(a_.tune.metric));
    progress_.tell((static_cast<double>(trials_.size()) + share) / static_cast<double>(total_),
                   fmt::format("setting {} of {}{}", trials_.size() + 1, total_, best));
  }
  void done(const SearchTrial& t) {
    trials_.push_back(t);
    if (!screen_.live)
      tell("[{}/{}] alpha {} beta {}: BLEU {:.2f} | chrF {:.2f} | length {:.3f} | {:.1f} s\n", trials_.size(), total_, t.length_penalty,
           t.coverage_penalty, t.bleu, t.chrf, t.length_ratio, t.seconds);
    const SearchTrial& best = best_trial(trials_, a_.tune.metric);
    note_.set(fmt::format(
        "stopped: the best of {} of {} settings is alpha {} beta {}, BLEU {:.2f}, chrF {:.2f}; nothing was written. To keep it, "
        "give --length-penalties {} --coverage-penalties {}; the same command begins again",
        trials_.size(), total_, best.length_penalty, best.coverage_penalty, best.bleu, best.chrf, best.length_penalty,
        best.coverage_penalty));
  }

 private:
  const size_t total_;
  const SweepArguments& a_;
  StopNote& note_;
  std::vector<SearchTrial> trials_;
  const TaskScreen screen_ = standard_error_screen();
  TaskProgress progress_{"tune-search", screen_};
};

Part report_part(const SweepArguments& a, const SearchOptions& search, size_t sentences, std::span<const SearchTrial> trials) {
  const SearchTrial& best = best_trial(trials, a.tune.metric);
  const nlohmann::ordered_json report = {{"schema", "starling-search-1"},
                                         {"source", a.source},
                                         {"target", a.target},
                                         {"sentences", sentences},
                                         {"metric", a.tune.metric},
                                         {"tokenizer", a.tune.tokenizer.name()},
                                         {"beam", search.beam},
                                         {"prune_threshold", search.prune_threshold},
                                         {"max_length_factor", search.max_length_factor},
                                         {"max_length_offset", search.max_length_offset},
                                         {"best", trials_to_json({&best, 1})[0]},
                                         {"trials", trials_to_json(trials)}};
  return text_part("search.json", report.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

void run_tune_search(SweepArguments& a) {
  const auto files = real_file_system();
  StopNote note("stopped before any setting was measured; nothing was written, the same command begins again");
  const LoadedModel loaded = load_model(*files, a.model, a.compute);
  const ModelDescription& d = loaded.description;
  const std::string directory = std::filesystem::canonical(d.directory).string();  // the directory itself, never a link to it
  const std::vector<NamedPath> inputs{{"--source", a.source}, {"--target", a.target}};
  for (const char* name : {"decode.yml", "search.json", "manifest.json"})
    if (!a.dry_run) refuse_own_input({"what is written", join_path(directory, name)}, inputs);
  const auto lock = a.dry_run ? nullptr : reserve_model(*files, directory, "use --dry-run and put the best values into decode.yml");
  const DevelopmentText text = read_development_text(a.source, a.target);
  const TokenizerChoice choice = choose_tokenizer(a.tokenize, {&text.references, 1});
  tell(choice);
  a.tune.tokenizer = choice.tokenizer;

  SearchOptions search = with_prefixes(into_language(a.search.apply(d.search), d, a.target_language), d.vocabularies);
  const std::string doubt =
      doubt_about_sides(*loaded.model, d.vocabularies, a.source, a.target, text.sources, text.references, search.source_prefix_ids);
  if (!doubt.empty()) tell("starling: warning: {}\n", doubt);

  Translator translator(*loaded.model, d.vocabularies, search, a.batch_sentences, a.max_source_tokens);
  std::vector<SearchTrial> trials;
  {
    SweepProgress progress(sweep_settings(search, a.tune).size(), a, note);
    translator.set_watch({.stop = {}, .translated = [&](double share) { progress.translated(share); }});
    trials = sweep_search(translator, search, text.sources, text.references, a.tune, steady_seconds,
                          [&](const SearchTrial& t) { progress.done(t); });
    translator.set_watch({});
  }
  tell("{}", cut_warning(translator, a.max_source_tokens, "split them"));
  const SearchTrial& best = best_trial(trials, a.tune.metric);
  const SearchTrial& own = *std::find_if(trials.begin(), trials.end(), [](const SearchTrial& t) { return t.own; });
  const size_t listed = a.tune.length_penalties.size() * a.tune.coverage_penalties.size();
  std::cout << trial_table(std::span(trials).first(listed), a.tune.metric);
  const auto told = [](const SearchTrial& t) {
    return fmt::format("alpha {} beta {}: BLEU {:.2f}, chrF {:.2f}, length ratio {:.3f}", t.length_penalty, t.coverage_penalty, t.bleu,
                       t.chrf, t.length_ratio);
  };
  std::cout << (&best == &own ? "kept: " + told(own) + ", as the model had\n"
                              : fmt::format("best: {}\nbefore: {}\n", told(best), told(own)));
  if (a.dry_run) return;
  search.length_penalty = best.length_penalty;
  search.coverage_penalty = best.coverage_penalty;
  search.source_prefix = a.search.apply(d.search).source_prefix;
  const std::vector<Part> parts{search_part(search), report_part(a, search, text.sources.size(), trials)};
  {
    WholeWrite write;
    update_directory(*files, directory, parts);
    write.done(fmt::format("the best values are in {}/decode.yml", d.directory));
  }
  std::cout << fmt::format("written to {0}/decode.yml; the whole sweep is in {0}/search.json\n", d.directory);
}

}  // namespace

void add_tune_search(CLI::App& app) {
  auto* sub = app.add_subcommand("tune-search", "find the length and coverage penalties with which a model translates a text best");
  auto a = std::make_shared<SweepArguments>();
  sub->add_option("-m,--model", a->model, "run directory, checkpoint or model directory; its decode.yml gets the best values")->required();
  sub->add_option("--source", a->source, "source text, one sentence a line (plain, .gz, .zst); not the test set")->required();
  sub->add_option("--target", a->target, "its reference translation")->required();
  for (auto [name, values, help] : {std::tuple("--length-penalties", &a->tune.length_penalties, "values of alpha, comma-separated"),
                                    {"--coverage-penalties", &a->tune.coverage_penalties, "values of beta, comma-separated"}})
    sub->add_option(name, *values, help)->delimiter(',')->allow_extra_args(false)->check(real_range(0, 10))->capture_default_str();
  sub->add_option("--metric", a->tune.metric, "what is best: bleu or chrf")->check(CLI::IsMember({"bleu", "chrf"}))->capture_default_str();
  add_tokenize_option(*sub, a->tokenize);
  add_target_language_option(*sub, a->target_language);
  a->search.add_to(*sub, {"length-penalty", "coverage-penalty"});
  add_translator_limits(*sub, a->max_source_tokens, a->batch_sentences);
  add_device_options(*sub, a->compute);
  sub->add_flag("--dry-run", a->dry_run, "only print; the model directory stays as it is");
  sub->callback([a] {
    for (std::vector<double>* list : {&a->tune.length_penalties, &a->tune.coverage_penalties}) {
      std::sort(list->begin(), list->end());
      list->erase(std::unique(list->begin(), list->end()), list->end());
    }
    run_tune_search(*a);
  });
}

}  // namespace starling
