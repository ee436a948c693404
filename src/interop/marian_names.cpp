#include "interop/marian_names.h"

#include <fmt/format.h>

namespace starling {
namespace {

class Names {
 public:
  explicit Names(const ModelConfig& config) : config_(config), pre_(config.norm == NormPlace::pre) {}

  std::vector<MarianName> all() {
    const bool tied = config_.tied_embeddings == TiedEmbeddings::all;
    add(tied ? "embedding" : "encoder.embedding", {tied ? "Wemb" : "encoder_Wemb"});
    for (int64_t i = 0; i < config_.encoder_layers; ++i) {
      const std::string ours = fmt::format("encoder.{}", i), theirs = fmt::format("encoder_l{}", i + 1);
      self_attention(ours, theirs);
      feed_forward(ours, theirs);
    }
    top("encoder");
    if (!tied) add("decoder.embedding", {"decoder_Wemb"});
    for (int64_t i = 0; i < config_.decoder_layers; ++i) {
      const std::string ours = fmt::format("decoder.{}", i), theirs = fmt::format("decoder_l{}", i + 1);
      if (config_.autoregression == Autoregression::ssru) {
        add(ours + ".ssru.candidate.weight", {theirs + "_rnn_W"});
        add(ours + ".ssru.forget.weight", {theirs + "_rnn_Wf"});
        add(ours + ".ssru.forget.bias", {theirs + "_rnn_bf"});
        norm(ours + ".attention", theirs + (pre_ ? "_rnn" : "_rnn_ffn"));
      } else {
        self_attention(ours, theirs);
      }
      layer(ours + ".cross.query", theirs + "_context", {"q"});
      layer(ours + ".cross.kv", theirs + "_context", {"k", "v"});
      layer(ours + ".cross.out", theirs + "_context", {"o"});
      norm(ours + ".cross", theirs + "_context_Wo");
      feed_forward(ours, theirs);
    }
    top("decoder");
    if (config_.tied_embeddings == TiedEmbeddings::none) add("decoder.output", {"decoder_ff_logit_out_Wt"});
    if (config_.output_bias) add("decoder.output.bias", {"decoder_ff_logit_out_b"});
    return std::move(names_);
  }

 private:
  void add(std::string ours, std::vector<std::string> theirs) { names_.push_back({std::move(ours), std::move(theirs)}); }
  // A linear layer that is several of Marian's side by side.
  void layer(const std::string& ours, const std::string& theirs, const std::vector<std::string>& ends) {
    std::vector<std::string> weights, biases;
    for (const std::string& end : ends) {
      weights.push_back(fmt::format("{}_W{}", theirs, end));
      biases.push_back(fmt::format("{}_b{}", theirs, end));
    }
    add(ours + ".weight", std::move(weights));
    add(ours + ".bias", std::move(biases));
  }
  void norm(const std::string& ours, const std::string& theirs) {
    const char* end = pre_ ? "_pre" : "";
    add(ours + ".norm.scale", {fmt::format("{}_ln_scale{}", theirs, end)});
    add(ours + ".norm.bias", {fmt::format("{}_ln_bias{}", theirs, end)});
  }
  void self_attention(const std::string& ours, const std::string& theirs) {
    layer(ours + ".attention.qkv", theirs + "_self", {"q", "k", "v"});
    layer(ours + ".attention.out", theirs + "_self", {"o"});
    norm(ours + ".attention", theirs + "_self_Wo");
  }
  void feed_forward(const std::string& ours, const std::string& theirs) {
    layer(ours + ".feed_forward.inner", theirs + "_ffn", {"1"});
    layer(ours + ".feed_forward.outer", theirs + "_ffn", {"2"});
    norm(ours + ".feed_forward", theirs + "_ffn_ffn");
  }
  void top(const std::string& side) {
    if (!pre_) return;
    add(side + ".norm.scale", {side + "_top_ln_scale"});
    add(side + ".norm.bias", {side + "_top_ln_bias"});
  }

  const ModelConfig& config_;
  bool pre_;
  std::vector<MarianName> names_;
};

}  // namespace

std::vector<MarianName> marian_names(const ModelConfig& config) { return Names(config).all(); }

}  // namespace starling
