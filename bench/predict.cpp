// Predicts how long an update of training takes on a card that this machine does not have (docs/guides/gpu.md); measures nothing.
#include <iostream>
#include <nlohmann/json.hpp>

#include "bench/predict_step.h"
#include "program/help.h"
#include "program/program.h"

namespace starling {
namespace {

using OrderedJson = nlohmann::ordered_json;

void print(const PredictedStep& s, const std::string& format) {
  if (format == "json") {
    OrderedJson ops = OrderedJson::array();
    for (const PredictedOp& op : s.ops)
      ops.push_back({{"name", op.name},
                     {"calls", op.calls},
                     {"gflop", op.flops / 1e9},
                     {"mbytes", op.bytes / 1e6},
                     {"floor_ms", 1e3 * op.floor_seconds},
                     {"ms", 1e3 * op.seconds}});
    std::cout << OrderedJson{{"predicted_for", s.card},
                             {"step_ms", 1e3 * s.seconds},
                             {"floor_ms", 1e3 * s.floor_seconds},
                             {"target_tokens_per_second", s.target_tokens_per_second},
                             {"share_of_product_rate", s.flops / s.product_rate / s.seconds},
                             {"ops", ops}}
                     .dump(1)
              << "\n";
    return;
  }
  std::cout << fmt::format("predicted for      {}\n", s.card);
  std::cout << fmt::format("step               {:.1f} ms expected, {:.1f} ms at the card's rates (the floor)\n", 1e3 * s.seconds,
                           1e3 * s.floor_seconds);
  std::cout << fmt::format("throughput         {:.0f} target tokens/s, {:.2f} of the product rate\n\n", s.target_tokens_per_second,
                           s.flops / s.product_rate / s.seconds);
  std::cout << "  expected     floor      GFLOP        MB  calls\n";
  for (const PredictedOp& op : s.ops)
    std::cout << fmt::format("  {:5.2f} ms  {:5.2f} ms  {:9.1f}  {:8.1f}  {:5.0f}  {}\n", 1e3 * op.seconds, 1e3 * op.floor_seconds,
                             op.flops / 1e9, op.bytes / 1e6, op.calls, op.name);
}

}  // namespace
}  // namespace starling

int main(int argc, char** argv) {
  using namespace starling;
  CLI::App app("How long an update takes on a card that this machine does not have: operations and bytes over the card's rates.");
  add_help(app);
  std::string card, preset = "transformer-base", optimizer = "adam", format = "text";
  BenchTrainOptions o;
  o.vocabulary = 0;
  app.add_option("card", card, "h200, h100 or a100")->required()->check(CLI::IsMember({"h200", "h100", "a100"}));
  app.add_option("--preset", preset, "model preset")->capture_default_str();
  app.add_option("--vocabulary", o.vocabulary, "joint pieces; 0 = 32000 for models of width 512 and more, else 8000")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str();
  app.add_option("--batch-tokens", o.batch_tokens, "target tokens per batch")->check(CLI::Range(16, 1000000))->capture_default_str();
  app.add_option("--batch-sentences", o.batch_sentences, "sentences per batch, in place of --batch-tokens; 0 = off")
      ->check(CLI::Range(0, 100000))
      ->capture_default_str();
  app.add_option("--optimizer", optimizer, "adam or muon")->check(CLI::IsMember({"adam", "muon"}))->capture_default_str();
  app.add_option("--mean-length", o.mean_length, "mean sentence length, tokens")->check(CLI::Range(2, 100))->capture_default_str();
  app.add_option("--format", format, "text or json")->check(CLI::IsMember({"text", "json"}))->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  return status_of([&] {
    o.model = model_preset(preset);
    o.optimizer = from_word<OptimizerKind>(optimizer);
    if (o.vocabulary == 0) o.vocabulary = o.model.width >= 512 ? 32000 : 8000;
    print(predict_step(o, card), format);
    return 0;
  });
}
