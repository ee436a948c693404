#include "evaluation/pair_scores.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "data/tokenize.h"

namespace starling {

EncodedPair framed_pair(const Vocabularies& v, std::string_view source, std::string_view target, const SearchOptions& options) {
  EncodedPair pair = encode_pair(v.source(), v.target(), source, target, options.source_prefix_ids);
  pair.target.insert(pair.target.begin(), options.target_prefix_ids.begin(), options.target_prefix_ids.end());
  return pair;
}

EncodedPair framed_pair_of_pieces(const Vocabularies& v, std::string_view source, std::string_view target, const SearchOptions& options) {
  constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
  bool cut = false;
  SearchOptions of_target;
  of_target.source_prefix_ids = options.target_prefix_ids;
  EncodedPair pair{source_of_pieces(source, v.source(), options, kAll, cut), source_of_pieces(target, v.target(), of_target, kAll, cut)};
  if (pair.source.empty()) pair.source = {v.source().eos()};
  if (pair.target.empty()) {
    pair.target = options.target_prefix_ids;
    pair.target.push_back(v.target().eos());
  }
  return pair;
}

double score_of(const std::vector<float>& scores) { return std::accumulate(scores.begin(), scores.end(), 0.0); }

namespace {

// Returns a piece as one word: spaces and control characters, which a vocabulary may contain, are written as SentencePiece writes bytes.
std::string printable(const std::string& piece) {
  std::string out;
  for (const char c : piece) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= 0x20 || byte == 0x7F) {
      out += fmt::format("<0x{:02X}>", byte);
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

std::string score_line(const std::vector<float>& scores, std::span<const int32_t> tokens, const Vocabulary& target, bool per_token,
                       bool with_tokens) {
  const double sum = score_of(scores);
  std::string line = fmt::format("{:.6f}", per_token ? sum / static_cast<double>(scores.size()) : sum);
  if (with_tokens) {
    std::string pieces, numbers;
    for (size_t i = 0; i < scores.size(); ++i) {
      pieces += (i ? " " : "") + printable(target.piece(tokens[i]));
      numbers += fmt::format("{}{:.6f}", i ? " " : "", scores[i]);
    }
    line += "\t" + pieces + "\t" + numbers;
  }
  return line;
}

std::vector<std::vector<float>> pair_scores(Model& model, std::span<const EncodedPair> pairs, const SearchOptions& options,
                                            int64_t batch_tokens, const std::function<void(int64_t pairs)>& scored) {
  std::vector<std::vector<float>> scores(pairs.size());
  if (pairs.empty()) return scores;
  const auto given = static_cast<int32_t>(options.target_prefix_ids.size());
  Arena arena(model.parameters().backend().memory());
  int64_t done = 0;
  for (const Batch& batch : make_batches(pairs, batch_tokens)) {
    arena.release({});
    Tape tape(model.parameters(), arena);
    const std::vector<float> nll = model.loss(tape, batch, 0.0).read_nll();
    for (int64_t b = 0; b < batch.target.sentences(); ++b)
      for (int32_t i = batch.target.offsets[b] + given; i < batch.target.offsets[b + 1]; ++i)
        scores[batch.sample_ids[b]].push_back(-nll[i]);
    done += batch.target.sentences();
    if (scored) scored(done);
  }
  return scores;
}

namespace {

// Decodes one batch along its targets.
void align_batch(Model& model, const Vocabulary& vocabulary, const Batch& batch, const SearchOptions& options,
                 std::vector<std::vector<int32_t>>& alignments) {
  const auto state = model.begin_decoding();
  const std::vector<int32_t> numbers = model.encode(*state, batch.source);
  const auto given = static_cast<int64_t>(options.target_prefix_ids.size());
  const auto length = [](const PackedTokens& side, size_t b) { return side.offsets[b + 1] - side.offsets[b]; };
  std::vector<int32_t> row(numbers.size(), -1);  // of the step before
  for (int32_t step = 0;; ++step) {
    std::vector<int32_t> tokens, sentences, parents;
    std::vector<size_t> of_row;
    for (size_t b = 0; b < numbers.size(); ++b) {
      if (step + 1 >= length(batch.target, b)) continue;  // its end, which is aligned with nothing
      tokens.push_back(step == 0 ? model.vocabulary().begin : batch.target.tokens[static_cast<size_t>(batch.target.offsets[b] + step - 1)]);
      sentences.push_back(numbers[b]);
      parents.push_back(row[b]);
      row[b] = static_cast<int32_t>(of_row.size());
      of_row.push_back(b);
    }
    if (of_row.empty()) return;
    Tensor attention;
    model.next_output(*state, tokens, sentences, parents, &attention);
    const std::vector<double> weights = attention.to_doubles();
    auto at = weights.begin();
    for (const size_t b : of_row) {
      const int64_t keys = length(batch.source, b) - (model.config().source_end ? 0 : 1);
      const auto source = std::span(batch.source.tokens).subspan(static_cast<size_t>(batch.source.offsets[b]));
      const int64_t prefix = std::ssize(options_for(source, vocabulary, options).source_prefix_ids);
      const auto text = at + std::clamp<int64_t>(keys - 1, 0, prefix), end = at + keys;
      if (step >= given)
        alignments[static_cast<size_t>(batch.sample_ids[b])].push_back(static_cast<int32_t>(std::max_element(text, end) - text));
      at = end;
    }
    CHECK(at == weights.end(), "{} weights of attention", weights.size());
  }
}

}  // namespace

std::vector<std::vector<int32_t>> pair_alignments(Model& model, const Vocabulary& source, std::span<const EncodedPair> pairs,
                                                  const SearchOptions& options, int64_t batch_tokens) {
  std::vector<std::vector<int32_t>> alignments(pairs.size());
  for (const Batch& batch : make_batches(pairs, batch_tokens)) align_batch(model, source, batch, options, alignments);
  return alignments;
}

}  // namespace starling
