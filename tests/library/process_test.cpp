// The library in processes that fork, give up what they asked for, or pass on what is not text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "starling.h"
#include "starling/translator.h"

namespace {

using starling::Error;
using starling::ErrorKind;
using testing::HasSubstr;

const std::string kModel = std::string(STARLING_SOURCE_DIR) + "/tests/fixtures/models/pre/model";

std::string message_of(const std::function<void()>& call, ErrorKind kind) {
  try {
    call();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    return e.what();
  }
  return "nothing was thrown";
}

// Returns the status of a child that runs f(); -1 if it had to be killed.
int status_in_child(const std::function<int()>& f) {
  const pid_t child = fork();
  if (child == 0) _exit(f());
  int status = 0;
  for (int i = 0; i < 2000; ++i, usleep(10000))
    if (waitpid(child, &status, WNOHANG) == child) return WIFEXITED(status) ? WEXITSTATUS(status) : -2;
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  return -1;
}

TEST(ForkedProcess, IsToldToOpenItsOwnTranslator) {
  starling::Translator parent(kModel, {.precision = "f32", .threads = 2});
  const std::vector<std::string> lines(50, "Two men walk.");
  const double score = parent.score(lines, lines).front().log_probability;
  const std::string text = parent.translate(lines[0]);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // its threads wait
  const auto refused = [&](const std::function<void()>& call) {
    return message_of(call, ErrorKind::usage).find("open one here") != std::string::npos;
  };
  EXPECT_EQ(status_in_child([&] {
              if (!refused([&] { parent.translate("a"); })) return 1;
              if (!refused([&] { parent.score(lines, lines); })) return 2;
              if (!refused([&] { parent.translate_document("a"); })) return 3;
              if (!refused([&] { (void)parent.machine(); })) return 4;
              parent = starling::Translator(kModel, {.precision = "f32", .threads = 2});  // the parent's is not ended here
              if (parent.translate(lines[0]) != text) return 5;
              return parent.score(lines, lines).front().log_probability == score ? 0 : 6;
            }),
            0);
  EXPECT_EQ(parent.translate(lines[0]), text);
}

TEST(ForkedProcess, ClosesATranslatorOfC) {
  starling_translator* t = starling_open(kModel.c_str(), "cpu", 1);
  ASSERT_NE(t, nullptr) << starling_error();
  const char* sentence = "a";
  EXPECT_EQ(status_in_child([&] {
              if (starling_translate(t, &sentence, 1, nullptr)) return 1;
              starling_close(t);
              return std::string(starling_error()).find("forked") == std::string::npos ? 2 : 0;
            }),
            0);
  starling_close(t);
}

TEST(GivenUp, ACallEndsWhenItsCallerWantsThat) {
  const starling::Translator t(kModel, {.precision = "f32", .threads = 1});
  const std::vector<std::string> lines(20000, "Two men walk through the park today.");
  std::string text;
  for (int i = 0; i < 20000; ++i) text += lines[0] + " ";
  std::atomic<int> asked = 0;
  starling::TranslateOptions options;
  options.stop = [&] { return ++asked > 2; };
  const std::vector<std::function<void()>> calls{[&] { (void)t.translate(lines, options); },
                                                 [&] { (void)t.translate_document(text, starling::Format::text, options); },
                                                 [&] { (void)t.score(lines, lines, options); },
                                                 [&] {
                                                   for (;;) (void)t.source_tokens(text + text, options.stop);
                                                 }};
  for (size_t i = 0; i < calls.size(); ++i) {
    asked = 0;
    EXPECT_THAT(message_of(calls[i], ErrorKind::cancelled), HasSubstr("cancelled")) << i;
    EXPECT_FALSE(t.translate("a").empty());
  }
}

TEST(GivenUp, OneRequestOrAll) {
  const starling::Translator t(kModel, {.precision = "f32", .threads = 1});
  const std::vector<std::string> lines(20000, "Two men walk through the park today.");
  std::atomic<int> failed = 0;
  const auto number = t.translate_async(lines, {}, [&](const std::vector<starling::Translation>&, const std::exception_ptr& error) {
    failed += message_of([&] { std::rethrow_exception(error); }, ErrorKind::cancelled).find("cancelled") != std::string::npos;
  });
  auto future = t.translate_async(lines);
  t.cancel(number);
  EXPECT_EQ(failed, 1);
  EXPECT_EQ(future.wait_for(std::chrono::seconds(0)), std::future_status::timeout) << "the other one goes on";
  t.cancel(number);
  t.cancel();
  EXPECT_EQ(failed, 1) << "once";
  EXPECT_THAT(message_of([&] { (void)future.get(); }, ErrorKind::cancelled), HasSubstr("cancelled"));
}

TEST(WrongArguments, AreNamed) {
  EXPECT_THAT(message_of([] { starling::Translator(kModel, {.threads = -1}); }, ErrorKind::usage), HasSubstr("threads: -1"));
  EXPECT_THAT(message_of([] { starling::Translator(kModel, {.threads = 4097}); }, ErrorKind::usage), HasSubstr("0 and 4096"));
  const starling::Translator t(kModel, {.precision = "f32", .threads = 1});
  EXPECT_THAT(message_of(
                  [&] {
                    (void)t.translate(std::vector<std::string>{"a", "b\xff"});
                  },
                  ErrorKind::data),
              HasSubstr("sentence 1: byte 1 (0xff)"));
  EXPECT_THAT(message_of([&] { (void)t.score({"a"}, {"\xed\xa0\x80"}); }, ErrorKind::data), HasSubstr("target 0: byte 0"));
  EXPECT_THAT(message_of([&] { (void)t.translate("a", {.target_language = std::string("en\0", 3)}); }, ErrorKind::usage),
              HasSubstr("NUL character; leave it out"));
}

TEST(WrongArguments, OfCDoNotCrash) {
  EXPECT_EQ(starling_open(kModel.c_str(), nullptr, 2000000000), nullptr);
  EXPECT_THAT(starling_error(), HasSubstr("threads: 2000000000"));
  starling_translator* t = starling_open(kModel.c_str(), "cpu", 1);
  ASSERT_NE(t, nullptr) << starling_error();
  const char* sentences[] = {"a", nullptr};
  EXPECT_EQ(starling_translate(t, sentences, 2, nullptr), nullptr);
  EXPECT_STREQ(starling_error(), "sentence 1 is NULL");
  EXPECT_EQ(starling_translate(nullptr, sentences, 1, nullptr), nullptr);
  EXPECT_EQ(starling_translate(t, nullptr, 1, nullptr), nullptr);
  EXPECT_THAT(starling_error(), HasSubstr("sentences is NULL"));
  starling_fill_options(nullptr, sizeof(starling_options));
  starling_link(nullptr, 0, 0, 0, nullptr, nullptr);
  EXPECT_EQ(starling_sentences(nullptr), 0u);
  starling_close(t);
}

}  // namespace
