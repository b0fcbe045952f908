// What a runtime policy says about other options, and what contradicts it.
#include <gtest/gtest.h>

#include "core/cluster/cluster.h"
#include "core/cluster_file/cluster_file.h"
#include "strategy/cost/runtime_policy.h"
#include "strategy/resolve/resolve.h"
#include "tests/strategy/support_lower.h"

namespace foreshard::policy_test {
namespace {

Strategy resolved(const Strategy& strategy) {
  auto answer = resolve(load_model("gpt2-124m"), load_cluster("dgx-a100"), strategy);
  if (const auto* refused = std::get_if<Infeasible>(&answer)) ADD_FAILURE() << refused->reason;
  return std::get<Strategy>(answer);
}

std::string reason(const Strategy& strategy) {
  const auto answer = resolve(load_model("gpt2-124m"), load_cluster("dgx-a100"), strategy);
  const auto* refused = std::get_if<Infeasible>(&answer);
  return refused ? refused->reason : "";
}

Plan plan_of(const Strategy& strategy) { return lowered("gpt2-124m", "dgx-a100", strategy).plan; }

}  // namespace

TEST(Policy, EveryNameHasASection) {
  std::vector<std::string> names = {"auto", "none"};
  for (const RuntimePolicy& policy : runtime_policies()) {
    names.push_back(policy.name);
    EXPECT_FALSE(policy.summary.empty() || policy.source.empty()) << policy.name;
  }
  EXPECT_EQ(names, policy_names());
  EXPECT_EQ(find_policy("auto"), nullptr);
  EXPECT_EQ(find_policy("none"), nullptr);
}

TEST(Policy, AFrameworkImpliesTheOneOfItsStage) {
  const auto implied = [](const Strategy& s) -> std::string {
    const RuntimePolicy* policy = policy_of(s);
    return policy ? policy->name : "";
  };
  EXPECT_EQ(implied({.zero = {.stage = 3}}), "");  // foreshard's own executor
  EXPECT_EQ(implied({.zero = {.stage = 0}, .framework = "deepspeed"}), "");
  EXPECT_EQ(implied({.zero = {.stage = 1}, .framework = "deepspeed"}), "deepspeed_z1");
  EXPECT_EQ(implied({.zero = {.stage = 2}, .framework = "deepspeed"}), "deepspeed_z2");
  EXPECT_EQ(implied({.zero = {.stage = 3}, .framework = "deepspeed"}), "deepspeed_z3");
  EXPECT_EQ(implied({.zero = {.stage = 1}, .framework = "megatron"}), "megatron");
  EXPECT_EQ(implied({.zero = {.stage = 1}, .framework = "nemo"}), "megatron");
  EXPECT_EQ(implied({.zero = {.stage = 3}, .framework = "torchtitan-rowwise"}), "fsdp2");  // as the preset that it is like
  EXPECT_EQ(implied({.pp = 4, .zero = {.stage = 3}, .framework = "torchtitan"}), "fsdp2");
  // Keeps parameters from the forward to the backward: one stage only.
  EXPECT_EQ(implied({.pp = 2, .zero = {.stage = 3}, .framework = "deepspeed"}), "");
  // ZeRO-Offload is DeepSpeed's ZeRO 2 with both in host memory; ZeRO 3 keeps its rule wherever its states lie.
  const OffloadChoice both = {.optimizer = Space::PinnedHost, .gradients = Space::PinnedHost};
  EXPECT_EQ(implied({.zero = {.stage = 2}, .offload = both, .framework = "deepspeed"}), "zero_offload");
  EXPECT_EQ(implied({.zero = {.stage = 2}, .offload = {.optimizer = Space::PinnedHost}, .framework = "deepspeed"}),
            "deepspeed_z2");
  EXPECT_EQ(implied({.zero = {.stage = 3}, .offload = both, .framework = "deepspeed"}), "deepspeed_z3");
  // --policy wins.
  EXPECT_EQ(implied({.policy = "none", .zero = {.stage = 3}, .framework = "deepspeed"}), "");
  EXPECT_EQ(implied({.policy = "fsdp", .zero = {.stage = 3}, .framework = "deepspeed"}), "fsdp");
}

TEST(Policy, AnImpliedOneSaysBucketsAndRefusesNothing) {
  const Strategy one = resolved({.zero = {.stage = 1}, .framework = "deepspeed"});
  EXPECT_EQ(one.policy, "auto");
  EXPECT_EQ(one.communication.bucket, Bytes{4 * 500'000'000});  // fp32 gradients
  EXPECT_EQ(resolved(one), one);
  EXPECT_EQ(
      resolved({.zero = {.stage = 1}, .communication = {.bucket = {1000}}, .framework = "deepspeed"}).communication.bucket,
      Bytes{1000});
  EXPECT_NE(resolved({.policy = "none", .zero = {.stage = 1}, .framework = "deepspeed"}).communication.bucket,
            one.communication.bucket);
  EXPECT_EQ(reason({.pp = 2, .zero = {.stage = 3}, .framework = "deepspeed"}), "");
  EXPECT_EQ(reason({.zero = {.stage = 3}, .offload = {.parameters = Space::PinnedHost}, .framework = "fsdp2"}), "");
}

// Implied or named, it is the same plan but for the number formats, which the preset says.
TEST(Policy, AnImpliedOneLowersAsTheNamedOne) {
  for (const auto& [framework, policy] : {std::pair{"deepspeed", "deepspeed_z3"}, std::pair{"fsdp2", "fsdp2"}}) {
    const Strategy implied{.batch = {.global = 8, .seq = 128}, .zero = {.stage = 3}, .framework = framework};
    Strategy named = implied, none = implied;
    named.policy = policy, none.policy = "none";
    EXPECT_EQ(program_hash(plan_of(implied)), program_hash(plan_of(named))) << framework;
    EXPECT_NE(program_hash(plan_of(implied)), program_hash(plan_of(none))) << framework;
  }
}

TEST(Policy, SaysWhatIsLeftOpen) {
  EXPECT_EQ(resolved({.policy = "fsdp2"}).zero.stage, 3);
  EXPECT_EQ(resolved({.policy = "fsdp2"}).state_dtypes.grad, DType::F32);
  EXPECT_EQ(resolved({.policy = "fsdp2", .state_dtypes = {.grad = DType::BF16}}).state_dtypes.grad, DType::BF16);
  EXPECT_EQ(resolved({.policy = "deepspeed_z1"}).communication.bucket, Bytes{2 * 500'000'000});
  const Strategy offloaded = resolved({.policy = "zero_offload"});
  EXPECT_EQ(offloaded.offload.gradients, Space::PinnedHost);
  EXPECT_EQ(offloaded.offload.optimizer, Space::PinnedHost);
  EXPECT_EQ(offloaded.offload.parameters, Space::Device);
  EXPECT_EQ(resolved(offloaded), offloaded);  // once is enough
}

TEST(Policy, IsRefusedByName) {
  EXPECT_EQ(reason({.policy = "fsdp2", .zero = {.stage = 1}}), "policy fsdp2 is ZeRO 3, --zero says 1");
  EXPECT_EQ(reason({.policy = "l2l", .offload = {.parameters = Space::Nvme}}),
            "policy l2l keeps parameters in host memory, --offload-parameters says nvme");
  EXPECT_EQ(
      reason({.pp = 2, .policy = "bmtrain_z2"}),
      "policy bmtrain_z2 keeps parameters from a forward to its backward, but with pp 2 other micro-batches come in between");
  EXPECT_EQ(reason({.pp = 2, .policy = "bmtrain_z3"}), "");
}

TEST(Policy, FilesAreChecked) {
  const auto error = [](const std::string& policy) -> std::string {
    try {
      parse_policies(R"({"policies": {"fsdp": {"summary": "s", "source": "s", )" + policy + "}}}", "fsdp2", "f.json");
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(error(R"("zero": 3, "layers": {"ahead": 2})"), "");
  EXPECT_NE(error(R"("zero": 4)").find("policies.fsdp.zero"), std::string::npos);
  EXPECT_NE(error(R"("zero": 1, "layers": {"ahead": 1})").find("policies.fsdp.layers"), std::string::npos);
  EXPECT_NE(error(R"("zero": 3, "layers": {"prefetch": 1, "live_cap": 1, "reuse_distance": 1, "keep": true})").find("keep"),
            std::string::npos);
  EXPECT_NE(error(R"("zero": 3, "layer": {})").find("layer"), std::string::npos);
  EXPECT_THROW(parse_policies(R"({"policies": {"mine": {}}})", "fsdp2", "f.json"), Error);
}

}  // namespace foreshard::policy_test
