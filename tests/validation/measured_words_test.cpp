// Words of the columns, as sources write them.
#include "validation/measured_words.h"

#include <gtest/gtest.h>

#include <map>

#include "validation/measured_cluster.h"

namespace foreshard::measured_words_test {
namespace {

MeasuredRow row_with(const std::string& column, const std::string& cell) {
  MeasuredRow row;
  row.cells[column] = cell;
  return row;
}

TEST(MeasuredWords, ZeroAsFrameworksSayIt) {
  const auto zero = [](const char* cell) { return zero_of(row_with("zero_stage_or_fsdp", cell), 64, 8); };
  EXPECT_EQ(zero("none (DDP)"), (ZeroWords{0, 0}));
  EXPECT_EQ(zero("none (LoRA adapters replicated)"), (ZeroWords{0, 0}));
  EXPECT_EQ(zero("zero0"), (ZeroWords{0, 0}));
  EXPECT_EQ(zero("distributed optimizer (zero1) by recipe default"), (ZeroWords{1, 0}));
  EXPECT_EQ(zero("distributed optimizer"), (ZeroWords{1, 0}));
  EXPECT_EQ(zero("use_distributed_optimizer"), (ZeroWords{1, 0}));
  EXPECT_EQ(zero("mcore_distributed_optim"), (ZeroWords{1, 0}));
  EXPECT_EQ(zero("ZeRO stage 2"), (ZeroWords{2, 0}));
  EXPECT_EQ(zero("FSDP, ZeRO-2"), (ZeroWords{2, 0}));  // the number before the word
  EXPECT_EQ(zero("FSDP (optimizer states and gradients sharded)"), (ZeroWords{2, 0}));
  EXPECT_EQ(zero("fsdp2 full shard, no reshard after forward"), (ZeroWords{2, 0}));
  EXPECT_EQ(zero("SHARD_GRAD_OP"), (ZeroWords{2, 0}));
  EXPECT_EQ(zero("megatron FSDP optim_grads_params"), (ZeroWords{3, 0}));
  EXPECT_EQ(zero("megatron FSDP optim_grads"), (ZeroWords{2, 0}));
  EXPECT_EQ(zero("fsdp_full_shard (zero3)"), (ZeroWords{3, 0}));
  EXPECT_EQ(zero("none; flags --shard-weights --shard-gradients"), (ZeroWords{3, 0}));
  EXPECT_EQ(zero("none; flags --shard-weights"), (ZeroWords{0, 0}));
}

TEST(MeasuredWords, GroupsOfZero) {
  const auto zero = [](const char* cell, int ranks = 64) { return zero_of(row_with("zero_stage_or_fsdp", cell), ranks, 8); };
  EXPECT_EQ(zero("zero1 group 16"), (ZeroWords{1, 16}));
  EXPECT_EQ(zero("zero1 group 64"), (ZeroWords{1, 0}));  // all of them
  EXPECT_EQ(zero("zero1 group 24"), (ZeroWords{1, 0}));  // does not divide them
  EXPECT_EQ(zero("zero1 over all dp ranks"), (ZeroWords{1, 0}));
  EXPECT_EQ(zero("fsdp over 16, replicated 4"), (ZeroWords{3, 16}));
  EXPECT_EQ(zero("hsdp (shard in the node, replicate between)"), (ZeroWords{3, 8}));
  EXPECT_EQ(zero("hsdp (shard in the node, replicate between)", 8), (ZeroWords{3, 0}));
}

TEST(MeasuredWords, SchedulesAndPrecisions) {
  const auto schedule = [](const char* cell) { return schedule_of(row_with("pp_schedule", cell)); };
  EXPECT_EQ(schedule("1F1B (DeepSpeed)"), Schedule::OneFOneB);
  EXPECT_EQ(schedule("unknown"), Schedule::OneFOneB);
  EXPECT_EQ(schedule(""), Schedule::OneFOneB);
  EXPECT_EQ(schedule("ZB-2p"), Schedule::ZeroBubble2p);
  EXPECT_EQ(schedule("DualPipe"), Schedule::DualPipe);
  EXPECT_EQ(schedule("GPipe"), Schedule::GPipe);
  EXPECT_EQ(schedule("zigzag"), std::nullopt);
  const auto precision = [](const char* cell) { return precision_of(row_with("precision", cell)); };
  EXPECT_EQ(precision("bf16 + fp8 hybrid blockwise"), DType::F8);
  EXPECT_EQ(precision("fp16/bf16 mixed (not stated)"), DType::BF16);
  EXPECT_EQ(precision("int8"), std::nullopt);
}

TEST(MeasuredWords, FlagsEndAtTheNextBlank) {
  const MeasuredRow row = row_with("framework_flags", "--num-experts 8 --moe-layer-freq ([0]*3+[1]*11) --moe-grouped-gemm");
  EXPECT_EQ(flag_number(row, "num-experts"), 8);
  EXPECT_EQ(flag_text(row, "moe-layer-freq"), "([0]*3+[1]*11)");
  EXPECT_EQ(flag_number(row, "experts"), std::nullopt);
  EXPECT_EQ(flag_text(row, "moe-grouped-gemm"), std::nullopt);  // nothing behind it
}

TEST(MeasuredWords, NotesDecideNothing) {
  EXPECT_FALSE(has_experts(row_with("notes", "tokenizer of Mixtral-8x7B")));
  EXPECT_FALSE(has_experts(row_with("recompute", "moe layers in the other table")));
  EXPECT_TRUE(has_experts(row_with("model_name", "Mixtral-8x7B")));
  EXPECT_TRUE(has_experts(row_with("framework_flags", "--num-experts 8")));
  EXPECT_TRUE(has_experts(row_with("model_name", "Qwen3_30B_a3B")));
  EXPECT_TRUE(has_experts(row_with("model_name", "GPT OSS 120B")));
  EXPECT_TRUE(has_experts(row_with("ep", "4")));
  EXPECT_FALSE(has_experts(row_with("ep", "1")));
}

// Nodes of four GB200 hang on one NVSwitch for 72 GPUs; nodes of eight B200 have one each.
TEST(MeasuredWords, OneNvlinkDomainOfSeventyTwo) {
  const auto nodes = [](const char* gpu, const char* link, const char* per_node, std::int64_t gpus) {
    MeasuredRow row;
    row.cells = {{"intra_link", link}, {"gpus_per_node", per_node}, {"inter_link_gbps_per_gpu", "400"}};
    std::vector<std::string> assumed;
    const Cluster cluster = measured_cluster(row, gpu, gpus, assumed);
    return static_cast<int>(gpu_count(cluster) / cluster.nodes.front().shape.gpus);
  };
  EXPECT_EQ(nodes("gb200", "NVLink 5", "4", 8), 1);
  EXPECT_EQ(nodes("gb300", "NVLINK Gen5 1800 GB/s + NVSWITCH Gen5", "4", 144), 2);
  EXPECT_EQ(nodes("b200", "NVLink 5", "8", 16), 2);
}

}  // namespace
// A word that nobody knows counted as none.
TEST(MeasuredWords, ThatNobodyKnowsAreRefused) {
  for (const auto& [column, cell] : std::map<std::string, std::string>{{"activation", "foo"},
                                                                       {"norm", "bar"},
                                                                       {"flash_attention", "maybe"},
                                                                       {"sequence_parallel", "perhaps"},
                                                                       {"recompute", "zzz"},
                                                                       {"zero_stage_or_fsdp", "normal"}}) {
    MeasuredRow row{.file = "t.csv", .line = 7, .cells = {{column, cell}}};
    try {
      expect_words(row);
      ADD_FAILURE() << column;
    } catch (const Error& wrong) {
      EXPECT_EQ(std::string(wrong.what()).find("t.csv:7: " + column + ": found \"" + cell + "\", expected"), 0U)
          << wrong.what();
    }
    row.cells[column] = "unknown";
    EXPECT_NO_THROW(expect_words(row));
  }
}

}  // namespace foreshard::measured_words_test
