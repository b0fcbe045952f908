// The tables that strategies become: what rows say of the techniques, and that lower obeys rows that no strategy makes.
#include "strategy/resolve/tables.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/cluster/cluster.h"
#include "core/cluster_file/cluster_file.h"
#include "strategy/resolve/resolve.h"
#include "strategy/resolve/tables_text.h"

namespace foreshard::tables_test {
namespace {

StrategyTables tables(Strategy strategy, const char* model_name = "gpt2-355m") {
  const Model model = load_model(model_name);
  const Strategy resolved = std::get<Strategy>(resolve(model, load_cluster("dgx-a100"), strategy));
  const OpGraph graph = std::get<OpGraph>(graph_of(model, resolved));
  return std::get<StrategyTables>(tables_of(model, resolved, graph));
}

std::string text_of(const StrategyTables& all, const std::string& key) {
  std::string text;
  for (const TextOfTable& table : texts_of(all))
    for (const auto& row : table.rows) {
      if (table.key != key) continue;
      for (const std::string& cell : row) text += cell + "|";
      text += "\n";
    }
  return text;
}

}  // namespace

TEST(Tables, TransfersArePartsOverTensorRanks) {
  Strategy s{.tp = 2, .pp = 2, .batch = {.global = 8}};
  EXPECT_EQ(text_of(tables(s), "communication").find("in parts over"), std::string::npos);
  s.communication.transfers = Transfers::Split;
  EXPECT_NE(text_of(tables(s), "communication").find("send forward, in parts over tensor|"), std::string::npos);
  s.sequence_parallel = true;
  EXPECT_EQ(text_of(tables(s), "communication").find("in parts over"), std::string::npos);
}

// What is cut, and when it is summed (Rajbhandari et al. 2020): the optimizer first, then gradients, then parameters.
TEST(Tables, ZeroIsThreeRows) {
  const auto row = [](int zero) {
    return tables({.pp = 1, .batch = {.global = 64}, .zero = {.stage = zero}}, "llama-2-7b").state.back();
  };
  for (int zero = 0; zero <= 3; ++zero) {
    EXPECT_EQ(row(zero).optimizer.cut_by.empty(), zero < 1);
    EXPECT_EQ(row(zero).gradients.cut_by.empty(), zero < 2);
    EXPECT_EQ(row(zero).parameters.cut_by.empty(), zero < 3);
    EXPECT_EQ(row(zero).unit, zero < 2 ? Unit::Bucket : Unit::Layer);
  }
  EXPECT_EQ(row(1).gradients.sums.front().when, GradientSum::When::LastMicrobatch);
  EXPECT_EQ(row(2).gradients.sums.front().when, GradientSum::When::EachMicrobatch);
}

TEST(Tables, StatesSayWhereTheyLieAndWhoUpdatesThem) {
  StrategyTables all = tables({.batch = {.global = 64}, .zero = {.stage = 2}});
  for (StateRow& row : all.state) row.optimizer.home = Space::PinnedHost, row.optimizer.updated_by = Processor::Host;
  all.communication.add_host_ways();
  EXPECT_NE(text_of(all, "state").find("variance; in pinned host memory; updated by the processor of the host|"),
            std::string::npos);
  EXPECT_NE(text_of(all, "communication").find("update on the host|any|host processor|-|yes|"), std::string::npos);
}

TEST(Tables, NothingIsCutOverOneRank) {
  const StateRow row = tables({.tp = 8, .batch = {.global = 8}, .zero = {.stage = 3}}).state.back();
  EXPECT_TRUE(row.parameters.cut_by.empty() && row.gradients.cut_by.empty() && row.optimizer.cut_by.empty());
}

// A class of tensors has a row only where it is treated apart.
TEST(Tables, RowsOfState) {
  const auto classes = [](const Strategy& strategy, const char* model = "gpt2-355m") {
    std::vector<Tensors> found;
    for (const StateRow& row : tables(strategy, model).state) found.push_back(row.tensors);
    return found;
  };
  using enum Tensors;
  EXPECT_EQ(classes({.batch = {.global = 64}}), (std::vector{All}));
  EXPECT_EQ(classes({.pp = 2, .batch = {.global = 64}}), (std::vector{Tied, All}));
  EXPECT_EQ(classes({.pp = 2, .batch = {.global = 64}}, "llama-2-7b"), (std::vector{All}));
  EXPECT_EQ(classes({.tp = 2, .batch = {.global = 64}}), (std::vector{All}));
  EXPECT_EQ(classes({.tp = 2, .sequence_parallel = true, .batch = {.global = 64}}), (std::vector{Whole, All}));
  EXPECT_EQ(classes({.tp = 2, .pp = 2, .batch = {.global = 64}, .optimizer = {.clip_norm = 1.0}}),
            (std::vector{Tied, Whole, All}));
}

TEST(Tables, LayersThatRunAgain) {
  const auto kept = [](const char* recompute, const std::string& split = "") {
    Strategy strategy{.pp = 2, .pipeline = {.layer_split = split}, .batch = {.global = 64}};
    strategy.recompute = parse_recompute(recompute, "test");
    return text_of(tables(strategy), "activations");
  };
  EXPECT_EQ(kept("none"), "");
  EXPECT_EQ(kept("selective"), "0-25|attention|stays|\n");
  EXPECT_EQ(kept("full"), "1-24|the whole layer, from its input|stays|\n");
  EXPECT_EQ(kept("full:2"), "1-2, 13-14|the whole layer, from its input|stays|\n");
  EXPECT_EQ(kept("full:1", "4,20"), "1, 5|the whole layer, from its input|stays|\n");
  EXPECT_EQ(kept("each:12xfull,4xattention+norm,8xnone"),
            "1-12|the whole layer, from its input|stays|\n13-16|attention, norm|stays|\n");
}

// Where the second chunk goes back up, its transfers have streams of their own, whatever the schedule is called.
TEST(Tables, TransfersOfAVPlacement) {
  const auto streams = [](Schedule schedule) {
    const StrategyTables all =
        tables({.pp = 4, .virtual_stages = 2, .pipeline = {.schedule = schedule}, .batch = {.micro = 1, .global = 16}});
    return std::pair{all.communication.row(Purpose::SendForward, 0).stream,
                     all.communication.row(Purpose::SendForward, 1).stream};
  };
  const auto [loop_first, loop_second] = streams(Schedule::Interleaved);
  EXPECT_EQ(loop_first, loop_second);
  const auto [first, second] = streams(Schedule::ZeroBubbleV);
  EXPECT_NE(first, second);
}

TEST(Tables, ReadAsText) {
  const StrategyTables all = tables({.tp = 2,
                                     .pp = 2,
                                     .sequence_parallel = true,
                                     .batch = {.global = 64},
                                     .zero = {.stage = 1},
                                     .optimizer = {.clip_norm = 1.0}});
  EXPECT_EQ(text_of(all, "axes"), "tp|2|tensor|expert-data|\ndp|2|data|expert-data|\nrole|2|-|-|\n");
  EXPECT_NE(text_of(all, "state").find("all-reduce over tensor with the last micro-batch; reduce-scatter over data, context"),
            std::string::npos);
  EXPECT_NE(text_of(all, "schedule").find("0|0|0-12|64|0F0 0F1 0B0"), std::string::npos);
  EXPECT_NE(text_of(all, "update").find("clips|to a global norm of 1|"), std::string::npos);
}

}  // namespace foreshard::tables_test
