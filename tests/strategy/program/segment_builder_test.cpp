// Edges between streams follow from what instructions read and write.
#include "strategy/program/segment_builder.h"

#include <gtest/gtest.h>

namespace foreshard::segment_builder_test {
namespace {

constexpr StreamId kCompute{0}, kSend{1}, kReceive{2};
const Block kA{.buffer = {0}}, kB{.buffer = {1}};

Use use(const Block& block) { return {.buffer = block.buffer, .slot = block.slot}; }

Instruction on(StreamId stream, const std::vector<Block>& reads, const std::vector<Block>& writes) {
  Instruction instruction{.what = Mark{}, .stream = stream};
  for (const Block& block : reads) instruction.reads.push_back(use(block));
  for (const Block& block : writes) instruction.writes.push_back(use(block));
  return instruction;
}

using Edges = std::vector<std::int32_t>;

// Read after write, write after read, write after write; none inside one stream, none between two reads.
TEST(SegmentBuilder, HazardsBetweenStreamsBecomeEdges) {
  SegmentBuilder builder("s", {});
  const int made = builder.emit(on(kCompute, {}, {kA}));
  const int sent = builder.emit(on(kSend, {kA}, {}));
  const int read = builder.emit(on(kReceive, {kA}, {}));
  const int again = builder.emit(on(kCompute, {}, {kA}));
  EXPECT_EQ(builder.at(sent).after, (Edges{made}));
  EXPECT_EQ(builder.at(read).after, (Edges{made}));
  EXPECT_EQ(builder.at(again).after, (Edges{sent, read}));
  EXPECT_TRUE(builder.at(made).after.empty());
  const int other = builder.emit(on(kReceive, {}, {kA}));
  EXPECT_EQ(builder.at(other).after, (Edges{again}));
}

// Of two instructions of one stream the later one stands for both.
TEST(SegmentBuilder, OneEdgeIntoAStream) {
  SegmentBuilder builder("s", {});
  builder.emit(on(kCompute, {}, {kA}));
  const int second = builder.emit(on(kCompute, {}, {kB}));
  const int sent = builder.emit(on(kSend, {kA, kB}, {}));
  EXPECT_EQ(builder.at(sent).after, (Edges{second}));
}

// A slot that is an argument of the segment is another block than slot 0.
TEST(SegmentBuilder, SlotsAreBlocksOfTheirOwn) {
  SegmentBuilder builder("s", {{.name = "slot"}});
  const Block by_argument{.buffer = {0}, .slot = {ParamId{0}}};
  builder.emit(on(kCompute, {}, {kA}));
  const int sent = builder.emit(on(kSend, {by_argument}, {}));
  EXPECT_TRUE(builder.at(sent).after.empty());
}

// A block dies with its last use, which then waits for its uses on other streams.
TEST(SegmentBuilder, TheLastUseReleases) {
  SegmentBuilder builder("s", {});
  builder.emit(on(kCompute, {}, {kA}));
  const int sent = builder.emit(on(kSend, {kA}, {}));
  const int last = builder.emit(on(kCompute, {kA}, {}));
  builder.release(kA);
  EXPECT_EQ(builder.at(last).releases, (std::vector<Block>{kA}));
  EXPECT_EQ(builder.at(last).after, (Edges{sent}));
  EXPECT_TRUE(builder.at(sent).releases.empty());
}

}  // namespace
}  // namespace foreshard::segment_builder_test
