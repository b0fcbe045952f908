// Which layers of a rank's chunks share places for their activations.
#include "strategy/program/activation_pool.h"

#include <gtest/gtest.h>

namespace foreshard {

// Two chunks of a rank: a dense layer and two mixtures, three mixtures. Only the first two mixtures are in both.
TEST(ActivationPool, LayersThatAllChunksHaveShareAPlace) {
  const Model model;
  const Cluster cluster;
  Lowering lowering{.model = model, .cluster = cluster, .strategy = {}};
  constexpr int kDense = 1, kMixture = 2, kWindow = 3;
  lowering.graph.kinds = {{.kind = "embedding"},
                          {.kind = "dense", .values = {{"h"}}},
                          {.kind = "mixture", .values = {{"x"}}},
                          {.kind = "window", .values = {{"x"}}}};
  lowering.graph.layers = {{"embedding"},         {"0", kDense, true},   {"1", kMixture, true}, {"2", kMixture, true},
                           {"3", kMixture, true}, {"4", kMixture, true}, {"5", kMixture, true}, {"head"}};
  lowering.tables.layout.layers.first = {0, 4, 8};
  lowering.tables.schedule.stages_of_rank = {{0, 1}}, lowering.tables.schedule.rank_of_stage = {0, 0};
  ActivationPool pool{.places = pool_places(lowering, {0, 1})};
  EXPECT_EQ(pool.places, (std::vector<std::vector<int>>{{-1, 0, 1}, {0, 1, -1}}));
  EXPECT_EQ(pool.place(1, 1), 1);
  EXPECT_EQ(pool.place(0, -1), -1);  // the embedding
  EXPECT_EQ(ActivationPool{}.place(0, 0), -1);

  // Layers that compute something else but keep the same values share places.
  lowering.graph.layers[2].kind = lowering.graph.layers[6].kind = kWindow;
  EXPECT_EQ(pool_places(lowering, {0, 1}), pool.places);

  // Those that are redone share with those that are redone.
  lowering.tables.activations.rows = {{.layers = {{2, 2}, {5, 5}}}};
  pool.places = pool_places(lowering, {0, 1});
  EXPECT_EQ(pool.places, (std::vector<std::vector<int>>{{-1, 0, 1}, {1, 0, -1}}));
}

}  // namespace foreshard
