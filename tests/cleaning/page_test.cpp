// The report in a real browser: it counts again as the program does. Skipped without Chromium.
#include <gmock/gmock.h>

#include <fstream>
#include <random>

#include "cleaning/cleaner.h"
#include "config/config.h"
#include "data/line_reader.h"
#include "tests/own_directory.h"
#include "tests/serve/browser.h"

namespace starling {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

class CleaningPage : public testing::Test {
 protected:
  void SetUp() override {
    if (test::Browser::program().empty()) GTEST_SKIP() << "without Chromium";
    write();
    clean({});
    browser_.emplace();
    browser_->call("Page.navigate", {{"url", "file://" + own_.file("out-0/report.html")}});
    ASSERT_TRUE(browser_->becomes_true("window.starlingCleaning"));
  }
  // 900 pairs that differ in everything that is measured.
  void write() {
    std::mt19937 random(7);
    const std::vector<std::string> english = {"the", "house", "is",  "red",  "and", "we",  "go",   "home", "now", "with",
                                              "our", "dog",   "but", "then", "he",  "saw", "some", "old",  "men", "there"},
                                   german = {"das", "Haus", "ist",  "rot",  "und", "wir", "gehen",  "heim", "jetzt",  "mit",
                                             "dem", "Hund", "aber", "dann", "er",  "sah", "einige", "alte", "Männer", "dort"};
    std::ofstream text(own_.file("a.tsv")), scores(own_.file("a.scores"));
    for (int i = 0; i < 900; ++i) {
      std::string s, t;
      const size_t words = 1 + random() % 12, more = random() % 5 == 0 ? 9 : 0;
      for (size_t k = 0; k < words; ++k) s += english[random() % 20] + " ";
      for (size_t k = 0; k < words + more; ++k) t += (random() % 10 == 0 ? english : german)[random() % 20] + " ";
      if (random() % 6 == 0) s += std::to_string(random() % 10000), t += std::to_string(random() % 100);
      if (random() % 12 == 0) t += std::string(random() % 3 + 1, 'x') + " ja ja ja ja";
      if (random() % 20 == 0) t = s + "x";
      if (random() % 20 == 0) t += " — +-*/ :: ;; [] () ##";
      if (random() % 30 == 0) s += " <b>x</b>";
      if (random() % 30 == 0) t += " ещё слово";
      if (random() % 30 == 0) s += "Donaudampfschifffahrtsgesellschaftskapitän";
      if (random() % 50 == 0) t = "";
      if (random() % 8 == 0) s = "again " + std::to_string(random() % 5), t = "noch einmal " + std::to_string(random() % 5);
      if (i % 90 == 7)
        s = fmt::format("we saw the red house {} of the men", i), t = fmt::format("wir sahen das rote Haus {} der Männer", i);
      text << s << "\t" << t << "\n";
      scores << static_cast<double>(random() % 100000) / 1000 << "\n";
    }
    text << "<script>alert(1)</script>\t</script><b>nicht fett</b>\n";
    scores << "0.1\n";
  }
  int64_t clean(const CleanOptions& options) {
    CleanJob job;
    CorpusFiles corpus;
    corpus.tsv = own_.file("a.tsv");
    corpus.scores = own_.file("a.scores");
    job.data.train = {corpus};
    job.languages = {"en", "de", {}};
    job.options = options;
    job.output = own_.file("out-" + std::to_string(cleanings_++));
    return starling::clean(job, *real_file_system(), {}).corpora[0].kept;
  }
  // Moves a slider, or turns its rule off.
  void move(const std::string& key, double to) {
    browser_->value(
        fmt::format("(() => {{ const s = document.querySelector('[data-key=\"{}\"]'); s.disabled = false; s.value = {};"
                    " s.dispatchEvent(new Event('input')); }})()",
                    key, to));
  }
  void press(const std::string& key) { browser_->value(fmt::format("document.querySelector('[data-asked=\"{}\"]').click()", key)); }
  int64_t kept() { return browser_->value("starlingCleaning.outcome().kept").get<int64_t>(); }

  const OwnDirectory own_;
  std::optional<test::Browser> browser_;
  int cleanings_ = 0;
};

TEST_F(CleaningPage, CountsAgainAsTheProgramDoes) {
  const int64_t first = kept();
  EXPECT_EQ(first, clean({}));
  EXPECT_GT(first, 300);
  const auto options_of = [&] {  // of the configuration that the page shows
    CleanOptions options;
    const std::string yaml = browser_->value("starlingCleaning.yaml()").get<std::string>();
    if (!yaml.empty()) ConfigDocument(yaml, "page").read(config_sections("clean", "", options));
    return options;
  };
  EXPECT_EQ(options_of(), CleanOptions());
  std::vector<int64_t> counts{first};
  const auto check = [&](const std::string& what) {
    counts.push_back(kept());
    EXPECT_EQ(counts.back(), clean(options_of())) << what;
  };
  for (const auto& [key, value] : {std::pair("max-ratio", 1.4),
                                   {"max-words", 9.0},
                                   {"max-characters", 30.0},
                                   {"max-word", 12.0},
                                   {"min-letters", 0.8},
                                   {"min-script", 0.95},
                                   {"max-similarity", 0.45},
                                   {"min-digits", 0.9},
                                   {"max-repetitions", 5.0},
                                   {"min-score", 30.5}}) {
    if (key == std::string("min-score")) press(key);
    move(key, value);
    check(key);
    EXPECT_NE(counts[counts.size() - 2], counts.back()) << key << " changes nothing";
  }
  for (const char* key : {"markup", "max-ratio", "max-words", "max-similarity", "min-score"}) {
    press(key);
    check(std::string("without ") + key);
  }
}

// Also where pairs were dropped because they came too often, or were not among the best.
TEST_F(CleaningPage, AgreesWithWhatComesAfterCopies) {
  CleanOptions options;
  options.max_same_source = 1;
  options.best_share = 0.6;
  options.language = false;
  const int64_t expected = clean(options);
  browser_->call("Page.navigate", {{"url", "file://" + own_.file("out-1/report.html")}});
  ASSERT_TRUE(browser_->becomes_true("window.starlingCleaning && starlingCleaning.report.standard.marks !== undefined"));
  EXPECT_EQ(kept(), expected);
  EXPECT_EQ(browser_->value("starlingCleaning.outcome().more + starlingCleaning.outcome().fewer"), 0);
  EXPECT_TRUE(browser_->value("document.querySelector('[data-asked=\"language\"]').disabled").get<bool>()) << "it was not looked for";
}

TEST_F(CleaningPage, ShowsNearCopiesBesideWhatStays) {
  CleanOptions options;
  options.near_copies = 0.5;
  const int64_t expected = clean(options);
  EXPECT_LT(expected, clean({}));
  browser_->call("Page.navigate", {{"url", "file://" + own_.file("out-1/report.html")}});
  ASSERT_TRUE(browser_->becomes_true("window.starlingCleaning && starlingCleaning.report.corpora[0].dropped.at(-1) > 0"));
  EXPECT_EQ(kept(), expected);
  EXPECT_EQ(browser_->value("starlingCleaning.outcome().more + starlingCleaning.outcome().fewer"), 0);
  EXPECT_EQ(browser_->value("starlingCleaning.yaml()"), "");
  browser_->value("[...document.querySelectorAll('#corpora button')].at(-1).click()");
  const std::string rows = "document.querySelectorAll('#pairs tbody tr').length";
  EXPECT_GE(browser_->value(rows).get<int>(), 1);
  EXPECT_EQ(browser_->value("document.querySelectorAll('#pairs .original').length").get<int>(), 2 * browser_->value(rows).get<int>());
  EXPECT_THAT(browser_->value("document.querySelector('#pairs tbody td').innerText").get<std::string>(),
              testing::AllOf(HasSubstr("near-copy"), HasSubstr("like line ")));
}

TEST_F(CleaningPage, ShowsPairsAsText) {
  EXPECT_EQ(browser_->value("document.querySelectorAll('main script').length"), 0);
  browser_->value("(() => { const f = document.getElementById('find'); f.value = 'alert'; f.dispatchEvent(new Event('input')); })()");
  EXPECT_THAT(browser_->value("document.getElementById('pairs').innerText").get<std::string>(), HasSubstr("<script>alert(1)</script>"));
  EXPECT_THAT(browser_->value("document.getElementById('total').innerText").get<std::string>(), HasSubstr("of 901 pairs kept"));
  EXPECT_THAT(browser_->value("document.getElementById('frequent').innerText").get<std::string>(), HasSubstr("again "));
  EXPECT_GE(browser_->value("document.querySelectorAll('#charts figure').length").get<int>(), 10);
  browser_->value("document.getElementById('invisible').click()");
  EXPECT_GT(browser_->value("document.querySelectorAll('#frequent td').length").get<int>(), 2);
}

TEST_F(CleaningPage, FitsAPhone) {
  browser_->call("Emulation.setDeviceMetricsOverride", {{"width", 400}, {"height", 800}, {"deviceScaleFactor", 1}, {"mobile", true}});
  EXPECT_LE(browser_->value("document.documentElement.scrollWidth").get<int>(), 400);
}

}  // namespace
}  // namespace starling
