#include "bench/predict_step.h"

#include <algorithm>
#include <array>
#include <map>

#include "backend/cuda/cuda.h"
#include "backend/meta.h"
#include "measure/time_layout.h"
#include "models/model.h"
#include "optim/optimizer.h"

namespace starling {
namespace {

// Rates of large products in bf16 and of passes over memory: 0.8 and 0.9 of the data sheet, about what published measurements reach.
struct Card {
  const char *word, *name;
  double product_rate, memory_rate;
};
constexpr std::array<Card, 3> kCards{{{"h200", "NVIDIA H200 (SXM)", 790e12, 4.3e12},
                                      {"h100", "NVIDIA H100 (SXM)", 790e12, 3.0e12},
                                      {"a100", "NVIDIA A100 (SXM, 80 GB)", 250e12, 1.8e12}}};
constexpr int64_t kMemory = int64_t{80} << 30;  // the least that any of the cards has
constexpr double kLaunch = 2.5e-6;              // the shortest time of a kernel, s

// The fraction of the card's rate that an op's kernels are expected to reach; not yet confirmed on a card.
double expected_share(const std::string& op) {
  static const std::map<std::string, double> shares{{"linear", 0.75},
                                                    {"weight_gradient", 0.75},
                                                    {"attention", 0.4},
                                                    {"attention_backward", 0.35},
                                                    {"embed_backward", 0.3},
                                                    {"add_dropout", 0.8},
                                                    {"dropout_backward", 0.8},
                                                    {"relu_dropout_backward", 0.8},
                                                    {"add", 0.8},
                                                    {"pack", 0.8},
                                                    {"layer_norm", 0.7},
                                                    {"layer_norm_backward", 0.6},
                                                    {"column_sums", 0.7},
                                                    {"adam", 0.8}};
  const auto found = shares.find(op);
  return found == shares.end() ? 0.5 : found->second;
}

// Stands in for a card's backend: work must be split into the same pieces as on the card.
class MetaCard final : public MetaBackend {
 public:
  MetaCard() : MetaBackend(DType::bf16, DType::f32) {}
  int64_t logits_bytes() const override { return card_logits_bytes(kMemory); }
  bool equal_chunks() const override { return true; }
  bool sums_in_relu() const override { return true; }
};

const Card& card_of(const std::string& word) {
  for (const Card& card : kCards)
    if (word == card.word) return card;
  throw ConfigError(fmt::format("there is no card '{}' to predict for; choose h200, h100 or a100", word));
}

}  // namespace

PredictedStep predict_step(const BenchTrainOptions& o, const std::string& word) {
  const Card& card = card_of(word);
  MetaCard idle;
  ProfiledBackend counted(idle);
  const std::vector<Batch> batches = synthetic_batches(o, 8);
  const auto model = make_model(o.model, {o.vocabulary, o.vocabulary}, counted, o.seed, true);
  OptimizerOptions kind;
  kind.optimizer = o.optimizer;
  Optimizer optimizer(counted, kind, model->parameters().count());
  double tokens = 0;
  for (const Batch& batch : batches) {
    pass_of_whole_batch(*model, batch);
    counted.sum_of_squares(model->parameters().gradients(), Tensor({1}, DType::f64, counted.memory()));
    optimizer.begin_update();
    optimizer.update(model->parameters().values(), model->parameters().gradients(), 1, 1e-4);
    model->parameters().changed();
    tokens += static_cast<double>(batch.target.count());
  }

  PredictedStep step;
  step.card = fmt::format("{}, {:.0f} TFLOP/s of products in bf16, {:.1f} TB/s of memory (assumed)", card.name, card.product_rate / 1e12,
                          card.memory_rate / 1e12);
  step.product_rate = card.product_rate;
  const auto n = static_cast<double>(batches.size());
  for (const auto& [name, time] : counted.times) {
    PredictedOp op{name, static_cast<double>(time.calls) / n, time.flops / n, time.bytes / n, 0, 0};
    op.floor_seconds = std::max(op.flops / card.product_rate, op.bytes / card.memory_rate);
    op.seconds = std::max(op.floor_seconds / expected_share(name), op.calls * kLaunch);
    step.seconds += op.seconds;
    step.floor_seconds += op.floor_seconds;
    step.flops += op.flops;
    step.ops.push_back(std::move(op));
  }
  std::sort(step.ops.begin(), step.ops.end(), [](const PredictedOp& a, const PredictedOp& b) { return a.seconds > b.seconds; });
  step.target_tokens_per_second = tokens / n / step.seconds;
  return step;
}

}  // namespace starling
