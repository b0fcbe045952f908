// The operands that a collective needs, by its kind.
#include <gtest/gtest.h>

#include <array>

#include "core/base/error.h"
#include "exec/communicator/communicator.h"

namespace foreshard::check_call_test {
namespace {

std::array<std::byte, 512> memory_a, memory_b;

// 96 bytes of fp32 over four members: parts of 24 bytes.
CollectiveCall call(CollectiveKind kind, std::int64_t read, std::int64_t written, bool in_place = false) {
  return {.what = {.kind = kind, .bytes = {96}},
          .members = std::vector<RankId>(4),
          .from = {memory_a.data(), {read}},
          .to = {in_place ? memory_a.data() : memory_b.data(), {written}},
          .where = "here"};
}

std::string message(const CollectiveCall& call) {
  try {
    check_call(call);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

//                   reads   writes   in place
//   all-reduce         96       96        96
//   reduce-scatter     96       24        96
//   all-gather         24       96        96
TEST(CheckCall, SizesOfTheKinds) {
  using enum CollectiveKind;
  for (const CollectiveKind kind : {AllReduce, AllToAll, Broadcast, Reduce}) EXPECT_EQ(message(call(kind, 96, 96)), "");
  EXPECT_EQ(message(call(ReduceScatter, 96, 24)), "");
  EXPECT_EQ(message(call(AllGather, 24, 96)), "");
  EXPECT_EQ(message(call(AllGather, 23, 96)), "plan: here: found a block of 23 bytes to read, expected at least 24");
  EXPECT_EQ(message(call(ReduceScatter, 96, 20)), "plan: here: found a block of 20 bytes to write, expected at least 24");
  EXPECT_EQ(message(call(AllReduce, 95, 96)), "plan: here: found a block of 95 bytes to read, expected at least 96");
  // In place both are the full tensor.
  EXPECT_EQ(message(call(AllGather, 24, 96, true)), "plan: here: found a block of 24 bytes to read, expected at least 96");
  EXPECT_EQ(message(call(ReduceScatter, 96, 24, true)), "plan: here: found a block of 24 bytes to write, expected at least 96");
  EXPECT_EQ(message(call(AllGather, 96, 96, true)), "");
}

// Parts of whole elements: 4 members times 4 bytes. An all-reduce is not cut.
TEST(CheckCall, PartsAreWholeElements) {
  CollectiveCall cut = call(CollectiveKind::AllGather, 96, 96);
  cut.what.bytes = {88};
  EXPECT_EQ(message(cut), "plan: here: found 88 bytes, expected a multiple of 16 bytes");
  cut.what.kind = CollectiveKind::AllReduce;
  EXPECT_EQ(message(cut), "");
  cut.what.bytes = {90};
  EXPECT_EQ(message(cut), "plan: here: found 90 bytes, expected a multiple of 4 bytes");
}

TEST(CheckCall, FormatsAreAlikeAndCanBeSummed) {
  CollectiveCall other = call(CollectiveKind::AllReduce, 96, 96);
  other.to.dtype = DType::BF16;
  EXPECT_EQ(message(other), "plan: here: found bf16 to write, expected fp32");
  CollectiveCall codes = call(CollectiveKind::AllReduce, 96, 96);
  codes.from.dtype = codes.to.dtype = DType::U8;
  EXPECT_NE(message(codes).find("a floating-point type to sum"), std::string::npos);
  codes.what.kind = CollectiveKind::AllGather;  // moves bytes only
  EXPECT_EQ(message(codes), "");
}

TEST(CheckCall, AnAllToAllNeedsTwoBlocks) {
  EXPECT_EQ(message(call(CollectiveKind::AllToAll, 96, 96, true)),
            "plan: here: found an all-to-all in place, expected two blocks");
}

}  // namespace foreshard::check_call_test
