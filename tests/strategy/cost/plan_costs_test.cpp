// What a framework's way of talking costs, on plans that `lower` makes: the same plan costed with one field of the preset changed.
#include "strategy/cost/plan_costs.h"

#include <gtest/gtest.h>

#include <set>

#include "core/cluster_file/cluster_file.h"
#include "core/plan/joined_products.h"
#include "strategy/cost/collective_cost.h"
#include "strategy/cost/operator_style.h"
#include "strategy/cost/profile_time.h"
#include "strategy/kernels/machine_constants.h"
#include "strategy/kernels/op_cost.h"
#include "tests/strategy/support_alone.h"
#include "tests/strategy/support_lower.h"

namespace foreshard::plan_costs_test {
namespace {

struct Found {
  const Instruction* run = nullptr;
  Cost cost = {};
};

// Of the first role's segments whose name begins so, the last instruction of that name.
Found find(const Plan& plan, const std::string& segment, const std::string& name) {
  Found found;
  for (std::size_t s = 0; s < plan.segments.size(); ++s) {
    if (!plan.segments[s].name.starts_with(segment)) continue;
    for (std::size_t i = 0; i < plan.segments[s].instructions.size(); ++i)
      if (plan.segments[s].instructions[i].name == name && !plan.costs[0].by_segment[s].empty())
        found = {&plan.segments[s].instructions[i], plan.costs[0].by_segment[s][i]};
  }
  EXPECT_NE(found.run, nullptr) << segment << " " << name;
  return found;
}

Found costed(Lowered& job, const Cluster& cluster, const FrameworkPreset& preset, const std::string& segment,
             const std::string& name) {
  cost_plan(job.plan, cluster, preset);
  return find(job.plan, segment, name);
}

std::vector<DeviceId> first(int n) {
  std::vector<DeviceId> members;
  for (int i = 0; i < n; ++i) members.push_back({i});
  return members;
}

// One message of a shard group as collective_cost has it.
Nanoseconds message(const Cluster& cluster, Collective what, int members, double share) {
  const Network network(cluster);
  what.bytes = {static_cast<std::int64_t>(static_cast<double>(what.bytes.value) * share)};
  return collective_cost(network.gpu({0}), what, path_of(network, what, first(members))).busy;
}

// Qwen3-30B on eight H100: rows that NCCL sends to their experts take longer on the wire than tokens that kernels of DeepEP send once.
TEST(PlanCosts, TokensSentOnceTravelByKernelsOfTheirOwn) {
  const Cluster cluster = load_cluster("dgx-h100");
  const auto factor = [&](Dispatcher dispatcher, const std::string& framework, const std::string& name) {
    Lowered job = lowered("qwen3-30b-a3b", "dgx-h100",
                          {.dp = 8, .experts = {.ep = 8, .dispatcher = dispatcher}, .batch = {.micro = 1, .global = 8}});
    return costed(job, cluster, framework_preset(framework), "forward", name).cost.wire_factor;
  };
  const MachineConstants& hopper = machine_constants("hopper");
  EXPECT_NEAR(factor(Dispatcher::AllToAll, "megatron", "dispatch_all_to_all"), 1 / hopper.nvlink_all_to_all, 0.1);
  EXPECT_NEAR(factor(Dispatcher::OncePerRank, "megatron", "dispatch_once_all_to_all"), 1 / hopper.nvlink_ring, 0.1);
  EXPECT_NEAR(factor(Dispatcher::OncePerRank, "foreshard", "dispatch_once_all_to_all"), 1 / hopper.nvlink_all_to_all, 0.1);
}

// Rows are written to scattered places, which takes longer than reading them from there: in the forward of a dispatch and in the backward
// of a combination. NeMo of 2024 adds rows to their tokens by atomics, in plain operators.
TEST(PlanCosts, PermutationsAreSlowerThanStreams) {
  const auto slow = [](const std::string& framework, bool combines, Phase phase) {
    const FrameworkPreset& preset = framework_preset(framework);
    Compute what{.phase = phase, .traffic = {1}};
    what.op = ops::Dispatch{};
    if (combines) what.op = ops::Combine{};
    return slowdown_of({}, preset, what) * preset.elementwise;
  };
  for (const char* framework :
       {"megatron", "megatron-bridge", "megatron-bridge-attention-graphs", "megatron-bridge-router-graphs"}) {
    EXPECT_DOUBLE_EQ(slow(framework, false, Phase::Forward), 1.75) << framework;
    EXPECT_DOUBLE_EQ(slow(framework, false, Phase::InputGrad), 1) << framework;
    EXPECT_DOUBLE_EQ(slow(framework, true, Phase::Forward), 1) << framework;
    EXPECT_DOUBLE_EQ(slow(framework, true, Phase::InputGrad), 1.75) << framework;
  }
  EXPECT_DOUBLE_EQ(slow("nemo", false, Phase::Forward), 2);
  EXPECT_DOUBLE_EQ(slow("nemo", false, Phase::InputGrad), 10);
  EXPECT_DOUBLE_EQ(slow("nemo-24.03", true, Phase::Forward), 10);
  EXPECT_DOUBLE_EQ(slow("nemo-24.03", true, Phase::InputGrad), 10);
}

// A layer of Llama-2 has four matrices (qkv, projection, gate and up, down) and two norms of 4096 elements, which are below the
// least shard: four all-gathers over 32 ranks, and for each 32 parts that the host cuts out and copies.
TEST(PlanCosts, EachTensorIsGatheredOnItsOwn) {
  const Cluster cluster = load_cluster("dgx-a100-x4");
  Lowered job = lowered("llama-2-7b", "dgx-a100-x4", {.dp = 32, .batch = {.micro = 1, .global = 32}, .zero = {.stage = 3}});
  const Found whole = costed(job, cluster, {}, "forward", "gather");
  const auto what = std::get<Collective>(whole.run->what);
  EXPECT_EQ(whole.cost.busy, message(cluster, what, 32, 1));
  // The head is gathered last: one matrix and a norm. Above it a layer.
  FrameworkPreset preset{.shards = {.communication = ShardCommunication::Tensor, .least = 100'000},
                         .host = {.per_kernel = {8e-6}}};
  cost_plan(job.plan, cluster, preset);
  const Instruction* layer = nullptr;
  Cost cost;
  for (std::size_t i = 0; i < job.plan.segments[0].instructions.size(); ++i) {
    const Instruction& run = job.plan.segments[0].instructions[i];
    if (run.name == "gather" && std::get<Collective>(run.what).bytes.value == 2 * 202383360LL)
      layer = &run, cost = job.plan.costs[0].by_segment[0][i];
  }
  ASSERT_NE(layer, nullptr);
  const Nanoseconds one = message(cluster, std::get<Collective>(layer->what), 32, 0.25);
  EXPECT_NEAR(to_seconds(cost.busy).value, 4 * (to_seconds(one).value + 2 * 32 * 8e-6), 1e-8);
}

// Owners: with 512 ranks every one of the 195 tensors has an owner of its own; with 8 ranks a rank's tensors travel together.
TEST(PlanCosts, OwnersSendTheirTensors) {
  const FrameworkPreset preset{.shards = {.communication = ShardCommunication::Owner}};
  for (const auto& [name, dp] : {std::pair{"dgx-a100-x64", 512}, {"dgx-a100", 8}}) {
    const Cluster cluster = load_cluster(name);
    Lowered job =
        lowered("llama-2-7b", name,
                {.dp = dp, .batch = {.micro = 1, .global = dp}, .zero = {.stage = 1}, .communication = {.overlap = {}}});
    const Found found = costed(job, cluster, preset, "update", "all-gather parameters");
    const auto what = std::get<Collective>(found.run->what);
    const auto tensors = static_cast<int>(job.plan.roles[0].buffers[found.run->reads[0].buffer.index()].holds.size());
    ASSERT_GT(tensors, 1);
    const double messages = dp == 512 ? tensors : std::max(1.0, tensors * 8 / 195.0);
    EXPECT_NEAR(to_seconds(found.cost.busy).value, messages * to_seconds(message(cluster, what, dp, 1 / messages)).value, 1e-7)
        << name;
  }
}

// A layer is 202,383,360 parameters: above the reuse distance it is gathered for the recomputation and for the gradients.
TEST(PlanCosts, LargeLayersAreGatheredAgain) {
  const Cluster cluster = load_cluster("dgx-a100");
  const Strategy strategy{
      .dp = 8, .batch = {.micro = 1, .global = 8}, .zero = {.stage = 3}, .recompute = {.kind = RecomputeKind::Full}};
  Lowered job = lowered("llama-2-7b", "dgx-a100", strategy);
  const Cost once = costed(job, cluster, {.shards = {.reuse_distance = 1'000'000'000}}, "backward", "gather").cost;
  const Cost twice = costed(job, cluster, {.shards = {.reuse_distance = 100'000'000}}, "backward", "gather").cost;
  EXPECT_EQ(twice.busy, once.busy + once.busy);
  EXPECT_DOUBLE_EQ(twice.wire_factor, 2 * once.wire_factor);
  const Cost forward = costed(job, cluster, {}, "forward", "gather").cost;
  EXPECT_EQ(costed(job, cluster, {.shards = {.reuse_distance = 100'000'000}}, "forward", "gather").cost, forward);
}

TEST(PlanCosts, ExchangesThatTakeTurnsTakeTwiceAsLong) {
  const Cluster cluster = load_cluster("dgx-a100");
  Lowered job = lowered("llama-2-7b", "dgx-a100", {.dp = 1, .tp = 4, .pp = 2, .batch = {.micro = 1, .global = 4}});
  const Cost both = costed(job, cluster, {}, "forward.0", "send output").cost;
  const Cost turns = costed(job, cluster, {.messages = {.exchanges_in_turn = true}}, "forward.0", "send output").cost;
  EXPECT_EQ(turns.busy, both.busy);
  EXPECT_DOUBLE_EQ(turns.wire_factor, 2 * both.wire_factor);
}

// Under autocast the product that makes q, k and v reads its 4096 x 12288 fp32 weights and writes them in 16 bits, 6 bytes each; so does
// the gradient of these weights the other way round. The gradient of the input has the narrow weights of the forward.
TEST(PlanCosts, AutocastCastsWeightsInEveryProduct) {
  const Cluster cluster = load_cluster("dgx-a100");
  Lowered job = lowered("llama-2-7b", "dgx-a100", {.dp = 8, .batch = {.micro = 1, .global = 8}, .zero = {.stage = 3}});
  const FrameworkPreset casts{.autocast = true};
  const Compute cast{.op = ops::Cast{}, .traffic = {std::int64_t{6} * 4096 * 12288}};
  const double seconds = op_time(Network(cluster).gpu({0}), cast).value;
  const auto more = [&](const char* segment) {
    const Nanoseconds plain = costed(job, cluster, {}, segment, "qkv").cost.busy;
    return to_seconds(costed(job, cluster, casts, segment, "qkv").cost.busy).value - to_seconds(plain).value;
  };
  EXPECT_NEAR(more("forward"), seconds, 2e-9);
  EXPECT_NEAR(more("backward"), seconds, 2e-9);  // the last one of that name: of the weights
}

// fp32 parameters that travel in 16 bits: half the bytes.
TEST(PlanCosts, NarrowGathersTakeHalfTheBytes) {
  const Cluster cluster = load_cluster("dgx-a100");
  Lowered job =
      lowered("llama-2-7b", "dgx-a100",
              {.dp = 8, .batch = {.micro = 1, .global = 8}, .zero = {.stage = 3}, .state_dtypes = {.param = DType::F32}});
  const Cost wide = costed(job, cluster, {}, "forward", "gather").cost;
  const Cost narrow = costed(job, cluster, {.shards = {.gathers_narrow = true}}, "forward", "gather").cost;
  EXPECT_DOUBLE_EQ(narrow.wire_factor, wide.wire_factor / 2);
  const Cost sums = costed(job, cluster, {}, "backward", "reduce-scatter gradients").cost;
  EXPECT_EQ(costed(job, cluster, {.shards = {.gathers_narrow = true}}, "backward", "reduce-scatter gradients").cost, sums);
}

// Of the products among the modules to redo a framework may keep every second one; a layer redone whole keeps none.
TEST(PlanCosts, KeptProductsAreNotRedone) {
  const Cluster cluster = load_cluster("dgx-a100");
  const FrameworkPreset half{.redone_products = 0.5};
  const auto redone = [&](const Recompute& recompute, const FrameworkPreset& preset) {
    Lowered job = lowered("llama-2-7b", "dgx-a100", {.dp = 8, .batch = {.micro = 1, .global = 8}, .recompute = recompute});
    cost_plan(job.plan, cluster, preset);
    double seconds = 0;
    for (std::size_t s = 0; s < job.plan.segments.size(); ++s)
      for (std::size_t i = 0; i < job.plan.segments[s].instructions.size(); ++i) {
        const auto* what = std::get_if<Compute>(&job.plan.segments[s].instructions[i].what);
        if (what && what->phase == Phase::Recompute && is<ops::MatMul>(what->op))
          seconds += to_seconds(job.plan.costs[0].by_segment[s][i].busy).value;
      }
    return seconds;
  };
  const Recompute modules{.kind = RecomputeKind::Modules, .modules = {"norm", "activation", "mlp"}};
  EXPECT_NEAR(redone(modules, half), redone(modules, {}) / 2, 1e-6);
  EXPECT_GT(redone(modules, half), 0);
  EXPECT_EQ(redone({.kind = RecomputeKind::Full}, half), redone({.kind = RecomputeKind::Full}, {}));
}

// Four micro-batches: the gradients of the later ones are added to the first one's by a kernel of its own. The 4096 x 12288 weights of
// q, k and v: two reads and a write of 2 bytes each, at the speed of such kernels; the product only writes, as the first one's.
TEST(PlanCosts, AutogradAddsGradientsByAKernelOfItsOwn) {
  const Cluster cluster = load_cluster("dgx-a100");
  Lowered job = lowered("llama-2-7b", "dgx-a100", {.dp = 1, .tp = 8, .batch = {.micro = 1, .global = 4}});
  const Compute sum{.op = ops::Add{}, .traffic = {std::int64_t{6} * 4096 * 12288 / 8}};
  const double seconds = op_time(Network(cluster).gpu({0}), sum).value / 0.8;
  const auto gradients = [&](const FrameworkPreset& preset, bool later) {
    cost_plan(job.plan, cluster, preset);
    double busy = -1;
    for (std::size_t s = 0; s < job.plan.segments.size(); ++s)
      for (std::size_t i = 0; i < job.plan.segments[s].instructions.size(); ++i) {
        const Instruction& run = job.plan.segments[s].instructions[i];
        const auto* what = std::get_if<Compute>(&run.what);
        if (what && run.name == "qkv" && what->phase == Phase::WeightGrad && what->accumulate == later)
          busy = to_seconds(job.plan.costs[0].by_segment[s][i].busy).value;
      }
    EXPECT_GT(busy, 0);
    return busy;
  };
  const FrameworkPreset fused{.elementwise = 0.8}, apart{.elementwise = 0.8, .adds_gradients = true};
  EXPECT_NEAR(gradients(apart, true) - gradients(fused, false), seconds, 2e-9);
  EXPECT_EQ(gradients(apart, false), gradients(fused, false));
}

// 32 heads on eight ranks and one sample are four maps, which a kernel that takes them by fours runs and one that takes them by eights does not;
// with two samples both do.
TEST(PlanCosts, AFusedSoftmaxTakesMapsByItsMultiple) {
  const Cluster cluster = load_cluster("dgx-a100");
  const auto softmax = [&](std::int64_t samples, const FrameworkPreset& preset) {
    Strategy strategy{.dp = 1, .tp = 8, .batch = {.micro = samples, .global = samples}};
    strategy.attention = AttentionKernel::Unfused;
    Lowered job = lowered("llama-2-7b", "dgx-a100", strategy);
    return costed(job, cluster, preset, "forward", "softmax").cost.busy;
  };
  const OpStyle plain{.kernels = 5, .forward = {.all = 9}};
  const FrameworkPreset fours{.styles = {.softmax_maps = {4, plain}}}, eights{.styles = {.softmax_maps = {8, plain}}},
      never{.styles = {.softmax = plain}};
  EXPECT_EQ(softmax(1, fours), softmax(1, {}));
  EXPECT_EQ(softmax(1, eights), softmax(1, never));
  EXPECT_GT(softmax(1, never).value, 8 * softmax(1, {}).value);
  EXPECT_EQ(softmax(2, eights), softmax(2, {}));
}

// The host's time hides behind the device's or is all there is; when every launch waits for the kernel before, both add up.
TEST(PlanCosts, BlockingLaunchesAddTheHostToTheDevice) {
  const Cluster cluster = load_cluster("dgx-a100");
  Lowered job = lowered("llama-2-7b", "dgx-a100", {.dp = 8, .batch = {.micro = 1, .global = 8}, .zero = {.stage = 3}});
  int operators = 0;
  const auto forward = [&](const FrameworkPreset& preset) {
    cost_plan(job.plan, cluster, preset);
    double seconds = 0;
    operators = 0;
    for (std::size_t i = 0; i < job.plan.segments[0].instructions.size(); ++i) {
      const Nanoseconds busy = job.plan.costs[0].by_segment[0][i].busy;
      if (!std::holds_alternative<Compute>(job.plan.segments[0].instructions[i].what) || busy.value <= 0) continue;
      seconds += to_seconds(busy).value;
      ++operators;
    }
    return seconds;
  };
  const double device = forward({});
  ASSERT_GT(operators, 100);
  const double rounding = operators * 1e-9, quick = 8e-6, slow = 2 * device / operators;
  EXPECT_NEAR(forward({.host = {.per_kernel = {quick}}}), device, rounding);
  EXPECT_NEAR(forward({.host = {.per_kernel = {slow}}}), operators * slow, rounding);
  EXPECT_NEAR(forward({.host = {.per_kernel = {quick}, .blocking_launches = true}}), device + operators * quick, rounding);
  EXPECT_NEAR(forward({.host = {.per_kernel = {slow}, .blocking_launches = true}}), device + operators * slow, rounding);
}

// Copies beside tensor-parallel collectives are kernels without products: half the speed takes twice as long.
TEST(PlanCosts, CopiesBesideCollectivesHaveTheSpeedOfTheirKernels) {
  const Cluster cluster = load_cluster("dgx-a100");
  const Strategy strategy{.dp = 1, .tp = 8, .sequence_parallel = true, .batch = {.micro = 1, .global = 1}};
  Lowered job = lowered("llama-2-7b", "dgx-a100", strategy);
  const auto gather = [&](const FrameworkPreset& preset) {
    return to_seconds(costed(job, cluster, preset, "forward", "qkv_gather").cost.busy).value;
  };
  const double launch = Network(cluster).gpu({0}).launch_overhead.value, none = gather({}) + launch;
  const double whole = gather({.messages = {.tensor_copies = 2}}) - none,
               half = gather({.elementwise = 0.5, .messages = {.tensor_copies = 2}}) - none;
  EXPECT_GT(whole, 0);
  EXPECT_NEAR(half, 2 * whole, 1e-8);
}

// Bytes of the host's update over the share that a rank has of the slower of the two: 0.8 of the memory's 409.6 GB/s, 10 GB/s of each core.
TEST(PlanCosts, CoresOfTheHostLimitItsUpdates) {
  Cluster cluster = load_cluster("dgx-a100");
  Strategy s{.dp = 8};
  s.batch.global = 8, s.batch.seq = 512, s.offload.optimizer = Space::PinnedHost;
  const auto seconds_per_byte = [&](int cores) {
    cluster.nodes.front().shape.cpu_cores = cores;
    const Lowered job = lowered(load_model("gpt2-124m"), cluster, s);
    const Found update = find(job.plan, "update", "adam");
    const auto& what = std::get<HostCompute>(update.run->what);
    return to_seconds(update.cost.busy).value / static_cast<double>(what.traffic.value);
  };
  EXPECT_NEAR(seconds_per_byte(128) * 0.8 * 409.6e9, 8, 1e-3);
  EXPECT_NEAR(seconds_per_byte(0) * 0.8 * 409.6e9, 8, 1e-3);  // not said: no limit
  EXPECT_NEAR(seconds_per_byte(4) * 40e9, 8, 1e-3);
}

// Where devices are cores of the host, the host's update is the measured one of a core, shared by the threads of its rank: of 16 cores each of 8
// ranks has two.
TEST(PlanCosts, AMeasuredCoreUpdatesOnTheThreadsOfItsRank) {
  Cluster cluster = load_cluster("dgx-a100");
  Strategy s{.dp = 8};
  s.batch.global = 8, s.batch.seq = 512, s.offload.optimizer = Space::PinnedHost;
  Lowered job = lowered(load_model("gpt2-124m"), cluster, s);
  const Found update = find(job.plan, "update", "adam");
  const auto& what = std::get<HostCompute>(update.run->what);
  ProfileOp adam{.op = "adam", .phase = Phase::Update, .dtype = what.shapes[0].dtype};
  adam.samples = {{what.shapes[0].dims, what.traffic, {1e-3}}};
  const MachineProfile profile{.device = cluster.gpus[0].name, .link_bandwidth = {1e11}, .ops = {adam}};
  const auto busy = [&](int cores) {
    cluster.nodes.front().shape.cpu_cores = cores;
    cost_plan(job.plan, cluster, {}, &profile);
    return find(job.plan, "update", "adam").cost.busy;
  };
  EXPECT_NE(busy(128), Nanoseconds{62'500});  // a profile of a GPU says nothing of the host
  cluster.gpus[0].architecture = "host";
  EXPECT_EQ(busy(8), Nanoseconds{1'000'000});
  EXPECT_EQ(busy(16), Nanoseconds{500'000});
  EXPECT_EQ(busy(0), Nanoseconds{1'000'000});  // not said
}

// The measured copies are inside the device: one to host memory costs what it costs without a profile, unless the device is a host.
TEST(PlanCosts, MeasuredCopiesAreInsideTheDevice) {
  Cluster cluster = load_cluster("dgx-a100");
  Lowered job =
      lowered("gpt2-124m", "dgx-a100",
              {.dp = 8, .batch = {.micro = 1, .global = 8}, .offload = {.activations = OffloadedActivations::Inputs}});
  const auto host_copies = [&](const MachineProfile* profile) {
    cost_plan(job.plan, cluster, {}, profile);
    std::vector<Cost> costs;
    for (std::size_t s = 0; s < job.plan.segments.size(); ++s)
      for (std::size_t i = 0; i < job.plan.segments[s].instructions.size(); ++i) {
        const Instruction& run = job.plan.segments[s].instructions[i];
        if (!std::holds_alternative<Copy>(run.what) || job.plan.costs[0].by_segment[s].empty()) continue;
        const std::vector<Buffer>& buffers = job.plan.roles[0].buffers;
        if (buffers[run.reads[0].buffer.index()].space != buffers[run.writes[0].buffer.index()].space)
          costs.push_back(job.plan.costs[0].by_segment[s][i]);
      }
    return costs;
  };
  const MachineProfile profile{.device = cluster.gpus[0].name, .link_bandwidth = {1e11}, .copies = {{1, {1 << 20}, {1e-6}}}};
  const std::vector<Cost> plain = host_copies(nullptr);
  ASSERT_FALSE(plain.empty());
  EXPECT_EQ(host_copies(&profile), plain);
  cluster.gpus[0].architecture = "host";
  for (const Cost& cost : host_copies(&profile)) EXPECT_LT(cost.wire_factor, 1e-6);
}

// A product and its GELU take the time that was measured for both as one; the rest of the segment is as before.
TEST(PlanCosts, AProductTakesItsGeluAlong) {
  const Cluster cluster = load_cluster("dgx-a100");
  Lowered job = lowered("gpt2-124m", "dgx-a100", {.dp = 8, .batch = {.micro = 1, .global = 8}});
  MachineProfile profile{.device = cluster.gpus[0].name, .link_bandwidth = {1e11}};
  const auto joined = [&](Phase phase, double seconds) {
    ProfileOp op{.op = "matmul", .phase = phase, .dtype = DType::BF16, .joined = true};
    op.samples = {{{1, 1024, 3072, 768}, {1 << 20}, {seconds}}};
    return op;
  };
  cost_plan(job.plan, cluster, {}, &profile);
  const CostTable apart = job.plan.costs[0];
  profile.ops = {joined(Phase::Forward, 40e-6), joined(Phase::InputGrad, 50e-6)};
  cost_plan(job.plan, cluster, {}, &profile);
  const CostTable& now = job.plan.costs[0];
  int forward = 0, backward = 0;
  for (std::size_t s = 0; s < job.plan.segments.size(); ++s) {
    std::set<std::size_t> changed;
    for (const JoinedProduct& pair : joined_products(job.plan.segments[s])) {
      const auto& what = std::get<Compute>(job.plan.segments[s].instructions[pair.product].what);
      const Nanoseconds sum = now.by_segment[s][pair.product].busy + now.by_segment[s][pair.activation].busy;
      EXPECT_EQ(sum, to_nanoseconds(*profiled_time(profile, what, true)));
      EXPECT_LE(now.by_segment[s][pair.product].busy, apart.by_segment[s][pair.product].busy);
      changed.insert({pair.product, pair.activation});
      ++(what.phase == Phase::Forward ? forward : backward);
    }
    for (std::size_t i = 0; i < now.by_segment[s].size(); ++i)
      if (!changed.contains(i)) {
        EXPECT_EQ(now.by_segment[s][i], apart.by_segment[s][i]);
      }
  }
  EXPECT_GE(forward, 1);
  EXPECT_EQ(forward, backward);
}

}  // namespace
}  // namespace foreshard::plan_costs_test
