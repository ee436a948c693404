// The counts follow the allocations of models/transformer.cpp and models/gnmt.cpp in next_output and the data that search.cpp keeps; tests
// compare them with the memory that a process really uses.
#include "decode/search_need.h"

#include <algorithm>

#include "base/resource_error.h"

namespace starling {
namespace {

constexpr int64_t kWholeRows = 64;  // rows whose scores of all pieces exist at a time (backend/cpu/output_product.cpp)

// Activations that each decoder row needs during a step: the three sub-layers of a Transformer layer, one after the other. Those between
// the two products of a layer are sharded.
int64_t transformer_row(const ModelConfig& c, int64_t shards) {
  return c.decoder_layers * (6 * c.width + (8 * c.width + c.feed_forward) / shards) + 2 * c.width;
}

// Sets what rows take that are extended at once up to `length` tokens, each of which looks at one source; `looked_at` is the number of
// pairs of row and source token.
void count_steps(SearchNeed& need, const ModelConfig& config, int64_t length, int64_t tokens, int64_t looked_at, int64_t activation_bytes,
                 int64_t shards) {
  const int64_t D = config.width;
  if (architecture_of(config.preset) == Architecture::gnmt) {
    need.activations = need.rows * config.decoder_layers * D * (9 * activation_bytes + 20) + looked_at * 4;
    need.states = need.rows * config.decoder_layers * D * (activation_bytes + 4) + tokens * 2 * D * activation_bytes;
    return;
  }
  const int64_t pair = 2 * D / shards * activation_bytes;  // key and value
  // A recurrent unit keeps its cell state, one row of floats for each token of a hypothesis, where attention keeps keys and values.
  const int64_t own = config.autoregression == Autoregression::ssru ? D * 4 : pair;
  const int64_t source = 5 * D + (4 * D + config.feed_forward) / shards;
  need.activations = (need.rows * transformer_row(config, shards) + tokens * source) * activation_bytes;
  need.states = (need.rows * length * own + tokens * pair) * config.decoder_layers + need.rows * length * 12 + looked_at * 4;
}

}  // namespace

SearchNeed sum_of(std::span<const SearchNeed> needs) {
  SearchNeed sum;
  for (const SearchNeed& n : needs) {
    sum.rows += n.rows;
    sum.scores += n.scores;
    sum.activations += n.activations;
    sum.states += n.states;
  }
  return sum;
}

SearchNeed search_need(const ModelConfig& config, const ModelVocabulary& vocabulary, const SearchOptions& options, int64_t sentences,
                       int64_t tokens, int64_t activation_bytes, int64_t shards) {
  const int64_t V = (vocabulary.target_size + shards - 1) / shards, wide = options.beam;
  const double mean = static_cast<double>(tokens) / static_cast<double>(std::max<int64_t>(sentences, 1));
  const int64_t limit = length_limit(options.max_length_factor, options.max_length_offset, mean);
  const int64_t length = (options.fixed_length ? limit : std::min(limit, static_cast<int64_t>(mean) + 1)) +
                         static_cast<int64_t>(options.target_prefix_ids.size());
  SearchNeed need;
  need.rows = sentences * wide;
  const int64_t looked_at_tokens = std::min(continuations(options, vocabulary) + options.forbidden().most_after(length), V);
  need.scores = std::min(need.rows, kWholeRows) * V * 4 + need.rows * looked_at_tokens * 24;
  const int64_t looked_at = wide * tokens;  // pairs of hypothesis and source token
  count_steps(need, config, length, tokens, looked_at, activation_bytes, shards);
  need.states += need.rows * length * 24;  // the tree of prefixes
  if (options.coverage_penalty > 0 || options.alignment || options.attention) need.states += looked_at * 8;
  if (options.attention) need.states += looked_at * length * 4 + need.rows * length * 24;  // that of all tokens
  return need;
}

SearchNeed sampling_need(const ModelConfig& config, const ModelVocabulary& vocabulary, int64_t rows, int64_t samples, int64_t length,
                         int64_t tokens, int64_t activation_bytes) {
  SearchNeed need;
  need.rows = rows;
  need.scores = rows * vocabulary.target_size * 4;
  count_steps(need, config, length, tokens, samples * tokens, activation_bytes, 1);
  return need;
}

void require_memory(std::span<const SearchNeed> needs, const SearchOptions& options, int64_t sentences, const UsableMemory& memory,
                    int processes) {
  const SearchNeed sum = sum_of(needs);
  if (sum.total() <= memory.bytes / processes) return;
  const auto mebibytes = [](int64_t bytes) { return bytes >> 20; };
  const auto counted = [](int64_t n, const char* one, const char* more) { return fmt::format("{} {}", n, n == 1 ? one : more); };
  throw ResourceError(fmt::format(
      "a beam of {} for {} at a time on {} needs about {} MiB ({} hypotheses: scores {} MiB, activations {} MiB, caches {} "
      "MiB), but usable is {}{}; lower the beam (--beam, valid.beam), --batch-size or --threads",
      options.beam, counted(sentences, "sentence", "sentences"), counted(static_cast<int64_t>(needs.size()), "thread", "threads"),
      mebibytes(sum.total()), sum.rows, mebibytes(sum.scores), mebibytes(sum.activations), mebibytes(sum.states), memory.text(),
      processes == 1 ? "" : fmt::format(", for {} ranks on this host", processes)));
}

}  // namespace starling
