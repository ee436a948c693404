// The library as programs use it: through its headers alone, against what the program prints.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <omp.h>

#include <cstdio>
#include <fstream>
#include <functional>
#include <map>
#include <thread>

#include "output.h"
#include "starling.h"
#include "starling/metrics.h"
#include "starling/translator.h"
#include "starling/version.h"
#include "tests/own_directory.h"

namespace {

using starling::Error;
using starling::ErrorKind;
using starling::Format;
using starling::Hypothesis;
using starling::TranslateOptions;
using starling::Translation;
using starling::Translator;
using testing::HasSubstr;

using library_test::lines_of;
using library_test::output_of;

const std::string kModels = std::string(STARLING_SOURCE_DIR) + "/tests/fixtures/models/";

std::vector<std::string> printed(const std::string& model, const std::string& options) {
  return lines_of(output_of(std::string(STARLING_BINARY) + " translate --quiet -m " + kModels + model + "/model --precision f32 --input " +
                            kModels + "source.en " + options));
}

std::vector<std::string> sources() {
  std::ifstream file(kModels + "source.en");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

const Translator& translator(const std::string& model = "pre") {
  static std::map<std::string, Translator> all;
  auto found = all.find(model);
  if (found == all.end()) found = all.emplace(model, Translator(kModels + model + "/model", {.precision = "f32", .threads = 2})).first;
  return found->second;
}

std::vector<std::string> texts(const std::vector<Translation>& translations) {
  std::vector<std::string> all;
  for (const Translation& t : translations) all.push_back(t.text());
  return all;
}

ErrorKind kind_of(const std::function<void()>& call, const std::string& says) {
  try {
    call();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr(says));
    return e.kind();
  }
  ADD_FAILURE() << "nothing was thrown: " << says;
  return ErrorKind::internal;
}

TEST(Library, TranslatesAsTheProgramDoes) {
  for (const char* model : {"pre", "post", "gnmt"}) {
    EXPECT_EQ(texts(translator(model).translate(sources())), printed(model, "")) << model;
    EXPECT_EQ(texts(translator(model).translate(sources(), {.beam = 1})), printed(model, "--beam 1")) << model;
  }
  const TranslateOptions options{.beam = 3, .length_penalty = 2, .max_length_offset = 3, .suppress = {{"▁a"}}, .no_repeat_ngram = 2};
  EXPECT_EQ(texts(translator().translate(sources(), options)),
            printed("pre", "--beam 3 --length-penalty 2 --max-length-offset 3 --suppress ▁a --no-repeat-ngram 2"));
}

TEST(Library, ListsAndScoresAreThoseOfTheProgram) {
  std::vector<std::string> lines;
  size_t number = 0;
  for (const Translation& t : translator().translate(sources(), {.n_best = 3})) {
    ASSERT_EQ(t.hypotheses.size(), 3u);
    for (const auto& h : t.hypotheses) {
      char numbers[128];
      std::snprintf(numbers, sizeof numbers, "%.6f ||| %.6f", h.log_probability, h.score);
      lines.push_back(std::to_string(number) + " ||| " + h.text + " ||| " + numbers);
      EXPECT_EQ(translator().join_target_tokens(h.tokens), h.text);
    }
    ++number;
  }
  EXPECT_EQ(lines, printed("pre", "--n-best 3"));
}

TEST(Library, AlignmentsAreThoseOfTheProgram) {
  std::vector<std::string> lines;
  for (const Translation& t : translator().translate(sources(), {.alignment = true})) {
    std::string text = t.text() + " |||";
    for (const auto& [s, to] : t.hypotheses.front().alignment) text += " " + std::to_string(s) + "-" + std::to_string(to);
    lines.push_back(text);
  }
  EXPECT_EQ(lines, printed("pre", "--alignment pieces"));
}

TEST(Library, TokensGiveTheTranslationOfTheirText) {
  std::vector<std::vector<std::string>> tokens, ended;
  for (const std::string& line : sources()) {
    tokens.push_back(translator().source_tokens(line));
    ended.push_back(tokens.back());
    if (!ended.back().empty()) ended.back().push_back("</s>");
  }
  const std::vector<std::string> expected = texts(translator().translate(sources()));
  EXPECT_EQ(texts(translator().translate_tokens(tokens)), expected);
  EXPECT_EQ(texts(translator().translate_tokens(ended)), expected);
  EXPECT_EQ(kind_of([] { translator().translate_tokens({{"a b"}}); }, "has a space"), ErrorKind::usage);
  const std::vector<std::string> unknown = texts(translator().translate_tokens({{}, {"nosuchpiece"}, {"<unk>"}}));
  ASSERT_EQ(unknown.size(), 3u);
  EXPECT_EQ(unknown[0], "");
  EXPECT_EQ(unknown[1], unknown[2]);
}

TEST(Library, EightThreadsGetWhatOneGets) {
  const std::vector<std::string> all = sources(), expected = texts(translator().translate(all));
  std::vector<std::vector<std::string>> results(8);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < results.size(); ++t)
    threads.emplace_back([&, t] {
      for (size_t i = t; i < all.size(); i += 3)
        results[t].push_back(translator().translate(all[i], {.n_best = 1 + static_cast<int>(t % 2)}));
    });
  for (std::thread& thread : threads) thread.join();
  for (size_t t = 0; t < results.size(); ++t)
    for (size_t i = t, n = 0; i < all.size(); i += 3, ++n) EXPECT_EQ(results[t][n], expected[i]) << t << " " << i;
}

TEST(Library, AnswersLater) {
  auto future = translator().translate_async(sources());
  std::promise<std::vector<std::string>> promise;
  translator().translate_async(sources(), {}, [&](std::vector<Translation> translations, const std::exception_ptr& error) {
    EXPECT_FALSE(error);
    promise.set_value(texts(translations));
  });
  EXPECT_EQ(promise.get_future().get(), texts(future.get()));
  EXPECT_TRUE(translator().translate(std::vector<std::string>()).empty());
  EXPECT_EQ(translator().translate("  "), "");
}

TEST(Library, WhatIsAskedForIsTranslatedBeforeTheEnd) {
  std::future<std::vector<Translation>> future;
  {
    const Translator own(kModels + "pre/model", {.threads = 1});
    future = own.translate_async(sources());
  }
  EXPECT_EQ(future.get().size(), sources().size());
}

TEST(Library, LongSourcesAreCutAndSaySo) {
  const Translator own(kModels + "pre/model", {.precision = "f32", .threads = 1, .max_source_tokens = 3});
  std::string longer = sources().front();
  const std::vector<std::string> tokens = own.source_tokens(longer);
  ASSERT_GT(tokens.size(), 3u);
  const Translation t = own.translate(std::vector<std::string>{longer}).front();
  EXPECT_TRUE(t.truncated);
  EXPECT_EQ(t.text(), own.translate_tokens({{tokens[0], tokens[1], tokens[2]}}).front().text());
  EXPECT_TRUE(own.translate_tokens({tokens}).front().truncated);
  EXPECT_FALSE(own.translate_tokens({{tokens[0], tokens[1], tokens[2], "</s>"}}).front().truncated);
}

TEST(Library, KeepsMarkupAndLines) {
  const std::string a = sources()[0], b = sources()[1];
  EXPECT_EQ(translator().translate_document(a + "\n\n  " + b + "\n"),
            translator().translate(a) + "\n\n  " + translator().translate(b) + "\n");
  const std::string html = translator().translate_document("<p class=\"x\">" + a + "</p>", Format::html);
  EXPECT_THAT(html, testing::StartsWith("<p class=\"x\">"));
  EXPECT_THAT(html, testing::EndsWith("</p>"));
}

TEST(Library, ScoresAsTheProgramDoes) {
  const std::vector<std::string> from = sources(), to = texts(translator().translate(from));
  const starling::OwnDirectory directory;
  const std::string target = directory.file("target");
  {
    std::ofstream file(target);
    for (const std::string& line : to) file << line << "\n";
  }
  const std::vector<std::string> lines = lines_of(output_of(std::string(STARLING_BINARY) + " score -m " + kModels + "pre/model --source " +
                                                            kModels + "source.en --target " + target + " 2>/dev/null"));
  const auto scores = translator().score(from, to);
  ASSERT_EQ(lines.size(), scores.size());
  std::vector<std::vector<std::string>> source_tokens, target_tokens;
  for (size_t i = 0; i < scores.size(); ++i) {
    EXPECT_NEAR(std::stod(lines[i]), scores[i].log_probability, 1e-4);
    EXPECT_EQ(scores[i].tokens.back(), "</s>");
    source_tokens.push_back(translator().source_tokens(from[i]));
    target_tokens.push_back(translator().target_tokens(to[i]));
  }
  const auto of_tokens = translator().score_tokens(source_tokens, target_tokens);
  for (size_t i = 0; i < scores.size(); ++i) EXPECT_EQ(of_tokens[i].log_probabilities, scores[i].log_probabilities);
  EXPECT_EQ(kind_of([] { translator().score({"a"}, {}); }, "1 sources and 0 targets"), ErrorKind::usage);
}

TEST(Library, ErrorsSayWhatIsWrong) {
  EXPECT_EQ(kind_of([] { Translator("/nowhere/at/all"); }, "/nowhere/at/all"), ErrorKind::usage);
  EXPECT_EQ(kind_of([] { Translator(kModels + "pre/model", {.device = "abacus"}); }, "abacus"), ErrorKind::usage);
  EXPECT_EQ(kind_of([] { translator().translate("x", {.beam = 0}); }, "beam: 0 is not allowed"), ErrorKind::usage);
  EXPECT_EQ(kind_of([] { translator().translate("x", {.beam = 2, .n_best = 3}); }, "n_best 3 is more than the beam of 2"),
            ErrorKind::usage);
  EXPECT_EQ(kind_of([] { translator().translate("x", {.source_prefix = ">>xx<<"}); }, ">>xx<<"), ErrorKind::usage);
  EXPECT_EQ(kind_of([] { translator().translate(std::string("a\0b", 3), {}); }, "sentence 0: byte 1 is a NUL"), ErrorKind::data);
  EXPECT_EQ(kind_of([] { starling::evaluate("meteor", {"a"}, {{"a"}}); }, "meteor"), ErrorKind::usage);
  EXPECT_EQ(kind_of([] { starling::evaluate("bleu", {"a"}, {{"a", "b"}}); }, "1"), ErrorKind::data);
}

TEST(Library, SaysWhatAModelIs) {
  const starling::ModelInfo info = starling::describe_model(kModels + "gnmt/model");
  EXPECT_EQ(info.architecture, "gnmt");
  EXPECT_EQ(info.source_pieces, translator("gnmt").model().source_pieces);
  EXPECT_FALSE(info.quantized);
  EXPECT_STREQ(starling::version(), STARLING_VERSION);
  EXPECT_THAT(translator().machine(), HasSubstr(omp_get_thread_limit() < 2 ? "1 thread," : "2 threads,"));
}

TEST(Library, ShowsItsInterfaceAndNothingElse) {
  for (const std::string& line : lines_of(output_of("nm -DC --defined-only " STARLING_LIBRARY))) {
    const std::string name = line.substr(std::min(line.size(), line.find(' ') + 3));
    EXPECT_TRUE(name.find("starling::v0::") != std::string::npos || name.starts_with("starling_") ||
                line.find(" V ") != std::string::npos || line.find(" W ") != std::string::npos || line.find(" u ") != std::string::npos)
        << line;
  }
}

TEST(CInterface, TranslatesWithOptions) {
  EXPECT_EQ(starling_open("/nowhere", nullptr, 1), nullptr);
  EXPECT_THAT(starling_error(), HasSubstr("/nowhere"));
  EXPECT_EQ(starling_open(nullptr, nullptr, 1), nullptr);
  starling_translator* t = starling_open((kModels + "pre/model").c_str(), "cpu:f32", 1);
  if (!t) t = starling_open((kModels + "pre/model").c_str(), "cpu", 1);
  ASSERT_NE(t, nullptr) << starling_error();
  const std::string source = sources().front();
  const char* sentences[] = {source.c_str(), ""};
  starling_options o;
  starling_default_options(&o);
  o.n_best = 2;
  o.alignment = 1;
  starling_result* r = starling_translate(t, sentences, 2, &o);
  ASSERT_NE(r, nullptr) << starling_error();
  EXPECT_EQ(starling_sentences(r), 2u);
  const Translator same(kModels + "pre/model", {.device = "cpu", .threads = 1});
  const Translation expected = same.translate(std::vector<std::string>{source}, {.n_best = 2, .alignment = true}).front();
  ASSERT_EQ(expected.hypotheses.size(), 2u);
  for (size_t n = 0; n < 2; ++n) {
    const Hypothesis& h = expected.hypotheses[n];
    EXPECT_EQ(starling_text(r, 0, n), h.text);
    EXPECT_EQ(starling_score(r, 0, n), h.score);
    EXPECT_EQ(starling_log_probability(r, 0, n), h.log_probability);
    ASSERT_EQ(starling_tokens(r, 0, n), h.tokens.size());
    for (size_t i = 0; i < h.tokens.size(); ++i) EXPECT_EQ(starling_token(r, 0, n, i), h.tokens[i]);
    ASSERT_EQ(starling_links(r, 0, n), h.alignment.size());
    for (size_t i = 0; i < h.alignment.size(); ++i) {
      size_t from = 9, to = 9;
      starling_link(r, 0, n, i, &from, &to);
      EXPECT_EQ(std::pair(static_cast<int>(from), static_cast<int>(to)), h.alignment[i]);
    }
  }
  EXPECT_EQ(starling_translations(r, 0), 2u);
  EXPECT_EQ(starling_translations(r, 7), 0u);
  EXPECT_GE(starling_score(r, 0, 0), starling_score(r, 0, 1));
  EXPECT_LT(starling_log_probability(r, 0, 0), 0);
  EXPECT_STREQ(starling_text(r, 1, 0), "");
  EXPECT_EQ(starling_text(r, 2, 0), nullptr);
  EXPECT_GT(starling_tokens(r, 0, 0), 0u);
  EXPECT_NE(starling_token(r, 0, 0, 0), nullptr);
  EXPECT_EQ(starling_token(r, 0, 0, 1000), nullptr);
  size_t from = 9, to = 9;
  ASSERT_GT(starling_links(r, 0, 0), 0u);
  starling_link(r, 0, 0, 0, &from, &to);
  EXPECT_LT(to, starling_tokens(r, 0, 0));
  starling_free_result(r);
  o.beam = -5;
  EXPECT_EQ(starling_translate(t, sentences, 2, &o), nullptr);
  EXPECT_THAT(starling_error(), HasSubstr("beam: -5"));
  char* document = starling_translate_document(t, (source + "\n").c_str(), 0, nullptr);
  ASSERT_NE(document, nullptr);
  EXPECT_EQ(std::string(document).back(), '\n');
  EXPECT_EQ(document, same.translate_document(source + "\n", Format::text));
  starling_free_string(document);
  starling_close(t);
  starling_close(nullptr);
}

}  // namespace
