// The estimates are deliberately high: a micro-batch half as large costs a few per cent of speed, one too large costs the run.
#include "settings/micro_batch.h"

#include <algorithm>

#include "data/batches.h"
#include "replica/r_drop.h"

namespace starling {
namespace {

constexpr int64_t kLeast = 256;  // target tokens

std::string mebibytes(double bytes) { return fmt::format("{:.0f} MiB", bytes / (1 << 20)); }

}  // namespace

// Heads, hidden layers and gates are divided into shards; activations between layers are not.
double bytes_per_token(const ModelConfig& m, int64_t activation_bytes, int64_t in_shards) {
  const auto shards = static_cast<double>(in_shards), width = static_cast<double>(m.width), hidden = static_cast<double>(m.feed_forward);
  // An LSTM keeps four gates, its input, its output and, in f32, its cell; the bottom encoder layer counts as two.
  if (architecture_of(m.preset) == Architecture::gnmt) {
    const auto bytes = static_cast<double>(activation_bytes);
    return static_cast<double>(m.encoder_layers + m.decoder_layers + 1) * width * (8 * bytes + (12 * bytes + 8) / shards);
  }
  const double inner = m.activation == HiddenActivation::relu ? hidden : 2 * hidden;  // others keep what they are applied to
  const double encoder = 6.0 * width + (4.0 * width + inner) / shards;
  const double decoder = 9.0 * width + (8.0 * width + inner) / shards;
  const double ends = 4.0 * width;  // embeddings and last norms
  return 2.0 * static_cast<double>(activation_bytes) *
         (static_cast<double>(m.encoder_layers) * encoder + static_cast<double>(m.decoder_layers) * decoder + ends);
}

int64_t micro_batch_tokens(const Config& c, const MicroBatchNeed& need, const UsableMemory& memory,
                           const std::function<void(const std::string&)>& say) {
  const double each = bytes_per_token(c.model, need.activation_bytes, c.parallel.tensor);
  const auto text = [&](int64_t tokens) { return text_tokens(tokens, c.train.r_drop); };
  const int64_t batch = c.train.r_drop > 0 ? 2 * c.train.batch_tokens : c.train.batch_tokens;
  const auto later = static_cast<double>(need.parameters * need.later_bytes);
  const double bytes = static_cast<double>(memory.bytes) / need.local_ranks - later;
  const auto numbers = [&](int64_t tokens) {
    return fmt::format(
        "{} for weights and optimizer and {} for micro-batches of {} target tokens are still needed (estimated); usable is {}{}",
        mebibytes(later), mebibytes(static_cast<double>(tokens) * each), tokens, memory.text(),
        need.local_ranks > 1 ? fmt::format(", for {} processes", need.local_ranks) : "");
  };
  if (need.card && bytes < kLeast * each)
    throw ConfigError(
        fmt::format("the model does not fit on the card: {}; train a smaller model, or on a card with more memory", numbers(kLeast)));
  if (const int64_t asked = c.train.micro_batch_tokens; asked > 0) {
    if (need.card && bytes < static_cast<double>(std::min(asked, batch)) * each)
      say(fmt::format("warning: train.micro-batch-tokens may be too many for the card: {}", numbers(asked)));
    return text(asked);
  }
  const double fits = std::max(0.5 * bytes / each, 0.0);
  const int64_t tokens = std::clamp(static_cast<int64_t>(std::min<double>(fits, static_cast<double>(need.best))), kLeast, need.best);
  if (fits < kLeast && !need.card)
    say(fmt::format(
        "warning: memory may not suffice, and the process may be killed for it: usable is {}; give it more, or train a smaller model",
        memory.text()));
  else if (tokens < std::min(need.best, batch))
    say(fmt::format("micro-batches of {} target tokens, chosen by memory: usable is {}", tokens, memory.text()));
  return text(tokens);
}

std::vector<Batch> micro_batches(const Batch& share, int64_t most_tokens, const ParallelOptions& parallel, const ComputeCost& cost) {
  const int64_t tokens = share.target.count();
  if (tokens == 0) return {};
  if (parallel.pipeline == 1) return split(share, most_tokens);
  const int64_t pieces = std::max(parallel.passes(), (tokens + most_tokens - 1) / most_tokens);
  std::vector<Batch> batches;
  for (int64_t i = 0; i < pieces; ++i) {
    Batch batch =
        starling::slice_for_rank(share, static_cast<int>(i), static_cast<int>(pieces), cost.source_weight(), cost.target_weight());
    if (batch.target.count() > 0) batches.push_back(std::move(batch));
  }
  return batches;
}

}  // namespace starling
