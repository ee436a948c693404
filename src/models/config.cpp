#include "models/config.h"

#include <limits>

#include "base/error.h"

namespace starling {

ModelConfig model_preset(const std::string& name) {
  ModelConfig c;
  c.preset = name;
  if (name == "transformer-base") return c;
  if (name == "transformer-big") {
    c.width = 1024;
    c.feed_forward = 4096;
    c.heads = 16;
    c.dropout = 0.3;
    return c;
  }
  if (name == "transformer-small") {
    c.encoder_layers = c.decoder_layers = 3;
    c.width = 256;
    c.feed_forward = 1024;
    c.heads = 4;
    return c;
  }
  if (name == "transformer-tiny") {
    c.encoder_layers = c.decoder_layers = 2;
    c.width = 128;
    c.feed_forward = 512;
    c.heads = 4;
    return c;
  }
  if (name == "gnmt" || name == "gnmt-4" || name == "gnmt-small") {
    c.encoder_layers = c.decoder_layers = name == "gnmt" ? 8 : name == "gnmt-4" ? 4 : 2;
    c.width = name == "gnmt-small" ? 256 : 1024;
    c.heads = 1;
    c.tied_embeddings = TiedEmbeddings::none;
    c.dropout = 0.2;
    if (name == "gnmt") c.init_bound = 0.04;  // the paper's
    return c;
  }
  throw ConfigError(fmt::format("model.preset: there is no preset '{}'; choose {}, {}", name,
                                fmt::join(model_presets(Architecture::transformer), ", "),
                                fmt::join(model_presets(Architecture::gnmt), ", ")));
}

void check(const ModelConfig& c) {
  if (c.position_table > 0 && c.position_table <= c.first_position + 1)
    throw ConfigError(fmt::format("model.position-table: {} rows leave none for sentences that begin with row {}; raise it",
                                  c.position_table, c.first_position));
  if (c.relative_positions > 0 && c.position_table > 0)
    throw ConfigError(fmt::format("model.relative-positions {} and model.position-table {} exclude each other; set one of them to 0",
                                  c.relative_positions, c.position_table));
  if (c.relative_positions > 0 && c.autoregression == Autoregression::ssru)
    throw ConfigError(
        "model.relative-positions belongs to self-attention, which decoders with model.autoregression ssru do not have; set it to 0");
  if (c.alignment_layer > c.decoder_layers)
    throw ConfigError(fmt::format("model.alignment-layer {} is beyond the {} of model.decoder-layers; choose one of them, or 0",
                                  c.alignment_layer, c.decoder_layers));
  if (c.alignment_head > c.heads)
    throw ConfigError(
        fmt::format("model.alignment-head {} is beyond the {} of model.heads; choose one of them, or 0", c.alignment_head, c.heads));
  if (architecture_of(c.preset) != Architecture::gnmt) return;
  if (c.attention_place == AttentionPlace::bottom) {
    if (c.decoder_layers < 2)
      throw ConfigError(
          "model.decoder-layers: attention feeds the layers above the bottom one, so gnmt needs at least 2; raise it, or set "
          "model.attention-place to top and model.readout to context");
    return;
  }
  if (c.readout != Readout::context)
    throw ConfigError(
        "model.attention-place top gives the attention's context to the readout alone; set model.readout to context, or "
        "model.attention-place to bottom");
  if (c.attention_query != AttentionQuery::current)
    throw ConfigError(
        "model.attention-query previous has no use with model.attention-place top, where no layer waits for the query; set it to "
        "current, or model.attention-place to bottom");
}

std::vector<std::string> model_presets(Architecture architecture) {
  if (architecture == Architecture::gnmt) return {"gnmt", "gnmt-4", "gnmt-small"};
  return {"transformer-base", "transformer-big", "transformer-small", "transformer-tiny"};
}

Architecture architecture_of(const std::string& preset) {
  if (preset.starts_with("transformer")) return Architecture::transformer;
  if (preset.starts_with("gnmt")) return Architecture::gnmt;
  throw ConfigError(fmt::format("model.preset: there is no model '{}'", preset));
}

int64_t longest_sentence(const ModelConfig& c) {
  return c.position_table > 0 ? c.position_table - c.first_position : std::numeric_limits<int64_t>::max();
}

namespace {

// The dimensions that the number of shards has to divide, by key.
std::vector<std::pair<const char*, int64_t>> divided(const ModelConfig& config) {
  if (architecture_of(config.preset) == Architecture::gnmt) return {{"width", config.width}};
  return {{"heads", config.heads}, {"feed-forward", config.feed_forward}};
}

}  // namespace

void require_shards(const ModelConfig& config, int64_t shards) {
  if (shards > 1 && config.autoregression == Autoregression::ssru)
    throw ConfigError("parallel.tensor: recurrent units (model.autoregression ssru) are not divided; use parallel.stages, or set it to 1");
  for (const auto& [key, value] : divided(config))
    if (value % shards != 0)
      throw ConfigError(
          fmt::format("parallel.tensor {} does not divide model.{}, which is {}; choose a number that does", shards, key, value));
}

bool can_be_cut(const ModelConfig& config, int64_t shards) {
  if (shards > 1 && config.autoregression == Autoregression::ssru) return false;
  for (const auto& [key, value] : divided(config))
    if (value % shards != 0) return false;
  return true;
}

}  // namespace starling
