#include "core/plan/plan.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "tests/core/support_plan.h"

namespace foreshard {

TEST(ProgramHash, IsSixteenDigitsAndStable) {
  const std::string hash = program_hash(small_plan());
  EXPECT_EQ(hash.size(), 16U);
  EXPECT_EQ(hash.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(hash, program_hash(small_plan()));
}

TEST(ProgramHash, LeavesCostsAndOriginOut) {
  Plan plan = small_plan();
  const std::string hash = program_hash(plan);
  plan.costs[0].by_segment[0][0].busy = {77};
  plan.framework = {1}, plan.reserve = {2}, plan.origin = "elsewhere";
  EXPECT_EQ(program_hash(plan), hash);
}

// Each change alone, all results different: nothing that belongs to the program is forgotten, no two changes cancel.
TEST(ProgramHash, SeesEveryPartOfTheProgram) {
  const auto exchange = [](Plan& p) -> Exchange& { return std::get<Exchange>(instruction_named(p, "forward.0", "send").what); };
  const auto compute = [](Plan& p) -> Compute& {
    return std::get<Compute>(instruction_named(p, "forward.0", "multiply").what);
  };
  const auto collective = [](Plan& p) -> Collective& {
    return std::get<Collective>(instruction_named(p, "update", "all_reduce").what);
  };
  const auto multiply = [](Plan& p) -> Instruction& { return instruction_named(p, "forward.0", "multiply"); };
  const std::vector<std::function<void(Plan&)>> changes = {
      [](Plan&) {},
      [](Plan& p) { p.samples++; },
      [](Plan& p) { p.updates++; },
      [](Plan& p) { p.stages++; },
      [](Plan& p) { p.microbatches++; },
      [](Plan& p) { p.axes[0].size++; },
      [](Plan& p) { p.axes[0].name += "x"; },
      [](Plan& p) { p.axes[0].dense = DenseKind::Context; },
      [](Plan& p) { p.axes[0].expert = ExpertKind::Expert; },
      [](Plan& p) { p.groups[0].roles = {{0}}; },
      [](Plan& p) { p.groups[0].over = {}; },
      [](Plan& p) { p.tensors[0].shape[0]++; },
      [](Plan& p) { p.tensors[0].dtype = DType::BF16; },
      [](Plan& p) { p.tensors[0].init = ""; },
      [](Plan& p) { p.tensors[0].grid = Grid::Expert; },
      [](Plan& p) { p.segments[0].params[0].kind = ParamKind::Slot; },
      [&](Plan& p) { compute(p).op = ops::Norm{}; },
      [&](Plan& p) { compute(p).phase = Phase::Recompute; },
      [&](Plan& p) { compute(p).shapes = {Shape{{1}}}; },
      [&](Plan& p) {
        compute(p).shapes = {Shape{{1}, DType::F32}};
      },
      [&](Plan& p) { compute(p).flops = {1}; },
      [&](Plan& p) { compute(p).traffic = {1}; },
      [&](Plan& p) { compute(p).accumulate = true; },
      [&](Plan& p) { compute(p).microbatch = {}; },
      [&](Plan& p) { compute(p).op = ops::MatMul{.first_token = true}; },
      [&](Plan& p) { compute(p).accumulate_weights = true; },
      [&](Plan& p) { compute(p).slice = {0}; },
      [&](Plan& p) { compute(p).loss_scale = 2; },
      [&](Plan& p) { compute(p).dynamic_scale = true; },
      [&](Plan& p) { exchange(p).bytes = {1}; },
      [&](Plan& p) { exchange(p).tag = "other"; },
      [&](Plan& p) { exchange(p).slice = {0}; },
      [&](Plan& p) { exchange(p).to->role_shift = 2; },
      [&](Plan& p) { exchange(p).to->axes = {AxisId{0}}, exchange(p).to->shift = 1; },
      [&](Plan& p) { exchange(p).to->shift = 1; },
      [&](Plan& p) { std::swap(exchange(p).from, exchange(p).to); },
      [&](Plan& p) { collective(p).kind = CollectiveKind::AllGather; },
      [&](Plan& p) { collective(p).algorithm = Algorithm::Tree; },
      [&](Plan& p) { collective(p).dtype = DType::BF16; },
      [&](Plan& p) { collective(p).combine = Combine::Max; },
      [&](Plan& p) { collective(p).accumulate = true; },
      [&](Plan& p) { collective(p).slice = {0}; },
      [&](Plan& p) { collective(p).servers = 2; },
      [&](Plan& p) { collective(p).algorithm = Algorithm::ParameterServer, collective(p).served_by = {1}; },
      [&](Plan& p) { multiply(p).what = Copy{{5}}; },
      [&](Plan& p) { multiply(p).what = Mark{}; },
      [&](Plan& p) {
        multiply(p).what = Copy{{5}, {0}};
      },
      [&](Plan& p) { multiply(p).what = HostCompute{.traffic = {7}}; },
      [&](Plan& p) {
        multiply(p).what = HostCompute{.shapes = {{{7}, DType::F32}}};
      },
      [&](Plan& p) { multiply(p).what = HostCompute{.loss_scale = 2}; },
      [&](Plan& p) { multiply(p).stream = {1}; },
      [&](Plan& p) { multiply(p).layer = {0}; },
      [&](Plan& p) { multiply(p).waits.clear(); },
      [&](Plan& p) { multiply(p).waits[0].slot = {1}; },
      [&](Plan& p) { multiply(p).reads[0].from = {1}; },
      [&](Plan& p) { multiply(p).reads[0].length = Bytes{0}; },
      [&](Plan& p) { std::swap(multiply(p).reads, multiply(p).writes); },
      [&](Plan& p) { std::swap(multiply(p).acquires, multiply(p).releases); },
      [&](Plan& p) { multiply(p).acquires[0].slot = {ParamId{0}}; },
      [](Plan& p) { instruction_named(p, "forward.0", "send").after = {}; },
      [](Plan& p) { instruction_named(p, "forward.0", "send").records = {}; },
      [](Plan& p) { p.roles[0].device_kind = "other"; },
      [](Plan& p) { p.roles[0].axes = {}; },
      [](Plan& p) { p.roles[0].streams[1].kind = StreamKind::CopyIn; },
      [](Plan& p) { p.roles[0].events[0].slots = 3; },
      [](Plan& p) { p.roles[0].layers[0] = "renamed"; },
      [](Plan& p) { p.roles[0].buffers[3].category = Category::Transient; },
      [](Plan& p) { p.roles[0].buffers[3].space = Space::PinnedHost; },
      [](Plan& p) { p.roles[0].buffers[3].scope = Scope::Device; },
      [](Plan& p) { p.roles[0].buffers[3].dtype = DType::F16; },
      [](Plan& p) { p.roles[0].buffers[3].bytes = {511}; },
      [](Plan& p) { p.roles[0].buffers[3].offsets[1] = {9000}; },
      [](Plan& p) { p.roles[0].buffers[3].resident = true; },
      [](Plan& p) { p.roles[0].buffers[0].holds[0].tensor = {1}; },
      [](Plan& p) { p.roles[0].buffers[0].holds[0].part = TensorPart::Master; },
      [](Plan& p) { p.roles[0].buffers[0].holds[0].dim = 1; },
      [](Plan& p) { p.roles[0].buffers[0].holds[0].split_by = {{0}}; },
      [](Plan& p) { p.roles[0].buffers[0].holds[0].flat_by = {{0}}; },
      [](Plan& p) { p.roles[0].buffers[0].holds[0].blocks = 3; },
      [](Plan& p) {
        p.roles[0].buffers[0].holds[0].block_rows = {2, 1};
      },
      [](Plan& p) { p.roles[0].buffers[0].holds[0].at = {4}; },
      [](Plan& p) { std::swap(p.roles[0].actions[0], p.roles[0].actions[1]); },
      [](Plan& p) { p.roles[0].actions[0].args[1] = 1; },
      [](Plan& p) { p.roles[0].actions[0].does[0].work = Work::B; },
      [](Plan& p) { p.roles[0].actions[0].does[0].version = 1; },
      [](Plan& p) { p.roles[0].actions[0].does.clear(); },
      [](Plan& p) { p.roles[0].ahead = {3}; },
      [](Plan& p) { p.roles[0].ahead = {4}; },
      [](Plan& p) {
        p.placement.order = {Placement::kRole, {0}};
      },
      [](Plan& p) { p.placement.explicit_devices = {{0}}; },
  };
  std::set<std::string> hashes;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    Plan plan = small_plan();
    changes[i](plan);
    EXPECT_TRUE(hashes.insert(program_hash(plan)).second) << "change " << i;
  }
}

}  // namespace foreshard
