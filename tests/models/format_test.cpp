// docs/reference/model-format.md has every tensor of every model, with its shape: what it says is what the program reads and writes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <regex>

#include "models/model.h"

namespace starling {
namespace {

// Tensor names with N for a layer's number, and the shapes that the page gives them, e.g. "[D, 3D]". Rows of two names give both; rows
// "decoder.N.attention.*" refer to those of the encoder.
std::map<std::string, std::string> documented() {
  std::ifstream page(std::string(STARLING_SOURCE_DIR) + "/docs/reference/model-format.md");
  std::map<std::string, std::string> shapes;
  const std::regex name("`([a-z_.0-9N]+)`"), shape("^\\| (\\[[^\\]]*\\])");
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("| `")) continue;
    const size_t end = line.find('|', 1);
    const std::string names = line.substr(0, end), rest = line.substr(end);
    std::smatch found;
    if (!std::regex_search(rest, found, shape) || names.find('*') != std::string::npos) continue;
    for (std::sregex_iterator i(names.begin(), names.end(), name), last; i != last; ++i) shapes[(*i)[1]] = found[1];
  }
  for (const auto& [n, s] : std::map(shapes))
    for (const char* block : {"attention.", "feed_forward."})
      if (n.starts_with(std::string("encoder.N.") + block)) shapes["decoder" + n.substr(7)] = s;
  return shapes;
}

// The shape in the page's symbols. All of these numbers differ.
constexpr int64_t kWidth = 16, kInner = 40, kSource = 51, kTarget = 53, kPositions = 61, kReach = 9;
std::string symbols(const Shape& shape) {
  const std::map<int64_t, std::string> names{
      {kWidth, "D"},   {2 * kWidth, "2D"}, {3 * kWidth, "3D"},         {4 * kWidth, "4D"},  {kInner, "F"}, {kSource, "VS"},
      {kTarget, "VT"}, {kPositions, "P"},  {2 * kReach + 1, "2K + 1"}, {kWidth / 2, "D/H"}, {1, "1"}};
  std::string text;
  for (int i = 0; i < shape.rank(); ++i) text += (i ? ", " : "[") + names.at(shape[i]);
  return text + "]";
}

struct Variant {
  const char *preset, *tied, *norm, *attention, *readout;
  int64_t encoder_layers;
  bool foreign = false;   // with what models of other programs have
  bool relative = false;  // with relative positions
};

TEST(ModelFormat, ThePageHasEveryTensorWithItsShape) {
  const std::map<std::string, std::string> page = documented();
  ASSERT_GT(page.size(), 50u);
  std::map<std::string, int> seen;
  for (const Variant& v : {Variant{"transformer-tiny", "all", "pre", "additive", "state", 2},
                           {"transformer-tiny", "decoder", "post", "additive", "state", 2},
                           {"transformer-tiny", "none", "pre", "additive", "state", 1},
                           {"transformer-tiny", "none", "post", "additive", "state", 1, true},
                           {"transformer-tiny", "all", "pre", "additive", "state", 2, false, true},
                           {"gnmt-small", "all", "pre", "dot", "state", 3},
                           {"gnmt-small", "decoder", "pre", "additive", "context", 1},
                           {"gnmt-small", "none", "pre", "normalized", "context", 3}}) {
    ModelConfig config = model_preset(v.preset);
    config.width = kWidth, config.feed_forward = kInner, config.heads = 1, config.encoder_layers = v.encoder_layers;
    config.decoder_layers = 3, config.tied_embeddings = from_word<TiedEmbeddings>(v.tied), config.norm = from_word<NormPlace>(v.norm),
    config.attention = from_word<AttentionScore>(v.attention);
    config.readout = from_word<Readout>(v.readout);
    if (v.foreign) config.autoregression = Autoregression::ssru, config.output_bias = true, config.position_table = kPositions;
    if (v.relative) config.relative_positions = kReach, config.heads = 2;
    const int64_t source = v.tied == std::string("all") ? kTarget : kSource;
    const auto backend = make_backend("reference", 1);
    const auto model = make_model(config, {source, kTarget}, *backend, 1, false);
    const bool gnmt = std::string(v.preset).starts_with("gnmt");
    const bool wide = gnmt && v.encoder_layers == 1;  // M is 2D, else D
    for (const Parameter& p : model->parameters().all()) {
      std::string name = p.name;
      if (!page.contains(name)) name = std::regex_replace(name, std::regex("\\.[0-9]+\\."), ".N.");
      ASSERT_TRUE(page.contains(name)) << p.name;
      ++seen[name];
      std::string expected = page.at(name);
      expected = std::regex_replace(expected, std::regex("D \\+ M"), wide ? "3D" : "2D");
      expected = std::regex_replace(expected, std::regex("\\bM\\b"), wide ? "2D" : "D");
      EXPECT_EQ(symbols(p.shape), expected) << p.name << " of " << v.preset;
    }
  }
  for (const auto& [name, shape] : page) EXPECT_TRUE(seen.contains(name)) << name << " is in no model";
}

}  // namespace
}  // namespace starling
