// The twin of NCCL, call by call: what is right is carried out, each mistake is seen.
#include <gtest/gtest.h>

#include "tests/cuda/fake_runtime.h"
#include "tests/cuda/twin_session.h"

namespace foreshard::gpu::nccl_twin_test {
namespace {

using nccl::Result;

// By hand: two ranks and two communicators.
class Twins : public testing::Test {
 protected:
  void SetUp() override {
    nccl::UniqueId id;
    nccl().get_unique_id(&id);
    for (int rank = 0; rank < 2; ++rank) {
      nccl::Config config;
      EXPECT_EQ(nccl().comm_init_rank_config(&world_[rank], 2, id, rank, &config), Result::InProgress);
    }
    for (int rank = 0; rank < 2; ++rank) {
      nccl::Config config;
      EXPECT_EQ(nccl().comm_split(world_[rank], 0, rank, &part_[rank], &config), Result::InProgress);
      runtime_.select(rank);
      stream_[rank] = runtime_.open_stream(false);
    }
    for (nccl::Comm* comm : {world_[0], world_[1], part_[0], part_[1]}) {
      Result state = Result::InProgress;
      nccl().comm_async_error(comm, &state);
      EXPECT_EQ(state, Result::Success);
    }
    block_ = runtime_.allocate(Space::Device, {4096});
    runtime_.synchronize(runtime_.legacy_stream());
  }
  void TearDown() override { runtime_.release(Space::Device, block_); }
  nccl::Library& nccl() { return twin_.library(); }
  Result all_reduce(int rank, nccl::Comm* comm, std::size_t count, nccl::DataType type = nccl::DataType::Float32) {
    return nccl().all_reduce(block_ + rank * 1024, block_ + rank * 1024, count, type, nccl::RedOp::Sum, comm, stream_[rank]);
  }
  void work() {
    for (int i = 0; i < 20; ++i) static_cast<void>(runtime_.idle(stream_[i % 2]));
  }
  // All complaints, the communicators given up as they should be.
  std::string complaints(bool aborts = false) {
    for (nccl::Comm* comm : {part_[0], part_[1], world_[0], world_[1]}) {
      if (!aborts) nccl().comm_finalize(comm), nccl().comm_destroy(comm);
      if (aborts) nccl().comm_abort(comm);
    }
    std::string all;
    for (const std::string& one : twin_.end().complaints) all += one + "\n";
    return all;
  }

  FakeRuntime runtime_{{.devices = 2}};
  TwinSession twin_;
  nccl::Comm *world_[2] = {}, *part_[2] = {};
  Stream* stream_[2] = {};
  std::byte* block_ = nullptr;
};

TEST_F(Twins, WhatIsRightIsCarriedOut) {
  auto* numbers = reinterpret_cast<float*>(block_);
  numbers[0] = 1, numbers[256] = 2;
  all_reduce(0, part_[0], 1), all_reduce(1, part_[1], 1);
  work();
  EXPECT_EQ(numbers[0], 3);
  EXPECT_EQ(numbers[256], 3);
  nccl().group_start();
  nccl().send(block_, 4, nccl::DataType::Int8, 1, world_[0], stream_[0]);
  nccl().receive(block_ + 512, 8, nccl::DataType::Int8, 1, world_[0], stream_[0]);
  nccl().group_end();
  nccl().group_start();
  nccl().receive(block_ + 1536, 4, nccl::DataType::Int8, 0, world_[1], stream_[1]);
  nccl().send(block_ + 1024, 8, nccl::DataType::Int8, 0, world_[1], stream_[1]);
  nccl().group_end();
  work();
  EXPECT_EQ(numbers[384], 3);
  EXPECT_EQ(complaints(), "");
}

TEST_F(Twins, AnotherCountTypeOrCallIsSeen) {
  all_reduce(0, part_[0], 8), all_reduce(1, part_[1], 9);
  EXPECT_NE(complaints().find("call 0 of communicator 1: rank 0 called ncclAllReduce of 8, rank 1 ncclAllReduce of 9"),
            std::string::npos);
}
TEST_F(Twins, AnotherTypeIsSeen) {
  all_reduce(0, part_[0], 8), all_reduce(1, part_[1], 8, nccl::DataType::Bfloat16);
  EXPECT_NE(complaints().find("or another type"), std::string::npos);
}
TEST_F(Twins, AnotherCallIsSeen) {
  all_reduce(0, part_[0], 8);
  nccl().broadcast(block_ + 1024, block_ + 1024, 8, nccl::DataType::Float32, 0, part_[1], stream_[1]);
  EXPECT_NE(complaints().find("rank 1 ncclBroadcast of 8"), std::string::npos);
}
TEST_F(Twins, ACallThatOneRankLeavesOutIsSeen) {
  all_reduce(0, part_[0], 8);
  work();
  EXPECT_NE(complaints().find("ncclAllReduce 0 of communicator 1 was called by 1 of 2 ranks"), std::string::npos);
}
TEST_F(Twins, OrdersThatGoRoundInACircleAreSeen) {
  all_reduce(0, part_[0], 8), all_reduce(0, world_[0], 8);
  all_reduce(1, world_[1], 8), all_reduce(1, part_[1], 8);
  EXPECT_NE(complaints().find("no total order over all communicators"), std::string::npos);
}
TEST_F(Twins, MessagesOfOtherSizesAreSeen) {
  nccl().send(block_, 4, nccl::DataType::Int8, 1, world_[0], stream_[0]);
  nccl().receive(block_ + 1024, 5, nccl::DataType::Int8, 0, world_[1], stream_[1]);
  EXPECT_NE(complaints().find("a message from rank 0 to 1 of 4 bytes, received as 5"), std::string::npos);
}
TEST_F(Twins, GroupsThatEndTwiceAreSeen) {
  EXPECT_EQ(nccl().group_end(), Result::InvalidUsage);
  EXPECT_NE(complaints().find("ncclGroupEnd without ncclGroupStart"), std::string::npos);
}
TEST_F(Twins, CallsAfterAnAbortAreSeen) {
  EXPECT_EQ(complaints(true), "");
  EXPECT_EQ(all_reduce(0, part_[0], 8), Result::InvalidArgument);
  EXPECT_NE(twin_.end().complaints.back().find("aborted"), std::string::npos);
}
TEST_F(Twins, CommunicatorsThatAreLeftAreSeen) {
  EXPECT_NE(twin_.end().complaints.back().find("neither destroyed nor aborted"), std::string::npos);
}

}  // namespace
}  // namespace foreshard::gpu::nccl_twin_test
