// Models that are loaded when requests ask for them, and dropped when others need their memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "decode/framing.h"
#include "decode/search_need.h"
#include "serve/models.h"
#include "tests/serve/fixture_model.h"

namespace starling {
namespace {

using testing::HasSubstr;

struct Given {
  std::shared_ptr<ServedModel> model;
  std::optional<ApiError> error;
};

class OnDemandTest : public testing::Test {
 protected:
  static constexpr double kNever = 1e18;
  ~OnDemandTest() override { std::filesystem::remove_all(directory_); }
  // Makes the set of models with these sources ("en-de=DIR") and so much memory.
  void start(const std::vector<std::string>& models, int64_t memory = int64_t{1} << 40) {
    std::vector<ModelSource> sources;
    for (const std::string& m : models) sources.push_back(parse_model_source(m));
    start(std::move(sources), memory);
  }
  void start(std::vector<ModelSource> sources, int64_t memory) {
    options_.compute = {"f32", 1};
    options_.max_source_tokens = 100;
    options_.scheduler.rows = 16, options_.scheduler.cache_bytes = 1000;
    options_.on_demand.on = true;
    options_.on_demand.memory = memory;
    options_.on_demand.say = [this](const std::string& line) {
      const std::lock_guard lock(said_mutex_);
      said_ += line + "\n";
    };
    models_.emplace(std::move(sources), options_, *files_, metrics_);
    models_->load();
  }
  std::string said() {
    const std::lock_guard lock(said_mutex_);
    return said_;
  }
  // An answer that may be waited for, though not for ever.
  struct Answer {
    Given get() {
      if (future.wait_for(std::chrono::seconds(20)) == std::future_status::ready) return future.get();
      ADD_FAILURE() << "no answer";
      return {nullptr, ApiError(0, "none")};
    }
    bool is_there() const { return future.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }
    std::future<Given> future;
  };
  Answer ask(const std::string& source, const std::string& target, double deadline = kNever) {
    auto promise = std::make_shared<std::promise<Given>>();
    models_->use({source, target}, deadline, [promise](auto model, auto error) {
      promise->set_value({std::move(model), std::move(error)});
    });
    return {promise->get_future()};
  }
  std::shared_ptr<ServedModel> get(const std::string& source, const std::string& target) {
    const Given given = ask(source, target).get();
    EXPECT_TRUE(given.model) << given.error->what();
    return given.model;
  }
  // The loaded models: "ab-en cd-en".
  std::string loaded() const {
    std::string all;
    for (const auto& m : models_->all())
      all += (all.empty() ? "" : " ") + m->directions().front().source + "-" + m->directions().front().target;
    return all;
  }
  // What one of these models takes: weights in f32 with their packed copies, the widest search or as many usual ones as fit into the rows,
  // the cache.
  int64_t bytes_of_one() const {
    const LoadedModel model = load_model(*files_, kModel, {"f32", 1});
    const SearchOptions usual = with_prefixes(model.description.search, model.description.vocabularies);
    SearchOptions widest = usual;
    widest.beam = widest.n_best = 11;
    const auto need = [&](const SearchOptions& search, int64_t sentences) {
      return search_need(model.model->config(), model.model->vocabulary(), search, sentences, 100 * sentences, 4).total();
    };
    const int64_t searches = std::max(need(usual, 16 / usual.beam), need(widest, 1));
    return model.model->parameters().count() * 8 + searches + 1000;
  }

  const std::string directory_ = testing::TempDir() + "/serve_on_demand_" + std::to_string(getpid());
  std::unique_ptr<FileSystem> files_ = real_file_system();
  Metrics metrics_;
  ModelOptions options_;
  std::mutex said_mutex_;
  std::string said_;
  std::optional<ModelSet> models_;
};

std::vector<std::string> twenty() {
  std::vector<std::string> all;
  for (char c = 'a'; c < 'a' + 20; ++c) all.push_back(fmt::format("x{}-en={}", c, kModel));
  return all;
}

TEST_F(OnDemandTest, LoadsAModelWhenItIsFirstAskedFor) {
  start(twenty());
  EXPECT_TRUE(models_->loaded());
  EXPECT_EQ(models_->directions().size(), 20u);
  EXPECT_EQ(loaded(), "");
  const auto model = get("xc", "en");
  EXPECT_EQ(loaded(), "xc-en");
  EXPECT_EQ(metrics_.value("starling_models_loaded"), 1);
  EXPECT_EQ(metrics_.value("starling_models_bytes"), static_cast<double>(bytes_of_one()));
  EXPECT_EQ(get("xc", "en"), model);
  EXPECT_EQ(metrics_.value("starling_model_loads_total", "result=\"loaded\""), 1);
  EXPECT_EQ(ask("xc", "de").get().error->status, 503);  // which no model has
}

TEST_F(OnDemandTest, ManyRequestsForAModelLoadItOnce) {
  start(twenty());
  std::vector<Answer> all;
  for (int i = 0; i < 30; ++i) all.push_back(ask(i % 2 ? "xa" : "xb", "en"));
  for (size_t i = 0; i < all.size(); ++i) {
    const auto model = all[i].get().model;
    EXPECT_EQ(model, models_->find(i % 2 ? "xa" : "xb", "en"));
  }
  EXPECT_EQ(metrics_.value("starling_model_loads_total", "result=\"loaded\""), 2);
}

TEST_F(OnDemandTest, DropsWhatWasNotAskedForLongest) {
  const int64_t one = bytes_of_one();
  start(twenty(), 2 * one);
  for (const char* source : {"xa", "xb", "xa", "xc"}) get(source, "en");
  EXPECT_EQ(loaded(), "xa-en xc-en");
  get("xd", "en");
  EXPECT_EQ(loaded(), "xc-en xd-en");
  get("xa", "en");  // again
  EXPECT_EQ(loaded(), "xa-en xd-en");
  EXPECT_EQ(metrics_.value("starling_model_drops_total"), 3);
  EXPECT_EQ(metrics_.value("starling_models_bytes"), static_cast<double>(2 * one));
  EXPECT_THAT(said(), HasSubstr("xb to en: unloaded, since others need its memory\n"));
  EXPECT_EQ(models_->directions().size(), 20u);
}

TEST_F(OnDemandTest, OneByteLessHoldsOneModelLess) {
  start(twenty(), 2 * bytes_of_one() - 1);
  get("xa", "en");
  get("xb", "en");
  EXPECT_EQ(loaded(), "xb-en");
}

TEST_F(OnDemandTest, AModelInUseIsNotDropped) {
  std::atomic<int> looked_at{0};
  options_.on_demand.usable = [&](const std::string& path, const OnDemand::Say&) { return ++looked_at, path; };
  start(twenty(), bytes_of_one());
  auto held = get("xa", "en");
  auto next = ask("xb", "en"), late = ask("xb", "en", 5);
  for (int i = 0; i < 20000 && (looked_at < 2 || models_->loading()); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_FALSE(next.is_there());
  EXPECT_EQ(loaded(), "xa-en");
  models_->expire(5);
  const Given refused = late.get();
  ASSERT_TRUE(refused.error);
  EXPECT_EQ(refused.error->status, 503);
  EXPECT_STREQ(refused.error->what(), "the models in use leave no memory for the one from xb to en; try again later");
  EXPECT_EQ(held->translate({"a small house"}, held->directions().front()).size(), 1u);
  held.reset();
  EXPECT_TRUE(next.get().model);
  EXPECT_EQ(loaded(), "xb-en");
}

TEST_F(OnDemandTest, ACancelledRequestHearsNothing) {
  start(twenty(), bytes_of_one());
  auto held = get("xa", "en");
  bool heard = false;
  const int64_t number = models_->use({"xb", "en"}, kNever, [&](auto, auto) { heard = true; });
  models_->cancel(number);
  held.reset();
  get("xc", "en");
  EXPECT_FALSE(heard);
}

TEST_F(OnDemandTest, AFailureIsAPauseAndIsToldOnce) {
  std::filesystem::create_directories(directory_);
  std::filesystem::copy(kModel, directory_ + "/model");
  std::filesystem::rename(directory_ + "/model/decode.yml", directory_ + "/decode.yml");
  options_.on_demand.retry_seconds = 1e6;
  start({"en-de=" + directory_ + "/model"});
  const Given first = ask("en", "de").get(), second = ask("en", "de").get();
  EXPECT_EQ(first.error->status, 503);
  EXPECT_STREQ(first.error->what(), "the model from en to de could not be loaded; the server's log says why; try again later");
  EXPECT_GT(second.error->retry_seconds, 1000);
  EXPECT_EQ(metrics_.value("starling_model_loads_total", "result=\"failed\""), 1);
  EXPECT_THAT(said(), testing::MatchesRegex("en to de: not loaded: [^\n]*decode.yml[^\n]*\n"));
  std::filesystem::rename(directory_ + "/decode.yml", directory_ + "/model/decode.yml");
  EXPECT_TRUE(models_->reload(true).empty());  // SIGHUP ends the pause
  EXPECT_TRUE(get("en", "de"));
}

TEST_F(OnDemandTest, AModelThatDoesNotFitAloneIsRefused) {
  start({"en-de=" + kModel}, 100'000);
  EXPECT_EQ(ask("en", "de").get().error->status, 503);
  EXPECT_THAT(said(), testing::AllOf(HasSubstr("en to de: not loaded: "), HasSubstr("which is what --memory of 0 MiB leaves")));
}

// Searches get fewer rows where the memory allows no more, as they do without --memory.
TEST_F(OnDemandTest, RowsAreLoweredToWhatFits) {
  start({"en-de=" + kModel}, bytes_of_one() - 1);
  EXPECT_EQ(get("en", "de")->budget().rows, 8);
}

TEST_F(OnDemandTest, AnImportKeepsOnlyItsOwnRequestsWaiting) {
  std::promise<void> imported;
  const auto done = imported.get_future().share();
  std::atomic<int> imports{0};
  std::filesystem::create_directories(directory_);
  const std::string package = directory_ + "/package";
  std::ofstream(package) << "foreign";
  options_.on_demand.usable = [&](const std::string& path, const OnDemand::Say& say) {
    if (path != package) return path;
    ++imports;
    say("importing " + path);
    done.wait();
    return kModel;
  };
  start({"pt-en=" + package, "en-de=" + kModel, "de-en=" + kModel});
  EXPECT_EQ(imports, 0);
  auto slow = ask("pt", "en");
  EXPECT_TRUE(get("en", "de"));
  EXPECT_TRUE(get("de", "en"));
  EXPECT_FALSE(slow.is_there());
  imported.set_value();
  EXPECT_TRUE(slow.get().model);
  EXPECT_THAT(said(), HasSubstr("importing " + package + "\n"));
  EXPECT_EQ(imports, 1);
}

// However many models cannot be imported, and however long that takes, one that has no need of it is loaded.
TEST_F(OnDemandTest, SeveralImportsKeepOnlyTheirOwnRequestsWaiting) {
  std::promise<void> given_up;
  const auto done = given_up.get_future().share();
  std::filesystem::create_directories(directory_);
  const auto foreign = [&](const std::string& path) { return path.starts_with(directory_); };
  std::atomic<int> at_once{0}, most{0};
  options_.on_demand.ready = [&](const std::string& path) { return !foreign(path); };
  options_.on_demand.usable = [&](const std::string& path, const OnDemand::Say&) -> std::string {
    if (!foreign(path)) return path;
    most = std::max<int>(most, ++at_once);
    done.wait();
    --at_once;
    throw DataError(path + ": is damaged");
  };
  std::vector<std::string> models{"en-de=" + kModel};
  for (const char* language : {"pt", "es", "it"}) {
    const std::string package = directory_ + "/" + language;
    std::ofstream(package) << "foreign";
    models.push_back(fmt::format("{}-en={}", language, package));
  }
  start(models);
  std::vector<Answer> slow;
  for (const char* language : {"pt", "es", "it"}) slow.push_back(ask(language, "en"));
  EXPECT_TRUE(get("en", "de"));
  for (const Answer& answer : slow) EXPECT_FALSE(answer.is_there());
  given_up.set_value();
  for (Answer& answer : slow) EXPECT_EQ(answer.get().error->status, 503);
  EXPECT_EQ(most, 1);
}

// A package for which there is no memory does not keep the server from starting.
TEST_F(OnDemandTest, APackageThatTakesTooMuchIsLeftOut) {
  options_.on_demand.state = [](const std::string& path) -> std::string {
    if (path.ends_with("bomb")) throw std::bad_alloc();
    return "";
  };
  start({parse_model_source("en-de=" + kModel), {std::nullopt, "/srv/packages/bomb", true}}, int64_t{1} << 40);
  EXPECT_EQ(models_->directions().size(), 1u);
  EXPECT_THAT(said(), HasSubstr("skipped: "));
}

// The languages are known before the model is read, and must then be those of the model.
TEST_F(OnDemandTest, APackageSaysItsLanguages) {
  options_.on_demand.foreign_languages = [](const std::string&) { return Languages{"pt", "en"}; };
  start({kModel});
  EXPECT_EQ(models_->directions(), (std::vector<Direction>{{"pt", "en"}}));
  EXPECT_EQ(ask("pt", "en").get().error->status, 503);
  EXPECT_THAT(said(), HasSubstr("pt to en: not loaded: " + kModel + ": the model does not name its languages"));
}

// What a client asks for and is left out gets the reason, without the paths of this machine.
TEST_F(OnDemandTest, WhatIsLeftOutHasAReason) {
  options_.on_demand.foreign_languages = [](const std::string& path) {
    return path.ends_with("broken") ? Languages{"pt", "en", {}} : Languages{};
  };
  options_.on_demand.state = [](const std::string& path) -> std::string {
    if (path.ends_with("broken")) throw DataError(path + ": a web page, not the file itself");
    return "";
  };
  std::vector<ModelSource> sources{parse_model_source("en-de=" + kModel), {std::nullopt, "/srv/packages/broken", true}};
  start(sources, int64_t{1} << 40);
  EXPECT_EQ(said(), "skipped: /srv/packages/broken: a web page, not the file itself\n");
  EXPECT_EQ(models_->left_out("pt", "en"), "broken: a web page, not the file itself");
  EXPECT_EQ(models_->left_out("en", "de"), "");
  EXPECT_EQ(models_->directions().size(), 1u);
}

TEST_F(OnDemandTest, ALoadThatTakesTooLongIsALateAnswer) {
  std::promise<void> read;
  const auto done = read.get_future().share();
  options_.on_demand.usable = [&](const std::string& path, const OnDemand::Say&) { return done.wait(), path; };
  start({"en-de=" + kModel});
  auto late = ask("en", "de", 5);
  models_->expire(6);
  EXPECT_EQ(late.get().error->status, 504);
  read.set_value();
  EXPECT_TRUE(get("en", "de"));  // it was loaded all the same
}

TEST_F(OnDemandTest, PackagesThatCannotBeServedAreLeftOut) {
  std::vector<ModelSource> sources;
  for (const char* source : {"en-de=", "", "EN-DE="}) sources.push_back(parse_model_source(source + kModel));
  sources[1].optional = sources[2].optional = true;
  start(sources, int64_t{1} << 40);
  EXPECT_EQ(models_->directions().size(), 1u);
  EXPECT_EQ(said(), "skipped: " + kModel + ": the model does not name its languages; give them: --model en-de=" + kModel +
                        "\nskipped: --model " + kModel + ": another model already translates from EN to DE; leave out one of them\n");
  EXPECT_THROW(ModelSet({parse_model_source(kModel)}, options_, *files_, metrics_).load(), ConfigError);
  EXPECT_THROW(ModelSet({parse_model_source("en-de=/nowhere")}, options_, *files_, metrics_).load(), ConfigError);
}

TEST_F(OnDemandTest, LoadedModelsAreReplacedAndOthersReadWhenAskedFor) {
  std::filesystem::create_directories(directory_);
  for (const char* name : {"/a", "/b"}) {
    std::filesystem::copy(kModel, directory_ + name);
    std::filesystem::remove(directory_ + name + "/manifest.json");
  }
  start({"en-de=" + directory_ + "/a", "de-en=" + directory_ + "/b"}, 2 * bytes_of_one());
  auto old = get("en", "de");
  for (const char* name : {"/a", "/b"}) std::ofstream(directory_ + name + "/decode.yml", std::ios::app) << "# changed\n";
  EXPECT_TRUE(models_->reload(false).empty());
  EXPECT_THAT(models_->reload(false), testing::ElementsAre("en to de: now " + directory_ + "/a, step 0"));
  EXPECT_NE(models_->find("en", "de"), old);
  EXPECT_EQ(loaded(), "en-de");
  // The first one is still in use, so there is no room for a third.
  const auto said = models_->reload(true);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_THAT(said[0], HasSubstr("en to de: the current model stays in use: " + directory_ + "/a: needs "));
}

TEST_F(OnDemandTest, WhatWaitsIsRefusedWhenTheServerStops) {
  start(twenty(), bytes_of_one());
  auto held = get("xa", "en");
  auto waiting = ask("xb", "en");
  std::thread stopper([&] { models_->stop(); });
  EXPECT_EQ(waiting.get().error->status, 503);
  held.reset();
  stopper.join();
  EXPECT_EQ(ask("xa", "en").get().error->status, 503);
}

}  // namespace
}  // namespace starling
