// The emulated NCCL finds the mistakes that NCCL itself would not tell of: each is made here, on purpose.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nccl.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/emulated/emulator.h"

namespace starling {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

// One of two ranks, each a thread with a card, a stream and 100 floats on the card.
struct NcclRank {
  int rank;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  float* x = nullptr;

  void send(size_t count, ncclDataType_t type = ncclFloat32) { check(ncclSend(x, count, type, 1 - rank, comm, stream)); }
  void receive(size_t count, ncclDataType_t type = ncclFloat32) { check(ncclRecv(x, count, type, 1 - rank, comm, stream)); }
  static void check(ncclResult_t result) { EXPECT_EQ(result, ncclSuccess) << ncclGetLastError(nullptr); }
  // Until nothing is in progress.
  void settle() const {
    for (ncclResult_t state = ncclInProgress; state == ncclInProgress; std::this_thread::yield())
      ASSERT_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess) << ncclGetLastError(nullptr);
  }
};

// What waiting for each rank's stream says, after `work` between the start and the end of a group.
std::vector<std::string> outcomes(const std::function<void(NcclRank&)>& work, bool one_card = false) {
  emulated_cuda::set_cards(2);
  ncclUniqueId id;
  ncclGetUniqueId(&id);
  std::vector<std::string> all(2);
  std::vector<std::thread> threads;
  for (int r = 0; r < 2; ++r)
    threads.emplace_back([&, r] {
      NcclRank rank{r};
      cudaSetDevice(one_card ? 0 : r);
      cudaStreamCreateWithFlags(&rank.stream, cudaStreamNonBlocking);
      void* at = nullptr;
      cudaMallocAsync(&at, 400, rank.stream);
      rank.x = static_cast<float*>(at);
      cudaMemsetAsync(at, 0, 400, rank.stream);
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      config.blocking = 0;
      if (const ncclResult_t made = ncclCommInitRankConfig(&rank.comm, 2, id, r, &config); made == ncclInProgress) {
        if (!one_card) {
          rank.settle();
          ncclGroupStart();
          work(rank);
          if (ncclGroupEnd() == ncclInProgress) rank.settle();
        }
        if (const cudaError_t result = one_card ? cudaSuccess : cudaStreamSynchronize(rank.stream); result != cudaSuccess)
          all[static_cast<size_t>(r)] = cudaGetErrorString(result);
        ncclCommAbort(rank.comm);
      } else {
        all[static_cast<size_t>(r)] = ncclGetLastError(nullptr);
      }
      cudaFreeAsync(at, rank.stream);
      cudaStreamDestroy(rank.stream);
    });
  for (std::thread& thread : threads) thread.join();
  emulated_cuda::set_cards(1);
  return all;
}
std::string either(const std::vector<std::string>& all) { return all[0] + all[1]; }

TEST(NcclRules, MessagesThatFitPass) {
  const auto all = outcomes([](NcclRank& r) {
    r.rank == 0 ? r.send(100) : r.receive(100);
    r.rank == 0 ? r.receive(50) : r.send(50);
  });
  EXPECT_EQ(either(all), "");
}

TEST(NcclRules, OtherSizesAndTypesOnTheTwoSides) {
  EXPECT_THAT(either(outcomes([](NcclRank& r) { r.rank == 0 ? r.send(100) : r.receive(99); })), HasSubstr("rank 0 sends 100 elements"));
  EXPECT_THAT(either(outcomes([](NcclRank& r) { r.rank == 0 ? r.send(50) : r.receive(50, ncclInt32); })), HasSubstr("of type 7"));
}

TEST(NcclRules, CollectivesInAnotherOrder) {
  EXPECT_THAT(either(outcomes([](NcclRank& r) {
                for (const size_t count : r.rank == 0 ? std::vector<size_t>{10, 20} : std::vector<size_t>{20, 10})
                  NcclRank::check(ncclAllReduce(r.x, r.x, count, ncclFloat32, ncclSum, r.comm, r.stream));
              })),
              HasSubstr("ranks call other collectives of NCCL"));
}

// A refused call fails its communicator: nothing of its group is sent, and it can only be aborted.
TEST(NcclRules, WhatACallIsGiven) {
  float here[4] = {};
  const auto expect_refused = [](ncclResult_t expected, const std::function<ncclResult_t(NcclRank&)>& call) {
    outcomes([&](NcclRank& r) {
      r.rank == 0 ? r.send(10) : r.receive(10);
      EXPECT_EQ(call(r), expected);
      EXPECT_EQ(ncclGroupEnd(), expected) << "a call of the group was refused";
      ncclResult_t state = ncclSuccess;
      EXPECT_EQ(ncclCommGetAsyncError(r.comm, &state), ncclSuccess);
      EXPECT_EQ(state, expected);
      EXPECT_EQ(ncclCommFinalize(r.comm), expected);
      EXPECT_EQ(cudaStreamSynchronize(r.stream), cudaSuccess) << "nothing was put on the stream";
      ncclGroupStart();
    });
  };
  expect_refused(ncclInvalidArgument, [&](NcclRank& r) { return ncclSend(here, 4, ncclFloat32, 1 - r.rank, r.comm, r.stream); });
  expect_refused(ncclInvalidArgument, [](NcclRank& r) { return ncclSend(r.x, 101, ncclFloat32, 1 - r.rank, r.comm, r.stream); });
  expect_refused(ncclInvalidUsage, [](NcclRank& r) { return ncclSend(r.x, 4, ncclFloat32, r.rank, r.comm, r.stream); });
  expect_refused(ncclInvalidArgument, [](NcclRank& r) { return ncclSend(r.x, 4, ncclFloat32, 2, r.comm, r.stream); });
  outcomes([](NcclRank& r) {
    std::thread([&] { EXPECT_EQ(ncclSend(r.x, 4, ncclFloat32, 1 - r.rank, r.comm, r.stream), ncclInvalidUsage); }).join();
  });
  ncclConfig_t blocking = NCCL_CONFIG_INITIALIZER;
  blocking.blocking = 1;
  ncclUniqueId id;
  ncclGetUniqueId(&id);
  ncclComm_t comm = nullptr;
  cudaSetDevice(0);
  EXPECT_EQ(ncclCommInitRankConfig(&comm, 2, id, 0, &blocking), ncclInvalidUsage);
}

TEST(NcclRules, TwoRanksOnOneCard) {
  EXPECT_THAT(either(outcomes([](NcclRank&) {}, true)), HasSubstr("two ranks on one card"));
}

// A call is refused while those before it are in progress, and once the communicator has been ended.
TEST(NcclRules, CallsBeforeAndAfterTheirTime) {
  cudaSetDevice(0);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclUniqueId id;
  ncclGetUniqueId(&id);
  cudaStream_t stream = nullptr;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  ncclComm_t comm = nullptr;
  EXPECT_EQ(ncclCommInitRankConfig(&comm, 2, id, 0, &config), ncclInProgress);
  ncclGroupStart();
  EXPECT_EQ(ncclAllReduce(nullptr, nullptr, 0, ncclFloat32, ncclSum, comm, stream), ncclInvalidUsage) << "the other rank has not come";
  EXPECT_EQ(ncclCommDestroy(comm), ncclInvalidArgument) << "not finalized";
  EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
  EXPECT_EQ(ncclAllReduce(nullptr, nullptr, 0, ncclFloat32, ncclSum, comm, stream), ncclInvalidArgument) << "ended";
  EXPECT_EQ(ncclCommAbort(comm), ncclInvalidArgument);
  ncclGroupEnd();
  cudaStreamDestroy(stream);
}

// One group within the group that `outcomes` begins and ends: until it is on the stream.
void grouped(NcclRank& r, const std::function<void()>& calls) {
  calls();
  if (ncclGroupEnd() == ncclInProgress) r.settle();
  ncclGroupStart();
}

TEST(NcclRules, AFirstMessageWaitsForTheOtherHost) {
  std::atomic<int> came = 0;
  outcomes([&](NcclRank& r) {
    const auto message = [&](bool on) { grouped(r, [&] { on == (r.rank == 0) ? r.send(10) : r.receive(10); }); };
    if (r.rank == 1) std::this_thread::sleep_for(50ms), ++came;
    message(true);
    EXPECT_EQ(came, 1);
    message(true);  // connected: the host does not wait
    if (r.rank == 0) std::this_thread::sleep_for(50ms), ++came;
    message(false);
    EXPECT_EQ(came, 2) << "the other direction is another connection";
    if (r.rank == 1) std::this_thread::sleep_for(50ms), ++came;
    grouped(r, [&] { NcclRank::check(ncclAllReduce(r.x, r.x, 10, ncclFloat32, ncclSum, r.comm, r.stream)); });
    EXPECT_EQ(came, 3) << "so is a collective";
  });
}

TEST(NcclRules, AConnectionThatFails) {
  emulated_cuda::refuse_connections(1);
  outcomes([](NcclRank& r) {
    r.rank == 0 ? r.send(10) : r.receive(10);
    if (r.rank == 0) {
      EXPECT_EQ(ncclGroupEnd(), ncclInProgress);
      ncclResult_t state = ncclSuccess;
      ncclCommGetAsyncError(r.comm, &state);
      EXPECT_EQ(state, ncclInProgress);
      EXPECT_EQ(ncclCommFinalize(r.comm), ncclInvalidArgument);
    } else {
      EXPECT_EQ(ncclGroupEnd(), ncclSystemError);
      EXPECT_EQ(ncclCommFinalize(r.comm), ncclSystemError);
    }
    ncclGroupStart();
  });
  emulated_cuda::refuse_connections(-1);
}

// What is on streams is over when the calls have returned, or nothing is in progress any more.
TEST(NcclRules, AbortAndFinalizeWaitForWhatIsOnStreams) {
  for (const bool abort : {true, false}) {
    std::atomic<bool> received = false;
    outcomes([&](NcclRank& r) {
      const auto message = [&] { grouped(r, [&] { r.rank == 0 ? r.send(10) : r.receive(10); }); };
      message();
      cudaStreamSynchronize(r.stream);
      cudaEvent_t over = nullptr;
      cudaEventCreateWithFlags(&over, cudaEventDisableTiming);
      if (r.rank == 1 && abort) return;  // the second message is not received
      if (r.rank == 1) std::this_thread::sleep_for(50ms), received = true;
      message();
      cudaEventRecord(over, r.stream);
      if (abort) {
        EXPECT_EQ(cudaEventQuery(over), cudaErrorNotReady);
        ncclGroupEnd();
        EXPECT_EQ(ncclCommAbort(r.comm), ncclSuccess);
        ncclGroupStart();
        r.comm = nullptr;
      } else {
        ncclGroupEnd();
        EXPECT_EQ(ncclCommFinalize(r.comm), ncclInProgress);
        EXPECT_EQ(ncclCommFinalize(r.comm), ncclInvalidArgument);
        r.settle();
        EXPECT_TRUE(received);
        EXPECT_EQ(ncclCommDestroy(r.comm), ncclSuccess);
        ncclGroupStart();
      }
      cudaStreamSynchronize(r.stream);
      EXPECT_EQ(cudaEventQuery(over), cudaSuccess);
      cudaEventDestroy(over);
    });
  }
}

}  // namespace
}  // namespace starling
