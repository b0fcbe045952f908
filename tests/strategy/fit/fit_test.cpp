// The largest model that fits: next to it is one that does not, more room never makes it smaller, and the sizes of the literature appear.
#include "strategy/fit/fit.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/cluster_file/cluster_file.h"
#include "core/cluster_file/cluster_settings.h"
#include "strategy/cost/runtime_policy.h"
#include "strategy/lower/lower.h"
#include "tests/how_many.h"

namespace foreshard::fit_test {
namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

FitOptions options_of(SizedFamily family, std::int64_t seq, DType precision = DType::BF16) {
  FitOptions options{.family = family, .seq = seq};
  options.base.precision = precision;
  options.base.recompute = {.kind = RecomputeKind::Full};
  return options;
}

const Fit& way(const std::vector<Fit>& fits, const std::string& name) {
  const auto found = std::ranges::find_if(fits, [&](const Fit& fit) { return fit.way.name == name; });
  EXPECT_NE(found, fits.end()) << name;
  return *found;
}

Strategy of(const Fit& fit, const FitOptions& options, std::int64_t micro_batch) {
  Strategy s = options.base;
  s.dp = options.gpus, s.batch = {.micro = micro_batch, .seq = options.seq}, s.offload = fit.way.offload;
  if (options.gpus > 1) s.zero.stage = fit.way.zero;
  return s;
}

}  // namespace

TEST(Fit, MembersOfAFamilyGrow) {
  for (const SizedFamily family : {SizedFamily::Gpt, SizedFamily::Llama})
    for (int step = 2; step < kLargestStep; ++step)
      EXPECT_LT(parameter_count(family_member(family, step, 2048)), parameter_count(family_member(family, step + 1, 2048)));
  const auto& seven = std::get<Transformer>(family_member(SizedFamily::Llama, 32, 4096).shape);
  EXPECT_EQ(seven.hidden, 4096);
  EXPECT_EQ(parameter_count(family_member(SizedFamily::Llama, 32, 4096)), 6'738'415'616);  // Llama-2-7B to the element
}

TEST(Fit, TheNextLargerModelDoesNotFit) {
  const Cluster cluster = cluster_with("workstation-rtx4090", {{"host_memory", "64 GiB"}}, "test");
  for (const int gpus : {1, 4}) {
    FitOptions options = options_of(SizedFamily::Llama, 2048);
    options.gpus = gpus;
    for (const Fit& fit : largest_models(cluster, options)) {
      ASSERT_TRUE(fit.model) << fit.way.name << ": " << fit.why;
      const int layers = std::get<Transformer>(fit.model->shape).layers;
      EXPECT_TRUE(std::holds_alternative<Lowered>(lower(*fit.model, cluster, of(fit, options, fit.micro_batch))));
      const auto larger = lower(family_member(SizedFamily::Llama, layers + 1, 2048), cluster, of(fit, options, 1));
      ASSERT_TRUE(std::holds_alternative<Infeasible>(larger)) << fit.way.name;
      EXPECT_NE(fit.why, "");
    }
  }
}

// Ren et al. 2021: 13 billion parameters on one V100 of 32 GB, ten times what fits without it.
TEST(Fit, ZeroOffloadTrainsThirteenBillionOn32GB) {
  const Cluster cluster = cluster_with("dgx1-v100", {{"host_memory", "1.5 TiB"}}, "test");
  const std::vector<Fit> fits = largest_models(cluster, options_of(SizedFamily::Gpt, 1024, DType::F16));
  const Fit &alone = way(fits, "nothing"), &offload = way(fits, "optimizer");
  EXPECT_GT(offload.parameters, 12.5e9);
  EXPECT_LT(offload.parameters, 14.5e9);
  EXPECT_GT(alone.parameters, 1.3e9);
  EXPECT_LT(alone.parameters, 2.0e9);
  EXPECT_EQ(offload.binds, Binds::GpuMemory);
}

// With host memory enough, more of it there never trains a smaller model, at any size of the GPU's memory.
TEST(Fit, NeverSmallerThanZeroOffload) {
  Cluster cluster = cluster_with("workstation-rtx4090", {{"host_memory", "16 TiB"}}, "test");
  std::int64_t before = 0;
  for (const int gib : some_of<int>({8, 16, 24, 32, 40, 48, 64, 80}, 3)) {
    for (Gpu& gpu : cluster.gpus) gpu.memory = Bytes{std::int64_t{gib} << 30};
    const std::vector<Fit> fits = largest_models(cluster, options_of(SizedFamily::Llama, 2048));
    const std::int64_t offload = way(fits, "optimizer").parameters;
    EXPECT_GE(offload, way(fits, "nothing").parameters) << gib;
    EXPECT_GE(way(fits, "layer by layer").parameters, offload) << gib;
    EXPECT_GE(way(fits, "and inputs").parameters, way(fits, "layer by layer").parameters) << gib;
    EXPECT_GE(offload, before) << gib;
    before = offload;
  }
}

TEST(Fit, HostMemoryBindsWhereThereIsLittle) {
  std::int64_t before = 0;
  for (const char* host : {"16 GiB", "64 GiB", "128 GiB"}) {
    const Cluster cluster = cluster_with("workstation-rtx4090", {{"host_memory", host}}, "test");
    const std::vector<Fit> fits = largest_models(cluster, options_of(SizedFamily::Llama, 2048));
    const Fit& layers = way(fits, "layer by layer");
    EXPECT_EQ(layers.binds, Binds::HostMemory) << host;
    EXPECT_GT(layers.parameters, before) << host;
    EXPECT_GT(way(fits, "states on drives").parameters, layers.parameters) << host;
    before = layers.parameters;
  }
}

// ZeRO-Offload and L2L are the ways of their kind under their names. With host memory enough, parameters in it are room for a larger model.
TEST(Fit, PoliciesAreThoseOfPlans) {
  const Cluster cluster = cluster_with("workstation-rtx4090", {{"host_memory", "1 TiB"}}, "test");
  FitOptions options = options_of(SizedFamily::Llama, 2048);
  const std::vector<Fit> ways = largest_models(cluster, options);
  for (const RuntimePolicy& policy : runtime_policies()) options.policies.push_back(policy.name);
  const std::vector<Fit> fits = largest_models(cluster, options);
  ASSERT_EQ(fits.size(), 1 + runtime_policies().size());
  EXPECT_EQ(fits.front().parameters, way(ways, "nothing").parameters);
  EXPECT_EQ(way(fits, "zero_offload").parameters, way(ways, "optimizer").parameters);
  EXPECT_EQ(way(fits, "l2l").parameters, way(ways, "layer by layer").parameters);
  EXPECT_GT(way(fits, "gemini_cpu").parameters, way(fits, "zero_offload").parameters);
  // Chunks that stay are not copied in again; the two models differ by a step.
  EXPECT_GE(way(fits, "gemini_auto").speed.value(), 0.98 * way(fits, "gemini_cpu").speed.value());
}

TEST(Fit, StopsWhenAsked) {
  std::atomic<bool> stop = false;
  FitOptions options = options_of(SizedFamily::Llama, 2048);
  options.stop = &stop;
  options.progress = [&](double) { stop = true; };
  EXPECT_EQ(largest_models(load_cluster("workstation-rtx4090"), options).size(), 1u);
}

}  // namespace foreshard::fit_test
