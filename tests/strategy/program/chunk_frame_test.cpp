// A chunk's view of the tables, and what it appends to its role.
#include "strategy/program/chunk_frame.h"

#include <gtest/gtest.h>

namespace foreshard::chunk_frame_test {
namespace {

class ChunkFrameTest : public testing::Test {
 protected:
  Model model;
  Cluster cluster;
  Lowering lowering{.model = model, .cluster = cluster, .strategy = {}};
  Role role;

  // Four stages on two ranks, interleaved: rank 1 holds stages 1 and 3.
  ChunkFrameTest() {
    lowering.tables.schedule.rank_of_stage = {0, 1, 0, 1};
    lowering.tables.layout.layers.first = {0, 3, 5, 7, 10};
  }
  ChunkFrame frame(int chunk, int stage) {
    return {.lowering = lowering, .role = role, .rank = 1, .chunk = chunk, .stage = stage};
  }
};

}  // namespace

TEST_F(ChunkFrameTest, LayersAndEnds) {
  const ChunkFrame first = frame(0, 0), last = frame(1, 3);
  EXPECT_TRUE(first.first_stage());
  EXPECT_FALSE(first.last_stage());
  EXPECT_EQ(first.layers(), 3);
  EXPECT_TRUE(last.last_stage());
  EXPECT_EQ(last.first_layer(), 7);
  EXPECT_FALSE(first.splits());
  lowering.tables.schedule.splits = true;
  EXPECT_TRUE(first.splits());
}

// Ids count from 0 over the role; names have the number of the chunk; slots without offsets yet.
TEST_F(ChunkFrameTest, AppendsBuffersAndEvents) {
  EXPECT_EQ(frame(0, 1).add_buffer("x", Category::Activations, DType::BF16, {64}, 3), BufferId{0});
  EXPECT_EQ(frame(1, 3).add_buffer("x", Category::Transient, DType::F32, {8}, 1), BufferId{1});
  EXPECT_EQ(frame(1, 3).add_event("free", 2), EventId{0});
  const Buffer x{
      .name = "x.0", .category = Category::Activations, .dtype = DType::BF16, .bytes = {64}, .offsets = {{}, {}, {}}};
  ASSERT_EQ(role.buffers.size(), 2U);
  EXPECT_EQ(role.buffers[0], x);
  EXPECT_EQ(role.buffers[1].name, "x.1");
  EXPECT_EQ(role.events, (std::vector<Event>{{.name = "free.1", .slots = 2}}));
}

// A row for chunk 1 comes before the one for any chunk. Copies of a drive's tensors have streams of their own.
TEST_F(ChunkFrameTest, WaysFollowPurposeAndChunk) {
  using enum Purpose;
  lowering.tables.communication.rows = {{.purpose = GradientSum, .chunk = 1, .stream = {5}},
                                        {.purpose = GradientSum, .stream = {6}},
                                        {.purpose = CopyToHost, .stream = {7}},
                                        {.purpose = CopyFromHost, .stream = {8}},
                                        {.purpose = WriteDrive, .stream = {9}},
                                        {.purpose = ReadDrive, .stream = {10}}};
  EXPECT_EQ(frame(0, 1).way(GradientSum).stream, StreamId{6});
  EXPECT_EQ(frame(1, 3).way(GradientSum).stream, StreamId{5});
  const ChunkFrame chunk = frame(0, 1);
  EXPECT_EQ(chunk.copy_way(Space::PinnedHost, true).stream, StreamId{7});
  EXPECT_EQ(chunk.copy_way(Space::PageableHost, false).stream, StreamId{8});
  EXPECT_EQ(chunk.copy_way(Space::Nvme, true).stream, StreamId{9});
  EXPECT_EQ(chunk.copy_way(Space::Nvme, false).stream, StreamId{10});
}

TEST(ChunkFrame, AUseOfAWholeBlock) {
  const Use use = whole({.buffer = {3}, .slot = {ParamId{1}}});
  EXPECT_EQ(use, (Use{.buffer = {3}, .slot = {ParamId{1}}}));
  EXPECT_FALSE(use.length);
}

}  // namespace foreshard::chunk_frame_test
