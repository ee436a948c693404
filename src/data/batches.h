// Batches of packed tokens in a seeded order. The order of an epoch is a computed permutation of the samples, never a stored list. Windows
// of it are sorted by length, cut into batches and shuffled, so that memory is bounded by a window however large the corpus is.
// Everything is a pure function of (store, options, epoch, index): workers and resumed runs need only a position.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/batch.h"
#include "data/permutation.h"
#include "data/text_noise.h"
#include "data/token_store.h"
#include "data/tokenize.h"
#include "text/subword_sampler.h"

namespace starling {

// How the words of a batch are segmented again (subword regularisation). The stored tokens decide which sentences form a batch, so a batch
// has the same sentences, a few tokens longer. A side that would exceed `max_length` keeps its stored tokens.
struct SubwordSampling {
  std::shared_ptr<const SubwordSampler> source, target;  // null: the tokens as stored
  int64_t max_length = 256;
};

// A part of the training during which corpora have other weights. A stage has whole epochs and a last one that is cut short where its
// target tokens are used up; subword sampling is not counted.
struct CurriculumStage {
  std::vector<double> weights;  // by corpus
  double target_tokens = 0;     // of the stage; the last stage never ends
};

struct BatchOptions {
  int64_t batch_tokens = 4000;   // target tokens per batch, never exceeded except by a single longer sentence
  double max_source_factor = 2;  // source tokens per batch: at most this times batch_tokens
  int64_t window_batches = 64;   // batches sorted and cut together; larger: more even lengths, more memory
  uint64_t seed = 1;
  std::vector<double> weights;          // by corpus; empty: 1 for each
  std::vector<CurriculumStage> stages;  // in place of weights
  // Where each epoch has a text of its own: returns its store, which must live as long as the epoch. Without stages.
  std::function<const TokenStore&(int64_t epoch)> store_of;
  int64_t first_epoch = 0;  // the epoch of the first store, with store_of
  SubwordSampling sampling;
  std::shared_ptr<const TextNoise> noise;  // null: sentences as they are stored; drawn before subword sampling
  double guide = 0;                        // Batch::guide, where the store has links
};

struct BatchPosition {
  int64_t epoch = 0;  // 0-based
  int64_t index = 0;  // batch within the epoch, 0-based
  bool operator==(const BatchPosition&) const = default;
};

class BatchStream {
 public:
  /// Reads from `store`, which must outlive the stream. Throws ConfigError for impossible options, DataError if no sample is left.
  BatchStream(const TokenStore& store, const BatchOptions& options);

  /// Returns the next batch; epochs follow each other without end.
  Batch next();

  /// The position of the next batch: save it in a checkpoint and pass it to seek() to resume. At the end of an epoch it is {epoch + 1, 0}.
  BatchPosition position() const { return position_; }
  /// Continues at any position. Costs reading and sorting the lengths of the epoch up to there; no tokens are read. Throws DataError if the
  /// epoch has fewer batches: the position then belongs to other data or options.
  void seek(const BatchPosition& position);

  const TokenStore& store() const { return *store_; }
  int64_t samples_per_epoch() const { return stages_.front().samples; }  // of the first stage
  struct Place {
    BatchPosition position;
    int64_t window = 0, in_window = 0;
  };
  struct Survey {
    int64_t batches = 0;
    Place most_tokens, longest;  // the batch with the most tokens, and the one that has the longest target
  };
  /// Looks at all batches of an epoch; costs a pass over its lengths.
  Survey survey(int64_t epoch) const;
  /// Returns the batch at a place; the stream stays where it is.
  Batch look(const Place& place) const;

 private:
  struct Corpus {
    int64_t begin, size, samples, first;  // first pair and pairs in the store; samples per epoch; number of its first sample
    size_t index;                         // of the corpus
  };
  struct Stage {
    std::vector<Corpus> corpora;
    int64_t samples = 0, window_samples = 0;  // of an epoch, of a window
    int64_t first_epoch = 0;
    int64_t last_samples = 0;  // of its last epoch
  };
  struct Sample {
    int64_t place, pair;  // position in the epoch's order (the sample id), pair in the store
    PairLengths lengths;
  };
  struct Window {
    std::vector<Sample> samples;   // sorted by length
    std::vector<int64_t> cuts{0};  // batch i: samples cuts[i]..cuts[i+1]
    std::vector<int64_t> order;    // of its batches
    int64_t batches() const { return static_cast<int64_t>(cuts.size()) - 1; }
    std::span<const Sample> of(int64_t batch) const {
      const auto begin = static_cast<size_t>(cuts[static_cast<size_t>(batch)]),
                 end = static_cast<size_t>(cuts[static_cast<size_t>(batch) + 1]);
      return std::span(samples).subspan(begin, end - begin);
    }
  };
  class Epoch;

  void fill(const Epoch& epoch, int64_t window, Window& to) const;
  void enter(int64_t epoch);
  Stage make_stage(const std::vector<double>& weights) const;
  void add_stages();
  // Returns the index of an epoch's stage.
  size_t stage_of(int64_t epoch) const;
  int64_t samples(int64_t epoch) const;
  int64_t windows(int64_t epoch) const;
  void advance();
  int64_t corpus_of(int64_t pair) const;
  void cut_anew(Batch& batch, int64_t place) const;
  void cut_anew(PackedTokens& side, const SubwordSampler& sampler, uint64_t stream) const;

  const TokenStore* store_;
  BatchOptions options_;
  int64_t entered_ = 0;  // the epoch whose store it is, with store_of
  std::vector<Stage> stages_;
  BatchPosition position_;
  Window window_;                             // the one that next() takes from, if loaded_
  int64_t window_index_ = 0, in_window_ = 0;  // its number, and the next batch within it
  bool loaded_ = false;
};

/// Appends the sentences of `more` to those of `to`.
void append(Batch& to, const Batch& more);

/// Splits a batch into parts of whole sentences with at most `max_target_tokens` and `max_source_tokens` each (a single longer sentence is
/// a part of its own). Parts are about equal, in order, and keep epoch, index, weights and sample ids.
std::vector<Batch> split(const Batch& batch, int64_t max_target_tokens, int64_t max_source_tokens);
/// The same with twice as many source tokens.
std::vector<Batch> split(const Batch& batch, int64_t max_target_tokens);

/// Returns part `index` of `count` of a batch: consecutive whole sentences, chosen so that all parts cost about the same, where a source
/// token costs source_weight and a target token target_weight. A part may be empty.
Batch slice_for_rank(const Batch& batch, int index, int count, double source_weight, double target_weight);
/// Likewise returns the part between two points of a batch whose total cost is `whole`.
Batch share_between(const Batch& batch, double from, double to, double whole, double source_weight, double target_weight);

/// Makes batches of encoded pairs, sorted by length, for validation. sample_ids are indices into `pairs`, so the order can be restored.
std::vector<Batch> make_batches(std::span<const EncodedPair> pairs, int64_t batch_tokens);

}  // namespace starling
