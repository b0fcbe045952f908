// Context parallelism trains the same model as one device: loss, gradients and weights after two steps, in double precision.
#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "core/base/error.h"
#include "core/check/check_plan.h"
#include "tests/exec/training.h"

namespace foreshard::context_parallel_test {
namespace {

// BERT without the pooler, which reads one rank's token.
Model encoder() {
  Model model = tiny_bert();
  std::get<Transformer>(model.shape).pooler = false;
  model.name = "tiny-encoder";
  return model;
}

class Comparison {
 public:
  explicit Comparison(Model model, double dropout = 0) : model_(std::move(model)), dropout_(dropout) {}

  void expect_equal(Strategy s) {
    s.dropout = dropout_;
    SCOPED_TRACE(model_.name + " cp" + std::to_string(s.cp) + " " + name_of(*s.context) + " attention " + name_of(s.attention) +
                 " " + name_of(s));
    const Plan plan = lowered(model_, in_double(s));
    const auto defects = check_plan(plan);
    ASSERT_TRUE(defects.empty()) << defects[0].rule << " " << defects[0].where << " " << defects[0].what;
    ExecuteOptions options = training(2);
    options.checks.poison = true;
    const Difference apart = difference(run(plan, options), one(s));
    EXPECT_LE(apart.loss, 1e-12);
    EXPECT_LE(apart.gradients, 1e-12) << apart.worst;
    EXPECT_LE(apart.values, 1e-12) << apart.worst;
  }

 private:
  const Execution& one(const Strategy& s) {
    const double clip = s.optimizer.clip_norm.value_or(0);
    Strategy alone = in_double({.batch = {.micro = 2}, .dropout = dropout_, .optimizer = {.clip_norm = clip}});
    if (!known_.contains(clip)) known_.emplace(clip, run(lowered(model_, alone), training(2)));
    return known_.at(clip);
  }

  Model model_;
  double dropout_;
  std::map<double, Execution> known_ = {};
};

std::vector<Strategy> strategies(ContextKind context) {
  const Overlap all{true, true, true, true}, none{false, false, false, false};
  std::vector<Strategy> list = {
      {.cp = 2, .batch = {.micro = 2}},
      {.cp = 4, .batch = {.micro = 1}, .communication = {.overlap = all}},
      {.tp = 2, .cp = 2, .batch = {.micro = 2}, .communication = {.overlap = none}},
      {.tp = 2, .cp = 4, .sequence_parallel = true, .batch = {.micro = 2}, .communication = {.overlap = all}},
      {.cp = 2, .pp = 2, .batch = {.micro = 1}},
      {.cp = 2, .pp = 4, .pipeline = {.schedule = Schedule::ZeroBubbleH1}, .batch = {.micro = 2}},
      {.dp = 2,
       .tp = 2,
       .cp = 2,
       .sequence_parallel = true,
       .batch = {.micro = 1},
       .zero = {.stage = 1},
       .optimizer = {.clip_norm = 0.01}},
      {.dp = 2, .cp = 4, .batch = {.micro = 1}, .zero = {.stage = 2}, .communication = {.overlap = all}},
      {.dp = 2, .cp = 2, .pp = 2, .batch = {.micro = 2}, .zero = {.stage = 3}},
      {.tp = 2, .cp = 2, .pp = 2, .batch = {.micro = 1}, .recompute = {.kind = RecomputeKind::Full}},
      {.cp = 4, .batch = {.micro = 2}, .recompute = {.kind = RecomputeKind::Selective}, .optimizer = {.clip_norm = 0.01}},
      {.cp = 2,
       .pp = 2,
       .virtual_stages = 2,
       .pipeline = {.schedule = Schedule::Interleaved},
       .batch = {.micro = 1},
       .recompute = {.kind = RecomputeKind::Modules, .modules = {"norm", "activation"}}},
      {.cp = 2,
       .batch = {.micro = 2},
       .recompute = {.kind = RecomputeKind::Modules, .modules = {"attention", "mlp", "dropout"}}},
      {.cp = 4, .batch = {.micro = 2}, .recompute = {.kind = RecomputeKind::Rotor}}};
  for (Strategy& s : list) s.context = context;
  return list;
}

void compare(const Model& model, ContextKind context, AttentionKernel attention, double dropout = 0) {
  Comparison one(model, dropout);
  std::vector<Strategy> list = strategies(context);
  if (dropout > 0) list.resize(6);  // the others differ in nothing that dropout knows of
  for (Strategy s : list) {
    if (context == ContextKind::AllToAll && std::get<Transformer>(model.shape).kv_heads % (s.tp * s.cp) != 0) continue;
    s.attention = attention;
    one.expect_equal(s);
  }
}

// One kernel for all of attention exists in 16 bits only; that it is the same: host_context_test.
TEST(ContextParallel, GatheredKeysOfGpt) { compare(tiny_gpt(), ContextKind::AllGather, AttentionKernel::Unfused); }
TEST(ContextParallel, GatheredKeysOfGptWithDropout) {
  compare(tiny_gpt(false), ContextKind::AllGather, AttentionKernel::Unfused, 0.1);
}
TEST(ContextParallel, GatheredKeysOfGroupedQueries) { compare(tiny_llama(), ContextKind::AllGather, AttentionKernel::Unfused); }
TEST(ContextParallel, GatheredKeysOfAnEncoder) { compare(encoder(), ContextKind::AllGather, AttentionKernel::Unfused, 0.1); }

TEST(ContextParallel, RingOfGpt) { compare(tiny_gpt(), ContextKind::Ring, AttentionKernel::Auto); }
TEST(ContextParallel, RingOfGptWithDropout) { compare(tiny_gpt(false), ContextKind::Ring, AttentionKernel::Auto, 0.1); }
TEST(ContextParallel, RingOfGroupedQueries) { compare(tiny_llama(), ContextKind::Ring, AttentionKernel::Auto); }
TEST(ContextParallel, RingOfAnEncoder) { compare(encoder(), ContextKind::Ring, AttentionKernel::Auto, 0.1); }
TEST(ContextParallel, DealtHeadsOfGpt) { compare(tiny_gpt(), ContextKind::AllToAll, AttentionKernel::Auto, 0.1); }
TEST(ContextParallel, DealtHeadsOfGroupedQueries) { compare(tiny_llama(), ContextKind::AllToAll, AttentionKernel::Auto); }
TEST(ContextParallel, DealtHeadsOfAnEncoder) { compare(encoder(), ContextKind::AllToAll, AttentionKernel::Auto, 0.1); }

// Mistakes planted in a right plan are seen, by the check where the plan contradicts itself, and by the comparison with one device.
class PlantedMistake : public testing::Test {
 protected:
  static Plan plan(ContextKind context) {
    return lowered(
        tiny_llama(),
        in_double({.cp = 2, .context = context, .batch = {.micro = 4}, .communication = {.overlap = Overlap{.tp = true}}}));
  }
  static Difference apart(const Plan& plan) {
    static const Execution one = run(lowered(tiny_llama(), in_double({.batch = {.micro = 4}})), training(1));
    return difference(run(plan, training(1)), one);
  }
  template <class Change>
  static int change_all(Plan& plan, const std::string& name, Change change) {
    int count = 0;
    for (Segment& segment : plan.segments)
      for (Instruction& instruction : segment.instructions)
        if (instruction.name == name && change(instruction)) ++count;
    return count;
  }
  template <class Operator, class Change>
  static int change_operator(Plan& plan, const std::string& name, Change change) {
    return change_all(plan, name, [&](Instruction& instruction) {
      auto* what = std::get_if<Compute>(&instruction.what);
      auto* op = what ? std::get_if<Operator>(&what->op) : nullptr;
      if (op) change(*op);
      return op != nullptr;
    });
  }
  static bool refused(const Plan& plan) {
    const auto defects = check_plan(plan);
    return !defects.empty() && defects[0].rule == "context-split";
  }
};

TEST_F(PlantedMistake, NoneIsThere) {
  EXPECT_LE(apart(plan(ContextKind::Ring)).largest(), 1e-12);
  EXPECT_LE(apart(plan(ContextKind::AllGather)).largest(), 1e-12);
}

TEST_F(PlantedMistake, AMaskAtThePositionsOfAnotherCut) {
  Plan wrong = plan(ContextKind::AllGather);
  ASSERT_GT(change_operator<ops::Softmax>(wrong, "softmax", [](ops::Softmax& op) { op.split.chunks = 1; }), 0);
  EXPECT_TRUE(refused(wrong));
  EXPECT_GT(apart(wrong).loss, 1e-6);
}

TEST_F(PlantedMistake, RotationsAtThePositionsOfAnotherCut) {
  Plan wrong = plan(ContextKind::Ring);
  ASSERT_GT(change_operator<ops::Rope>(wrong, "rope_k", [](ops::Rope& op) { op.split.chunks = 1; }), 0);
  EXPECT_TRUE(refused(wrong));
  EXPECT_GT(apart(wrong).loss, 1e-6);
}

TEST_F(PlantedMistake, ABlockOfKeysOfAnotherRank) {
  Plan wrong = plan(ContextKind::Ring);
  ASSERT_GT(change_operator<ops::Attention>(wrong, "attention.1", [](ops::Attention& op) { op.block = 0; }), 0);
  EXPECT_GT(apart(wrong).loss, 1e-6);
  change_operator<ops::Attention>(wrong, "attention.1", [](ops::Attention& op) { op.block = 2; });
  EXPECT_TRUE(refused(wrong));
}

TEST_F(PlantedMistake, GradientsOfKeysAreNotSummed) {
  Plan gathered = plan(ContextKind::AllGather);
  ASSERT_GT(change_all(gathered, "kv_gather",
                       [](Instruction& i) {
                         auto& what = std::get<Collective>(i.what);
                         if (what.kind == CollectiveKind::ReduceScatter) what.combine = Combine::Max;
                         return what.kind == CollectiveKind::ReduceScatter;
                       }),
            0);
  EXPECT_GT(apart(gathered).gradients, 1e-3);
  Plan ring = plan(ContextKind::Ring);  // the gradient that comes back is not added to the own one
  ASSERT_GT(change_all(ring, "add gradients",
                       [](Instruction& i) {
                         i.what = Mark{};
                         return true;
                       }),
            0);
  EXPECT_GT(apart(ring).gradients, 1e-3);
}

TEST_F(PlantedMistake, KeysGoTheOtherWayRound) {
  Plan wrong = lowered(tiny_gpt(), in_double({.cp = 4, .context = ContextKind::Ring, .batch = {.micro = 4}}));
  const Execution one = run(lowered(tiny_gpt(), in_double({.batch = {.micro = 4}})), training(1));
  EXPECT_LE(difference(run(wrong, training(1)), one).largest(), 1e-12);
  for (const char* turn : {"kv_turn.1", "kv_turn.2", "kv_turn.3"})
    ASSERT_GT(change_all(wrong, turn,
                         [](Instruction& i) {
                           auto& what = std::get<Exchange>(i.what);
                           std::swap(what.to, what.from);
                           return true;
                         }),
              0);
  EXPECT_GT(difference(run(wrong, training(1)), one).loss, 1e-6);
}

// A plan of before says of attention alone over how many ranks its keys are.
TEST_F(PlantedMistake, APlanThatDoesNotSayPositionsIsSoundButNotRun) {
  Plan old = plan(ContextKind::AllGather);
  for (Segment& segment : old.segments)
    for (Instruction& instruction : segment.instructions)
      if (auto* what = std::get_if<Compute>(&instruction.what))
        std::visit(
            []<class Operator>(Operator& op) {
              if constexpr (requires { op.split; })
                op.split = {.ranks = std::is_same_v<Operator, ops::Softmax> ? op.split.ranks : 1};
            },
            what->op);
  EXPECT_TRUE(check_plan(old).empty());
  EXPECT_THROW(static_cast<void>(execute(old, training(1))), Error);
}

}  // namespace
}  // namespace foreshard::context_parallel_test
