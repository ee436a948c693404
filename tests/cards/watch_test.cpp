// Whose fault it is when a collective of cards does not end, and that nobody waits for ever.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <thread>

#include "backend/backend.h"
#include "comm/cards.h"
#include "comm/mesh.h"
#include "comm/nccl/card_lateness.h"
#include "comm/nccl/nccl.h"
#include "tests/cards/thread_world.h"
#include "tests/emulated/emulator.h"

namespace starling {
namespace {

using STARLING_CUDA::CardLateness, STARLING_CUDA::connect_cards, STARLING_CUDA::prepare_environment;
using testing::AllOf, testing::HasSubstr;
using namespace std::chrono_literals;

// Two sums that go well, then `trouble`, which says whether the rank takes part in a third one: what reading its result throws on each
// rank.
std::vector<std::string> errors(int ranks, const std::function<bool(Communicator&)>& trouble) {
  std::vector<std::string> all(static_cast<size_t>(ranks));
  std::atomic<int> over = 0;
  run_threads(ranks, [&](World& world) {
    Communicator& comm = *world.comm;
    const auto rank = static_cast<size_t>(comm.rank());
    const auto backend = make_backend("cuda-emulated:f32", 1);
    const CardConnection cards = connect_cards(comm, backend->memory());
    ASSERT_TRUE(cards.held);
    const Tensor x({1000}, DType::f32, backend->memory());
    for (int i = 0; i < 2; ++i) comm.all_reduce(x).wait();
    EXPECT_EQ(x.to_doubles(), std::vector<double>(1000));
    comm.barrier().wait();
    comm.set_deadline(1);
    if (trouble(comm)) {
      try {
        comm.all_reduce(x).wait();
        x.to_doubles();
      } catch (const PeerError& e) {
        all[rank] = e.what();
      }
      EXPECT_THROW(comm.all_reduce(x), PeerError) << "the cards are of no use any more";
    }
    // A card that hangs lets its host go only when it goes on.
    for (++over; over < ranks - 1;) std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(600ms);
    emulated_cuda::hang_card(1, false), emulated_cuda::cut_links(false);
  });
  return all;
}

TEST(CardWatch, AHostThatDoesNotComeIsNamed) {
  const auto all = errors(3, [](Communicator& comm) {
    comm.note(comm.rank() == 2 ? "validation" : "training", comm.rank() == 2 ? 8 : 7);
    return comm.rank() != 2;
  });
  for (const size_t r : {0, 1})
    EXPECT_THAT(all[r], AllOf(HasSubstr("all-reduce (tree) of cards (all ranks) waited "),
                              HasSubstr("the host of rank 2 on host2 has not begun it: it is in 'validation' at update 8"),
                              HasSubstr("raise strategy.deadline-seconds")));
  EXPECT_EQ(all[2], "");
}

TEST(CardWatch, ACardThatHangsIsNamed) {
  const auto all = errors(3, [](Communicator& comm) {
    comm.note("training", 7);
    if (comm.rank() == 1) emulated_cuda::hang_card(1, true);
    comm.barrier().wait();
    return true;
  });
  for (const std::string& error : all)
    EXPECT_THAT(error,
                HasSubstr("the card of rank 1 on host1 has not reached it: it is slow or hangs; its host is in 'training' at update 7"));
}

TEST(CardWatch, LinksThatDeliverNothingAreNamed) {
  const auto all = errors(3, [](Communicator& comm) {
    emulated_cuda::cut_links(true);
    comm.barrier().wait();
    return true;
  });
  for (const std::string& error : all)
    EXPECT_THAT(error, HasSubstr("all 3 cards have reached it, so the links between them deliver nothing (on host0, host1, host2)"));
}

TEST(CardWatch, WhatNcclFindsOutItselfIsTold) {
  std::thread network;
  const auto all = errors(2, [&](Communicator& comm) {
    emulated_cuda::cut_links(true);
    comm.barrier().wait();
    comm.set_deadline(60);
    if (comm.rank() == 0)
      network = std::thread([] {
        std::this_thread::sleep_for(100ms);
        emulated_cuda::report_network_error();
      });
    return true;
  });
  network.join();
  for (const size_t r : {0, 1})
    EXPECT_THAT(
        all[r],
        AllOf(HasSubstr(fmt::format("NCCL has failed in all-reduce (tree) of cards (all ranks) on rank {} on host{}: remote error", r, r)),
              HasSubstr(fmt::format("look first at the logs of rank {} on host{} (heard of", 1 - r, 1 - r))));
}

// A rank that fails ends NCCL's work on its card, and nobody waits for what it will not do.
TEST(CardWatch, ARankThatFailsLeaves) {
  EXPECT_THROW(run_threads(2,
                           [](World& world) {
                             Communicator& comm = *world.comm;
                             const auto backend = make_backend("cuda-emulated:f32", 1);
                             const CardConnection cards = connect_cards(comm, backend->memory());
                             const Tensor x({10}, DType::f32, backend->memory());
                             comm.set_deadline(0.3);
                             comm.all_reduce(x).wait();
                             if (comm.rank() == 0) comm.all_reduce(x).wait(), throw DataError("line 3");
                             comm.barrier().wait();
                           }),
               DataError);
}

// What each rank's `work` throws, on connected cards and with a deadline of 0.3 s, and then what leaving the world throws.
using Work = std::function<void(Communicator&, const Tensor& x)>;
std::vector<std::string> failures(int ranks, const Work& work, Algorithm algorithm = Algorithm::automatic) {
  std::vector<std::string> all(static_cast<size_t>(ranks));
  // What prepare_environment() sets. Ranks are processes elsewhere; here one thread would set it while another reads the environment.
  setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  if (algorithm == Algorithm::library) setenv("NCCL_RUNTIME_CONNECT", "0", 0);
  try {
    run_threads(ranks, [&](World& world) {
      Communicator& comm = *world.comm;
      try {
        const auto backend = make_backend("cuda-emulated:f32", 1);
        comm.set_deadline(1);
        comm.set_algorithm(algorithm);
        prepare_environment(comm, false);
        const CardConnection cards = connect_cards(comm, backend->memory());
        comm.barrier().wait();
        comm.set_deadline(0.3);
        work(comm, Tensor({10}, DType::f32, backend->memory()));
      } catch (const Error& e) {
        all[static_cast<size_t>(comm.rank())] = e.what();
        throw;
      }
    });
  } catch (const Error&) {
  }
  return all;
}

// A rank that goes on after a call that NCCL refused, and closes: the others are told that it does not come.
TEST(CardWatch, ARefusedCallEndsTheRanksWork) {
  std::string refused;
  const auto all = failures(2, [&](Communicator& comm, const Tensor& x) {
    if (comm.rank() == 1) return comm.all_reduce(x).wait(), static_cast<void>(x.to_doubles());
    Schedule schedule;
    schedule.rounds.push_back({{}, {{7, Area::data, 0, 4}}, {}, {}});
    try {
      comm.run(schedule, x, "a message to nobody");
    } catch (const PeerError& e) {
      refused = e.what();
    }
  });
  EXPECT_EQ(
      refused,
      "the cards of rank 0 on host0 and rank 1 on host1 (all ranks): ncclSend failed: error (no such rank); look at those ranks' logs, and "
      "at NCCL's messages with NCCL_DEBUG=WARN");
  EXPECT_EQ(all[0], "");
  EXPECT_THAT(all[1], HasSubstr("all-reduce (tree) of cards (all ranks) waited "));
}

TEST(CardWatch, AConnectionThatFailsIsNamed) {
  emulated_cuda::refuse_connections(1);
  const auto all = failures(3, [](Communicator&, const Tensor&) {});
  emulated_cuda::refuse_connections(-1);
  EXPECT_THAT(
      all[1],
      HasSubstr("the cards of rank 1 on host1 and rank 0 on host0, rank 2 on host2 (all ranks): ncclGroupEnd failed: system error"));
  for (const size_t r : {0, 2})
    EXPECT_THAT(all[r], AllOf(HasSubstr("the first message of cards (all ranks) waited 1."), HasSubstr("look at"))) << r;
}

// All pairs are connected when the group is, so only the receiver waits for a message, however long it likes.
TEST(CardWatch, ARankThatIsBusyDoesNotDisturbTheOthers) {
  for (const Algorithm algorithm : {Algorithm::automatic, Algorithm::library}) {
    const auto all = failures(
        3,
        [&](Communicator& comm, const Tensor& x) {
          for (int root = 0; root < 3; ++root) {
            if (comm.rank() == (root + 1) % 3) std::this_thread::sleep_for(700ms);
            x.from_doubles(std::vector<double>(10, comm.rank() + 1));
            const Pending pending = comm.broadcast(x, root);
            pending.wait(60);
            EXPECT_EQ(x.to_doubles(), std::vector<double>(10, root + 1));
          }
        },
        algorithm);
    unsetenv("NCCL_RUNTIME_CONNECT");
    EXPECT_THAT(all, testing::Each("")) << word(algorithm);
  }
}

// Its work in one group waits behind that in another, which the other rank has not come to: ended one after the other they would wait for
// ever.
TEST(CardWatch, ARankThatFailsEndsItsWorkInAllGroupsAtOnce) {
  const auto all = failures(2, [](Communicator& comm, const Tensor& x) {
    const auto first = comm.split([](int) { return 0; }, "the first group"), second = comm.split([](int) { return 0; }, "the second group");
    if (comm.rank() == 1) return std::this_thread::sleep_for(200ms), comm.barrier().wait();
    first->all_reduce(x).wait();
    second->all_reduce(x).wait();
    throw DataError("line 3");
  });
  EXPECT_EQ(all[0], "line 3");
  EXPECT_THAT(all[1], HasSubstr("another rank has failed"));
}

// Work in two groups that never ends by itself, and a rank that fails.
void fail_in_two_groups() {
  failures(2, [](Communicator& comm, const Tensor& x) {
    const auto first = comm.split([](int) { return 0; }, "the first group"), second = comm.split([](int) { return 0; }, "the second group");
    if (comm.rank() == 1) return std::this_thread::sleep_for(200ms), comm.barrier().wait();
    first->all_reduce(x).wait();
    second->all_reduce(x).wait();
    throw DataError("line 3");
  });
}

// A thread of NCCL's may still end what was aborted: what it uses stays, as its own streams do.
TEST(CardWatch, WhatNcclIsStillEndingIsLeftToIt) {
  const emulated_cuda::Calls before = emulated_cuda::calls();
  emulated_cuda::slow_aborts(true);
  fail_in_two_groups();
  emulated_cuda::slow_aborts(false);
  const emulated_cuda::Calls after = emulated_cuda::calls();
  EXPECT_GT(after.held_streams, before.held_streams);
  EXPECT_EQ(after.held_streams_destroyed, before.held_streams_destroyed);
}

// ... and the process ends beside it, with the status that it would have had, and without what exit() calls.
TEST(CardWatch, AProcessWhoseNcclIsStillEndingLeavesAtOnce) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto leave = [](bool failed) {
    emulated_cuda::slow_aborts(true);
    std::atexit([] { std::_Exit(77); });
    if (failed) fail_in_two_groups();
    leave_if_cards_may_be_busy(5);
    std::exit(0);
  };
  EXPECT_EXIT(leave(true), testing::ExitedWithCode(5), "");
  EXPECT_EXIT(leave(false), testing::ExitedWithCode(77), "");
}

// The ranks of another replica have done more among themselves; that says nothing about the group that waits.
TEST(CardWatch, TheRankThatIsLateInTheGroupThatWaitsIsNamed) {
  const auto all = failures(4, [](Communicator& comm, const Tensor& x) {
    Mesh mesh(comm, {.pipeline = 2});
    mesh.data_parallel().all_reduce(x).wait();
    for (int i = 0; comm.rank() >= 2 && i < 20; ++i) mesh.replica().all_reduce(x).wait();
    x.to_doubles();
    comm.note("validation", 3);
    comm.barrier().wait(60);
    if (comm.rank() == 2) return std::this_thread::sleep_for(1s);
    mesh.data_parallel().all_reduce(x).wait(comm.rank() == 0 ? 0.3 : 60);
    x.to_doubles();
  });
  EXPECT_THAT(all[0],
              HasSubstr("all-reduce (tree) of cards (the exchange of gradients) waited 0.3 s; the host of rank 2 on host2 has not begun "
                        "it: it is in 'validation' at update 3"));
}

TEST(CardWatch, AMessageBetweenStagesThatIsNotTakenIsNamed) {
  const auto all = failures(2, [](Communicator& comm, const Tensor& x) {
    Mesh mesh(comm, {.pipeline = 2});
    comm.note("training", 5);
    comm.barrier().wait(60);
    if (comm.rank() == 1) return std::this_thread::sleep_for(1s);
    mesh.pipeline().send(x, 1, 4).wait();
    x.to_doubles();
  });
  EXPECT_THAT(all[0],
              HasSubstr("a message of cards (messages between stages) waited 0.3 s; the host of rank 1 on host1 has not begun it: it is "
                        "in 'training' at update 5"));
}

// Who waits for any of several is told of the first.
TEST(CardWatch, WaitingForAnyNamesWhoIsLate) {
  const auto all = failures(2, [](Communicator& comm, const Tensor& x) {
    Mesh mesh(comm, {.pipeline = 2});
    if (comm.rank() == 1) return std::this_thread::sleep_for(1s);
    const Tensor y({10}, DType::f32, x.memory());
    const Pending both[] = {mesh.pipeline().receive(x, 1, 4), mesh.pipeline().receive(y, 1, 5)};
    wait_any(both, 0.1);
  });
  EXPECT_THAT(all[0], AllOf(HasSubstr("a message with tag 4 between stages waited 0.1 s: rank 1 on host1"), HasSubstr("raise strategy"),
                            HasSubstr("nor has any of 1 other operations of cards ended")));
}

TEST(CardLateness, WhoeverIsBehindIsNamed) {
  CardLateness l;
  l.operation = "broadcast", l.waited_s = 12.34, l.number = 10, l.group = {"all", {0, 2, 3}, 1}, l.self = 0, l.hosts = {"a", "b", "c", "d"};
  const auto at = [](CardProgress progress) { return CardCounts{{{}, progress}}; };
  l.news = {{at({10, 10, 9}), "training", 4, 0},
            {at({1, 1, 1}), "other", 1, 0},
            {at({12, 10, 9}), "", 0, 1.5},
            {at({10, 9, 9}), "update", 4, 2.5}};
  EXPECT_EQ(
      describe(l),
      "broadcast of cards (all) waited 12.3 s; the card of rank 3 on d has not reached it: it is slow or hangs; its host is in 'update' at "
      "update "
      "4, and was last heard of 2.5 s ago; raise strategy.deadline-seconds, or look at that rank's log");
  l.news[2].card = at({9, 9, 9});  // not even begun: that explains the other's card, too
  EXPECT_THAT(describe(l),
              HasSubstr("the host of rank 2 on c has not begun it: it has not reported what it is doing, and was last heard of 1.5 s ago"));
  l.purposes[3] = "messages between stages", l.news[2].card[3] = {7, 7, 6};
  EXPECT_THAT(
      describe(l),
      HasSubstr("it has not reported what it is doing, and has not finished its work in another group, messages between stages, and"));
  l.news[2].card = l.news[3].card = at({10, 10, 9});
  EXPECT_THAT(describe(l), HasSubstr("all 3 cards have reached it, so the links between them deliver nothing (on a, c, d)"));
  l.news.clear();
  EXPECT_THAT(describe(l), HasSubstr("what the other ranks are doing is not known"));
}

// Several groups of a card are ended together, which NCCL can since 2.22.
TEST(CardGroups, NeedAnNcclThatAbortsThemTogether) {
  using STARLING_CUDA::why_too_old;
  EXPECT_EQ(why_too_old(21805, 1), "");
  EXPECT_EQ(why_too_old(22200, 3), "");
  EXPECT_EQ(why_too_old(22105, 2),
            "NCCL 2.21.5 cannot end the groups of a divided model's card together when a rank is lost, which 2.22.0 "
            "can; install that, or leave parallel.pipeline and parallel.tensor at 1");
}

}  // namespace
}  // namespace starling
