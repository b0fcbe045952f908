// 1F1B in cells hides all-to-alls of experts: by how much, at most, and not at all where there are none.
#include <gtest/gtest.h>

#include "core/check/check_plan.h"
#include "core/cluster_file/cluster_file.h"
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
  bool cells = true, overlaps = true;
};

// Seconds of an iteration; with `free` as if all-to-alls took no time.
double seconds_of(const Case& of, bool free = false) {
  Strategy s{.dp = 8,
             .pp = of.pp,
             .virtual_stages = of.chunks,
             .experts = {.ep = of.ep},
             .batch = {.micro = 4, .global = std::int64_t{8} * 4 * 8}};
  s.pipeline.schedule = of.chunks > 1 ? (of.cells ? Schedule::InterleavedCells : Schedule::Interleaved)
                                      : (of.cells ? Schedule::OneFOneBCells : Schedule::OneFOneB);
  s.communication.overlap = Overlap{.tp = of.overlaps};
  const Cluster cluster = load_cluster("dgx-a100-x2");
  Lowered made = lowered(mixture(), cluster, s);
  EXPECT_TRUE(check_plan(made.plan).empty());
  for (Segment& segment : made.plan.segments)
    for (Instruction& run : segment.instructions)
      if (const auto* what = std::get_if<Collective>(&run.what); free && what && what->kind == CollectiveKind::AllToAll)
        run.what = Mark{};
  return makespan_of(made.plan, cluster);
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
