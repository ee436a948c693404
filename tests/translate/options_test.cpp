// Which options of a translation do not go together, and what is said of each.
#include "translate/options.h"

#include <gmock/gmock.h>

#include "base/error.h"

namespace starling {
namespace {

using Change = void (*)(TranslateOptions&);

std::string complaint(const std::vector<Change>& changes) {
  TranslateOptions o;
  o.models = {"m"};
  for (const Change change : changes) change(o);
  try {
    check(o);
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "";
}

void document(TranslateOptions& o) { o.document = true; }
void sampling(TranslateOptions& o) { o.sampling = true; }
void two_shards(TranslateOptions& o) { o.shards = 2; }
void two_models(TranslateOptions& o) { o.models = {"m", "n"}; }
void tabs(TranslateOptions& o) { o.tsv = true; }
void prefixes(TranslateOptions& o) { o.prefix_file = "p"; }
void alignment(TranslateOptions& o) { o.lines.alignment = AlignmentUnit::words; }
void attention(TranslateOptions& o) { o.lines.soft_alignment = true; }
void word_scores(TranslateOptions& o) { o.lines.scores = AlignmentUnit::pieces; }
void confidence(TranslateOptions& o) { o.confidence = true; }
void source_pieces(TranslateOptions& o) { o.form.source_pieces = true; }
void target_pieces(TranslateOptions& o) { o.form.target_pieces = true; }
void glossary(TranslateOptions& o) { o.glossary = "g"; }
void memory(TranslateOptions& o) { o.memory = "t"; }
void leave_others(TranslateOptions& o) { o.source_language = "auto"; }
void german(TranslateOptions& o) { o.source_language = "de"; }
void four_best(TranslateOptions& o) { o.n_best = 4; }

TEST(TranslateOptions, ThatDoNotGoTogetherAreNamed) {
  const struct {
    std::vector<Change> changes;
    std::string says;
  } cases[] = {
      {{[](TranslateOptions& o) { o.format = "html"; }}, "--format html is for documents; add --document"},
      {{[](TranslateOptions& o) { o.keep = {"x"}; }}, "--keep is for documents; add --document"},
      {{german}, "--source-language determines where the sentences of a document end"},
      {{document, [](TranslateOptions& o) { o.source_language = "German"; }}, "translate.source-language: 'German' is not a language code"},
      {{document, four_best}, "--n-best gives lists of sentences, and --document one document"},
      {{document, two_shards}, "--document translates with one rank"},
      {{document, alignment}, "--alignment is for lines; leave it out, or --document"},
      {{document, attention}, "--alignment is for lines"},
      {{document, sampling}, "--sampling is for lines"},
      {{document, word_scores}, "--word-scores is for lines"},
      {{document, confidence}, "--confidence is for lines"},
      {{document, tabs}, "--tsv is for lines"},
      {{document, prefixes}, "--prefix-file is for lines"},
      {{document, source_pieces}, "--source-pieces is for lines"},
      {{document, target_pieces}, "--target-pieces is for lines"},
      {{source_pieces, alignment}, "--alignment words needs the words of a text"},
      {{leave_others, tabs}, "--source-language auto is for text"},
      {{leave_others, prefixes}, "--source-language auto is for text"},
      {{leave_others, source_pieces}, "--source-language auto is for text"},
      {{leave_others, target_pieces}, "--source-language auto is for text"},
      {{two_models, two_shards}, "an ensemble of several --model translates with one rank"},
      {{two_models, [](TranslateOptions& o) { o.weights = {1}; }}, "--weights has 1 for 2 --model; give one for each"},
      {{two_models,
        [](TranslateOptions& o) {
          o.weights = {0, 0};
        }},
       "--weights are all 0; give at least one above 0"},
      {{glossary, sampling}, "--glossary is for text that one model searches"},
      {{glossary, source_pieces}, "--glossary is for text that one model searches"},
      {{glossary, target_pieces}, "--glossary is for text that one model searches"},
      {{glossary, two_models}, "--glossary is for text that one model searches"},
      {{glossary, two_shards}, "--glossary is for text that one model searches"},
      {{memory, source_pieces}, "--memory is for text; leave out"},
      {{memory, target_pieces}, "--memory is for text; leave out"},
      {{memory, tabs}, "--memory is for text; leave out"},
      {{memory, prefixes}, "--memory is for text; leave out"},
      {{sampling, tabs}, "--tsv and --prefix-file give each translation a beginning, and --sampling draws at random"},
      {{sampling, prefixes}, "--tsv and --prefix-file give each translation a beginning"},
      {{sampling, two_models}, "--sampling draws from one model"},
      {{sampling, [](TranslateOptions& o) { o.beam_given = true; }}, "--beam searches, and --sampling draws at random"},
      {{sampling, alignment}, "--alignment and --word-scores are for translations that are searched for"},
      {{sampling, attention}, "--alignment and --word-scores are for translations that are searched for"},
      {{sampling, word_scores}, "--alignment and --word-scores are for translations that are searched for"},
      {{sampling, two_shards}, "--sampling translates with one rank"},
  };
  for (size_t i = 0; i < std::size(cases); ++i) EXPECT_THAT(complaint(cases[i].changes), testing::StartsWith(cases[i].says)) << i;
}

TEST(TranslateOptions, ThatGoTogetherAreTaken) {
  const std::vector<Change> good[] = {
      {},
      {document, german, glossary, memory},
      {document, leave_others},
      {sampling, four_best, confidence},
      {two_models, four_best, alignment, word_scores, tabs},
      {two_models,
       [](TranslateOptions& o) {
         o.weights = {0, 2};
       }},
      {two_shards, prefixes, attention},
      {source_pieces, target_pieces, [](TranslateOptions& o) { o.lines.alignment = AlignmentUnit::pieces; }},
      {leave_others, glossary, memory}};
  for (size_t i = 0; i < std::size(good); ++i) EXPECT_EQ(complaint(good[i]), "") << i;
}

}  // namespace
}  // namespace starling
