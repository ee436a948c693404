#include "cleaning/judging.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "base/ordered_pipeline.h"
#include "cleaning/copy_search.h"
#include "cleaning/shingles.h"
#include "data/lines_or_pairs.h"

namespace starling {
namespace {

constexpr size_t kBlockPairs = 500, kBlockBytes = 1 << 20;  // that a thread judges at a time
constexpr int64_t kSample = 20000;                          // pairs by which the usual ratio of lengths is found

struct JudgedBlock {
  std::vector<JudgedPair> pairs;
  std::vector<CopyKeys> keys;
  std::vector<PairShingles> shingles;
  double read = 0;  // share of all corpora
};

// The median of the characters of targets over those of sources, of pairs that are long enough to tell; nothing if they are few.
std::optional<double> usual_ratio(const CorpusFiles& corpus, const CleanOptions& options) {
  constexpr double kFewestCharacters = 20;
  constexpr size_t kFewestPairs = 100;
  std::vector<double> ratios;
  LinesOrPairs reader(corpus, false);
  std::string_view s, t;
  for (int64_t i = 0; i < kSample && reader.next(s, t); ++i) {
    if (is_surely_too_long(s, options) || is_surely_too_long(t, options)) continue;
    const auto source = static_cast<double>(decode_utf8(s).size()), target = static_cast<double>(decode_utf8(t).size());
    if (std::max(source, target) >= kFewestCharacters && std::min(source, target) > 0) ratios.push_back(target / source);
  }
  if (ratios.size() < kFewestPairs) return std::nullopt;
  std::nth_element(ratios.begin(), ratios.begin() + static_cast<ptrdiff_t>(ratios.size() / 2), ratios.end());
  return ratios[ratios.size() / 2];
}

// Reads the corpora in blocks, without the first `skip` pairs.
class Blocks {
 public:
  Blocks(const CleanJob& job, uint32_t skip)
      : job_(job), data_(job.data), bytes_(std::max<uint64_t>(corpus_bytes(job.data), 1)), skip_(skip) {}
  bool next(JudgedBlock& block) {
    block.pairs.clear();
    while (corpus_ < data_.train.size()) {
      const CorpusFiles& corpus = data_.train[corpus_];
      if (!reader_) {
        reader_.emplace(corpus, job_.monolingual);
        starts_.push_back(number_);
        if (!corpus.scores.empty()) scores_.emplace(corpus.scores);
      }
      std::string_view s, t;
      size_t bytes = 0;
      while (block.pairs.size() < kBlockPairs && bytes < kBlockBytes && reader_->next(s, t)) {
        ++line_;
        ++number_;
        const float score = next_score();
        if (skip_ > 0) {
          --skip_;
          continue;
        }
        bytes += s.size() + t.size();
        JudgedPair& pair = block.pairs.emplace_back();
        pair.corpus = static_cast<uint32_t>(corpus_);
        pair.line = line_;
        pair.weight = reader_->weight();
        pair.score = score;
        pair.source = s;
        pair.target = t;
      }
      block.read = static_cast<double>(earlier_ + reader_->bytes_read()) / static_cast<double>(bytes_);
      if (!block.pairs.empty()) return true;
      if (std::string_view more; scores_ && scores_->next(more)) unequal_scores();
      earlier_ += reader_->bytes_read();
      reader_.reset();
      scores_.reset();
      ++corpus_;
      line_ = 0;
    }
    return false;
  }
  const std::vector<uint32_t>& starts() const { return starts_; }  // numbers of the corpora's first pairs

 private:
  float next_score() {
    if (!scores_) return std::numeric_limits<float>::infinity();
    std::string_view line;
    if (!scores_->next(line)) unequal_scores();
    if (line == "nan") return static_cast<float>(CleanOptions::kNoScore);  // what `score` writes of a pair that is too long
    double score = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), score);
    const bool tiny = error == std::errc::result_out_of_range && line.find("e-") != line.npos;  // 1e-400 is 0
    if ((error != std::errc() && !tiny) || end != line.data() + line.size() || !std::isfinite(score) ||
        std::abs(score) > -CleanOptions::kNoScore)
      throw DataError(fmt::format("{}:{}: '{}' is not a score; each line must be a number, as `starling score` writes it", scores_->path(),
                                  scores_->line_number(), line.substr(0, 40)));
    return static_cast<float>(score);
  }
  [[noreturn]] void unequal_scores() {
    std::string_view a, b;
    while (reader_->next(a, b)) {
    }
    while (scores_->next(a)) {
    }
    throw unequal_lines(data_.train[corpus_].name(), reader_->line_number(), scores_->path(), scores_->line_number());
  }
  const CleanJob& job_;
  const DataOptions& data_;
  const uint64_t bytes_;
  uint32_t skip_;
  size_t corpus_ = 0;
  uint64_t earlier_ = 0;
  uint32_t line_ = 0, number_ = 0;
  std::vector<uint32_t> starts_;
  std::optional<LinesOrPairs> reader_;
  std::optional<LineReader> scores_;
};

uint32_t repair(std::string& text) {
  RepairCounts counts{};
  text = repaired(text, counts);
  uint32_t bits = 0;
  for (size_t i = 0; i < kRepairs; ++i) bits |= uint32_t{counts[i] > 0} << i;
  return bits;
}

// How the pairs of one corpus are judged.
struct CorpusJudge {
  CorpusJudge(const CleanJob& job, const CorpusFiles& corpus, const PairKind& kind)
      : options(corpus_options(job, corpus)), rules(options), kind(kind), targets_only(key_of_copies(job) == &CopyKeys::target) {}
  const CleanOptions options;
  const Rules rules;
  const PairKind& kind;
  const bool targets_only;  // are compared

  // min_hash: for near-copies, or null.
  void judge(JudgedPair& pair, CopyKeys& keys, PairShingles& near, const HeldOut& held_out, const MinHash* min_hash) const {
    near = {};
    if (is_surely_too_long(pair.source, options) || is_surely_too_long(pair.target, options)) {
      pair.measures = measured_as_too_long();
    } else {
      if (options.repair) pair.repairs = repair(pair.source) | repair(pair.target) << kRepairs;
      const JudgedSide s(pair.source), t(pair.target);
      pair.measures = kind.one_side ? measured(s, kind, options) : measured(s, t, kind, options);
      keys = CopyKeys(s, t);
      pair.measures.marks.set(Rule::held_out, kind.one_side ? held_out.has(s) : held_out.has(s, t, keys));
      set_broken(pair);
      if (min_hash != nullptr && !pair.broken.any()) near = near_of(s, t, *min_hash);
      return;
    }
    set_broken(pair);
  }

 private:
  void set_broken(JudgedPair& pair) const {
    pair.broken = rules.broken(pair.measures);
    pair.broken.set(Rule::score, pair.score < static_cast<float>(options.min_score));
  }
  // A pair of which one side is too short is not compared.
  PairShingles near_of(const JudgedSide& s, const JudgedSide& t, const MinHash& min_hash) const {
    PairShingles near;
    if (!targets_only && (near.source = shingles(s)).empty()) return {};
    if (!kind.one_side && (near.target = shingles(t)).empty()) return {};
    near.bands = min_hash.bands(near.source, near.target);
    return near;
  }
};

}  // namespace

std::vector<PairKind> pair_kinds(const CleanJob& job) {
  std::vector<PairKind> kinds;
  const auto language = [](const std::string& own, const std::string& all) { return own.empty() ? all : own; };
  for (const CorpusFiles& corpus : job.data.train) {
    kinds.emplace_back(language(corpus.source_language, job.languages.source), language(corpus.target_language, job.languages.target));
    kinds.back().one_side = job.monolingual;
    if (job.monolingual) {
      kinds.back().target_scripts = kinds.back().source_scripts;
      continue;
    }
    if (const auto usual = usual_ratio(corpus, job.options)) kinds.back().usual_ratio = *usual;
  }
  return kinds;
}

std::vector<uint32_t> judge_pairs(const CleanJob& job, const std::vector<PairKind>& kinds, FileSystem& files, Segments& segments,
                                  TaskProgress& progress, const std::function<void(const JudgedPair&)>& see) {
  std::vector<CorpusJudge> judges;
  judges.reserve(kinds.size());
  for (size_t i = 0; i < kinds.size(); ++i) judges.emplace_back(job, job.data.train[i], kinds[i]);
  const bool held = std::any_of(judges.begin(), judges.end(), [](const CorpusJudge& judge) { return judge.options.held_out; });
  const HeldOut held_out(held ? job.held_out : std::vector<CorpusFiles>{}, job.options.repair);
  Blocks blocks(job, segments.all_pairs());
  std::optional<MinHash> min_hash;
  if (job.options.near_copies > 0) min_hash.emplace(job.options.near_copies);
  JudgedWriter writer(files, segments, min_hash.has_value());
  uint64_t pairs = segments.all_pairs();
  run_in_order<JudgedBlock>({.make = [&](JudgedBlock& block) { return blocks.next(block); },
                             .work =
                                 [&](JudgedBlock& block) {
                                   block.keys.resize(block.pairs.size());
                                   block.shingles.resize(block.pairs.size());
                                   for (size_t i = 0; i < block.pairs.size(); ++i)
                                     judges[block.pairs[i].corpus].judge(block.pairs[i], block.keys[i], block.shingles[i], held_out,
                                                                         min_hash ? &*min_hash : nullptr);
                                 },
                             .take =
                                 [&](JudgedBlock& block) {
                                   pairs += block.pairs.size();
                                   if (pairs >= std::numeric_limits<uint32_t>::max())
                                     throw ConfigError("data.train has more than 4,294,967,294 pairs; clean its corpora in several runs");
                                   for (size_t i = 0; i < block.pairs.size(); ++i) {
                                     see(block.pairs[i]);
                                     writer.add(block.pairs[i], block.keys[i], block.shingles[i]);
                                   }
                                   if (progress.due())
                                     progress.tell(0.9 * block.read,
                                                   fmt::format("corpus {} of {}", block.pairs.front().corpus + 1, job.data.train.size()));
                                 }},
                            job.threads, static_cast<size_t>(4 * job.threads + 2));
  writer.close();
  return blocks.starts();
}

}  // namespace starling
