// What a run does with the parameters of a chunk: places, waits, sums and updates, under three ways to keep states.
#include "strategy/state/state_program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "core/cluster_file/cluster_file.h"
#include "strategy/lower/begin_lowering.h"
#include "strategy/resolve/resolve.h"
#include "tests/core/support_models.h"

namespace foreshard::state_program_test {
namespace {

// GPT of two layers of h = 64 on two replicas.
Model model() { return gpt(2, 64, 4, 256, 32); }

// Embedding (256 + 32) h, two layers of 12 h^2 + 13 h, the last norm 2 h; the head is tied.
constexpr std::int64_t kParameters = 288 * 64 + 2 * (12 * 64 * 64 + 13 * 64) + 2 * 64;

struct Made {
  Model shape = model();
  Cluster cluster = load_cluster("dgx-a100");
  std::variant<Lowering, Infeasible> answer;
  Role role = {};
  std::optional<StateProgram> program = {};

  explicit Made(int zero)
      : answer(begin_lowering(shape, cluster, [&] {
          Strategy strategy{.dp = 2};
          strategy.batch = {.micro = 1, .global = 4}, strategy.zero.stage = zero;
          return std::get<Strategy>(resolve(shape, cluster, strategy));
        }())) {
    Lowering& lowering = std::get<Lowering>(answer);
    lowering.axes.clear();
    for (std::size_t axis = 0; axis < lowering.plan.axes.size(); ++axis)
      lowering.axes.push_back({static_cast<std::int32_t>(axis)});
    lowering.begin_role(0);
    program.emplace(ChunkFrame{.lowering = lowering, .role = role});
    std::vector<UnitUse> visits;
    const int layers = static_cast<int>(lowering.graph.layers.size());
    for (int l = 0; l < layers; ++l) visits.push_back({l, Phase::Forward});
    for (int l = layers; l-- > 0;) visits.push_back({l, Phase::Backward});
    program->add_events(visits, LayerId{0});
  }
  Bytes resident(Category category) const {
    Bytes sum = {};
    for (const Buffer& buffer : role.buffers)
      if (buffer.resident && buffer.category == category) sum += buffer.bytes;
    return sum;
  }
};

int updates(const Segment& segment) {
  return static_cast<int>(std::ranges::count_if(segment.instructions, [](const Instruction& run) {
    const auto* what = std::get_if<Compute>(&run.what);
    return what && std::holds_alternative<ops::Adam>(what->op);
  }));
}
int collectives(const Segment& segment, CollectiveKind kind) {
  return static_cast<int>(std::ranges::count_if(segment.instructions, [&](const Instruction& run) {
    const auto* what = std::get_if<Collective>(&run.what);
    return what && what->kind == kind;
  }));
}

}  // namespace

// Units together hold every parameter once; places follow one another in their unit, and the tied head has the embedding's.
TEST(StateProgram, UnitsHoldEveryParameter) {
  const Made made(0);
  std::int64_t used = 0;
  for (const StateUnit& unit : made.program->layout().units)
    if (!unit.borrowed) used += unit.used;
  EXPECT_EQ(used, kParameters);
  std::map<int, std::vector<std::pair<std::int64_t, std::int64_t>>> of_unit;
  const auto& places = made.program->layout().places;
  for (const auto& layer : places)
    for (const ParameterPlace& place : layer) of_unit[place.unit].push_back({place.element, place.element + place.elements});
  int shared = 0;
  for (auto& [unit, ranges] : of_unit) {
    std::ranges::sort(ranges);
    const auto again = std::ranges::unique(ranges);
    shared += static_cast<int>(again.size());
    ranges.erase(again.begin(), again.end());
    for (std::size_t i = 1; i < ranges.size(); ++i) EXPECT_GE(ranges[i].first, ranges[i - 1].second) << unit;
    EXPECT_LE(ranges.back().second, made.program->unit(unit).elements);
  }
  EXPECT_EQ(shared, 1);
}

// bf16 with fp32 master and moments: 2 bytes of parameters, 12 of states; ZeRO 1 halves the states over two ranks, ZeRO 3 all.
TEST(StateProgram, BuffersAreCutAsTheStageSays) {
  const auto near = [](Bytes found, double bytes) {
    EXPECT_GE(static_cast<double>(found.value), bytes);
    EXPECT_LT(static_cast<double>(found.value), bytes * 1.02);  // padding
  };
  const double n = static_cast<double>(kParameters);
  const Made whole(0), optimizer(1), all(3);
  near(whole.resident(Category::Parameters), 2 * n);
  near(whole.resident(Category::Optimizer), 12 * n);
  near(optimizer.resident(Category::Parameters), 2 * n);
  near(optimizer.resident(Category::Optimizer), 6 * n);
  near(all.resident(Category::Parameters), n);
  near(all.resident(Category::Optimizer), 6 * n);
}

// Each unit is updated once at the end; with ZeRO 1 the updated parameters are gathered.
TEST(StateProgram, FinishUpdatesEachUnit) {
  for (const int zero : {0, 1}) {
    Made made(zero);
    made.program->begin(true, {});
    const Segment end = made.program->finish();
    int owned = 0;
    for (const StateUnit& unit : made.program->layout().units) owned += unit.borrowed ? 0 : 1;
    EXPECT_EQ(updates(end), owned) << zero;
    EXPECT_EQ(collectives(end, CollectiveKind::AllGather), zero == 0 ? 0 : owned) << zero;
  }
}

// An operator reads the bytes of its parameter in the unit's buffer, and writes its gradient at the same element.
TEST(StateProgram, WeightsAndGradientsLieAtTheirPlaces) {
  Made made(0);
  made.program->begin(false, {});
  const ParameterPlace place = made.program->place(1, 0);
  const Use weight = made.program->weight(1, 0), gradient = made.program->weight_gradient(1, 0);
  EXPECT_EQ(weight.buffer, made.program->unit(place.unit).value);
  EXPECT_EQ(weight.from, Bytes{2 * place.element});
  EXPECT_EQ(weight.length, Bytes{2 * place.elements});
  EXPECT_EQ(gradient.buffer, made.program->unit(place.unit).gradient);
  EXPECT_FALSE(made.program->cuts_gradients(place.unit));
  EXPECT_FALSE(made.program->writes_gradients_to_slots(place.unit));
}

// With ZeRO 1 the forward waits for the all-gather of the last run's update, once per unit and segment.
TEST(StateProgram, AnUpdateIsWaitedForOnce) {
  Made made(1);
  const auto waits = [&](int layer, int parameter) {
    Instruction run;
    made.program->wait_for_update(run, layer, parameter);
    return run.waits.size();
  };
  made.program->begin(false, {});
  EXPECT_EQ(waits(1, 0), 1U);
  EXPECT_EQ(waits(1, 0), 0U);
  made.program->begin(false, {});
  EXPECT_EQ(waits(1, 0), 1U);
  Made plain(0);
  plain.program->begin(false, {});
  Instruction run;
  plain.program->wait_for_update(run, 1, 0);
  EXPECT_TRUE(run.waits.empty());  // the stream's order is enough
}

}  // namespace foreshard::state_program_test
