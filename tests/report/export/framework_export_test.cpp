// The dispatch to the frameworks' own writers, and notes that all of them get. What each framework writes: tests/cli/verbs.
#include "report/export/framework_export.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/cluster_file/cluster_file.h"
#include "strategy/resolve/resolve.h"

namespace foreshard::framework_export_test {
namespace {

Strategy resolved(Strategy strategy) {
  strategy.batch = {.micro = 1, .global = 16};
  return std::get<Strategy>(resolve(load_model("gpt2-355m"), load_cluster("dgx-a100"), strategy));
}

FrameworkExport exported(ExportFormat format, const Strategy& strategy, const FrameworkFacts& facts = {}) {
  return framework_export(format, facts, load_model("gpt2-355m"), strategy);
}

bool has(const std::vector<std::string>& lines, const std::string& line) {
  return std::find(lines.begin(), lines.end(), line) != lines.end();
}

}  // namespace

TEST(FrameworkExport, EachFormatIsForItsProgram) {
  const Strategy strategy = resolved({.dp = 8});
  EXPECT_EQ(exported(ExportFormat::Megatron, strategy).goes_to, "options of pretrain_gpt.py");
  EXPECT_EQ(exported(ExportFormat::DeepSpeed, strategy).goes_to, "ds_config.json");
  std::vector<std::string> all;
  for (const ExportFormat format :
       {ExportFormat::Megatron, ExportFormat::DeepSpeed, ExportFormat::TorchTitan, ExportFormat::Fsdp2}) {
    all.push_back(exported(format, strategy).goes_to);
    EXPECT_FALSE(exported(format, strategy).lines.empty());
  }
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::unique(all.begin(), all.end()), all.end());
}

// GPT-2 355M on 2 x 2 x 2 GPUs: 24 layers, 16 heads, h = 1024.
TEST(FrameworkExport, DegreesAndShapesAreWritten) {
  const FrameworkExport out = exported(ExportFormat::Megatron, resolved({.dp = 2, .tp = 2, .pp = 2}));
  for (const char* line : {"--num-layers 24", "--hidden-size 1024", "--num-attention-heads 16",
                           "--tensor-model-parallel-size 2", "--pipeline-model-parallel-size 2", "--global-batch-size 16"})
    EXPECT_TRUE(has(out.lines, line)) << line;
  EXPECT_TRUE(has(out.notes, "start it on 8 GPUs, one process each"));
}

// What the strategy does not state comes from the facts; choices without an option are notes.
TEST(FrameworkExport, FactsAndNotes) {
  Strategy strategy = resolved({.dp = 8});
  const FrameworkFacts facts{.version = "repository v1", .policy = "a policy's note"};
  FrameworkExport out = exported(ExportFormat::TorchTitan, strategy, facts);
  EXPECT_EQ(out.version, "repository v1");
  EXPECT_EQ(out.notes.back(), "a policy's note");
  const auto of_nccl = [](const FrameworkExport& e) {
    return std::any_of(e.notes.begin(), e.notes.end(),
                       [](const std::string& note) { return note.starts_with("NCCL chooses how"); });
  };
  EXPECT_FALSE(of_nccl(out));
  strategy.communication.algorithm = Algorithm::Tree;
  out = exported(ExportFormat::TorchTitan, strategy, facts);
  EXPECT_TRUE(has(out.notes, "NCCL chooses how collectives are carried out; tree was simulated"));
}

// Started as written, the lines would train another model, or another way: they name what they do not say.
TEST(FrameworkExport, WhatIsNotSaidIsNamed) {
  const Strategy plain = resolved({.dp = 8});
  EXPECT_TRUE(exported(ExportFormat::Megatron, plain).unsaid.empty());
  const auto of_model = [&](ExportFormat format, const char* model) {
    return framework_export(format, {}, load_model(model), plain).unsaid;
  };
  EXPECT_TRUE(of_model(ExportFormat::Megatron, "llama-3-8b").empty());
  EXPECT_TRUE(of_model(ExportFormat::TorchTitan, "llama-3-8b").empty());
  EXPECT_TRUE(has(of_model(ExportFormat::TorchTitan, "gpt2-355m"), "the model: it has no flavor of the size of gpt2-355m"));
  EXPECT_TRUE(has(of_model(ExportFormat::Megatron, "mixtral-8x7b"), "model.num_experts 8"));
  EXPECT_TRUE(has(of_model(ExportFormat::Megatron, "qwen3-8b"), "model.qk_norm"));
  EXPECT_TRUE(has(of_model(ExportFormat::Megatron, "deepseek-v2-lite"), "model.latent attention"));
  EXPECT_TRUE(has(of_model(ExportFormat::Megatron, "gemma-2-9b"), "model.soft caps"));
  EXPECT_TRUE(has(of_model(ExportFormat::Megatron, "bert-large"), "model.causal false"));
  EXPECT_TRUE(of_model(ExportFormat::DeepSpeed, "mixtral-8x7b").empty());  // the script has the model
  for (const ExportFormat format :
       {ExportFormat::Megatron, ExportFormat::DeepSpeed, ExportFormat::TorchTitan, ExportFormat::Fsdp2}) {
    Strategy strategy = plain;
    strategy.experts.ep = 4;
    EXPECT_TRUE(has(exported(format, strategy).unsaid, "strategy.ep 4"));
    strategy = plain, strategy.optimizer.lora.rank = 16;
    EXPECT_TRUE(has(exported(format, strategy).unsaid, "strategy.lora"));
    strategy = plain, strategy.batch.packed = 128;
    EXPECT_TRUE(has(exported(format, strategy).unsaid, "strategy.packed_length"));
    strategy = plain, strategy.offload.activations = OffloadedActivations::All, strategy.offload.activation_home = Space::Nvme;
    EXPECT_FALSE(exported(format, strategy).unsaid.empty());
  }
}

}  // namespace foreshard::framework_export_test
