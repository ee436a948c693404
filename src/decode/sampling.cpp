#include "decode/sampling.h"

#include <algorithm>
#include <cmath>

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

// The inputs of one decoding step, a row per live sample, in the order of the sentences, and what must not be drawn in each row.
struct Step {
  std::vector<int32_t> tokens, sentences, parents;
  std::vector<double> uniforms;
  std::vector<std::vector<int32_t>> forbidden;  // after the row's prefix; empty if no rule depends on that
};

// Sets a token's probability to zero in logits [R, tokens of this shard].
void forbid(Backend& backend, const VocabularyShard& shard, int32_t token, const Tensor& logits) {
  const int64_t column = token - shard.first, R = logits.rows();
  if (column < 0 || column >= logits.columns()) return;
  const Tensor never({R, 1}, logits.dtype(), backend.memory());
  never.from_doubles(std::vector<double>(static_cast<size_t>(R), -1e30));
  backend.copy_columns(never, 0, logits, column, 1, Write::overwrite);
}

// Whether a sample with these tokens may not end yet.
bool too_short(std::span<const int32_t> tokens, const SamplingOptions& o) {
  const auto shows = [&](int32_t token) { return std::find(o.blank.begin(), o.blank.end(), token) == o.blank.end(); };
  return std::count_if(tokens.begin(), tokens.end(), shows) < o.min_length;
}

// What a step draws: a token of each row and, if asked for, its log-probability.
struct Drawn {
  std::vector<int32_t> tokens;
  std::vector<double> log_probabilities;
};

class Drawer {
 public:
  Drawer(Model& model, const ModelVocabulary& vocabulary, const SamplingOptions& options, bool with_probabilities)
      : backend_(model.parameters().backend()),
        shard_(model.output_shard()),
        options_(options),
        never_(options.forbidden.always()),
        with_probabilities_(with_probabilities) {
    if (!options.allow_unknown && vocabulary.unknown >= 0 && !options.forbidden.always(vocabulary.unknown))
      never_.push_back(vocabulary.unknown);
    if (vocabulary.padding >= 0 && !options.forbidden.always(vocabulary.padding)) never_.push_back(vocabulary.padding);
  }

  void draw(const OutputProduct& output, Step& step, Drawn& drawn) const {
    if (options_.top_k > 0 || options_.top_p < 1)
      draw_from_best(output, step, drawn);
    else
      draw_from_all(output, step, drawn);
  }

 private:
  void draw_from_all(const OutputProduct& output, Step& step, Drawn& drawn) const {
    const Tensor logits = logits_of(backend_, output);
    const int64_t R = logits.rows();
    Tensor own;  // the model's, which what follows changes
    if (with_probabilities_) {
      own = Tensor({R, logits.columns()}, logits.dtype(), backend_.memory());
      own.copy_from(logits);
    }
    for (const int32_t token : never_) forbid(backend_, shard_, token, logits);
    for (size_t r = 0; r < step.forbidden.size(); ++r)
      for (const int32_t token : step.forbidden[r])
        forbid(backend_, shard_, token, logits.rows(static_cast<int64_t>(r), static_cast<int64_t>(r) + 1));
    if (options_.temperature != 1) backend_.flat().scale(logits, 1 / options_.temperature, logits, Write::overwrite);
    const Tensor tokens({R}, DType::i32, backend_.memory());
    sample(backend_, logits, shard_, {std::move(step.uniforms), backend_.memory()}, tokens);
    drawn.tokens.resize(static_cast<size_t>(R));
    tokens.read<int32_t>(drawn.tokens);
    if (!with_probabilities_) return;
    const LossRows rows{{drawn.tokens, backend_.memory()}};
    const Tensor loss({R, rows.columns()}, backend_.parameter(), backend_.memory());
    backend_.smoothed_loss(own, rows, loss, {});
    const std::vector<double> losses = loss.to_doubles();
    drawn.log_probabilities.clear();
    for (int64_t r = 0; r < R; ++r) drawn.log_probabilities.push_back(-losses[static_cast<size_t>(rows.columns() * r + 1)]);
  }

  void draw_from_best(const OutputProduct& output, const Step& step, Drawn& drawn) const {
    size_t most_forbidden = 0;
    for (const auto& tokens : step.forbidden) most_forbidden = std::max(most_forbidden, tokens.size());
    const int64_t all = is_spread(shard_.group) ? shard_.vocabulary : output.w->out;
    const int64_t top_k = options_.top_k > 0 ? std::min(options_.top_k, all) : all;
    const int64_t k = std::min(top_k + static_cast<int64_t>(never_.size() + most_forbidden), all);
    std::vector<float> values;
    std::vector<int32_t> best;
    log_softmax_top_k(backend_, output, shard_, k, values, best);
    drawn.tokens.clear();
    drawn.log_probabilities.clear();
    for (size_t r = 0; r < step.tokens.size(); ++r) {
      std::vector<size_t> allowed;
      for (size_t i = r * static_cast<size_t>(k); i < (r + 1) * static_cast<size_t>(k); ++i)
        if (static_cast<int64_t>(allowed.size()) < top_k && !forbidden(step, r, best[i])) allowed.push_back(i);
      CHECK(!allowed.empty(), "all of {} tokens are forbidden", k);
      std::vector<double> sums;  // of the probabilities, relative to the first
      for (const size_t i : allowed)
        sums.push_back((sums.empty() ? 0 : sums.back()) + std::exp((values[i] - values[allowed[0]]) / options_.temperature));
      const double enough = options_.top_p * sums.back();
      while (options_.top_p < 1 && sums.size() > 1 && sums[sums.size() - 2] >= enough) sums.pop_back();
      const auto at = std::upper_bound(sums.begin(), sums.end() - 1, step.uniforms[r] * sums.back()) - sums.begin();
      drawn.tokens.push_back(best[allowed[static_cast<size_t>(at)]]);
      drawn.log_probabilities.push_back(values[allowed[static_cast<size_t>(at)]]);
    }
  }

  bool forbidden(const Step& step, size_t row, int32_t token) const {
    return std::find(never_.begin(), never_.end(), token) != never_.end() ||
           (!step.forbidden.empty() && std::binary_search(step.forbidden[row].begin(), step.forbidden[row].end(), token));
  }

  Backend& backend_;
  const VocabularyShard shard_;
  const SamplingOptions& options_;
  std::vector<int32_t> never_;
  const bool with_probabilities_;
};

}  // namespace

std::vector<Samples> sample_translations(Model& model, const ModelVocabulary& vocabulary, const PackedTokens& sources,
                                         std::span<const int64_t> ids, const SamplingOptions& options,
                                         std::vector<SampleScores>* log_probabilities, const std::function<void()>& each_step) {
  const int64_t sentences = sources.sentences(), given = static_cast<int64_t>(options.prefix.size());
  const int64_t longest = longest_sentence(model.config());
  CHECK(static_cast<int64_t>(ids.size()) == sentences, "{} ids for {} sentences", ids.size(), sentences);
  std::vector<Samples> results(static_cast<size_t>(sentences), Samples(static_cast<size_t>(options.samples)));
  if (log_probabilities) log_probabilities->assign(static_cast<size_t>(sentences), SampleScores(static_cast<size_t>(options.samples)));
  std::vector<int64_t> limits;
  std::vector<Live> live;
  for (int32_t b = 0; b < sentences; ++b) {
    const int64_t tokens = sources.offsets[static_cast<size_t>(b) + 1] - sources.offsets[static_cast<size_t>(b)];
    const auto source_tokens = static_cast<double>(tokens - (model.config().source_end ? 0 : 1));
    limits.push_back(std::min(length_limit(options.max_length_factor, options.max_length_offset, source_tokens) + given, longest));
    for (int32_t k = 0; k < options.samples; ++k) live.push_back({b, k});
  }
  if (live.empty()) return results;
  const std::unique_ptr<DecodeState> state = model.begin_decoding();
  const std::vector<int32_t> numbers = model.encode(*state, sources);
  const auto tokens_of = [&](const Live& l) -> std::vector<int32_t>& {
    return results[static_cast<size_t>(l.sentence)][static_cast<size_t>(l.sample)];
  };
  const Drawer drawer(model, vocabulary, options, log_probabilities != nullptr);
  Drawn drawn;
  for (int64_t position = 0; !live.empty(); ++position) {
    if (each_step) each_step();
    Step step;
    for (Live& l : live) {
      step.tokens.push_back(position == 0 ? vocabulary.begin : tokens_of(l).back());
      step.sentences.push_back(numbers[static_cast<size_t>(l.sentence)]);
      step.parents.push_back(l.row);
      step.uniforms.push_back(uniform(options.key, ids[static_cast<size_t>(l.sentence)], options.first + l.sample, position));
      l.row = static_cast<int32_t>(step.tokens.size()) - 1;
      if (options.forbidden.depend_on_prefix() || options.min_length > 0) {
        std::vector<int32_t>& never = step.forbidden.emplace_back();
        options.forbidden.append_after(tokens_of(l), never);
        if (too_short(std::span(tokens_of(l)).subspan(static_cast<size_t>(std::min(given, position))), options))
          never.insert(std::upper_bound(never.begin(), never.end(), vocabulary.end), vocabulary.end);
      }
    }
    const OutputProduct output = model.next_output(*state, step.tokens, step.sentences, step.parents);
    if (position < given) {
      for (const Live& l : live) tokens_of(l).push_back(options.prefix[static_cast<size_t>(position)]);
      continue;
    }
    drawer.draw(output, step, drawn);
    for (const Live& l : live) {
      tokens_of(l).push_back(drawn.tokens[static_cast<size_t>(l.row)]);
      if (log_probabilities)
        (*log_probabilities)[static_cast<size_t>(l.sentence)][static_cast<size_t>(l.sample)].push_back(
            static_cast<float>(drawn.log_probabilities[static_cast<size_t>(l.row)]));
    }
    std::erase_if(live, [&](const Live& l) {
      const int32_t token = tokens_of(l).back();
      const bool last = token == vocabulary.end || position + 1 == limits[static_cast<size_t>(l.sentence)];
      if (!options.told) return last;
      const double log_probability = log_probabilities ? drawn.log_probabilities[static_cast<size_t>(l.row)] : 0;
      return !options.told({l.sentence, l.sample, token, log_probability, last}) || last;
    });
  }
  for (Samples& samples : results)
    for (std::vector<int32_t>& tokens : samples) tokens.erase(tokens.begin(), tokens.begin() + given);
  return results;
}

}  // namespace starling
