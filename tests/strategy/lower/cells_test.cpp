// 1F1B in cells hides all-to-alls of experts: by how much, at most, and not at all where there are none.
#include <gtest/gtest.h>

#include "core/check/check_plan.h"
#include "core/cluster_file/cluster_file.h"
#include "core/result/order_bound.h"
#include "replay/replay.h"
#include "tests/strategy/support_lower.h"

namespace foreshard::cells_test {
namespace {

// Four layers, 8 experts, two of them chosen.
Model mixture() {
  Transformer t = small_transformer(4);
  t.norm = NormKind::RmsNorm, t.activation = ActivationKind::SwiGlu, t.positions = PositionKind::Rope;
  t.qkv_bias = t.projection_bias = t.mlp_bias = t.tied_embeddings = false;
  t.block.experts = {.count = 8, .chosen = 2, .width = 32};
  return {.name = "mixture", .shape = t};
}

struct Case {
  int pp = 1, chunks = 1, ep = 8;
  bool cells = true, overlaps = true, delays = false;
  int zero = 0, tp = 1;
};

Plan plan_of(const Case& of) {
  Strategy s{.dp = 8 / of.tp,
             .tp = of.tp,
             .pp = of.pp,
             .virtual_stages = of.chunks,
             .experts = {.ep = of.ep},
             .batch = {.micro = 4, .global = std::int64_t{8} * 4 * 8},
             .zero = {.stage = of.zero}};
  s.pipeline.schedule = of.chunks > 1 ? (of.cells ? Schedule::InterleavedCells : Schedule::Interleaved)
                                      : (of.cells ? Schedule::OneFOneBCells : Schedule::OneFOneB);
  s.pipeline.delay_wgrad = of.delays;
  s.sequence_parallel = of.tp > 1;
  s.communication.overlap = Overlap{.tp = of.overlaps};
  Lowered made = lowered(mixture(), load_cluster("dgx-a100-x2"), s);
  EXPECT_TRUE(check_plan(made.plan).empty());
  return std::move(made.plan);
}

// Seconds of an iteration; with `free` as if all-to-alls took no time.
double seconds_of(const Case& of, bool free = false) {
  Plan plan = plan_of(of);
  for (Segment& segment : plan.segments)
    for (Instruction& run : segment.instructions)
      if (const auto* what = std::get_if<Collective>(&run.what); free && what && what->kind == CollectiveKind::AllToAll)
        run.what = Mark{};
  return makespan_of(plan, load_cluster("dgx-a100-x2"));
}

TEST(Cells, HideAllToAllsOf1F1B) {
  for (const Case& of : {Case{1, 1}, Case{2, 1}, Case{2, 2}}) {
    SCOPED_TRACE(std::to_string(of.pp) + " " + std::to_string(of.chunks));
    Case plain = of, alone = of;
    plain.cells = false, alone.overlaps = false;
    const double cells = seconds_of(of), least = seconds_of(of, true);
    std::printf("pp %d, %d chunks: %.3f ms, cells %.3f, free %.3f\n", of.pp, of.chunks, 1e3 * seconds_of(plain), 1e3 * cells,
                1e3 * least);
    EXPECT_LT(cells, 0.97 * seconds_of(plain));
    EXPECT_LT(cells, 0.97 * seconds_of(alone));
    EXPECT_GE(cells, least * (1 - 1e-9));
  }
}

// Tensor-parallel ranks have another communicator than ranks that share experts: their gathers and reductions neither queue behind
// all-to-alls nor end a turn, so that cells hide as large a part of the all-to-alls as without them.
TEST(Cells, TensorCollectivesDoNotQueueBehindAllToAlls) {
  const Case of{.pp = 1, .tp = 2};
  const Plan plan = plan_of(of);
  int of_experts = 0, of_tensors = 0;
  for (const Segment& segment : plan.segments)
    for (const Instruction& run : segment.instructions) {
      const auto* what = std::get_if<Collective>(&run.what);
      if (!what || run.layer.value < 0) continue;
      const std::string& stream = plan.roles.front().streams[run.stream.index()].name;
      of_experts += stream == "experts" ? 1 : 0, of_tensors += stream == "tensor" ? 1 : 0;
      EXPECT_EQ(stream == "experts", what->kind == CollectiveKind::AllToAll) << run.name;
    }
  EXPECT_GT(of_experts, 0);
  EXPECT_GT(of_tensors, 0);
  const auto hidden = [](Case cells) {
    Case plain = cells;
    plain.cells = false;
    const double all = seconds_of(plain) - seconds_of(plain, true), exposed = seconds_of(cells) - seconds_of(cells, true);
    std::printf("tp %d: all-to-alls %.3f ms, %.3f exposed in cells\n", cells.tp, 1e3 * all, 1e3 * exposed);
    return 1 - exposed / all;
  };
  Case alone = of;
  alone.tp = 1;
  EXPECT_GT(hidden(of), hidden(alone) - 0.05);
}

// The computes and the all-to-alls are the same ones, so what an iteration is shorter by is what of the all-to-alls is hidden besides.
TEST(Cells, DelayedWeightGradientsHideMore) {
  for (const Case& of : {Case{1, 1}, Case{2, 1}, Case{2, 2}})
    for (const int zero : {0, 1, 2, 3}) {
      SCOPED_TRACE(std::to_string(of.pp) + " " + std::to_string(of.chunks) + " " + std::to_string(zero));
      Case cells = of, delayed = of;
      cells.zero = delayed.zero = zero, delayed.delays = true;
      EXPECT_LT(seconds_of(delayed), seconds_of(cells));
      // Without communication beside computes nothing is moved.
      cells.overlaps = delayed.overlaps = false;
      EXPECT_EQ(seconds_of(delayed), seconds_of(cells));
    }
}

// What the weight gradients read lives longer. (On a last stage most is alive under the head, whose weight gradient is not delayed.)
TEST(Cells, DelayedWeightGradientsKeepWhatTheyRead) {
  for (const Case& of : {Case{1, 1}, Case{2, 1}, Case{2, 2}}) {
    Case delayed = of;
    delayed.delays = true;
    const std::vector<Bytes> before = order_bounds(plan_of(of)), after = order_bounds(plan_of(delayed));
    ASSERT_EQ(before.size(), after.size());
    for (std::size_t role = 0; role < before.size(); ++role) EXPECT_GE(after[role], before[role]);
    if (of.pp == 2 && of.chunks == 1) EXPECT_GT(after[0], before[0]);
  }
}

TEST(Cells, RefuseToDelayWeightGradientsWhereThereAreNone) {
  Strategy s{.dp = 8, .experts = {.ep = 8}, .pipeline = {.schedule = Schedule::OneFOneB, .delay_wgrad = true}};
  s.batch = {.micro = 4, .global = 256};
  EXPECT_EQ(refused(mixture(), load_cluster("dgx-a100-x2"), s).reason, "delay_wgrad is of schedules of cells; 1f1b is none");
}

TEST(Cells, SaveNothingWithoutAllToAlls) {
  for (Case of : {Case{1, 1}, Case{2, 1}, Case{2, 2}}) {
    SCOPED_TRACE(std::to_string(of.pp) + " " + std::to_string(of.chunks));
    of.ep = 1;
    Case plain = of, alone = of;
    plain.cells = false, alone.overlaps = false;
    EXPECT_NEAR(seconds_of(of) / seconds_of(alone), 1, 1e-9);
    // More forwards ahead hide transfers between stages; so only without a pipeline the times are equal.
    if (of.pp == 1) EXPECT_NEAR(seconds_of(of) / seconds_of(plain), 1, 1e-3);
  }
}

}  // namespace
}  // namespace foreshard::cells_test
