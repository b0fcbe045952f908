// Parameters that come and go by a rule of a runtime policy: the plan is sound, trains the same model as one device, and brings what the
// residency says.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/check/check_plan.h"
#include "core/cluster/cluster.h"
#include "core/cluster_file/cluster_file.h"
#include "strategy/lower/begin_lowering.h"
#include "strategy/lower/role_program.h"
#include "strategy/resolve/resolve.h"
#include "tests/exec/training.h"
#include "tests/how_many.h"

namespace foreshard::parameter_stays_test {
namespace {

Plan with_stays(const Model& model, const Strategy& strategy, const ParameterStays& stays) {
  const Cluster cluster = load_cluster("dgx-a100");
  auto begun = begin_lowering(model, cluster, std::get<Strategy>(resolve(model, cluster, strategy)));
  Lowering& lowering = std::get<Lowering>(begun);
  for (StateRow& row : lowering.tables.state) row.parameters.stays = stays;
  SharedPrograms shared;
  for (int role = 0; role < lowering.tables.schedule.ranks(); ++role) add_role(lowering, role, shared);
  return std::get<Lowered>(finish_plan(lowering, {.ignore_memory = true})).plan;
}

std::vector<BlockRule> passing() {
  return {{},
          {.ahead_forward = 1, .ahead_backward = 1},
          {.ahead_forward = 2, .ahead_backward = 3},
          {.ahead_forward = 1, .ahead_backward = 1, .staging_in_forward = true}};
}

// Of tiny_gpt: embedding, four layers, head. Fetched by a neighbour, by a later one, when they are used; kept.
std::vector<RegionRule> regions() {
  const std::vector<int> each = {0, 1, 2, 3, 4, 5}, pairs = {0, 0, 1, 1, 2, 2};
  return {{.window = 3},
          {.window = 3, .region_of_layer = each, .choices = {{}, {}, {}, {}, {}, {}}},
          {.window = 3, .region_of_layer = each, .choices = {{1}, {2}, {3}, {4}, {5}, {}}},
          {.window = 3, .region_of_layer = each, .choices = {{0}, {4}, {2}, {5}, {}, {}}},
          {.window = 3, .region_of_layer = pairs, .choices = {{2}, {1}, {}}},
          {.window = 3, .region_of_layer = pairs, .choices = {{0}, {2}, {}}}};
}

// A layer of tiny_gpt has 49,984 parameters, its embedding 18,432.
std::vector<ParameterStays> all_stays() {
  std::vector<ParameterStays> all;
  for (const bool one_size : {false, true}) {
    for (const BlockRule& rule : passing()) all.push_back({rule, one_size});
    for (const int ahead : {0, 1, 2})
      all.push_back({BlockRule{.ahead_forward = ahead, .ahead_backward = ahead, .keep_after_forward = true}, one_size});
    for (const std::int64_t prefetch : {0, 40'000, 120'000})
      for (const std::int64_t reuse : {0, 60'000, 180'000, 1'000'000})
        for (const std::int64_t cap : {100'000, 1'000'000})
          all.push_back(
              {ModuleRule{.persist_threshold = 0, .prefetch = prefetch, .live_cap = cap, .reuse_distance = reuse}, one_size});
    for (const std::int64_t chunk : {20'000, 110'000, 1'000'000})  // a layer, two layers, all
      for (const double kept : {0.0, 0.3, 0.6}) all.push_back({ChunkRule{.chunk = chunk, .kept = kept}, one_size});
    for (const std::int64_t budget : {50'000, 80'000, 125'000, 200'000})
      all.push_back({ChunkRule{.chunk = 20'000, .cap_ratio = 0.9, .budget = budget}, one_size});
    for (const std::int64_t budget : {110'000, 160'000})
      all.push_back({ChunkRule{.chunk = 110'000, .cap_ratio = 0.9, .budget = budget}, one_size});
    for (const RegionRule& rule : regions()) all.push_back({rule, one_size});
  }
  return all;
}

std::string name_of(const ParameterStays& stays) {
  std::string text = stays.one_size ? "one size, " : "own size, ";
  if (const auto* chunks = std::get_if<ChunkRule>(&stays.rule))
    return text + "chunk " + std::to_string(chunks->chunk) + ", kept " + std::to_string(chunks->kept) + ", budget " +
           std::to_string(chunks->budget);
  if (const auto* regions = std::get_if<RegionRule>(&stays.rule)) {
    for (const RegionChoice& choice : regions->choices) text += std::to_string(choice.fetched_by) + " ";
    return text + "of " + std::to_string(regions->region_of_layer.empty() ? 0 : regions->region_of_layer.back() + 1) +
           " regions";
  }
  if (const auto* blocks = std::get_if<BlockRule>(&stays.rule))
    return text + std::to_string(blocks->ahead_forward) + " ahead, " + (blocks->keep_after_forward ? "kept" : "") +
           (blocks->staging_in_forward ? "staged" : "");
  const auto& modules = std::get<ModuleRule>(stays.rule);
  return text + "prefetch " + std::to_string(modules.prefetch) + ", reuse " + std::to_string(modules.reuse_distance) +
         ", cap " + std::to_string(modules.live_cap);
}

std::vector<Strategy> alone() {  // without a pipeline
  return {{.dp = 2, .batch = {.micro = 1}, .zero = {.stage = 3}},
          {.dp = 2, .batch = {.micro = 4}, .zero = {.stage = 3}, .recompute = parse_recompute("full", "test")},
          {.dp = 4, .zero = {.stage = 3, .group = 2}, .communication = {.overlap = Overlap{.gradients = false}}},
          {.dp = 2, .tp = 2, .sequence_parallel = true, .zero = {.stage = 3}, .optimizer = {.clip_norm = 0.5}},
          {.dp = 2, .zero = {.stage = 3}, .offload = {.optimizer = Space::PinnedHost, .parameters = Space::PinnedHost}},
          {.dp = 1, .batch = {.micro = 2}, .offload = {.parameters = Space::PinnedHost, .gradients = Space::PinnedHost}}};
}

void expect_sound(const Plan& plan, const std::string& what) {
  const auto defects = check_plan(plan);
  EXPECT_TRUE(defects.empty()) << what << ": " << defects.front().where << ": " << defects.front().what;
}

}  // namespace

TEST(ParameterStays, PlansAreSound) {
  for (const ParameterStays& stays : some_of(all_stays(), 8))
    for (const Model& model : {tiny_gpt(), tiny_gpt(false)})
      for (const Strategy& s : alone())
        expect_sound(with_stays(model, in_double(s), stays), name_of(s) + ", " + name_of(stays));
}

// Several micro-batches in flight: what is gathered goes with each pass.
TEST(ParameterStays, PlansOfPipelinesAreSound) {
  for (const bool one_size : {false, true})
    for (const BlockRule& rule : passing())
      for (const Schedule schedule : {Schedule::OneFOneB, Schedule::GPipe}) {
        const Strategy s =
            in_double({.dp = 2, .pp = 2, .pipeline = {.schedule = schedule}, .batch = {.micro = 1}, .zero = {.stage = 3}});
        expect_sound(with_stays(tiny_gpt(), s, {rule, one_size}), name_of(s) + ", " + name_of({rule, one_size}));
      }
}

TEST(ParameterStays, TrainTheSameModel) {
  const Execution plain = run(lowered(tiny_gpt(), in_double({.batch = {.micro = 2}})), training());
  const Execution clipped =
      run(lowered(tiny_gpt(), in_double({.batch = {.micro = 2}, .optimizer = {.clip_norm = 0.5}})), training());
  // Each rule with two of the six strategies in turn, so that each kind of rule meets them all.
  const std::vector<Strategy> strategies = alone();
  std::size_t turn = 0;
  for (const ParameterStays& stays : all_stays()) {
    if (stays.one_size) continue;  // smaller places have more to get wrong
    for (std::size_t s = turn++ % 3; s < strategies.size(); s += how_many<std::size_t>(6, 3)) {
      const Strategy& strategy = strategies[s];
      const Execution moved = run(with_stays(tiny_gpt(), in_double(strategy), stays), training());
      const Difference off = difference(strategy.optimizer.clip_norm ? clipped : plain, moved);
      EXPECT_LT(off.largest(), 1e-12) << name_of(strategy) << ", " << name_of(stays) << ", " << off.worst;
    }
  }
}

// One micro-batch: the gathers of its forward and its backward, in number and bytes.
TEST(ParameterStays, BringWhatTheResidencySays) {
  const Strategy s = in_double({.dp = 2, .batch = {.micro = 4}, .zero = {.stage = 3}});
  // Embedding, four layers, norm and head; the tied embedding is gathered for the head as well. The backward of the embedding reads
  // nothing.
  std::vector<std::int64_t> elements;
  const Plan usual = with_stays(tiny_gpt(), s, {});
  for (const Segment& segment : usual.segments)
    if (segment.name.starts_with("forward"))
      for (const Instruction& run : segment.instructions)
        if (run.name == "gather") {
          const std::size_t layer = run.layer.index();
          if (layer >= elements.size()) elements.resize(layer + 1);
          elements[layer] += run.writes[0].length->value / 8;
        }
  ASSERT_EQ(elements.size(), 6U);
  std::vector<ParameterUnit> units;
  for (const std::int64_t each : elements) units.push_back({"", each});
  std::vector<UnitUse> uses = step_order(6);
  uses.pop_back();
  for (const ParameterStays& stays : all_stays()) {
    const Plan plan = with_stays(tiny_gpt(), s, stays);
    Bytes gathered = {};
    for (const Segment& segment : plan.segments)
      for (const Instruction& run : segment.instructions)
        if (run.name == "gather") gathered += *run.writes[0].length;
    const LayerUnits laid = units_of_layers(stays, units);
    std::vector<UnitUse> of_units = uses;
    for (UnitUse& use : of_units) use.unit = laid.of_layer[static_cast<std::size_t>(use.unit)];
    const Residency residency = residency_of(stays, laid.units, of_units);
    EXPECT_EQ(residency_fault(laid.units, of_units, residency), "") << name_of(stays);
    EXPECT_EQ(gathered.value, 8 * brought_elements(laid.units, residency)) << name_of(stays);
  }
}

// FSDP2: the output of a gather is there until the layer's forward has ended, beside the copy that its operators read.
TEST(ParameterStays, AStagedGatherLivesAsLongAsItsCopy) {
  const Strategy s = in_double({.dp = 2, .batch = {.micro = 4}, .zero = {.stage = 3}});
  const Plan plan =
      with_stays(tiny_gpt(), s,
                 {.rule = BlockRule{.ahead_forward = 1, .ahead_backward = 1, .staging_in_forward = true}, .one_size = false});
  int copies = 0;
  for (const Segment& segment : plan.segments)
    for (const Instruction& run : segment.instructions) {
      const auto releases = [&](const char* name) {
        return std::ranges::any_of(run.releases, [&](const Block& block) {
          return plan.roles[0].buffers[block.buffer.index()].name.starts_with(name);
        });
      };
      if (!releases("copied_out")) continue;
      EXPECT_TRUE(releases("gathered")) << run.name;
      ++copies;
    }
  EXPECT_EQ(copies, 6);
}

}  // namespace foreshard::parameter_stays_test
