// Training, gradient accumulation and validation all cut batches in the same way: see cut() below.
#include "data/batches.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "base/error.h"
#include "base/random.h"
#include "data/last_sentence.h"

namespace starling {
namespace {

constexpr uint32_t kOrderStream = 0;                   // for the permutation of the epoch; corpus c chooses its samples with stream 1 + c
constexpr uint64_t kWindowStream = 1u << 31;           // for the order of batches within a window
constexpr uint64_t kCutSeed = 0x9e3779b97f4a7c15u;     // for subword sampling: multiplied by epoch + 1
constexpr uint64_t kNoiseSeed = 0xd1b54a32d192ed03u;   // for text noise: likewise
constexpr int64_t kMaxBatchTokens = int64_t{1} << 28;  // offsets are int32 and source sides may be larger

struct Limits {
  int64_t target, source;
};

// Cuts in one pass: batches within the limits, each ending near the end of its share of all target tokens.
template <class LengthsOf>
std::vector<int64_t> cut_into(int64_t count, const LengthsOf& lengths_of, Limits limits, int64_t parts, int64_t total) {
  std::vector<int64_t> cuts{0};
  int64_t source = 0, target = 0, done = 0;  // of the open batch; target tokens before it and in it
  for (int64_t i = 0; i < count; ++i) {
    const PairLengths lengths = lengths_of(i);
    // Share k ends at total * k / parts; a sentence that crosses this point goes to the side with more of its tokens.
    const auto share = static_cast<double>(total) * static_cast<double>(cuts.size()) / static_cast<double>(parts);
    const bool full = target + lengths.target > limits.target || source + lengths.source > limits.source;
    const bool share_reached = static_cast<double>(done) + 0.5 * lengths.target > share;
    if (i > cuts.back() && (full || share_reached)) {
      cuts.push_back(i);
      source = target = 0;
    }
    source += lengths.source;
    target += lengths.target;
    done += lengths.target;
  }
  if (count > 0) cuts.push_back(count);
  return cuts;
}

// Cuts sentences 0..count-1 into as few runs as possible, within the limits and about equal in target tokens: raises the number of parts
// until the cut has no more than that.
template <class LengthsOf>
std::vector<int64_t> cut(int64_t count, const LengthsOf& lengths_of, Limits limits) {
  int64_t total = 0;
  for (int64_t i = 0; i < count; ++i) total += lengths_of(i).target;
  int64_t parts = std::max<int64_t>(1, (total + limits.target - 1) / limits.target);
  std::vector<int64_t> cuts;
  for (int tries = 0; tries < 4; ++tries) {
    cuts = cut_into(count, lengths_of, limits, parts, total);
    const auto obtained = static_cast<int64_t>(cuts.size()) - 1;
    if (obtained <= parts) break;
    parts = obtained;
  }
  return cuts;
}

Limits limits_of(int64_t batch_tokens, double source_factor) {
  if (batch_tokens < 1 || batch_tokens > kMaxBatchTokens)
    throw ConfigError(fmt::format("a batch of {} target tokens is not possible; choose 1 to {}, e.g. 4000", batch_tokens, kMaxBatchTokens));
  return {batch_tokens, static_cast<int64_t>(static_cast<double>(batch_tokens) * source_factor)};
}

std::vector<double> checked_weights(const TokenStore& store, const std::vector<double>& weights) {
  if (weights.empty()) return std::vector<double>(static_cast<size_t>(store.corpora()), 1.0);
  if (static_cast<int64_t>(weights.size()) != store.corpora())
    throw ConfigError(fmt::format("{} weights for {} corpora; give one for each", weights.size(), store.corpora()));
  for (const double weight : weights)
    if (!std::isfinite(weight) || weight < 0 || weight > 1e4)
      throw ConfigError(fmt::format("a corpus weight is {}; choose 0 to 10000", weight));
  return weights;
}

std::string nothing_left(const FilterCounts& counts) {
  return fmt::format(
      "no training sentence is left: of {} pairs, {} were empty, {} too long, {} too different in length, {} kept; loosen the filters, "
      "or give a corpus a weight above 0",
      counts.total, counts.empty, counts.too_long, counts.ratio, counts.kept);
}

}  // namespace

// Maps positions in an epoch to pairs of the store.
class BatchStream::Epoch {
 public:
  Epoch(const BatchStream& stream, int64_t epoch)
      : number_(epoch),
        corpora_(stream.stages_[stream.stage_of(epoch)].corpora),
        order_(static_cast<uint64_t>(stream.stages_[stream.stage_of(epoch)].samples), stream.options_.seed, kOrderStream,
               static_cast<uint64_t>(epoch)) {
    for (size_t c = 0; c < corpora_.size(); ++c)
      choice_.emplace_back(static_cast<uint64_t>(std::max<int64_t>(1, corpora_[c].size)), stream.options_.seed,
                           static_cast<uint32_t>(1 + c), static_cast<uint64_t>(epoch));
  }

  int64_t number() const { return number_; }

  int64_t pair_at(int64_t place) const {
    const auto sample = static_cast<int64_t>(order_(static_cast<uint64_t>(place)));
    size_t c = corpora_.size() - 1;
    while (corpora_[c].first > sample) --c;
    const Corpus& corpus = corpora_[c];
    const int64_t within = (sample - corpus.first) % corpus.size;
    // A corpus shown whole needs no choice; otherwise the first samples of a permutation are a choice without replacement.
    if (corpus.samples == corpus.size) return corpus.begin + within;
    return corpus.begin + static_cast<int64_t>(choice_[c](static_cast<uint64_t>(within)));
  }

 private:
  int64_t number_;
  const std::vector<Corpus>& corpora_;
  Permutation order_;
  std::vector<Permutation> choice_;
};

BatchStream::BatchStream(const TokenStore& store, const BatchOptions& options)
    : store_(&store), options_(options), entered_(options.first_epoch), position_{options.first_epoch, 0} {
  limits_of(options.batch_tokens, options.max_source_factor);
  if (!(options.max_source_factor >= 0.01 && options.max_source_factor <= 100))
    throw ConfigError(fmt::format("the source factor is {}; choose 0.01 to 100, e.g. 2", options.max_source_factor));
  if (options.window_batches < 1 || options.window_batches > 1'000'000)
    throw ConfigError(fmt::format("a window of {} batches is not possible; choose 1 to 1000000, e.g. 64", options.window_batches));
  if (options.stages.empty())
    stages_.push_back(make_stage(options.weights));
  else
    add_stages();
}

BatchStream::Stage BatchStream::make_stage(const std::vector<double>& given) const {
  const std::vector<double> weights = checked_weights(*store_, given);
  Stage stage;
  for (int64_t c = 0; c < store_->corpora(); ++c) {
    const int64_t size = store_->corpus_size(c);
    const int64_t samples = std::llround(weights[static_cast<size_t>(c)] * static_cast<double>(size));
    if (samples > 0) stage.corpora.push_back({store_->corpus_begin(c), size, samples, stage.samples, static_cast<size_t>(c)});
    stage.samples += samples;
  }
  if (stage.samples == 0) throw DataError(nothing_left(store_->counts()));
  stage.last_samples = stage.samples;
  // A window holds about window_batches batches. Its number of sentences is fixed, so that a window can be located without reading.
  const double tokens_a_side = std::max(1.0, static_cast<double>(store_->tokens()) / 2 / static_cast<double>(store_->size()));
  const double wanted = static_cast<double>(options_.window_batches) * static_cast<double>(options_.batch_tokens) / tokens_a_side;
  stage.window_samples = std::clamp<int64_t>(std::llround(wanted), 1, std::min<int64_t>(stage.samples, int64_t{1} << 26));
  return stage;
}

void BatchStream::add_stages() {
  std::vector<double> mean(static_cast<size_t>(store_->corpora()));  // target tokens of a pair, by corpus
  for (int64_t c = 0; c < store_->corpora(); ++c) {
    double sum = 0;
    for (int64_t i = 0; i < store_->corpus_size(c); ++i) sum += store_->lengths(store_->corpus_begin(c) + i).target;
    if (store_->corpus_size(c) > 0) mean[static_cast<size_t>(c)] = sum / static_cast<double>(store_->corpus_size(c));
  }
  int64_t epoch = 0;
  for (const CurriculumStage& each : options_.stages) {
    Stage stage = make_stage(each.weights);
    stage.first_epoch = epoch;
    double tokens = 0;  // of an epoch
    for (const Corpus& corpus : stage.corpora) tokens += mean[corpus.index] * static_cast<double>(corpus.samples);
    if (&each != &options_.stages.back()) {
      const double samples = std::max(1.0, each.target_tokens / tokens * static_cast<double>(stage.samples));
      const auto whole = static_cast<int64_t>(samples) / stage.samples;
      stage.last_samples = std::llround(samples - static_cast<double>(whole * stage.samples));
      epoch += whole + (stage.last_samples > 0);
      if (stage.last_samples == 0) stage.last_samples = stage.samples;
    }
    stages_.push_back(std::move(stage));
  }
}

size_t BatchStream::stage_of(int64_t epoch) const {
  size_t stage = stages_.size() - 1;
  while (stages_[stage].first_epoch > epoch) --stage;
  return stage;
}

int64_t BatchStream::samples(int64_t epoch) const {
  const size_t stage = stage_of(epoch);
  const bool last = stage + 1 < stages_.size() && stages_[stage + 1].first_epoch == epoch + 1;
  return last ? stages_[stage].last_samples : stages_[stage].samples;
}

int64_t BatchStream::windows(int64_t epoch) const {
  const int64_t each = stages_[stage_of(epoch)].window_samples;
  return (samples(epoch) + each - 1) / each;
}

void BatchStream::fill(const Epoch& epoch, int64_t window, Window& to) const {
  const int64_t each = stages_[stage_of(epoch.number())].window_samples;
  const int64_t begin = window * each, end = std::min(begin + each, samples(epoch.number()));
  to.samples.clear();
  for (int64_t place = begin; place < end; ++place) {
    const int64_t pair = epoch.pair_at(place);
    to.samples.push_back({place, pair, store_->lengths(pair)});
  }
  std::sort(to.samples.begin(), to.samples.end(), [](const Sample& a, const Sample& b) {
    return std::tie(a.lengths.target, a.lengths.source, a.place) < std::tie(b.lengths.target, b.lengths.source, b.place);
  });
  const auto lengths_of = [&](int64_t i) { return to.samples[static_cast<size_t>(i)].lengths; };
  to.cuts = cut(end - begin, lengths_of, limits_of(options_.batch_tokens, options_.max_source_factor));
  to.order.resize(static_cast<size_t>(to.batches()));
  std::iota(to.order.begin(), to.order.end(), int64_t{0});
  Random random(options_.seed, ((kWindowStream | static_cast<uint64_t>(epoch.number())) << 32) | static_cast<uint64_t>(window));
  for (size_t i = to.order.size(); i > 1; --i) std::swap(to.order[i - 1], to.order[random.below(i)]);
}

// Takes the text of an epoch.
void BatchStream::enter(int64_t epoch) {
  if (!options_.store_of || entered_ == epoch) return;
  store_ = &options_.store_of(epoch);
  stages_ = {make_stage(options_.weights)};
  entered_ = epoch;
}

Batch BatchStream::next() {
  if (!loaded_) {
    enter(position_.epoch);
    fill(Epoch(*this, position_.epoch), window_index_, window_);
    loaded_ = true;
  }
  const int64_t batch_index = window_.order[static_cast<size_t>(in_window_)];
  Batch batch;
  batch.epoch = position_.epoch;
  batch.index = position_.index;
  int64_t before = -1;  // the corpus of the sample before
  for (int64_t i = window_.cuts[static_cast<size_t>(batch_index)]; i < window_.cuts[static_cast<size_t>(batch_index) + 1]; ++i) {
    const Sample& sample = window_.samples[static_cast<size_t>(i)];
    store_->append(sample.pair, batch.source, batch.target);
    batch.sample_ids.push_back(sample.place);
    if (store_->weighted()) batch.weights.push_back(store_->weight(sample.pair));
    if (options_.guide > 0 && store_->linked()) {
      batch.guide = options_.guide;
      if (batch.link_offsets.empty()) batch.link_offsets.push_back(0);
      store_->append_links(sample.pair, batch.links);
      batch.link_offsets.push_back(static_cast<int32_t>(batch.links.size()));
    }
    bool joined = false;
    const int64_t corpus = options_.noise ? corpus_of(sample.pair) : 0;
    if (options_.noise) {
      Random random(options_.seed + kNoiseSeed * static_cast<uint64_t>(position_.epoch + 1), static_cast<uint64_t>(sample.place));
      joined = options_.noise->change_last(batch, corpus, random) && before == corpus;
      before = corpus;
    }
    if (options_.sampling.source) {
      const auto stream = 2 * static_cast<uint64_t>(sample.place);
      cut_anew(batch.source, *options_.sampling.source, stream);
      cut_anew(batch.target, *options_.sampling.target, stream + 1);
    }
    if (joined) options_.noise->join_last(batch, corpus);
  }
  advance();
  return batch;
}

int64_t BatchStream::corpus_of(int64_t pair) const {
  int64_t corpus = store_->corpora() - 1;
  while (store_->corpus_begin(corpus) > pair) --corpus;
  return corpus;
}

// Cuts the last sentence of a side anew.
void BatchStream::cut_anew(PackedTokens& side, const SubwordSampler& sampler, uint64_t stream) const {
  Random random(options_.seed + kCutSeed * static_cast<uint64_t>(position_.epoch + 1), stream);
  const std::vector<int32_t> ids = sampler.sample(last_sentence(side), random);
  if (static_cast<int64_t>(ids.size()) <= options_.sampling.max_length) replace_last_sentence(side, ids);
}

void BatchStream::advance() {
  ++position_.index;
  if (++in_window_ < window_.batches()) return;
  in_window_ = 0;
  loaded_ = false;
  if (++window_index_ < windows(position_.epoch)) return;
  window_index_ = 0;
  position_ = {position_.epoch + 1, 0};
}

void BatchStream::seek(const BatchPosition& position) {
  if (position.epoch < 0 || position.index < 0)
    throw DataError(fmt::format("epoch {}, batch {} is not a valid position; the saved state is damaged", position.epoch, position.index));
  loaded_ = false;
  if (options_.store_of && position.index == 0) {  // whose text may not be there yet
    position_ = position;
    window_index_ = in_window_ = 0;
    return;
  }
  enter(position.epoch);
  const Epoch epoch(*this, position.epoch);
  int64_t passed = 0;
  for (int64_t window = 0; window < windows(position.epoch); ++window) {
    fill(epoch, window, window_);
    if (position.index < passed + window_.batches()) {
      position_ = position;
      window_index_ = window;
      in_window_ = position.index - passed;
      loaded_ = true;
      return;
    }
    passed += window_.batches();
  }
  if (position.index > passed)
    throw DataError(
        fmt::format("epoch {} has {} batches, so there is no batch {}; the saved position belongs to other data or another batch size",
                    position.epoch, passed, position.index));
  position_ = {position.epoch + 1, 0};
  window_index_ = in_window_ = 0;
}

int64_t BatchStream::count_batches(int64_t epoch_number) const {
  const Epoch epoch(*this, epoch_number);
  Window window;
  int64_t batches = 0;
  for (int64_t i = 0; i < windows(epoch_number); ++i) {
    fill(epoch, i, window);
    batches += window.batches();
  }
  return batches;
}

namespace {

PairLengths lengths_in(const Batch& batch, int64_t i) {
  const auto length = [&](const PackedTokens& side) {
    return side.offsets[static_cast<size_t>(i) + 1] - side.offsets[static_cast<size_t>(i)];
  };
  return {length(batch.source), length(batch.target)};
}

// Appends sentences [begin, end) of a batch to those of another.
void add_sentences(const Batch& batch, int64_t begin, int64_t end, Batch& all) {
  all.sample_ids.insert(all.sample_ids.end(), batch.sample_ids.begin() + begin, batch.sample_ids.begin() + end);
  if (!batch.weights.empty()) all.weights.insert(all.weights.end(), batch.weights.begin() + begin, batch.weights.begin() + end);
  if (!batch.link_offsets.empty()) {
    if (all.link_offsets.empty()) all.link_offsets.assign(static_cast<size_t>(all.target.sentences()) + 1, 0);
    for (int64_t i = begin; i < end; ++i) {
      const auto from = batch.links.begin() + batch.link_offsets[static_cast<size_t>(i)],
                 to = batch.links.begin() + batch.link_offsets[static_cast<size_t>(i) + 1];
      all.links.insert(all.links.end(), from, to);
      all.link_offsets.push_back(static_cast<int32_t>(all.links.size()));
    }
  }
  for (int64_t i = begin; i < end; ++i)
    for (const auto& [from, to] : {std::pair(&batch.source, &all.source), std::pair(&batch.target, &all.target)})
      to->append(from->tokens.data() + from->offsets[static_cast<size_t>(i)],
                 from->tokens.data() + from->offsets[static_cast<size_t>(i) + 1]);
}

Batch sentences_of(const Batch& batch, int64_t begin, int64_t end) {
  Batch part;
  part.epoch = batch.epoch;
  part.index = batch.index;
  part.guide = batch.guide;
  add_sentences(batch, begin, end, part);
  return part;
}

}  // namespace

void append(Batch& to, const Batch& more) {
  if (to.weights.empty() && !more.weights.empty()) to.weights.assign(to.sample_ids.size(), 1.0f);
  const size_t before = to.sample_ids.size();
  add_sentences(more, 0, more.target.sentences(), to);
  if (!to.weights.empty()) to.weights.resize(before + more.sample_ids.size(), 1.0f);
  if (!to.link_offsets.empty()) to.link_offsets.resize(to.sample_ids.size() + 1, static_cast<int32_t>(to.links.size()));
  to.guide = std::max(to.guide, more.guide);
}

std::vector<Batch> split(const Batch& batch, int64_t max_target_tokens, int64_t max_source_tokens) {
  CHECK(max_target_tokens > 0 && max_source_tokens > 0, "{} and {} tokens", max_target_tokens, max_source_tokens);
  const auto lengths_of = [&](int64_t i) { return lengths_in(batch, i); };
  const std::vector<int64_t> cuts = cut(batch.target.sentences(), lengths_of, {max_target_tokens, max_source_tokens});
  std::vector<Batch> parts;
  for (size_t k = 0; k + 1 < cuts.size(); ++k) parts.push_back(sentences_of(batch, cuts[k], cuts[k + 1]));
  return parts;
}

Batch slice_for_rank(const Batch& batch, int index, int count, double source_weight, double target_weight) {
  CHECK(0 <= index && index < count, "part {} of {}", index, count);
  if (count == 1) return batch;
  return share_between(batch, index, index + 1, count, source_weight, target_weight);
}

Batch share_between(const Batch& batch, double from, double to, double whole, double source_weight, double target_weight) {
  const int64_t sentences = batch.target.sentences();
  const double total =
      source_weight * static_cast<double>(batch.source.count()) + target_weight * static_cast<double>(batch.target.count());
  // Sentence i belongs to the part that contains the midpoint of its cost.
  int64_t begin = sentences, end = sentences;
  double before = 0;
  for (int64_t i = 0; i < sentences; ++i) {
    const PairLengths lengths = lengths_in(batch, i);
    const double cost = source_weight * lengths.source + target_weight * lengths.target;
    const double at = (before + 0.5 * cost) / total * whole;
    if (begin == sentences && at >= from) begin = i;
    if (at >= to) {
      end = i;
      break;
    }
    before += cost;
  }
  return sentences_of(batch, begin, std::max(begin, end));
}

std::vector<Batch> split(const Batch& batch, int64_t max_target_tokens) { return split(batch, max_target_tokens, 2 * max_target_tokens); }

std::vector<Batch> make_batches(std::span<const EncodedPair> pairs, int64_t batch_tokens) {
  std::vector<int64_t> order(pairs.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto lengths_of_pair = [&](int64_t i) {
    const EncodedPair& pair = pairs[static_cast<size_t>(i)];
    return PairLengths{static_cast<int32_t>(pair.source.size()), static_cast<int32_t>(pair.target.size())};
  };
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    const PairLengths x = lengths_of_pair(a), y = lengths_of_pair(b);
    return std::tie(x.target, x.source) < std::tie(y.target, y.source);
  });
  const auto lengths_of = [&](int64_t i) { return lengths_of_pair(order[static_cast<size_t>(i)]); };
  const std::vector<int64_t> cuts = cut(static_cast<int64_t>(pairs.size()), lengths_of, limits_of(batch_tokens, 2));
  std::vector<Batch> batches;
  for (size_t k = 0; k + 1 < cuts.size(); ++k) {
    Batch& batch = batches.emplace_back();
    batch.index = static_cast<int64_t>(k);
    for (int64_t i = cuts[k]; i < cuts[k + 1]; ++i) {
      const int64_t id = order[static_cast<size_t>(i)];
      const EncodedPair& pair = pairs[static_cast<size_t>(id)];
      batch.source.append(pair.source.data(), pair.source.data() + pair.source.size());
      batch.target.append(pair.target.data(), pair.target.data() + pair.target.size());
      batch.sample_ids.push_back(id);
    }
  }
  return batches;
}

}  // namespace starling
