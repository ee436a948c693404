#include "data/batches.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "base/error.h"
#include "base/random.h"
#include "data/cut.h"
#include "data/last_sentence.h"

namespace starling {
namespace {

constexpr uint32_t kOrderStream = 0;                  // for the permutation of the epoch; corpus c chooses its samples with stream 1 + c
constexpr uint64_t kWindowStream = 1u << 31;          // for the order of batches within a window
constexpr uint64_t kCutSeed = 0x9e3779b97f4a7c15u;    // for subword sampling: multiplied by epoch + 1
constexpr uint64_t kNoiseSeed = 0xd1b54a32d192ed03u;  // for text noise: likewise

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
  Batch batch;
  batch.epoch = position_.epoch;
  batch.index = position_.index;
  int64_t before = -1;  // the corpus of the sample before
  for (const Sample& sample : window_.of(window_.order[static_cast<size_t>(in_window_)])) {
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
    if (options_.sampling.source) cut_anew(batch, sample.place);
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

// Cuts both sides of the last pair anew; its links follow.
void BatchStream::cut_anew(Batch& batch, int64_t place) const {
  const auto stream = 2 * static_cast<uint64_t>(place);
  const SubwordSampler &source = *options_.sampling.source, &target = *options_.sampling.target;
  const bool linked = !batch.link_offsets.empty();
  const auto copied = [&](const PackedTokens& side) {
    const std::span<const int32_t> tokens = last_sentence(side);
    return linked ? std::vector<int32_t>(tokens.begin(), tokens.end()) : std::vector<int32_t>();
  };
  const std::vector<int32_t> old_source = copied(batch.source), old_target = copied(batch.target);
  cut_anew(batch.source, source, stream);
  cut_anew(batch.target, target, stream + 1);
  if (!linked) return;
  const auto begin = batch.links.begin() + batch.link_offsets[batch.link_offsets.size() - 2];
  const std::vector<TokenLink> links = moved_links({begin, batch.links.end()}, source.places(old_source, last_sentence(batch.source)),
                                                   target.places(old_target, last_sentence(batch.target)));
  batch.links.erase(begin, batch.links.end());
  batch.links.insert(batch.links.end(), links.begin(), links.end());
  batch.link_offsets.back() = static_cast<int32_t>(batch.links.size());
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
    throw DataError(fmt::format("epoch {}, batch {} is not a valid position; the saved state is damaged: resume from another checkpoint",
                                position.epoch, position.index));
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

BatchStream::Survey BatchStream::survey(int64_t epoch_number) const {
  const Epoch epoch(*this, epoch_number);
  Window window;
  Survey survey;
  int64_t most = -1, longest = -1;
  for (int64_t i = 0; i < windows(epoch_number); ++i) {
    fill(epoch, i, window);
    int64_t in_window = 0;
    for (const int64_t batch : window.order) {
      int64_t tokens = 0, length = 0;
      for (const Sample& s : window.of(batch))
        tokens += s.lengths.source + s.lengths.target, length = std::max<int64_t>(length, s.lengths.target);
      const Place here{{epoch_number, survey.batches++}, i, in_window++};
      if (tokens > most) most = tokens, survey.most_tokens = here;
      if (length > longest) longest = length, survey.longest = here;
    }
  }
  return survey;
}

Batch BatchStream::look(const Place& place) const {
  BatchStream there = *this;
  there.position_ = place.position;
  there.window_index_ = place.window, there.in_window_ = place.in_window;
  there.loaded_ = false;
  return there.next();
}

}  // namespace starling
