// Whose fault it is when a collective of cards does not end, and that nobody waits for ever.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "backend/backend.h"
#include "comm/nccl/card_lateness.h"
#include "comm/nccl/nccl.h"
#include "tests/cards/thread_world.h"
#include "tests/emulated/emulator.h"

namespace starling {
namespace {

using STARLING_CUDA::CardConnection, STARLING_CUDA::CardLateness, STARLING_CUDA::connect_cards;
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
    EXPECT_THAT(all[r], AllOf(HasSubstr("all-reduce (tree) of cards waited "),
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
                HasSubstr("the card of rank 1 on host1 has not come to it: it is slow or hangs; its host is in 'training' at update 7"));
}

TEST(CardWatch, LinksThatDeliverNothingAreNamed) {
  const auto all = errors(3, [](Communicator& comm) {
    emulated_cuda::cut_links(true);
    comm.barrier().wait();
    return true;
  });
  for (const std::string& error : all)
    EXPECT_THAT(error, HasSubstr("all 3 cards have come to it, so the links between them deliver nothing (on host0, host1, host2)"));
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
  for (const std::string& error : all) EXPECT_THAT(error, HasSubstr("a collective of cards failed: remote error"));
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

TEST(CardLateness, WhoeverIsBehindIsNamed) {
  CardLateness l;
  l.operation = "broadcast", l.waited_s = 12.34, l.number = 10, l.members = {0, 2, 3}, l.self = 0, l.hosts = {"a", "b", "c", "d"};
  l.news = {{{10, 10, 9}, "training", 4, 0}, {{1, 1, 1}, "other", 1, 0}, {{12, 10, 9}, "", 0, 1.5}, {{10, 9, 9}, "update", 4, 2.5}};
  EXPECT_EQ(describe(l),
            "broadcast of cards waited 12.3 s; the card of rank 3 on d has not come to it: it is slow or hangs; its host is in 'update' at "
            "update "
            "4, and was last heard of 2.5 s ago; raise strategy.deadline-seconds, or look at that rank's log");
  l.news[2].card = {9, 9, 9};  // not even begun: that explains the other's card, too
  EXPECT_THAT(describe(l),
              HasSubstr("the host of rank 2 on c has not begun it: it has not said what it does, and was last heard of 1.5 s ago"));
  l.news[2].card = l.news[3].card = {10, 10, 9};
  EXPECT_THAT(describe(l), HasSubstr("all 3 cards have come to it, so the links between them deliver nothing (on a, c, d)"));
  l.news.clear();
  EXPECT_THAT(describe(l), HasSubstr("what the other ranks do is not known"));
}

}  // namespace
}  // namespace starling
