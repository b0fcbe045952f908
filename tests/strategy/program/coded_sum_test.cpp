// Instructions and buffer sizes of a sum that is sent compressed.
#include "strategy/program/coded_sum.h"

#include <gtest/gtest.h>

#include <random>

#include "strategy/program/chunk_frame.h"

namespace foreshard::coded_sum_test {
namespace {

const Block kCodes{.buffer = {0}}, kReceived{.buffer = {1}}, kSum{.buffer = {2}}, kAll{.buffer = {3}};
const Use kArray{.buffer = {4}};
const CommunicationRow kWay{.purpose = Purpose::GradientSum, .stream = {2}};

class CodedSumTest : public testing::Test {
 protected:
  Model model;
  Cluster cluster;
  Lowering lowering{.model = model, .cluster = cluster, .strategy = {}};

  void set_ranks(int ranks) {
    lowering.plan.axes = {{"dp", DenseKind::Data, ExpertKind::ExpertData, ranks}};
    lowering.axes = {AxisId{0}};
  }
  CodedSum sum(const Coding& coding, std::int64_t elements, DType dtype = DType::BF16) {
    return {lowering, coding, {DenseKind::Data}, kWay, dtype, elements};
  }
};

Coding signs(bool exchanged) {
  Coding coding{.exchanged = exchanged};
  coding.encode.form.code = ops::Code::Signs;
  coding.encode.feedback = true;
  return coding;
}

const Collective& collective(const Instruction& run) { return std::get<Collective>(run.what); }
const Compute& compute(const Instruction& run) { return std::get<Compute>(run.what); }

}  // namespace

// 4000 elements over 4 ranks: parts of 1000, rounded up to 1024. Signs of 1024 elements: one mean (4 bytes) and 128 bytes of bits.
TEST_F(CodedSumTest, SizesOfAnExchangedSum) {
  set_ranks(4);
  const CodedSum coded = sum(signs(true), 4000);
  EXPECT_EQ(coded.part_elements(), 1024);
  EXPECT_EQ(coded.part(), Bytes{132});
  EXPECT_EQ(coded.codes(), Bytes{4 * 132});
  EXPECT_EQ(coded.gathered(), Bytes{4 * 132});
  EXPECT_EQ(coded.state_type(), DType::F32);
  EXPECT_EQ(sum(signs(true), 4000, DType::F64).state_type(), DType::F64);
}

// The array as one part: 4 means, 4000 bits are 500 bytes; the gather brings those of 4 ranks.
TEST_F(CodedSumTest, SizesOfAGatheredSum) {
  set_ranks(4);
  const CodedSum coded = sum(signs(false), 4000);
  EXPECT_EQ(coded.codes(), Bytes{16 + 500});
  EXPECT_EQ(coded.gathered(), Bytes{4 * 516});
}

// A share of 0.1 % of 4000 elements keeps 4 of the array; 8 bytes each. At least one is kept, at most all.
TEST_F(CodedSumTest, TheLargestAreAShareOfTheElements) {
  set_ranks(2);
  Coding coding{.exchanged = false};
  coding.encode.form.code = ops::Code::Largest;
  coding.kept = 0.001;
  EXPECT_EQ(sum(coding, 4000).codes(), Bytes{4 * 8});
  EXPECT_EQ(sum(coding, 10).codes(), Bytes{8});
  coding.kept = 7;
  EXPECT_EQ(sum(coding, 10).codes(), Bytes{80});
}

// encode -> exchange -> add_parts -> encode_part -> gather -> decode: what each reads was written by the one before, blocks that are
// written are acquired, computes run on the compute stream and collectives on the stream of the way.
TEST_F(CodedSumTest, InstructionsOfAnExchangedSum) {
  set_ranks(4);
  const CodedSum coded = sum(signs(true), 4000);
  const Use residual{.buffer = {5}};
  const Instruction encode = coded.encode(kArray, {}, {residual}, kCodes);
  EXPECT_EQ(encode.reads, (std::vector<Use>{kArray, residual}));
  EXPECT_EQ(encode.writes, (std::vector<Use>{whole(kCodes), residual}));
  EXPECT_EQ(encode.acquires, (std::vector<Block>{kCodes}));
  EXPECT_EQ(encode.stream, kComputeStream);
  EXPECT_FALSE(compute(encode).slice.valid());
  const Instruction exchange = coded.exchange(kCodes, kReceived);
  EXPECT_EQ(collective(exchange).kind, CollectiveKind::AllToAll);
  EXPECT_EQ(collective(exchange).bytes, coded.codes());
  EXPECT_EQ(exchange.stream, kWay.stream);
  const Instruction add = coded.add_parts(kReceived, kSum);
  EXPECT_TRUE(std::get<ops::Decode>(compute(add).op).adds);
  EXPECT_EQ(std::get<ops::Decode>(compute(add).op).form.parts, 4);
  EXPECT_EQ(compute(add).slice, collective(exchange).group);  // the rank's own part
  EXPECT_EQ(add.acquires, (std::vector<Block>{kSum}));
  const Instruction part = coded.encode_part(kSum, {}, kCodes);
  EXPECT_EQ(part.reads, (std::vector<Use>{whole(kSum)}));
  EXPECT_EQ(compute(part).slice, collective(exchange).group);
  const Instruction gather = coded.gather(kCodes, kAll);
  EXPECT_EQ(collective(gather).kind, CollectiveKind::AllGather);
  EXPECT_EQ(collective(gather).bytes, coded.gathered());
  const Instruction decode = coded.decode(kAll, kArray);
  EXPECT_FALSE(std::get<ops::Decode>(compute(decode).op).adds);
  EXPECT_EQ(decode.writes, (std::vector<Use>{kArray}));
}

// Without an exchange, decoding adds the arrays of all ranks.
TEST_F(CodedSumTest, DecodingAGatheredSumAdds) {
  set_ranks(4);
  const Instruction decode = sum(signs(false), 4000).decode(kAll, kArray);
  EXPECT_TRUE(std::get<ops::Decode>(compute(decode).op).adds);
  EXPECT_EQ(std::get<ops::Decode>(compute(decode).op).form.parts, 4);
}

// Adding to what a bf16 array holds reads it once more: 2 bytes for each of the part's 1024 elements.
TEST_F(CodedSumTest, AccumulatingReadsTheSum) {
  set_ranks(4);
  const CodedSum coded = sum(signs(true), 4000);
  const Instruction plain = coded.add_parts(kReceived, kArray, DType::BF16, false),
                    adds = coded.add_parts(kReceived, kArray, DType::BF16, true);
  EXPECT_EQ(compute(adds).traffic - compute(plain).traffic, Bytes{2 * 1024});
  EXPECT_TRUE(compute(adds).accumulate);
  EXPECT_FALSE(compute(plain).accumulate);
}

// Sent as Adam's first moment, the share of a rank is that of an average over all.
TEST_F(CodedSumTest, AMomentIsAveragedOverTheRanks) {
  set_ranks(4);
  const Use moment{.buffer = {6}};
  const Instruction run = sum(signs(true), 4000).encode(kArray, moment, {}, kCodes);
  EXPECT_EQ(std::get<ops::Encode>(compute(run).op).averaging, 4);
  EXPECT_EQ(run.reads, (std::vector<Use>{kArray, moment}));
}

// The parts of all ranks have room for all elements.
TEST_F(CodedSumTest, PartsCoverTheArray) {
  std::mt19937 random(9);
  for (int trial = 0; trial < 200; ++trial) {
    const int ranks = 2 + static_cast<int>(random() % 15);
    const std::int64_t elements = 1 + static_cast<std::int64_t>(random() % 100'000);
    lowering.groups.clear(), lowering.plan.groups.clear();
    set_ranks(ranks);
    const CodedSum coded = sum(signs(true), elements);
    EXPECT_GE(coded.part_elements() * ranks, elements);
    EXPECT_LT(coded.part_elements() * ranks, elements + 32 * ranks + ranks);
    EXPECT_EQ(coded.codes(), coded.part() * ranks);
  }
}

}  // namespace foreshard::coded_sum_test
