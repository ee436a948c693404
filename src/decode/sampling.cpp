#include "decode/sampling.h"

#include <algorithm>

#include "base/error.h"
#include "base/random.h"

namespace starling {
namespace {

// Returns a uniform number in [0, 1) with 53 bits for one token of one sample.
double uniform(uint64_t key, int64_t id, int64_t sample, int64_t position) {
  const auto low = [](int64_t x) { return static_cast<uint32_t>(x); };
  const PhiloxBlock words = philox(key, {low(id), low(id >> 32), low(sample), low(position)});
  return static_cast<double>((uint64_t{words[1]} << 32 | words[0]) >> 11) * 0x1.0p-53;
}

// A sample in progress, and its row in the last step.
struct Live {
  int32_t sentence, sample, row = -1;
};

// The inputs of one decoding step, a row per live sample, in the order of the sentences.
struct Step {
  std::vector<int32_t> tokens, sentences, parents;
  std::vector<double> uniforms;
};

// Sets a token's probability to zero in logits [R, tokens of this shard].
void forbid(Backend& backend, const VocabularyShard& shard, int32_t token, const Tensor& logits) {
  const int64_t column = token - shard.first, R = logits.rows();
  if (column < 0 || column >= logits.columns()) return;
  const Tensor never({R, 1}, logits.dtype(), backend.memory());
  never.from_doubles(std::vector<double>(static_cast<size_t>(R), -1e30));
  backend.copy_columns(never, 0, logits, column, 1, Write::overwrite);
}

}  // namespace

int64_t length_limit(const SamplingOptions& options, int64_t source_tokens) {
  return std::max<int64_t>(
      1, static_cast<int64_t>(options.max_length_factor * static_cast<double>(source_tokens)) + options.max_length_offset);
}

std::vector<Samples> sample_translations(Model& model, const ModelVocabulary& vocabulary, const PackedTokens& sources,
                                         std::span<const int64_t> ids, const SamplingOptions& options) {
  const int64_t sentences = sources.sentences();
  CHECK(static_cast<int64_t>(ids.size()) == sentences, "{} ids for {} sentences", ids.size(), sentences);
  std::vector<Samples> results(static_cast<size_t>(sentences), Samples(static_cast<size_t>(options.samples)));
  std::vector<int64_t> limits;
  std::vector<Live> live;
  for (int32_t b = 0; b < sentences; ++b) {
    limits.push_back(length_limit(options, sources.offsets[static_cast<size_t>(b) + 1] - sources.offsets[static_cast<size_t>(b)]));
    for (int32_t k = 0; k < options.samples; ++k) live.push_back({b, k});
  }
  if (live.empty()) return results;
  const std::unique_ptr<DecodeState> state = model.begin_decoding();
  const std::vector<int32_t> numbers = model.encode(*state, sources);
  const auto tokens_of = [&](const Live& l) -> std::vector<int32_t>& {
    return results[static_cast<size_t>(l.sentence)][static_cast<size_t>(l.sample)];
  };
  std::vector<int32_t> drawn;
  for (int64_t position = 0; !live.empty(); ++position) {
    Step step;
    for (Live& l : live) {
      step.tokens.push_back(position == 0 ? vocabulary.begin : tokens_of(l).back());
      step.sentences.push_back(numbers[static_cast<size_t>(l.sentence)]);
      step.parents.push_back(l.row);
      step.uniforms.push_back(uniform(options.key, ids[static_cast<size_t>(l.sentence)], options.first + l.sample, position));
      l.row = static_cast<int32_t>(step.tokens.size()) - 1;
    }
    Backend& backend = model.parameters().backend();
    const Tensor logits = logits_of(backend, model.next_output(*state, step.tokens, step.sentences, step.parents));
    if (!options.allow_unknown && vocabulary.unknown >= 0) forbid(backend, model.output_shard(), vocabulary.unknown, logits);
    if (vocabulary.padding >= 0) forbid(backend, model.output_shard(), vocabulary.padding, logits);
    const Tensor tokens({logits.rows()}, DType::i32, backend.memory());
    sample(backend, logits, model.output_shard(), {std::move(step.uniforms), backend.memory()}, tokens);
    drawn.resize(live.size());
    tokens.read<int32_t>(drawn);
    for (const Live& l : live) tokens_of(l).push_back(drawn[static_cast<size_t>(l.row)]);
    std::erase_if(live, [&](const Live& l) {
      return tokens_of(l).back() == vocabulary.end || position + 1 == limits[static_cast<size_t>(l.sentence)];
    });
  }
  return results;
}

}  // namespace starling
