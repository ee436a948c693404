// A rank among imagined others: it knows its place in every group, and waits for nobody.
#include <gtest/gtest.h>

#include "comm/mesh.h"
#include "comm/world.h"

namespace starling {
namespace {

TEST(ImaginedWorld, ARankHasItsPlaceInTheGrid) {
  ParallelOptions options;
  options.pipeline = 3;
  options.tensor = 2;
  for (int rank = 0; rank < 12; ++rank) {
    const World world = make_imagined_world(rank, 12);
    const Mesh mesh(*world.comm, options);
    EXPECT_EQ(mesh.data_parallel().size(), 2);
    EXPECT_EQ(mesh.data_parallel().rank(), rank / 6);
    EXPECT_EQ(mesh.replica().size(), 6);
    EXPECT_EQ(mesh.replica().rank(), rank % 6);
    EXPECT_EQ(mesh.pipeline().size(), 3);
    EXPECT_EQ(mesh.pipeline().rank(), rank % 6 / 2);
    EXPECT_EQ(mesh.tensor_parallel().size(), 2);
    EXPECT_EQ(mesh.tensor_parallel().rank(), rank % 2);
  }
  EXPECT_THROW(make_imagined_world(2, 2), InternalError);
}

TEST(ImaginedWorld, NothingIsWaitedForAndTensorsStay) {
  const World world = make_imagined_world(1, 3);
  Communicator& comm = *world.comm;
  const Tensor x({4}, DType::f32), nothing({4}, DType::f32, meta_memory());
  for (int i = 0; i < 4; ++i) x.data<float>()[i] = 2;
  for (const Tensor& tensor : {x, nothing}) {
    EXPECT_TRUE(comm.all_reduce(tensor).done());
    EXPECT_TRUE(comm.receive(tensor, 0, 1).done());
    EXPECT_TRUE(comm.send(tensor, 2, 1).done());
    EXPECT_TRUE(comm.broadcast(tensor, 0).done());
  }
  EXPECT_TRUE(comm.barrier().done());
  EXPECT_EQ(x.to_doubles(), std::vector<double>(4, 2));
  EXPECT_FALSE(world.computes);
}

}  // namespace
}  // namespace starling
