// A parameter of the operator graph says over which ranks it is cut and of which grid it is; lowering reads nothing else of it.
#include <gtest/gtest.h>

#include "core/cluster/cluster.h"
#include "core/cluster_file/cluster_file.h"
#include "strategy/lower/begin_lowering.h"
#include "strategy/lower/role_program.h"
#include "strategy/resolve/resolve.h"
#include "tests/strategy/support_lower.h"

namespace foreshard {

// Tensor and context degree are alike, so that a cut over the other one has shapes of the same size.
TEST(ParameterCuts, FollowTheParameter) {
  Model model;
  model.shape = small_transformer(2);
  const Cluster cluster = load_cluster("dgx-a100");
  const Strategy strategy{.dp = 2, .tp = 2, .cp = 2, .batch = {.global = 2}, .precision = DType::F64};
  auto begun = begin_lowering(model, cluster, std::get<Strategy>(resolve(model, cluster, strategy)));
  Lowering& lowering = std::get<Lowering>(begun);
  for (LayerGraph& kind : lowering.graph.kinds)
    for (Parameter& parameter : kind.parameters)
      if (parameter.name == "fc1.weight") parameter.split_over = {DenseKind::Context}, parameter.grid = Grid::Expert;
  SharedPrograms shared;
  add_role(lowering, 0, shared);
  int cut = 0, others = 0;
  for (const Buffer& buffer : lowering.plan.roles[0].buffers)
    for (const Shard& shard : buffer.holds) {
      const Tensor& tensor = lowering.plan.tensors[shard.tensor.index()];
      const bool changed = tensor.name.ends_with(".fc1.weight");
      EXPECT_EQ(tensor.grid, changed ? Grid::Expert : Grid::Dense) << tensor.name;
      if (shard.split_by.empty()) continue;
      ASSERT_EQ(shard.split_by.size(), 1U);
      EXPECT_EQ(lowering.plan.axes[shard.split_by[0].index()].dense, changed ? DenseKind::Context : DenseKind::Tensor)
          << tensor.name;
      ++(changed ? cut : others);
    }
  EXPECT_GT(cut, 0);
  EXPECT_GT(others, 0);
}

TEST(ParameterCuts, AClassOfTensorsIsAboutTheParameter) {
  const Parameter cut{.split_dim = 0}, whole{}, tied{.split_dim = 0, .tied = true};
  for (const Parameter& parameter : {cut, whole, tied}) EXPECT_TRUE(belongs(parameter, false, Tensors::All));
  EXPECT_TRUE(belongs(tied, false, Tensors::Tied) && belongs(cut, true, Tensors::Tied));
  EXPECT_FALSE(belongs(cut, false, Tensors::Tied));
  EXPECT_TRUE(belongs(whole, false, Tensors::Whole));
  EXPECT_FALSE(belongs(cut, false, Tensors::Whole));
}

}  // namespace foreshard
