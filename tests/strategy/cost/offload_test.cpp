// What host memory costs and saves, derived by hand: 12 layers of 12 h^2 + 13 h = 3,152,384 parameters (h = 512), 50,257 token and
// 1024 position rows, the last norm: 64,085,504 in all. A micro-batch of 4 x 1024 tokens enters a layer with 4 MiB.
#include "strategy/cost/offload.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/cluster_file/cluster_file.h"
#include "strategy/cost/framework_preset.h"
#include "strategy/frameworks/framework_allocation.h"
#include "tests/changed_text.h"
#include "tests/core/support_models.h"

namespace foreshard::offload_test {
namespace {

constexpr double kLayers = 12 * 3'152'384.0, kAll = kLayers + (50'257 + 1024) * 512.0 + 1024, kInputs = 12.0 * (4 << 20);

Model small_gpt() { return gpt(12, 512, 8, 50257, 1024); }

Strategy alone() {
  Strategy s{.dp = 1};
  s.batch.micro = 4, s.batch.global = 32, s.framework = "llmq";  // everything in bf16
  return s;
}

TEST(Offload, MemoryIsWhatStays) {
  const auto rank = [](const Offload& offload) {
    auto answer = framework_allocation(small_gpt(), load_cluster("dgx-h100"), alone(), {.offload = offload});
    return std::get<FrameworkAllocation>(answer).ranks.front();
  };
  const RankAllocation all = rank({});
  EXPECT_DOUBLE_EQ(all.statics - rank({.momentum = true, .variance = true}).statics, 4 * kAll);
  EXPECT_DOUBLE_EQ(all.statics - rank({.weights = true}).statics, 2 * kLayers);
  EXPECT_DOUBLE_EQ(all.statics - rank({.gradients = true}).statics, 2 * kLayers);
  EXPECT_DOUBLE_EQ(all.activations - rank({.inputs = true}).activations, kInputs);
  EXPECT_DOUBLE_EQ(all.peak - rank({.inputs = true}).peak, kInputs * 10 / 12);  // two places stay
  EXPECT_DOUBLE_EQ(rank({.activations = true, .activation_layers = 3}).activations, all.activations * 9 / 12);
}

TEST(Offload, WordsAreThoseOfThePreset) {
  const std::vector<OffloadRule>& rules = framework_preset("llmq").offload;
  EXPECT_EQ(offload_of(rules, "offload-opt-m offload-residual"), (Offload{.momentum = true, .inputs = true}));
  EXPECT_EQ(offload_of(rules, "offload-master"), Offload{.master = true});
  EXPECT_EQ(offload_of(rules, "offload-master; none; flags --shard-weights"), (Offload{.master = true, .weights = true}));
  EXPECT_FALSE(offload_of(rules, "offload-opt-m offload-everything"));
  EXPECT_FALSE(offload_of(rules, "some of it"));
  const auto layers = offload_of(framework_preset("megatron-bridge").offload, "activations of 20 layers to CPU");
  ASSERT_TRUE(layers);
  EXPECT_EQ(layers->activation_layers, 20);
}

TEST(Offload, WordsAreOptionsOfPlans) {
  EXPECT_EQ(choice_of({.momentum = true, .variance = true, .inputs = true}),
            (OffloadChoice{
                .optimizer = Space::PinnedHost, .updated_on = UpdatedOn::Device, .activations = OffloadedActivations::Inputs}));
  EXPECT_EQ(choice_of({.gradients = true, .weights = true, .activations = true, .activation_layers = 20, .host_update = true}),
            (OffloadChoice{.updated_on = UpdatedOn::Host,
                           .parameters = Space::PinnedHost,
                           .gradients = Space::PinnedHost,
                           .activations = OffloadedActivations::All,
                           .activation_layers = 20}));
}

TEST(Offload, WrongRulesAreNamed) {
  const auto message = [](const std::string& text) {
    return error_of([&] { read_offload_rules(JsonReader::parse(text, "p.json")); });
  };
  EXPECT_NE(message(R"([{"words": ["a"], "in_host": ["wights"]}])").find("weights"), std::string::npos);
  EXPECT_NE(message(R"([{"words": [], "in_host": ["master"]}])").find("at least one word"), std::string::npos);
  EXPECT_NE(message(R"([{"words": ["a"]}])").find("in_host"), std::string::npos);
}

}  // namespace
}  // namespace foreshard::offload_test
