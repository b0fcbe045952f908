// Runtime policies in the words of frameworks.
#include <gtest/gtest.h>

#include <algorithm>

#include "cli/parts/framework_words.h"
#include "core/cluster_file/cluster_file.h"
#include "strategy/resolve/resolve.h"

namespace foreshard {

// DeepSpeed's own rule is said in its numbers, FSDP2's keeping in its keyword; of another framework there is a note.
TEST(FrameworkExport, NamesTheRuntimePolicy) {
  const Model model = load_model("llama-2-7b");
  const auto exported = [&](const char* framework, const char* policy) {
    return *framework_export(
        model, std::get<Strategy>(resolve(model, load_cluster("dgx-a100"), {.policy = policy, .framework = framework})));
  };
  const auto says = [](const std::vector<std::string>& lines, const std::string& what) {
    return std::ranges::any_of(lines, [&](const std::string& line) { return line.find(what) != std::string::npos; });
  };
  const FrameworkExport own = exported("deepspeed", "deepspeed_z3");
  EXPECT_TRUE(says(own.lines, "\"stage3_max_live_parameters\": 1000000000"));
  EXPECT_TRUE(says(own.lines, "\"stage3_max_reuse_distance\": 1000000000"));
  EXPECT_TRUE(says(own.lines, "\"stage3_prefetch_bucket_size\": 50000000"));
  EXPECT_TRUE(says(own.notes, "runtime policy deepspeed_z3, its own"));
  EXPECT_TRUE(says(exported("fsdp2", "fsdp2").lines, "reshard_after_forward=True"));
  const FrameworkExport kept = exported("fsdp2", "bmtrain_z2");
  EXPECT_TRUE(says(kept.lines, "reshard_after_forward=False"));
  EXPECT_FALSE(says(kept.lines, "reshard_after_forward=True"));
  EXPECT_TRUE(says(kept.notes, "runtime policy bmtrain_z2 of BMTrain: simulated, but no option says so"));
  EXPECT_FALSE(says(exported("fsdp2", "auto").notes, "runtime policy"));
}

}  // namespace foreshard
