// The verb `starling calibrate`: fits, on a development text, how probably the words of a model's translations are right, and writes that
// to the model. See docs/guides/confidence.md.
#include "evaluation/calibrate.h"

#include <iostream>

#include "base/stop_note.h"
#include "cli/verbs.h"

namespace starling {
namespace {

void print(const ConfidenceQuality& q) {
  std::cout << fmt::format("{} words in {} sentences, {:.1f} % of them right\n\nconfidence     words predicted     right\n", q.words,
                           q.sentences, 100 * q.right);
  for (size_t i = 0; i < q.of_words.groups.size(); ++i)
    if (const Reliability::Group& g = q.of_words.groups[i]; g.count > 0)
      std::cout << fmt::format("{:.1f} to {:.1f} {:9} {:9.3f} {:9.3f}\n", 0.1 * static_cast<double>(i), 0.1 * static_cast<double>(i + 1),
                               g.count, g.predicted, g.observed);
  std::cout << fmt::format(
      "\ncalibration error   words {:.4f}, sentences {:.4f}\narea under curve    words {:.4f} (of log-probabilities {:.4f})\ncorrelation"
      "         sentences {:.4f}, with the share of their words that is right\n",
      q.of_words.error, q.of_sentences.error, q.auc, q.auc_of_log_probability, q.correlation);
}

void run_calibrate(const CalibrateOptions& o) {
  const StopNote note("stopped: nothing was written; the same command begins again");
  const CalibrateResult result = calibrate_model(*real_file_system(), o, standard_error_screen());
  print(result.quality);
  if (!result.written.empty()) std::cout << fmt::format("written to {}\n", result.written);
}

}  // namespace

void add_calibrate(CLI::App& app) {
  auto* sub = app.add_subcommand("calibrate", "find out on a text how probably the words of a model's translations are right");
  auto a = std::make_shared<CalibrateOptions>();
  sub->add_option("-m,--model", a->model,
                  "run directory, checkpoint or model directory; it gets confidence.json, for translate --confidence")
      ->required();
  sub->add_option("--source", a->source, "source text, one sentence a line (plain, .gz, .zst); not the training text")->required();
  sub->add_option("--target", a->target, "its reference translation")->required();
  add_target_language_option(*sub, a->target_language);
  add_translator_limits(*sub, a->max_source_tokens, a->batch_sentences);
  add_device_options(*sub, a->compute);
  CLI::Option* dry_run = sub->add_flag("--dry-run", a->dry_run, "only print; the model directory stays as it is");
  sub->add_flag("--measure", a->measure, "only print how well the calibration that the model has holds on this text")->excludes(dry_run);
  sub->callback([a] { run_calibrate(*a); });
}

}  // namespace starling
