// A model whose predictions and attention are plain functions of the target prefix, to test searches against what can be computed by hand
// or by enumeration. It checks what Model::next_output demands of its callers.
#pragma once

#include <functional>
#include <set>

#include "base/error.h"
#include "models/model.h"

namespace starling {

class FakeModel : public Model {
 public:
  using Prefix = std::vector<int32_t>;  // without begin of sentence
  // The logits [V] after a prefix, and how attention then spreads over the source tokens; by sentence of the encoded batch.
  std::function<std::vector<double>(int32_t sentence, const Prefix&)> logits;
  std::function<std::vector<float>(int32_t sentence, const Prefix&)> attention;
  int64_t attention_calls = 0;  // steps for which it was asked

  explicit FakeModel(int64_t vocabulary, int32_t unknown = -1, int32_t padding = -1,
                     std::shared_ptr<Backend> backend = make_backend("reference"))
      : vocabulary_{.source_size = vocabulary, .target_size = vocabulary, .unknown = unknown, .padding = padding},
        backend_(std::move(backend)),
        store_(*backend_) {
    const Tensor unit({vocabulary, vocabulary}, DType::f64, backend_->memory());
    std::vector<double> ones(static_cast<size_t>(vocabulary * vocabulary));
    for (int64_t i = 0; i < vocabulary; ++i) ones[static_cast<size_t>(i * vocabulary + i)] = 1;
    unit.from_doubles(ones);
    unit_ = backend_->pack(unit, false, nullptr);
  }

  ParameterStore& parameters() override { return store_; }
  const ModelConfig& config() const override { return config_; }
  const ModelVocabulary& vocabulary() const override { return vocabulary_; }
  std::vector<EmbeddingTable> embedding_tables() override { return {}; }
  size_t units() const override { return 1; }
  std::vector<Shape> boundary(size_t, const Batch&) const override { return {}; }
  std::vector<Var> forward(Tape&, const Batch&, double, std::vector<Var>, Loss&) override { throw Error("not a model to train"); }
  std::unique_ptr<DecodeState> begin_decoding() override { return std::make_unique<State>(); }
  // Sentences are numbered as they come, for ever.
  std::vector<int32_t> encode(DecodeState& abstract, const PackedTokens& source) override {
    auto& state = static_cast<State&>(abstract);
    std::vector<int32_t> numbers;
    for (int64_t b = 0; b < source.sentences(); ++b) numbers.push_back(state.next), state.there.insert(state.next++);
    return numbers;
  }

  OutputProduct next_output(DecodeState& abstract, std::span<const int32_t> token, std::span<const int32_t> sentence,
                            std::span<const int32_t> parent, Tensor* attended) override {
    auto& state = static_cast<State&>(abstract);
    std::vector<Prefix> prefixes;
    std::vector<double> values;
    std::vector<double> weights;
    if (attended) ++attention_calls;
    for (size_t r = 0; r < token.size(); ++r) {
      CHECK(r == 0 || sentence[r - 1] <= sentence[r], "sentences decrease");
      Prefix prefix;
      CHECK(state.there.count(sentence[r]) == 1, "sentence {} is not under way", sentence[r]);
      if (parent[r] >= 0) {
        CHECK(state.sentences.at(parent[r]) == sentence[r], "row {} continues a row of another sentence", r);
        prefix = state.prefixes.at(parent[r]);
        prefix.push_back(token[r]);
      } else {
        CHECK(token[r] == vocabulary_.begin, "the first token is {}", token[r]);
      }
      const std::vector<double> row = logits(sentence[r], prefix);
      values.insert(values.end(), row.begin(), row.end());
      if (attended) {
        const std::vector<float> w = attention(sentence[r], prefix);
        weights.insert(weights.end(), w.begin(), w.end());
      }
      prefixes.push_back(std::move(prefix));
    }
    state.prefixes = std::move(prefixes);
    state.sentences.assign(sentence.begin(), sentence.end());
    if (attended)
      *attended = Tensor({static_cast<int64_t>(weights.size())}, DType::f64, backend_->memory()), attended->from_doubles(weights);
    const Tensor y({static_cast<int64_t>(token.size()), vocabulary_.target_size}, DType::f64, backend_->memory());
    y.from_doubles(values);
    return {y, y.rows(), unit_.get()};
  }

 private:
  struct State : DecodeState {
    void drop(int32_t sentence) override { CHECK(there.erase(sentence) == 1, "sentence {} is not under way", sentence); }
    int64_t bytes() const override { return 0; }
    int32_t next = 0;
    std::set<int32_t> there;
    std::vector<Prefix> prefixes;
    std::vector<int32_t> sentences;
  };
  ModelConfig config_;
  ModelVocabulary vocabulary_;
  std::shared_ptr<Backend> backend_;
  ParameterStore store_;
  std::shared_ptr<Packed> unit_;  // the logits are the product's input
};

}  // namespace starling
