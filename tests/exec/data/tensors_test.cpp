// Whole tensors from the shards of ranks, and back.
#include "exec/data/tensors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "core/base/error.h"
#include "exec/arithmetic/host_convert.h"
#include "exec/host/host_device.h"

namespace foreshard::tensors_test {
namespace {

constexpr AxisId kTensorAxis{0}, kDataAxis{1};
constexpr TensorId kMatrix{0};

// Two tensor ranks and two replicas. A matrix of 4 x 6 is cut along its columns, which are two blocks of 2 and 4
// columns; its gradient lies beside it in a second buffer.
//
//   columns     0 1 | 2 3 4 5       tensor rank 0: columns 0, 2, 3     tensor rank 1: columns 1, 4, 5
class TensorPiecesTest : public testing::Test {
 protected:
  Plan plan;
  Stop stop;
  HostDevice device{stop, nullptr};
  std::unique_ptr<Ranks> ranks;
  std::vector<std::unique_ptr<RankMemory>> memories;

  TensorPiecesTest() {
    plan.axes = {{.name = "tp", .dense = DenseKind::Tensor, .size = 2}, {.name = "dp", .size = 2}};
    plan.tensors = {{.name = "w", .shape = {4, 6}, .init = "normal(0.02)"}};
    const Shard value{.tensor = kMatrix, .dim = 1, .split_by = {kTensorAxis}, .block_rows = {2, 4}};
    Shard gradient = value;
    gradient.part = TensorPart::Gradient;
    plan.roles = {
        {.name = "all",
         .axes = {kDataAxis, kTensorAxis},
         .buffers = {
             {.name = "w", .dtype = DType::F64, .bytes = {96}, .holds = {value}, .resident = true},
             {.name = "g", .dtype = DType::F32, .bytes = {48}, .offsets = {{96}}, .holds = {gradient}, .resident = true}}}};
  }
  void make() {
    ranks = std::make_unique<Ranks>(plan);
    for (int rank = 0; rank < ranks->count(); ++rank)
      memories.push_back(std::make_unique<RankMemory>(plan, RoleId{0}, device, MemoryChecks{}));
  }
  std::vector<const RankMemory*> all() const {
    std::vector<const RankMemory*> pointers;
    for (const auto& memory : memories) pointers.push_back(memory.get());
    return pointers;
  }
  std::vector<double> stored(int rank, std::int32_t buffer, std::int64_t count) const {
    std::vector<double> values(static_cast<std::size_t>(count));
    const Operand at{memories[static_cast<std::size_t>(rank)]->address(BufferId{buffer}), count,
                     plan.roles[0].buffers[static_cast<std::size_t>(buffer)].dtype};
    host::load(at, 0, count, values.data());
    return values;
  }
};

std::vector<double> counted() {
  std::vector<double> values;
  for (int i = 0; i < 24; ++i) values.push_back(i);
  return values;
}

}  // namespace

TEST_F(TensorPiecesTest, ScatterGivesEachRankItsColumns) {
  make();
  const TensorPieces pieces(plan, *ranks);
  pieces.scatter(all(), kMatrix, TensorPart::Value, counted());
  // Ranks are data-major: 0 and 2 are tensor rank 0.
  for (const int rank : {0, 2}) EXPECT_EQ(stored(rank, 0, 12), (std::vector<double>{0, 2, 3, 6, 8, 9, 12, 14, 15, 18, 20, 21}));
  for (const int rank : {1, 3})
    EXPECT_EQ(stored(rank, 0, 12), (std::vector<double>{1, 4, 5, 7, 10, 11, 13, 16, 17, 19, 22, 23}));
  EXPECT_EQ(stored(0, 1, 12), std::vector<double>(12));  // the gradient is another part
  const WholeTensor whole = pieces.gather(all(), kMatrix, TensorPart::Value);
  EXPECT_EQ(whole.elements, counted());
  EXPECT_EQ(whole.held, std::vector<char>(24, 1));
  EXPECT_EQ(whole.largest_difference, 0);
  EXPECT_EQ(gather_tensors(plan, *ranks, all(), TensorPart::Value)[0].elements, counted());
}

TEST_F(TensorPiecesTest, FormatsOfTheParts) {
  make();
  const TensorPieces pieces(plan, *ranks);
  EXPECT_EQ(pieces.dtype(kMatrix, TensorPart::Value), DType::F64);
  EXPECT_EQ(pieces.dtype(kMatrix, TensorPart::Gradient), DType::F32);
  EXPECT_FALSE(pieces.dtype(kMatrix, TensorPart::Momentum));
}

// A replica that has another number is found; of a number that is no number the difference is infinite.
TEST_F(TensorPiecesTest, ReplicasThatDifferAreTold) {
  make();
  const TensorPieces pieces(plan, *ranks);
  pieces.scatter(all(), kMatrix, TensorPart::Value, counted());
  const double wrong = 3.5, none = std::nan("");
  memories[3]->write({0}, {8}, std::as_bytes(std::span(&wrong, 1)));  // column 4 of row 0: 4
  EXPECT_EQ(pieces.gather(all(), kMatrix, TensorPart::Value).largest_difference, 0.5);
  memories[3]->write({0}, {8}, std::as_bytes(std::span(&none, 1)));
  EXPECT_TRUE(std::isinf(pieces.gather(all(), kMatrix, TensorPart::Value).largest_difference));
}

// A process with the ranks of tensor rank 1 holds half of the matrix; its share has those elements that no earlier rank has.
TEST_F(TensorPiecesTest, SharesOfProcessesAddUp) {
  make();
  const TensorPieces pieces(plan, *ranks);
  pieces.scatter(all(), kMatrix, TensorPart::Value, counted());
  std::vector<const RankMemory*> first = all(), second = all();
  first[1] = first[3] = nullptr, second[0] = second[2] = nullptr;
  EXPECT_EQ(pieces.gather(second, kMatrix, TensorPart::Value).held[0], 0);
  const WholeTensor a = pieces.share(first, kMatrix, TensorPart::Value), b = pieces.share(second, kMatrix, TensorPart::Value);
  for (std::size_t i = 0; i < 24; ++i) {
    EXPECT_EQ(a.held[i] + b.held[i], 1) << i;
    EXPECT_EQ(a.elements[i] + b.elements[i], static_cast<double>(i));
  }
  // The second replica alone has nothing that the first one lacks.
  std::vector<const RankMemory*> replica = all();
  replica[0] = replica[1] = nullptr;
  EXPECT_EQ(pieces.share(replica, kMatrix, TensorPart::Value).held, std::vector<char>(24));
}

// ZeRO: the buffer as a flat array is cut over the replicas, 6 elements each.
TEST_F(TensorPiecesTest, FlatCuts) {
  plan.roles[0].buffers[1].holds[0].flat_by = {kDataAxis};
  plan.roles[0].buffers[1].bytes = {24};
  make();
  const TensorPieces pieces(plan, *ranks);
  pieces.scatter(all(), kMatrix, TensorPart::Gradient, counted());
  EXPECT_EQ(stored(0, 1, 6), (std::vector<double>{0, 2, 3, 6, 8, 9}));
  EXPECT_EQ(stored(2, 1, 6), (std::vector<double>{12, 14, 15, 18, 20, 21}));
  EXPECT_EQ(pieces.gather(all(), kMatrix, TensorPart::Gradient).elements, counted());
}

// In place, a reduce-scatter leaves only the rank's slice of the gradient up to date.
TEST_F(TensorPiecesTest, OnlyFreshSlicesAreGathered) {
  plan.groups = {{.name = "data", .over = {kDataAxis}}};
  plan.segments = {{.name = "s",
                    .instructions = {{.name = "sum",
                                      .what = Collective{.kind = CollectiveKind::ReduceScatter, .group = {0}, .bytes = {48}},
                                      .reads = {{.buffer = {1}}},
                                      .writes = {{.buffer = {1}}}}}}};
  plan.roles[0].actions = {{.segment = {0}}};
  make();
  const TensorPieces pieces(plan, *ranks);
  pieces.scatter(all(), kMatrix, TensorPart::Gradient, counted());
  const float old = 777;
  memories[0]->write({1}, {4 * 6}, std::as_bytes(std::span(&old, 1)));  // in the second half: replica 1's
  memories[2]->write({1}, {0}, std::as_bytes(std::span(&old, 1)));
  const WholeTensor whole = pieces.gather(all(), kMatrix, TensorPart::Gradient);
  EXPECT_EQ(whole.elements, counted());
  EXPECT_EQ(whole.largest_difference, 0);
}

// Initial values do not depend on the cut; gradients stay zero.
TEST_F(TensorPiecesTest, InitialValuesAreThoseOfTheTensor) {
  make();
  for (int rank = 0; rank < 4; ++rank) fill_initial_state(plan, *ranks, {rank}, *memories[static_cast<std::size_t>(rank)], 42);
  std::vector<double> values(24);
  fill_initial(plan.tensors[0], {}, 0, 42, {reinterpret_cast<std::byte*>(values.data()), 24, DType::F64});
  const WholeTensor whole = gather_tensors(plan, *ranks, all(), TensorPart::Value)[0];
  EXPECT_EQ(whole.elements, values);
  EXPECT_EQ(whole.largest_difference, 0);
  EXPECT_NE(values[0], 0);
  EXPECT_EQ(stored(0, 1, 12), std::vector<double>(12));
}

TEST_F(TensorPiecesTest, CutsThatDoNotDivideAreRefused) {
  plan.roles[0].buffers[0].holds[0].block_rows = {3, 3};
  make();
  try {
    TensorPieces(plan, *ranks);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "plan: tensor w: found 3 rows, expected blocks that sum to the tensor, each a multiple of 2 parts");
  }
}

}  // namespace foreshard::tensors_test
