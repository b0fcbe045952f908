// Parameters, gradients and optimizer states at home in host memory or on drives, updated by the host or the device: rows of StatePolicy,
// also such as no strategy makes. The plan is sound and trains the same model as one device.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>

#include "core/check/check_plan.h"
#include "core/cluster/cluster.h"
#include "core/cluster_file/cluster_file.h"
#include "core/result/memory_timeline.h"
#include "strategy/lower/begin_lowering.h"
#include "strategy/lower/role_program.h"
#include "strategy/resolve/resolve.h"
#include "tests/exec/training.h"
#include "tests/how_many.h"

namespace foreshard::host_states_test {
namespace {

struct Keeping {
  Space home = Space::PinnedHost;
  Processor updated_by = Processor::Host;
};

std::variant<Lowered, Infeasible> keep(const Model& model, const Cluster& cluster, const Strategy& strategy, const Keeping& how,
                                       const LowerOptions& options = {.ignore_memory = true}) {
  auto begun = begin_lowering(model, cluster, std::get<Strategy>(resolve(model, cluster, strategy)));
  Lowering& lowering = std::get<Lowering>(begun);
  for (StateRow& row : lowering.tables.state) row.optimizer.home = how.home, row.optimizer.updated_by = how.updated_by;
  lowering.tables.communication.add_host_ways();
  lowering.tables.communication.add_drive_ways();
  SharedPrograms shared;
  for (int role = 0; role < lowering.tables.schedule.ranks(); ++role) add_role(lowering, role, shared);
  return finish_plan(lowering, options);
}

Plan kept(const Model& model, const Strategy& strategy, const Keeping& how) {
  return std::get<Lowered>(keep(model, load_cluster("dgx-a100"), strategy, how)).plan;
}

const Keeping kWays[] = {{Space::PinnedHost, Processor::Host}, {Space::PinnedHost, Processor::Device},
                         {Space::Device, Processor::Host},     {Space::PageableHost, Processor::Host},
                         {Space::Nvme, Processor::Host},       {Space::Nvme, Processor::Device}};

std::vector<Strategy> strategies() {
  std::vector<Strategy> all;
  for (int zero = 0; zero <= 3; ++zero) {
    all.push_back({.dp = 2, .zero = {.stage = zero}, .communication = {.bucket = Bytes{20'000}}});
    all.push_back({.dp = 2, .pp = 2, .zero = {.stage = zero}, .optimizer = {.clip_norm = 0.5}});
    all.push_back({.dp = 4,
                   .zero = {.stage = zero, .group = zero > 0 ? 2 : 0},
                   .communication = {.overlap = Overlap{.parameters = true}}});  // gathered late
    all.push_back({.dp = 2, .tp = 2, .sequence_parallel = true, .zero = {.stage = zero}, .optimizer = {.loss_scale = 1024}});
  }
  all.push_back({.dp = 1});
  all.push_back({.dp = 1,
                 .optimizer = {.kind = OptimizerKind::Sgd, .momentum = 0.9},
                 .communication = {.overlap = Overlap{.gradients = false}}});
  all.push_back({.dp = 2, .pp = 2, .virtual_stages = 2, .pipeline = {.schedule = Schedule::ZeroBubbleV}, .zero = {.stage = 1}});
  return all;
}

}  // namespace

TEST(HostStates, PlansAreSound) {
  for (const Strategy& strategy : strategies())
    for (const Keeping& how : kWays)
      for (const DType precision : {DType::F64, DType::BF16}) {
        Strategy s = in_double(strategy);
        s.precision = precision;
        const Plan plan = kept(tiny_gpt(), s, how);
        const auto defects = check_plan(plan);
        EXPECT_TRUE(defects.empty()) << name_of(s) << ": " << defects.front().where << ": " << defects.front().what;
      }
}

TEST(HostStates, TrainTheSameModel) {
  std::map<std::pair<OptimizerKind, double>, Execution> known;  // one device
  for (const Strategy& strategy : some_of(strategies(), 4))
    for (const Keeping& how : kWays) {
      if (how.home == Space::PageableHost) continue;  // for the host's memory the same
      const Strategy s = in_double(strategy);
      const Strategy one = in_double(
          {.batch = {.micro = 2},
           .optimizer = {.kind = s.optimizer.kind, .momentum = s.optimizer.momentum, .clip_norm = s.optimizer.clip_norm}});
      const auto [at, fresh] = known.try_emplace({s.optimizer.kind, s.optimizer.clip_norm.value_or(0)});
      if (fresh) at->second = run(lowered(tiny_gpt(), one), training());
      const Execution& plain = at->second;
      Execution moved = run(kept(tiny_gpt(), s, how), training());
      if (s.optimizer.loss_scale != 1) divide_gradients(moved, s.optimizer.loss_scale);
      EXPECT_LT(difference(plain, moved).largest(), 1e-12) << name_of(s) << ", " << difference(plain, moved).worst;
    }
}

// 16 bits of parameters and gradients on the device, 12 bytes of each parameter's states on the host; two places for gradients and two
// for parameters of the largest unit beside them.
TEST(HostStates, LieInHostMemory) {
  Strategy s = in_double({.dp = 2, .zero = {.stage = 1}});
  s.precision = DType::BF16;
  const Plan plan = kept(tiny_gpt(), s, {}), usual = lowered(tiny_gpt(), s);
  Bytes states = {}, largest = {};
  for (const Buffer& buffer : usual.roles[0].buffers) {
    if (buffer.category == Category::Optimizer) states += buffer.bytes;
    if (buffer.name.starts_with("gradients.")) largest = std::max(largest, buffer.bytes);
  }
  const Bytes host = arena_bytes(plan.roles[0], Space::PinnedHost), device = arena_bytes(plan.roles[0], Space::Device);
  EXPECT_GE(host, states + largest * 2);  // of both kinds two places of half a unit
  EXPECT_LE(host, states + largest * 2 + Bytes{256 * 8});
  EXPECT_LE(arena_bytes(usual.roles[0], Space::Device) - device - states, Bytes{256 * 4});
}

// Layer by layer: what a strategy says.
static std::vector<Strategy> layered() {
  std::vector<Strategy> all;
  for (int zero = 0; zero <= 3; ++zero) {
    all.push_back({.dp = 2, .batch = {.micro = 1}, .zero = {.stage = zero}});
    all.push_back(
        {.dp = 2, .pp = 2, .batch = {.micro = 1}, .zero = {.stage = zero}, .recompute = parse_recompute("full", "test")});
    all.push_back({.dp = 4,
                   .zero = {.stage = zero, .group = zero > 0 ? 2 : 0},
                   .communication = {.overlap = Overlap{.parameters = true}}});
    all.push_back({.dp = 2, .tp = 2, .sequence_parallel = true, .zero = {.stage = zero}, .optimizer = {.loss_scale = 1024}});
  }
  all.push_back({.dp = 1, .batch = {.micro = 2}});
  all.push_back({.dp = 1, .batch = {.micro = 8}});
  all.push_back({.dp = 1, .cp = 2});
  all.push_back({.dp = 1, .pp = 2, .virtual_stages = 2, .batch = {.micro = 1}});
  std::vector<Strategy> away;
  for (Strategy s : all) {
    for (const Space home : {Space::PinnedHost, Space::Nvme}) {
      s.offload = {.optimizer = home, .parameters = home, .gradients = home};
      away.push_back(s);
      s.offload = {.optimizer = home, .gradients = Space::PinnedHost};
      away.push_back(s);
      s.offload = {.parameters = home};
      away.push_back(s);
    }
    s.offload = {.optimizer = Space::PinnedHost, .optimizer_kept = 0.5};
    away.push_back(s);
    s.offload = {.optimizer = Space::PinnedHost, .optimizer_kept = 0.5, .gradients = Space::PinnedHost};
    away.push_back(s);
    s.offload = {.gradients = Space::PinnedHost};
    away.push_back(s);
    s.offload = {.update_per_layer = true};
    away.push_back(s);
    s.offload = {.optimizer = Space::PinnedHost, .update_per_layer = true};
    away.push_back(s);
    s.offload = {.optimizer = Space::PinnedHost,
                 .update_per_layer = true,
                 .parameters = Space::PinnedHost,
                 .gradients = Space::PinnedHost};
    away.push_back(s);
    s.offload = {.optimizer = Space::PinnedHost, .updated_on = UpdatedOn::Device, .parameters = Space::PinnedHost};
    away.push_back(s);
  }
  return away;
}

static std::string offload_of(const Strategy& s) {
  return std::string(", parameters ") + name_of(s.offload.parameters) + ", gradients " + name_of(s.offload.gradients) +
         ", optimizer " + name_of(s.offload.optimizer) + " updated on " + name_of(s.offload.updated_on);
}

// Whether number i of layered() is of the third that is trained: of each way to offload each shape of parallelism and each ZeRO stage once at
// least; at every change of the ninth.
static bool trained(std::size_t i, std::size_t turn = 0) {
  constexpr std::size_t kWaysToOffload = 13;
  return (i / kWaysToOffload + i % kWaysToOffload + turn) % how_many<std::size_t>(9, 3) == 0;
}

TEST(OffloadedStates, PlansAreSound) {
  for (const Strategy& s : layered()) {
    const Plan plan = lowered(tiny_gpt(), in_double(s));
    const auto defects = check_plan(plan);
    EXPECT_TRUE(defects.empty()) << name_of(s) << offload_of(s) << ": " << defects.front().where << ": "
                                 << defects.front().what;
  }
}

TEST(OffloadedStates, TrainTheSameModel) {
  const Execution plain = run(lowered(tiny_gpt(), in_double({.batch = {.micro = 2}})), training());
  const std::vector<Strategy> all = layered();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if ((all[i].dp > 1 || !all_of_it()) && !trained(i)) continue;
    const Strategy s = in_double(all[i]);
    Execution moved = run(lowered(tiny_gpt(), s), training());
    if (s.optimizer.loss_scale != 1) divide_gradients(moved, s.optimizer.loss_scale);
    const Difference apart = difference(plain, moved);
    const bool used_up = s.offload.update_per_layer && s.batch.micro == 8;  // the gradients, when the step ends
    EXPECT_LT(used_up ? std::max(apart.loss, apart.values) : apart.largest(), 1e-12)
        << name_of(s) << offload_of(s) << ", " << apart.worst;
  }
}

// Gradients that are away come in once more to be measured, and are clipped where the update runs.
TEST(OffloadedStates, ClipGradientsThatAreAway) {
  const Strategy one = in_double({.batch = {.micro = 2}, .optimizer = {.clip_norm = 0.01}});
  const Execution plain = run(lowered(tiny_gpt(), one), training());
  const Execution unclipped = run(lowered(tiny_gpt(), in_double({.batch = {.micro = 2}})), training());
  EXPECT_GT(difference(plain, unclipped).values, 1e-9);  // the limit binds
  int clipped = 0, with_training = 0;
  const std::vector<Strategy> all = layered();
  for (std::size_t i = 0; i < all.size(); ++i) {
    Strategy s = all[i];
    if (s.offload.gradients == Space::Device || s.offload.update_per_layer || s.optimizer.loss_scale != 1) continue;
    s.optimizer.clip_norm = 0.01;
    for (const UpdatedOn where : {UpdatedOn::Host, UpdatedOn::Device}) {
      s.offload.updated_on = where;
      const Plan plan = lowered(tiny_gpt(), in_double(s));
      const auto defects = check_plan(plan);
      ASSERT_TRUE(defects.empty()) << name_of(s) << offload_of(s) << ": " << defects.front().where << ": "
                                   << defects.front().what;
      ++clipped;
      if (!trained(i, where == UpdatedOn::Device ? 1 : 0)) continue;
      const Difference apart = difference(plain, run(plan, training()));
      // gradients at home may be as they were measured: the update scales what it reads
      EXPECT_LT(std::max(apart.loss, apart.values), 1e-12) << name_of(s) << offload_of(s) << ", " << apart.worst;
      ++with_training;
    }
  }
  EXPECT_GT(clipped, 100);
  EXPECT_GT(with_training, how_many(15, 50));
}

// Updated as soon as it is there, a gradient lives for two layers' backwards: two places of the largest layer. The tied embedding, which the
// head writes first, has one of its own.
TEST(OffloadedStates, UpdatedLayerByLayerFewGradientsLive) {
  Strategy s = in_double({.dp = 1, .batch = {.micro = 8}});
  const auto gradients = [](const Plan& plan) {
    Bytes bytes = {};
    for (const Buffer& buffer : plan.roles[0].buffers)
      if (buffer.category == Category::Gradients) bytes += buffer.bytes * static_cast<std::int64_t>(buffer.offsets.size());
    return bytes.value;
  };
  const Plan usual = lowered(tiny_gpt(false), s);
  s.offload.update_per_layer = true;
  const Plan layered = lowered(tiny_gpt(false), s);
  std::int64_t largest = 0;
  for (const Buffer& buffer : layered.roles[0].buffers)
    if (buffer.name.starts_with("parameters.")) largest = std::max(largest, buffer.bytes.value);
  EXPECT_EQ(gradients(layered), 2 * largest);
  EXPECT_GT(gradients(usual), 2 * largest);
}

TEST(HostStates, RefuseANodeWithTooLittleMemory) {
  Cluster small = load_cluster("dgx-a100");
  small.nodes.front().shape.host_memory = Bytes{1 << 20};
  const auto answer = keep(tiny_gpt(), small, in_double({.dp = 2}), {}, {});
  ASSERT_TRUE(std::holds_alternative<Infeasible>(answer));
  EXPECT_NE(std::get<Infeasible>(answer).reason.find("host memory"), std::string::npos);
}

}  // namespace foreshard::host_states_test
