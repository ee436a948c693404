// The verb `starling quantize`: quantises weights to 8 bits, and compares them with floats before writing them.
#include "evaluation/quantize.h"

#include <iostream>

#include "base/messages.h"
#include "base/stop_note.h"
#include "cli/verbs.h"

namespace starling {
namespace {

void print_quantized(const QuantizeResult& r) {
  std::cout << fmt::format("machine    {}\nsentences  {}, {} target tokens, beam {}\n\n", r.machine, r.sentences, r.target_tokens, r.beam);
  std::cout << "precision     BLEU  log-perplexity  tokens/s  speed-up\n";
  const PrecisionScores& first = r.scores.front();
  for (const PrecisionScores& s : r.scores)
    std::cout << fmt::format("{:<10} {:7.2f} {:15.4f} {:9.0f} {:9.2f}\n", s.name, s.bleu, s.log_perplexity, s.tokens_per_second,
                             s.tokens_per_second / first.tokens_per_second);
  const PrecisionScores& last = r.scores.back();
  std::cout << fmt::format("\nint8 - f32: BLEU {:+.2f} (95 % of bootstrap samples: {:+.2f} to {:+.2f}), log-perplexity {:+.4f}\n",
                           last.bleu - first.bleu, r.bleu_difference.low, r.bleu_difference.high,
                           last.log_perplexity - first.log_perplexity);
  for (const MatrixReport& m : r.matrices)
    if (!m.quantized) std::cout << fmt::format("stays f32: {} {}, alone costs {:+.5f}\n", m.name, m.shape.text(), m.cost);
  std::cout.flush();
  if (r.truncated > 0) tell("starling: warning: {} sentences were cut at 1000 tokens\n", r.truncated);
}

void run_quantize(const QuantizeOptions& o) {
  const auto files = real_file_system();
  const StopNote note(fmt::format("stopped: nothing was written to {}; the same command begins again", o.output));
  const QuantizeResult result = quantize_model(
      *files, o, [](const std::string& line) { tell("{}\n", line); }, print_quantized, standard_error_screen());
  if (result.within_bounds) return;
  tell(
      "starling: {}: no choice of matrices in int8 stays within a loss of {} BLEU and {} of log-perplexity; {} (--max-bleu-loss, "
      "--max-log-perplexity-loss)\n",
      result.written ? "warning" : "error", o.max_bleu_loss, o.max_log_perplexity_loss,
      result.written ? fmt::format("{} has all of them by --force", o.output)
                     : "nothing was written; raise the bounds or write it anyway with --force");
  if (!result.written) throw CLI::RuntimeError(4);
}

}  // namespace

void add_quantize(CLI::App& app) {
  auto* sub = app.add_subcommand("quantize", "write a model with 8-bit weights, measured against floats in quality and speed");
  auto o = std::make_shared<QuantizeOptions>();
  sub->add_option("-m,--model", o->model, "run directory, checkpoint or model directory")->required();
  sub->add_option("-o,--output", o->output, "model directory to write; must not exist")->required();
  sub->add_option("--source", o->source, "validation source, one sentence a line (plain, .gz, .zst)")->required();
  sub->add_option("--target", o->target, "its reference translation")->required();
  add_target_language_option(*sub, o->target_language);
  sub->add_option("--max-bleu-loss", o->max_bleu_loss, "BLEU points that may be lost")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  sub->add_option("--max-log-perplexity-loss", o->max_log_perplexity_loss, "nats per target token that may be lost")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  sub->add_option("--beam", o->beam, "beam width; default: the model's")->check(CLI::Range(1, 1024));
  sub->add_option("--batch-size", o->batch_sentences, "sentences translated at once, at the most")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  sub->add_option("--matrix-sentences", o->matrix_sentences, "sentences on which each matrix is measured alone")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  add_tokenize_option(*sub, o->tokenize);
  add_device_option(*sub, o->device);
  add_threads_option(*sub, o->threads);
  sub->add_flag("--force", o->force, "write all matrices in int8 when nothing meets the bounds");
  sub->callback([o] { run_quantize(*o); });
}

}  // namespace starling
