// What a runtime policy says about other options, and what contradicts it.
#include <gtest/gtest.h>

#include "core/cluster/cluster.h"
#include "core/cluster_file/cluster_file.h"
#include "strategy/cost/runtime_policy.h"
#include "strategy/resolve/resolve.h"
#include "tests/strategy/support_lower.h"

namespace foreshard {
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

}  // namespace

TEST(Policy, EveryNameHasASection) {
  std::vector<std::string> names = {"auto"};
  for (const RuntimePolicy& policy : runtime_policies()) {
    names.push_back(policy.name);
    EXPECT_FALSE(policy.summary.empty() || policy.source.empty()) << policy.name;
  }
  EXPECT_EQ(names, policy_names());
  EXPECT_EQ(find_policy("auto"), nullptr);
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

}  // namespace foreshard
