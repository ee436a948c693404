// model.for: the keys that it sets, what the same table lets `export` refuse, and contradictions.
#include "settings/fit_to_programs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "models/portability.h"

namespace starling {
namespace {

using testing::HasSubstr;
using testing::Not;

Config fitted(const std::vector<Override>& keys) { return load_config("", keys); }
std::string refusal_of(const std::vector<Override>& keys) {
  try {
    fitted(keys);
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "";
}

TEST(ModelFor, SetsWhatEachProgramNeeds) {
  for (const char* programs :
       {"marian", "bergamot", "ctranslate2", "argos", "huggingface", "huggingface,ctranslate2,argos,bergamot,marian"}) {
    const Config c = fitted({{"model.for", programs}});
    for (const std::string& program : c.model_for) EXPECT_TRUE(obstacles(from_word<Program>(program), c.model, {}).empty()) << programs;
    // What is dumped reads back to the same.
    EXPECT_EQ(dump_config(parse_config(dump_config(c, true), "dump"), true), dump_config(c, true));
  }
  const ModelConfig m = fitted({{"model.for", "bergamot"}}).model;
  EXPECT_EQ(m.norm, NormPlace::post);
  EXPECT_EQ(m.decoder_start, DecoderStart::zero);
  EXPECT_EQ(m.norm_epsilon, 1e-6);
  EXPECT_EQ(fitted({{"model.for", "huggingface"}}).model.first_position, 2);  // an M2M-100
}

TEST(ModelFor, GivenKeysStayOrAreRefused) {
  const Config c = fitted({{"model.for", "marian"}, {"model.norm-epsilon", "1e-5"}, {"model.autoregression", "ssru"}});
  EXPECT_EQ(c.model.norm_epsilon, 1e-5);
  const std::string all = refusal_of({{"model.for", "marian,ctranslate2"}, {"model.norm", "pre"}, {"model.autoregression", "ssru"}});
  EXPECT_THAT(all, HasSubstr("model.norm is pre, and Marian needs post"));
  EXPECT_THAT(all, HasSubstr("model.autoregression is ssru, and CTranslate2 needs self-attention"));
  // What another program needs is named with it.
  EXPECT_THAT(
      refusal_of({{"model.for", "huggingface,marian"}, {"model.norm", "pre"}}),
      HasSubstr("model.decoder-start is zero, and transformers needs end: a pre-norm model becomes an M2M-100 there; post-norm ones "
                "are freer, which Marian needs"));
  EXPECT_THAT(refusal_of({{"model.for", "marian"}, {"model.preset", "gnmt-small"}}), HasSubstr("Marian needs a transformer preset"));
  EXPECT_THAT(refusal_of({{"model.for", "fairseq"}}), HasSubstr("bergamot"));
  EXPECT_THAT(refusal_of({{"model.for", "argos"}, {"vocab.joint", "false"}, {"model.tied-embeddings", "decoder"}}),
              HasSubstr("vocab.joint is false"));
}

TEST(ModelFor, TheStartSaysWhereTheModelCanGo) {
  EXPECT_THAT(
      destinations_text(fitted({})),
      HasSubstr("can go to ctranslate2, argos; to marian and bergamot with model.norm post, model.decoder-start zero; to huggingface "
                "with model.first-position 2"));
  const std::string text = destinations_text(fitted({{"model.for", "bergamot"}, {"model.width", "328"}}));
  EXPECT_THAT(text, HasSubstr("bergamot (not as 8-bit integers: model.width 328)"));
  EXPECT_THAT(text, Not(HasSubstr("model.for")));
  EXPECT_EQ(destinations_text(fitted({{"model.preset", "gnmt"}})), "export: gnmt models go to no other program");
}

}  // namespace
}  // namespace starling
