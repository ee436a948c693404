// The scheduler alone: no threads, no clock, no model. Workers are numbers, time is what the test says.
#include "batching/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "batching/metrics.h"

namespace starling {
namespace {

using testing::ElementsAre;
using End = Scheduler::End;

class SchedulerTest : public testing::Test {
 protected:
  explicit SchedulerTest(SchedulerLimits limits = {.queue_sentences = 5000, .rows = 16, .join_bytes = 4096, .cache_bytes = 1 << 20})
      : scheduler_(limits, metrics_) {
    options_.beam = 4;
  }

  struct Answer {
    int calls = 0;
    Scheduler::Outcome outcome;
  };
  // Its number; the answer comes to answers_[name].
  int64_t submit(const std::string& name, std::vector<std::string> sentences, double now = 0, double deadline = 1e9) {
    answers_[name];
    return scheduler_.submit(std::move(sentences), options_, now, deadline,
                             [this, name](Scheduler::Outcome o) { ++answers_[name].calls, answers_[name].outcome = std::move(o); });
  }
  Scheduler::Work take(int worker = 0, Scheduler::Rows rows = 0, double now = 0) {
    return scheduler_.take(
        worker, rows, [now] { return now; }, false);
  }
  static std::vector<std::string> texts(const Scheduler::Work& work) {
    std::vector<std::string> all;
    for (const auto& s : work.join) all.push_back(s.text);
    return all;
  }
  void finish(const Scheduler::Work& work) {
    for (const auto& s : work.join) scheduler_.finish(s.key, {{"T" + s.text, {}}});
  }

  Metrics metrics_;
  Scheduler scheduler_;
  SearchOptions options_;
  std::map<std::string, Answer> answers_;
};

// Whoever listens to sentences gets those of the cache too, and the others are begun in their order and not by length.
TEST_F(SchedulerTest, TellsEachSentenceOfARequestInProgress) {
  submit("before", {"known"});
  finish(take());
  std::vector<std::pair<size_t, std::string>> told;
  int done = 0;
  SentenceListeners listeners;
  listeners.sentence = [&](size_t i, const Candidates& c) { told.emplace_back(i, c.front().text); };
  scheduler_.submit(
      {"a", "much longer", "known", "longer"}, options_, 0, 1e9, [&](Scheduler::Outcome) { ++done; }, SentenceForm::text, listeners);
  EXPECT_THAT(told, ElementsAre(std::pair(2, "Tknown")));
  const auto work = take();
  EXPECT_THAT(texts(work), ElementsAre("a", "much longer", "longer"));
  finish(work);
  EXPECT_THAT(told, ElementsAre(std::pair(2, "Tknown"), std::pair(0, "Ta"), std::pair(1, "Tmuch longer"), std::pair(3, "Tlonger")));
  EXPECT_EQ(done, 1);
}

TEST_F(SchedulerTest, TakesWhatIsThereWithoutWaitingForMore) {
  submit("a", {"one"});
  const auto work = take();
  EXPECT_THAT(texts(work), ElementsAre("one"));
  EXPECT_EQ(work.join.front().options.beam, 4);
  finish(work);
  ASSERT_EQ(answers_["a"].calls, 1);
  EXPECT_EQ(answers_["a"].outcome.translations.at(0).at(0).text, "Tone");
  EXPECT_EQ(scheduler_.requests(), 0);
}

TEST_F(SchedulerTest, TakesRequestsInTheirOrderWhateverTheirLengths) {
  submit("a", {std::string(100, 'a')});
  submit("b", {"short"});
  submit("c", {std::string(400, 'c')});
  EXPECT_THAT(texts(take()), ElementsAre(std::string(100, 'a'), "short", std::string(400, 'c')));
}

// What begins last should not take longest.
TEST_F(SchedulerTest, TakesTheLongestSentenceOfARequestFirst) {
  options_.beam = 16;
  submit("a", {"bb", "cccc", "a"});
  std::vector<std::string> order;
  for (int i = 0; i < 3; ++i) order.push_back(texts(take()).at(0));
  EXPECT_THAT(order, ElementsAre("cccc", "bb", "a"));
}

TEST_F(SchedulerTest, FillsUpToItsRowsAndNoFurther) {
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) submit(name, {name});
  EXPECT_EQ(take(0, 0).join.size(), 4u);  // 16 rows, beams of 4
  EXPECT_EQ(take(0, 14).join.size(), 0u);
  EXPECT_EQ(take(0, 12).join.size(), 1u);
}

TEST_F(SchedulerTest, LeavesThreeQuartersOfTheRowsToNewcomers) {
  submit("big", std::vector<std::string>(1000, "b"));
  const auto alone = take(0, 0);
  EXPECT_EQ(alone.join.size(), 4u);  // all are its own while it is alone
  submit("w", {"w"});
  for (size_t i = 0; i < 3; ++i) scheduler_.finish(alone.join[i].key, {});
  EXPECT_THAT(texts(take(0, 4)), ElementsAre("w"));
  submit("x", {"x"});
  submit("y", {"y", "yy"});
  EXPECT_THAT(texts(take(0, 8)), ElementsAre("x", "yy"));
  EXPECT_THAT(texts(take(0, 16)), ElementsAre());
  scheduler_.finish(alone.join[3].key, {});
  EXPECT_THAT(texts(take(0, 12)), ElementsAre("b"));
}

// A sentence at least: beams may be wider than a quarter.
TEST_F(SchedulerTest, WideBeamsKeepNobodyOut) {
  options_.beam = 8;
  submit("big", std::vector<std::string>(1000, "b"));
  EXPECT_EQ(take(0, 0).join.size(), 2u);
  submit("x", {"x"});
  EXPECT_THAT(texts(take(0, 8)), ElementsAre("x"));
}

// Sentences of all lengths once let the virtual time of newcomers pass by those that did not fit, which then all came before them.
TEST_F(SchedulerTest, NewcomersDoNotWaitForSentencesThatOthersPassedBy) {
  std::vector<std::string> sentences;
  for (int i = 0; i < 1000; ++i) sentences.emplace_back(static_cast<size_t>(10 + (i * 37) % 400), 'b');
  submit("big", sentences);
  for (int i = 0; i < 30; ++i) finish(take());
  submit("x", {"x"});
  EXPECT_THAT(texts(take()), testing::Contains("x"));
}

TEST_F(SchedulerTest, LeavesSentencesToAWorkerThatHasLess) {
  take(0), take(1);  // there are two
  submit("a", {"a"});
  EXPECT_THAT(texts(take(0, 0)), ElementsAre("a"));
  submit("b", {"b"});
  EXPECT_THAT(texts(take(0, 4)), ElementsAre());
  EXPECT_THAT(texts(take(1, 0)), ElementsAre("b"));
  for (const char* name : {"c", "d", "e", "f"}) submit(name, {name});
  EXPECT_THAT(texts(take(0, 4)), ElementsAre("c", "d"));
  EXPECT_THAT(texts(take(1, 4)), ElementsAre("e", "f"));
}

TEST_F(SchedulerTest, TakesASentenceThatIsLargerThanEveryLimitAlone) {
  options_.beam = 100;
  submit("a", {std::string(100000, 'a'), std::string(100000, 'b')});
  EXPECT_EQ(take(0, 4).join.size(), 0u);
  EXPECT_EQ(take(0, 0).join.size(), 1u);
  EXPECT_EQ(take(1, 0).join.size(), 1u);
}

TEST_F(SchedulerTest, ALongSentenceJoinsOthersToo) {
  submit("a", {std::string(100000, 'a'), std::string(100000, 'b')});
  EXPECT_EQ(take(0, 4).join.size(), 1u);
  EXPECT_EQ(take(0, 8).join.size(), 1u);
}

// Sentences that take long leave room for others, one request or many: most of it when others have come lately, some of it always.
TEST_F(SchedulerTest, LengthySentencesLeaveRoomForOthers) {
  const std::string lengthy(Scheduler::kLengthy, 'x');
  for (int i = 0; i < 20; ++i) submit("long" + std::to_string(i), std::vector<std::string>(100, lengthy));
  int64_t rows = 0;
  for (int i = 0; i < 10; ++i) rows += 4 * static_cast<int64_t>(take(0, {0, rows}, 100).join.size());
  EXPECT_EQ(rows, 12);  // of 16, for nothing else has come for long
  submit("x", {"x"}, 101);
  const auto work = take(0, {0, 12}, 101);
  EXPECT_THAT(texts(work), ElementsAre("x"));
  EXPECT_EQ(work.join.front().lane, Scheduler::ordinary);
  finish(work);
  EXPECT_THAT(texts(take(0, {0, 12}, 102)), ElementsAre());
  EXPECT_THAT(texts(take(0, {0, 4}, 103)), ElementsAre());  // one is enough while others come
  const auto next = take(0, {0, 0}, 104);
  ASSERT_THAT(texts(next), ElementsAre(lengthy));  // and one it is, that none waits for ever
  EXPECT_EQ(next.join.front().lane, Scheduler::lengthy);
  submit("y", {"y", lengthy}, 105);
  EXPECT_THAT(texts(take(0, {4, 4}, 105)), ElementsAre("y"));
  EXPECT_THAT(texts(take(0, {0, 4}, 120)), ElementsAre(lengthy));
}

TEST_F(SchedulerTest, HalfOfTheWorkersLeaveLengthySentencesAloneWhileOthersCome) {
  const std::string lengthy(2000, 'x');
  for (int worker = 0; worker < 4; ++worker) take(worker, 0, 0);
  submit("long", std::vector<std::string>(10, lengthy), 0);
  for (int worker = 0; worker < 4; ++worker) EXPECT_EQ(take(worker, 0, 1).join.size(), 1u);  // nothing else has come
  submit("x", {"x"}, 2);
  EXPECT_THAT(texts(take(3, 0, 2)), ElementsAre("x"));
  EXPECT_EQ(take(0, 0, 2).join.size(), 1u);
  EXPECT_EQ(take(1, 0, 2).join.size(), 1u);
  EXPECT_EQ(take(2, 0, 2).join.size(), 0u);
  EXPECT_EQ(take(3, 0, 2).join.size(), 0u);
  EXPECT_EQ(take(3, 0, 13).join.size(), 1u);
}

TEST_F(SchedulerTest, ThousandsOfLengthyRequestsHideNoOther) {
  for (int i = 0; i < 2000; ++i) submit("long" + std::to_string(i), {std::string(2000, 'x')});
  submit("x", {"x"});
  EXPECT_THAT(texts(take(0, {0, 4})), ElementsAre("x"));
}

// Newcomers of one lane say nothing about the wait in the other; a lane that stands still is noticed before its next turn comes.
TEST_F(SchedulerTest, RefusesLengthySentencesThatWouldWaitAndNoOthers) {
  const std::string lengthy(2000, 'x');
  submit("a", {lengthy}, 0);
  ASSERT_EQ(take(0, {0, 0}, 0).join.size(), 1u);
  submit("b", {lengthy}, 1);
  EXPECT_TRUE(take(0, {4, 12}, 1).join.empty());
  submit("c", {lengthy}, 5.9);
  try {
    submit("d", {lengthy}, 6.5);
    FAIL() << "no refusal";
  } catch (const QueueFull& e) {
    EXPECT_STREQ(e.what(), "the wait would be 5.5 s; try again later");
  }
  EXPECT_THROW(submit("e", {"short", lengthy}, 6.5), QueueFull);
  submit("f", {"short"}, 6.5);
  EXPECT_THAT(texts(take(0, {0, 12}, 6.6)), ElementsAre("short"));
}

// The order in which sentences begin when one at a time is taken.
TEST_F(SchedulerTest, ARequestOfManySentencesTakesTurnsWithSmallOnes) {
  options_.beam = 16;  // a worker's rows: one sentence at a time
  submit("big", std::vector<std::string>(1000, "b"));
  EXPECT_THAT(texts(take()), ElementsAre("b"));
  EXPECT_THAT(texts(take()), ElementsAre("b"));
  submit("x", {"x"});
  submit("y", {"y"});
  std::string order;
  for (int i = 0; i < 8; ++i) order += texts(take()).at(0);
  // Both newcomers begin after at most one more sentence of the big request, and that goes on between others.
  EXPECT_LE(order.find('x'), 1u) << order;
  EXPECT_LE(order.find('y'), 2u) << order;
  submit("z", {"z"});
  EXPECT_LE((texts(take()).at(0) + texts(take()).at(0)).find('z'), 1u);
}

TEST_F(SchedulerTest, AStreamOfSmallRequestsDoesNotStarveABigOne) {
  options_.beam = 16;
  submit("big", std::vector<std::string>(100, "b"));
  int big = 0;
  for (int i = 0; i < 200; ++i) {
    if (i % 2 == 0) submit("s" + std::to_string(i), {"s"});
    big += texts(take()).at(0) == "b";
  }
  EXPECT_GE(big, 95);  // what the small ones leave
}

TEST_F(SchedulerTest, AnswersWhatWasTranslatedBeforeFromMemory) {
  submit("a", {"one", "two"});
  finish(take());
  submit("b", {"two", "one"});
  ASSERT_EQ(answers_["b"].calls, 1);
  EXPECT_EQ(answers_["b"].outcome.translations.at(0).at(0).text, "Ttwo");
  EXPECT_EQ(metrics_.value("starling_cache_hits_total"), 2);
  options_.beam = 5;  // another search is another translation
  submit("c", {"one"});
  EXPECT_EQ(answers_["c"].calls, 0);
  EXPECT_EQ(scheduler_.queued(), 1);
}

TEST_F(SchedulerTest, MixesRememberedAndNewSentencesInOrder) {
  submit("a", {"one"});
  finish(take());
  submit("b", {"new", "one", "newer"});
  const auto work = take();
  EXPECT_THAT(texts(work), ElementsAre("newer", "new"));
  finish(work);
  const auto& t = answers_["b"].outcome.translations;
  ASSERT_EQ(t.size(), 3u);
  EXPECT_THAT((std::vector<std::string>{t[0][0].text, t[1][0].text, t[2][0].text}), ElementsAre("Tnew", "Tone", "Tnewer"));
}

TEST_F(SchedulerTest, DropsTheSentencesOfACancelledRequest) {
  options_.beam = 8;
  const int64_t number = submit("a", {"a1", "a2", "a3"});
  const auto work = take(3);
  ASSERT_EQ(work.join.size(), 2u);
  scheduler_.cancel(number);
  EXPECT_EQ(scheduler_.queued(), 0);
  EXPECT_EQ(scheduler_.requests(), 0);
  const auto next = take(3, 16);
  EXPECT_THAT(next.drop, testing::UnorderedElementsAre(work.join[0].key, work.join[1].key));
  EXPECT_TRUE(take(3, 0).drop.empty());
  finish(work);  // too late: ignored
  EXPECT_EQ(answers_["a"].calls, 0);
  scheduler_.cancel(number);
}

TEST_F(SchedulerTest, EndsRequestsAtTheirDeadline) {
  submit("a", {"a"}, 0, 10);
  submit("b", {"b"}, 0, 20);
  const auto work = take();
  scheduler_.expire(9.9);
  EXPECT_EQ(answers_["a"].calls, 0);
  scheduler_.expire(10);
  ASSERT_EQ(answers_["a"].calls, 1);
  EXPECT_EQ(answers_["a"].outcome.end, End::expired);
  EXPECT_EQ(answers_["b"].calls, 0);
  EXPECT_EQ(take(0, 8).drop.size(), 1u);
  finish(work);
  EXPECT_EQ(answers_["a"].calls, 1);
  EXPECT_EQ(answers_["b"].outcome.end, End::done);
}

TEST_F(SchedulerTest, RefusesWhatTheQueueDoesNotHold) {
  submit("a", std::vector<std::string>(4999, "a"), 0);
  submit("b", {"b"}, 1);
  try {
    submit("c", {"c"}, 7.5);
    FAIL() << "no refusal";
  } catch (const QueueFull& e) {
    EXPECT_STREQ(e.what(), "5000 sentences are waiting already; try again later");
    EXPECT_EQ(e.retry_seconds, 1);
  }
  EXPECT_EQ(answers_["c"].calls, 0);
  take(0, 0, 8);
  submit("d", {"d"}, 8);  // there is room again
}

// Turns come once in 0.5 s while others wait.
TEST_F(SchedulerTest, RefusesWhatWouldWaitForTooLong) {
  options_.beam = 16;
  int requests = 0;
  const auto newcomer = [&](double now) { submit(std::to_string(++requests), {std::to_string(requests)}, now); };
  for (int i = 0; i < 4; ++i) newcomer(0);
  double now = 0;
  for (int i = 0; i < 1000; ++i, now += 0.5) {
    finish(take(0, 0, now));
    newcomer(now);
  }
  for (int i = 0; i < 6; ++i) newcomer(now);  // ten wait then
  try {
    for (int i = 0; i < 2; ++i) newcomer(now);
    FAIL() << "no refusal";
  } catch (const QueueFull& e) {
    EXPECT_THAT(e.what(), testing::MatchesRegex("the wait would be 5\\.[0-9] s; try again later"));
    EXPECT_EQ(e.retry_seconds, 6);
  }
  finish(take(0, 0, now));
  finish(take(0, 0, now + 0.5));
  newcomer(now + 0.5);  // fewer wait
  // A server that was without work is not a slow one.
  while (scheduler_.queued() > 0) finish(take(0, 0, now += 0.5));
  now += 3600;
  newcomer(now);
  finish(take(0, 0, now));
  for (int i = 0; i < 8; ++i) newcomer(now);
}

TEST_F(SchedulerTest, RefusesNothingAfterASlowTimeIsOver) {
  options_.beam = 16;
  int requests = 0;
  double now = 0;
  const auto newcomer = [&] { submit(std::to_string(++requests), {std::to_string(requests)}, now); };
  for (int i = 0; i < 100; ++i) {  // each waits for ten seconds
    newcomer(), take(0, 16, now);
    finish(take(0, 0, now += 10));
  }
  EXPECT_THROW((newcomer(), newcomer(), newcomer()), QueueFull);
  while (scheduler_.queued() > 0) finish(take(0, 0, now += 1));
  for (int i = 0; i < 300; ++i) newcomer(), finish(take(0, 0, now += 0.01));
  for (int i = 0; i < 10; ++i) newcomer();
}

TEST_F(SchedulerTest, AFailureEndsTheRequestsOfThatWorkerOnly) {
  options_.beam = 16;
  submit("a", {"a", "a2"});
  submit("b", {"b"});
  const auto first = take(1), second = take(2);
  scheduler_.fail(1, "no memory");
  EXPECT_EQ(answers_["a"].outcome.end, End::failed);
  EXPECT_EQ(answers_["a"].outcome.error, "no memory");
  EXPECT_EQ(answers_["b"].calls, 0);
  finish(second);
  EXPECT_EQ(answers_["b"].outcome.end, End::done);
  EXPECT_EQ(scheduler_.queued(), 0);  // a2 went with its request
}

TEST_F(SchedulerTest, StopsWhenClosedAndEmpty) {
  submit("a", {"a"});
  scheduler_.close();
  const auto work = take();
  EXPECT_FALSE(work.stop);
  EXPECT_FALSE(take(0, 4).stop);  // something is under way
  finish(work);
  EXPECT_TRUE(scheduler_
                  .take(
                      0, 0, [] { return 0.0; }, true)
                  .stop);
  EXPECT_EQ(answers_["a"].calls, 1);
}

TEST_F(SchedulerTest, TellsHowLongSentencesWaited) {
  submit("a", {"a", "b"}, 1);
  take(0, 0, 1.5);
  EXPECT_EQ(metrics_.observed("starling_queue_wait_seconds"), 1);  // until its turn came
  EXPECT_EQ(metrics_.value("starling_queue_wait_seconds"), 0.5);
}

class WholeBatchesTest : public SchedulerTest {
 protected:
  WholeBatchesTest() : SchedulerTest({.rows = 16, .whole_batches = true}) {}
};

TEST_F(WholeBatchesTest, AreOfNearLengths) {
  submit("a", {std::string(100, 'a'), std::string(99, 'b'), std::string(14, 'c')});
  submit("d", {"short"});
  submit("e", {std::string(110, 'e')});
  submit("f", {std::string(90, 'f')});
  EXPECT_THAT(texts(take()), ElementsAre(std::string(100, 'a'), std::string(110, 'e'), std::string(90, 'f'), std::string(99, 'b')));
  EXPECT_THAT(texts(take(0, 1)), ElementsAre());  // the longest is not done yet
  EXPECT_THAT(texts(take()), ElementsAre("short", std::string(14, 'c')));
}

TEST(TranslationCacheTest, ForgetsTheLongestUnusedFirstAndKeepsItsBound) {
  TranslationCache cache(2000);
  const Candidates t{{std::string(100, 't'), {}}};
  for (const char* key : {"a", "b", "c"}) cache.add(key, t);
  ASSERT_TRUE(cache.find("a"));
  for (int i = 0; i < 20; ++i) {
    cache.add("d" + std::to_string(i), t);
    ASSERT_LE(cache.bytes(), 2000);
    ASSERT_TRUE(cache.find("a"));
  }
  EXPECT_GE(cache.size(), 3u);
  EXPECT_FALSE(cache.find("b"));
  cache.add("large", {{std::string(5000, 'x'), {}}});
  EXPECT_FALSE(cache.find("large"));
  EXPECT_TRUE(cache.find("a"));
}

}  // namespace
}  // namespace starling
