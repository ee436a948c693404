// Models as they are named, loaded and replaced while the server runs.
#include "serve/models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <omp.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>

#include "base/resource_error.h"
#include "decode/framing.h"
#include "decode/search_need.h"
#include "decode/translator.h"
#include "serve/directions.h"
#include "tests/files/forwarding_files.h"
#include "tests/serve/fixture_model.h"
#include "text/vocabulary_format.h"

namespace starling {
namespace {

using testing::HasSubstr;

// A copy of the model in a directory of its own, which tests may change.
class ReloadTest : public testing::Test {
 protected:
  ReloadTest() {
    std::filesystem::remove_all(directory_);
    std::filesystem::copy(kModel, directory_);
    std::filesystem::remove(directory_ + "/manifest.json");  // files of a directory with one must be as it says
    models_.emplace(std::vector<ModelSource>{parse_model_source("en-de=" + directory_)}, ModelOptions{.compute = {"f32", 1}}, *files_,
                    metrics_);
    models_->load();
    first_ = models_->find("en", "de").get();
  }
  ~ReloadTest() override { std::filesystem::remove_all(directory_); }
  bool replaced() const { return models_->find("en", "de").get() != first_; }
  void change(const std::string& name, const std::string& text) { std::ofstream(directory_ + "/" + name, std::ios::binary) << text; }
  std::string text_of(const std::string& name) const {
    std::ifstream in(directory_ + "/" + name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  const std::string directory_ = testing::TempDir() + "/serve_reload_" + std::to_string(getpid());
  std::unique_ptr<FileSystem> files_ = real_file_system();
  Metrics metrics_;
  std::optional<ModelSet> models_;
  const ServedModel* first_ = nullptr;
};

TEST_F(ReloadTest, TakesAChangedModelWhenItsFilesHaveSettled) {
  const auto translation = models_->find("en", "de")->translate({"a small house"}, {"en", "de"});
  EXPECT_TRUE(models_->reload(false).empty());
  change("model.safetensors", text_of("model.safetensors"));
  EXPECT_TRUE(models_->reload(false).empty());  // perhaps still being written
  EXPECT_FALSE(replaced());
  const auto said = models_->reload(false);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said[0], "en to de: now " + directory_ + ", step 0");
  EXPECT_TRUE(replaced());
  EXPECT_TRUE(models_->reload(false).empty());
  EXPECT_EQ(models_->find("en", "de")->translate({"a small house"}, {"en", "de"})[0][0].text, translation[0][0].text);
  EXPECT_EQ(metrics_.value("starling_reloads_total", "result=\"swapped\""), 1);
}

// Its vocabulary has the tags of its target languages. A newer model is held against what was translated in each direction.
TEST_F(ReloadTest, AModelOfSeveralDirectionsServesEach) {
  const Vocabulary plain = Vocabulary::load(directory_ + "/vocab.spm");
  std::vector<std::string> pieces;
  for (int32_t id = 0; id < plain.size(); ++id) pieces.push_back(plain.piece(id));
  pieces.end()[-1] = ">>de<<", pieces.end()[-2] = ">>fr<<";
  change("vocab.spm", vocabulary_format::renumbered(plain.bytes(), {pieces, {}}, "vocab.spm"));
  std::string config = text_of("config.yml");
  config.insert(config.find("about:\n") + 7, "  directions: [\"en:de\", \"en:fr\"]\n");
  change("config.yml", config);
  ModelSet models({parse_model_source(directory_)}, ModelOptions{.compute = {"f32", 1}}, *files_, metrics_);
  models.load();
  EXPECT_EQ(models.directions(), (std::vector<Direction>{{"en", "de"}, {"en", "fr"}}));
  const LoadedModel loaded = load_model(*files_, directory_, DeviceChoice{"f32", 1});
  const ModelDescription& d = loaded.description;
  for (const std::string target : {"de", "fr"}) {
    const auto model = models.find("en", target);
    ASSERT_EQ(model, models.find("en", "de")) << "one model";
    Translator alone(*loaded.model, d.vocabularies, into_language(d.search, d, target));
    EXPECT_EQ(model->search({"en", target}, 1).source_prefix_ids, std::vector{d.vocabularies.source().id_of(language_tag(target))});
    EXPECT_EQ(model->translate({"a small house"}, {"en", target})[0][0].text,
              alone.translate(std::vector<std::string>{"a small house"})[0][0].text);
  }
  EXPECT_THAT(models.reload(true), testing::ElementsAre(testing::StartsWith("en to de, en to fr: now " + directory_)));
  EXPECT_THROW(ModelSet({parse_model_source(directory_), parse_model_source("en-fr=" + kModel)}, ModelOptions{.compute = {"f32", 1}},
                        *files_, metrics_)
                   .load(),
               ConfigError);
}

// YAML of many short values takes 250 times its bytes.
TEST_F(ReloadTest, AConfigurationOfAStrangerIsNoLongerThanOnesOfOurs) {
  std::string directions, many = "a: [";
  for (int i = 0; i < 10000; ++i) directions += fmt::format("\"a{0:03}-Abcd:b{0:03}-Efgh\", ", i);
  while (many.size() < 300'000) many += "1,";
  const std::string own = text_of("config.yml");
  const auto said = [&](const std::string& config) {
    change("config.yml", config);
    try {
      load_model(*files_, directory_, DeviceChoice{"f32", 1});
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_THAT(said(many + "]\n"), testing::HasSubstr("config.yml: is larger than 262144 bytes"));
  EXPECT_EQ(said("about:\n  directions: [" + directions + "]\n" + own.substr(7)), "");
}

// An imported model's vocabulary says its tags, and the client need not call the languages as they do.
TEST_F(ReloadTest, AnImportedModelServesEachLanguageThatItHasATagFor) {
  const Vocabulary plain = Vocabulary::load(directory_ + "/vocab.spm");
  std::vector<std::string> pieces;
  for (int32_t id = 0; id < plain.size(); ++id) pieces.push_back(plain.piece(id));
  pieces.end()[-1] = ">>cmn_Hans<<", pieces.end()[-2] = ">>por<<";
  change("vocab.spm", vocabulary_format::renumbered(plain.bytes(), {pieces, {}}, "vocab.spm"));
  std::string config = text_of("config.yml");
  config.insert(config.find("about:\n") + 7, "  source-language: en\n");
  change("config.yml", config);
  ModelSet models({parse_model_source(directory_)}, ModelOptions{.compute = {"f32", 1}}, *files_, metrics_);
  models.load();
  EXPECT_EQ(models.directions(), (std::vector<Direction>{{"en", "cmn-Hans"}, {"en", "por"}}));
  const auto model = models.find("en", "por");
  const Vocabulary& v = model->model().description.vocabularies.source();
  EXPECT_EQ(model->search({"en", "por"}, 1).source_prefix_ids, std::vector{v.id_of(">>por<<")});
  EXPECT_EQ(model->search({"en", "cmn-Hans"}, 1).source_prefix_ids, std::vector{v.id_of(">>cmn_Hans<<")});
  EXPECT_EQ(route_between(models.directions(), "en", "pt", {}).legs, (std::vector<Direction>{{"en", "por"}}));
  EXPECT_EQ(route_between(models.directions(), "en", "zh-CN", {}).legs, (std::vector<Direction>{{"en", "cmn-Hans"}}));
  // One of them by the name that the command line gives it; without the source's language there are no directions.
  ModelSet one({parse_model_source("en-pt=" + directory_)}, ModelOptions{.compute = {"f32", 1}}, *files_, metrics_);
  one.load();
  EXPECT_EQ(one.find("en", "pt")->search({"en", "pt"}, 1).source_prefix_ids, std::vector{v.id_of(">>por<<")});
}

// Though the model calls its languages otherwise.
TEST_F(ReloadTest, ADirectionOfTheCommandLineWins) {
  std::string config = text_of("config.yml");
  config.insert(config.find("about:\n") + 7, "  source-language: en\n  target-language: pt-BR\n");
  change("config.yml", config);
  ModelSet models({parse_model_source("en-pb=" + directory_)}, ModelOptions{.compute = {"f32", 1}}, *files_, metrics_);
  models.load();
  EXPECT_EQ(models.directions(), (std::vector<Direction>{{"en", "pb"}}));
}

TEST_F(ReloadTest, KeepsTheModelWhenTheNewOneIsBroken) {
  const std::string whole = text_of("model.safetensors");
  change("model.safetensors", whole.substr(0, whole.size() / 2));
  const auto said = models_->reload(true);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_THAT(said[0], testing::StartsWith("en to de: the current model stays in use: " + directory_ + "/model.safetensors"));
  EXPECT_FALSE(replaced());
  models_->reload(false), models_->reload(false);
  EXPECT_EQ(metrics_.value("starling_reloads_total", "result=\"kept\""), 1);  // not tried again before it changes again
  change("model.safetensors", whole);
  EXPECT_TRUE(models_->reload(false).empty());
  EXPECT_EQ(models_->reload(false).size(), 1u);
  EXPECT_TRUE(replaced());
}

// A file system on which a model's weights are changed while they are read.
class DisturbedFiles : public ForwardingFiles {
 public:
  std::unique_ptr<MappedFile> map(const std::string& path) override {
    auto mapped = ForwardingFiles::map(path);
    if (disturb) disturb(path);
    return mapped;
  }
  std::function<void(const std::string& path)> disturb;
};

TEST_F(ReloadTest, KeepsTheModelWhoseFilesChangeWhileTheyAreRead) {
  DisturbedFiles files;
  ModelSet models({parse_model_source("en-de=" + directory_)}, ModelOptions{.compute = {"f32", 1}}, files, metrics_);
  models.load();
  const ServedModel* const before = models.find("en", "de").get();
  const std::string weights = text_of("model.safetensors");
  const auto kept = [&] {
    const std::vector<std::string> said = models.reload(true);
    files.disturb = nullptr;
    change("model.safetensors", weights);
    EXPECT_EQ(models.find("en", "de").get(), before);
    EXPECT_EQ(before->model().description.step, 0);
    return said.at(0);
  };
  // Cut short behind the header, which is read first, before and while the weights are.
  int maps = 0;
  for (const int at : {1, 2}) {
    maps = 0;
    files.disturb = [&](const std::string& path) {
      if (++maps == at) std::filesystem::resize_file(path, 8192);
    };
    EXPECT_THAT(kept(), HasSubstr("the current model stays in use: " + directory_ + "/model.safetensors: "));
  }
  // Written again with other bytes of the same size.
  maps = 0;
  files.disturb = [&](const std::string&) {
    if (++maps == 2) change("model.safetensors", std::string(100, 'x') + weights.substr(100));
  };
  EXPECT_THAT(kept(), HasSubstr("the current model stays in use: "));
  files.disturb = [&](const std::string&) { change("decode.yml", text_of("decode.yml")); };
  EXPECT_THAT(kept(), HasSubstr(directory_ + ": changed while it was being read, so it may be a mixture of two models; write a new "
                                             "model beside it, then rename it"));
  EXPECT_THAT(models.reload(true).at(0), HasSubstr("now " + directory_));
}

TEST_F(ReloadTest, KeepsTheModelWhenTheNewOneTranslatesQuiteDifferently) {
  const auto model = models_->find("en", "de");
  model->translate({"a small house", "the dog runs", "we go now"}, {"en", "de"});
  std::string weights = text_of("model.safetensors");
  // All numbers behind the header a little other: a model that was never trained.
  for (size_t i = weights.size() / 2; i + 4 < weights.size(); i += 4)
    weights[i + 3] = static_cast<char>(weights[i + 3] ^ (i % 8 == 0 ? 0x80 : 0));
  change("model.safetensors", weights);
  const auto said = models_->reload(true);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_THAT(said[0], HasSubstr("its translations of the last 4 sentences differ too much from the current model's (chrF "));
  EXPECT_FALSE(replaced());
}

TEST_F(ReloadTest, RequestsUnderWayEndWithTheModelTheyBeganWith) {
  std::atomic<int> done{0};
  auto old = models_->find("en", "de");
  old->scheduler().submit(std::vector<std::string>(40, std::string(50, 'x')), old->search(old->directions().front(), 1), 0, 1e18,
                          [&](Scheduler::Outcome o) { done += o.end == Scheduler::End::done && o.translations.size() == 40; });
  old.reset();
  EXPECT_EQ(models_->reload(true).size(), 1u);
  EXPECT_TRUE(replaced());
  models_->stop();
  EXPECT_EQ(done, 1);
}

// What one search of the model needs, written down from decode/search_need's own function: 8 sentences of 4 hypotheses.
int64_t need_of(int64_t beam, int64_t sentences, int64_t tokens) {
  const auto files = real_file_system();
  const LoadedModel model = load_model(*files, kModel, {"f32", 1});
  SearchOptions search = with_prefixes(model.description.search, model.description.vocabularies);
  search.beam = beam;
  return search_need(model.model->config(), model.model->vocabulary(), search, sentences, sentences * tokens, 4).total();
}

// Rows and bytes of two models where so much memory is free, or the complaint.
std::string budgets(int64_t bytes, int threads = 2) {
  const auto files = real_file_system();
  Metrics metrics;
  ModelOptions options{.compute = {"f32", threads}, .max_source_tokens = 500};
  options.search = [](SearchOptions o) { return o.beam = 4, o; };
  options.scheduler.rows = 32, options.scheduler.cache_bytes = 1 << 20;
  options.memory = [bytes] { return UsableMemory{bytes, "the test's limit"}; };
  ModelSet set({parse_model_source("en-de=" + kModel), parse_model_source("de-en=" + kModel)}, options, *files, metrics);
  try {
    set.load();
  } catch (const ResourceError& e) {
    return e.what();
  }
  std::string all;
  for (const auto& m : set.all()) all += fmt::format("{} rows {}; ", m->budget().rows, m->budget().bytes);
  return all;
}

TEST(ModelBudgets, RowsAreLoweredUntilTheLongestSentencesFit) {
  if (omp_get_thread_limit() < 2) GTEST_SKIP() << "one thread is allowed";
  const int64_t whole = 2 * need_of(4, 8, 500), half = 2 * need_of(4, 4, 500), least = 2 * need_of(11, 1, 500);
  ASSERT_GT(half, least);
  EXPECT_EQ(budgets(2 * whole + (1 << 20)), fmt::format("32 rows {0}; 32 rows {0}; ", whole));
  // The second model gets what the first and its cache leave.
  EXPECT_EQ(budgets(whole + half + (1 << 20)), fmt::format("32 rows {}; 16 rows {}; ", whole, half));
  EXPECT_EQ(budgets(whole - 1).substr(0, 8), "16 rows ");
  EXPECT_EQ(budgets(least - 1),
            fmt::format("{}: 2 threads, each with one sentence of 500 tokens, may take {} MiB, but usable is {} MiB, which is what the "
                        "test's limit leaves; lower --threads, --max-source-tokens, --beam or --max-alternatives, or serve fewer models",
                        kModel, (least + (1 << 20) - 1) >> 20, (least - 1) >> 20));
}

// Prefixes stand in front of each source, and of each translation.
TEST(ModelBudgets, CountPrefixes) {
  const auto files = real_file_system();
  ModelOptions options{.compute = {"f32", 1}, .max_source_tokens = 500};
  const ModelDescription model = describe_model(*files, kModel);
  const std::string a = model.vocabularies.source().piece(5), b = model.vocabularies.source().piece(6);
  options.search = [&](SearchOptions o) { return o.beam = 4, o.source_prefix = a + " " + b, o.target_prefix = b, o; };
  SearchOptions search = with_prefixes(model.search, model.vocabularies);
  search.beam = 4, search.target_prefix_ids = {6};
  const int64_t need = search_need(model.config, model.vocabularies.sizes(), search, 8, 8 * 502, 4).total();
  const FoundModel found = find_model(*files, parse_model_source("en-de=" + kModel), options);
  EXPECT_EQ(search_budget(found, options, {1 << 30, ""}).bytes, need);
}

TEST(ModelBudgets, ArePutInWords) {
  EXPECT_EQ((SearchBudget{32, 32, 2, 5 << 20}.text()), "2 threads with 32 rows take 5 MiB at most");
  EXPECT_EQ(
      (SearchBudget{8, 32, 1, 5 << 20}.text()),
      "1 thread with 8 rows take 5 MiB at most (32 rows would take more memory than there is; see --batch-rows, --max-source-tokens)");
}

TEST(ModelSources, AreReadFromTheCommandLine) {
  const auto text = [](const std::string& argument) {
    const ModelSource s = parse_model_source(argument);
    return s.direction ? s.direction->source + ">" + s.direction->target + " " + s.path : s.path;
  };
  EXPECT_EQ(text("run"), "run");
  EXPECT_EQ(text("en-de=run"), "en>de run");
  EXPECT_EQ(text("zh-Hant:pt-BR=a/b=c"), "zh-Hant>pt-BR a/b=c");
  EXPECT_EQ(text("./a=b"), "./a=b");
  for (const std::string bad : {"ende=x", "en-=x", "=x", "zh-Hant-en=x", "en:d e=x"})
    EXPECT_THROW(parse_model_source(bad), ConfigError) << bad;
}

TEST(ModelSets, RefuseModelsThatCannotBeServed) {
  const auto files = real_file_system();
  Metrics metrics;
  const auto complaint = [&](std::vector<std::string> models) {
    std::vector<ModelSource> sources;
    for (const auto& m : models) sources.push_back(parse_model_source(m));
    ModelSet set(sources, {.compute = {"f32", 1}}, *files, metrics);
    try {
      set.load();
    } catch (const Error& e) {
      EXPECT_FALSE(set.loaded());
      return std::string(e.what());
    }
    return std::string("none");
  };
  EXPECT_THAT(complaint({kModel}), HasSubstr("the model does not name its languages; give them: --model en-de="));
  EXPECT_THAT(complaint({"en-de=" + kModel, "EN-de=" + kModel}),
              HasSubstr("another model already translates from EN to de; leave out one of them"));
  EXPECT_THAT(complaint({"en-de=/nowhere"}), HasSubstr("/nowhere"));
}

}  // namespace
}  // namespace starling
