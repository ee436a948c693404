// The emulated NCCL finds the mistakes that NCCL itself would not tell of: each is made here, on purpose.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nccl.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/emulated/emulator.h"

namespace starling {
namespace {

using testing::HasSubstr;

// One of two ranks, each a thread with a card, a stream and 100 floats on the card.
struct Rank {
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
      check(ncclCommGetAsyncError(comm, &state));
  }
};

// What waiting for each rank's stream says, after `work` between the start and the end of a group.
std::vector<std::string> outcomes(const std::function<void(Rank&)>& work, bool one_card = false) {
  emulated_cuda::set_cards(2);
  ncclUniqueId id;
  ncclGetUniqueId(&id);
  std::vector<std::string> all(2);
  std::vector<std::thread> threads;
  for (int r = 0; r < 2; ++r)
    threads.emplace_back([&, r] {
      Rank rank{r};
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
  const auto all = outcomes([](Rank& r) {
    r.rank == 0 ? r.send(100) : r.receive(100);
    r.rank == 0 ? r.receive(50) : r.send(50);
  });
  EXPECT_EQ(either(all), "");
}

TEST(NcclRules, OtherSizesAndTypesOnTheTwoSides) {
  EXPECT_THAT(either(outcomes([](Rank& r) { r.rank == 0 ? r.send(100) : r.receive(99); })), HasSubstr("rank 0 sends 100 elements"));
  EXPECT_THAT(either(outcomes([](Rank& r) { r.rank == 0 ? r.send(50) : r.receive(50, ncclInt32); })), HasSubstr("of type 7"));
}

TEST(NcclRules, CollectivesInAnotherOrder) {
  EXPECT_THAT(either(outcomes([](Rank& r) {
                for (const size_t count : r.rank == 0 ? std::vector<size_t>{10, 20} : std::vector<size_t>{20, 10})
                  Rank::check(ncclAllReduce(r.x, r.x, count, ncclFloat32, ncclSum, r.comm, r.stream));
              })),
              HasSubstr("ranks call other collectives of NCCL"));
}

TEST(NcclRules, WhatACallIsGiven) {
  outcomes([](Rank& r) {
    float here[4] = {};
    EXPECT_EQ(ncclSend(here, 4, ncclFloat32, 1 - r.rank, r.comm, r.stream), ncclInvalidArgument) << "memory of the host";
    EXPECT_EQ(ncclSend(r.x, 101, ncclFloat32, 1 - r.rank, r.comm, r.stream), ncclInvalidArgument) << "beyond the end";
    EXPECT_EQ(ncclSend(r.x, 4, ncclFloat32, r.rank, r.comm, r.stream), ncclInvalidUsage) << "to itself";
    EXPECT_EQ(ncclSend(r.x, 4, ncclFloat32, 2, r.comm, r.stream), ncclInvalidArgument) << "no such rank";
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
  EXPECT_THAT(either(outcomes([](Rank&) {}, true)), HasSubstr("two ranks on one card"));
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

}  // namespace
}  // namespace starling
