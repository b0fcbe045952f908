// Published rows of dense models, as questions to the engine.
#include "validation/measured_case.h"

#include <gtest/gtest.h>

namespace foreshard::measured_case_test {
namespace {

// nanotron's 1.34B model of the Ultra-Scale Playbook.
std::variant<MeasuredCase, SkipReason> asked(const std::string& stages, const std::string& flags = "") {
  MeasuredRow row;
  row.cells = {{"source", "table"},
               {"row_id", "r"},
               {"model_name", "Llama-like-1.34B"},
               {"layers", "16"},
               {"hidden", "2048"},
               {"ffn_hidden", "8192"},
               {"heads", "32"},
               {"kv_heads", "32"},
               {"seq_len", "4096"},
               {"vocab", "131072"},
               {"precision", "bf16"},
               {"gpu", "H100-80GB"},
               {"gpus_per_node", "8"},
               {"num_gpus", "8"},
               {"tp", "1"},
               {"pp", stages},
               {"vpp", "1"},
               {"dp", std::to_string(8 / std::stoi(stages))},
               {"cp", "1"},
               {"ep", "1"},
               {"micro_batch", "1"},
               {"global_batch", "256"},
               {"framework", "nanotron"},
               {"framework_flags", flags},
               {"recompute", "none"},
               {"activation", "swiglu"},
               {"norm", "rmsnorm"},
               {"notes", "tied embeddings"},
               {"measured_quantity", "tflops_per_gpu"},
               {"measured_value", "350"}};
  return measured_case(row);
}
std::string split_of(const std::variant<MeasuredCase, SkipReason>& answer) {
  const auto* question = std::get_if<MeasuredCase>(&answer);
  return question ? question->candidates.front().pipeline.layer_split : name_of(std::get<SkipReason>(answer));
}

TEST(MeasuredCase, ARowMayStateTheLayersOfEachStage) {
  EXPECT_EQ(split_of(asked("2")), "11,5");  // the rule of nanotron
  EXPECT_EQ(split_of(asked("2", "--layer-split 10,6")), "10,6");
}

// The head costs as much as four layers, two and a half of which are the share of each of eight stages: the seventh has the head alone.
TEST(MeasuredCase, AStageWithoutLayersIsNotPredicted) { EXPECT_EQ(split_of(asked("8")), "empty_stage"); }

}  // namespace
}  // namespace foreshard::measured_case_test
