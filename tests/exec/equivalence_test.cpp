// Every way of splitting the work trains the same model: loss, every gradient and every weight after three steps are those of
// one device, in double precision.
#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <sstream>

#include "core/check_plan.h"
#include "tests/exec/training.h"

namespace foreshard {
namespace {

constexpr double kTolerance = 1e-12;

std::string name_of(const Strategy& s) {
  std::ostringstream out;
  out << "dp" << s.dp << " tp" << s.tp << (s.sequence_parallel ? " sp" : "") << " pp" << s.pp << " v" << s.virtual_stages << " "
      << (s.schedule ? name_of(*s.schedule) : "auto") << " split \"" << s.layer_split << "\" micro-batch " << s.micro_batch
      << " zero" << s.zero << " group " << s.zero_group << " recompute " << to_text(s.recompute) << " overlap "
      << to_text(s.overlap) << " bucket " << s.bucket.value << " dropout " << s.dropout;
  return out.str();
}

// One device, two samples per micro-batch.
Execution reference(const Model& model, double dropout) {
  return run(lowered(model, in_double({.micro_batch = 2, .dropout = dropout})), training());
}

void expect_equal(const Model& model, const Strategy& strategy, const Execution& one) {
  SCOPED_TRACE(model.name + " " + name_of(strategy));
  const Plan plan = lowered(model, in_double(strategy));
  const auto defects = check_plan(plan);
  ASSERT_TRUE(defects.empty()) << defects[0].rule << " " << defects[0].where << " " << defects[0].what;
  ExecuteOptions options = training();
  options.checks.poison = true;  // what nobody should read is not a number
  const Difference apart = difference(run(plan, options), one);
  EXPECT_LE(apart.loss, kTolerance);
  EXPECT_LE(apart.gradients, kTolerance) << apart.worst;
  EXPECT_LE(apart.values, kTolerance) << apart.worst;
}

template <class T>
T any(std::mt19937& random, std::initializer_list<T> choices) {
  return choices.begin()[random() % choices.size()];
}

// A strategy out of all products, or none when this draw does not exist (more than 8 ranks, no whole micro-batches, ...).
std::optional<Strategy> draw(std::mt19937& random, bool sequence_parallel, double dropout) {
  Strategy s{.dp = any(random, {1, 2, 4}), .tp = any(random, {1, 1, 2, 4}), .pp = any(random, {1, 2, 4}), .dropout = dropout};
  s.sequence_parallel = any(random, {true, false}) && sequence_parallel && s.tp > 1;
  s.micro_batch = any(random, {1, 1, 2});
  s.schedule = any(random, {Schedule::GPipe, Schedule::OneFOneB, Schedule::Interleaved});
  s.virtual_stages = s.schedule == Schedule::Interleaved ? 2 : 1;
  s.layer_split = any<std::string>(random, {"", s.pp == 2 && s.virtual_stages == 1 ? "1,3" : ""});
  s.zero = any(random, {0, 0, 1, 2, 3});
  s.zero_group = s.dp == 4 && s.zero > 0 ? any(random, {0, 2}) : 0;
  s.bucket = any<Bytes>(random, {{0}, {4096}, {300'000}});
  s.recompute = any<Recompute>(random, {{},
                                        {.kind = RecomputeKind::Selective},
                                        {.kind = RecomputeKind::Full},
                                        {.kind = RecomputeKind::Full, .layers = 1},
                                        {.kind = RecomputeKind::Modules, .modules = {"norm", "activation"}},
                                        {.kind = RecomputeKind::Modules, .modules = {"attention", "mlp", "dropout"}}});
  for (const OverlapPart& part : kOverlapParts) s.overlap.*part.field = any(random, {true, false});
  const int ranks = s.dp * s.tp * s.pp;
  const auto micro_batches = static_cast<int>(8 / (s.micro_batch * s.dp));
  if (ranks < 2 || ranks > 8 || micro_batches < 1) return {};
  if (s.virtual_stages > 1 && (s.pp != 2 || micro_batches % s.pp != 0)) return {};
  return s;
}

void compare_drawn(const Model& model, bool sequence_parallel, double dropout, int count, unsigned seed) {
  const Execution one = reference(model, dropout);
  std::mt19937 random(seed);
  for (int done = 0; done < count;) {
    const auto strategy = draw(random, sequence_parallel, dropout);
    if (!strategy) continue;
    expect_equal(model, *strategy, one);
    ++done;
  }
}

TEST(Equivalence, DrawnGpt) { compare_drawn(tiny_gpt(), true, 0, 24, 1); }
TEST(Equivalence, DrawnGptWithDropout) { compare_drawn(tiny_gpt(false), true, 0.1, 16, 2); }
TEST(Equivalence, DrawnLlama) { compare_drawn(tiny_llama(), true, 0, 16, 3); }
TEST(Equivalence, DrawnBert) { compare_drawn(tiny_bert(), false, 0.1, 12, 4); }

TEST(Equivalence, ChosenGpt) {
  const Model model = tiny_gpt();
  const Execution one = reference(model, 0);
  const Overlap all{true, true, true, true}, none{false, false, false, false};
  for (const Strategy& strategy : std::vector<Strategy>{
           {.micro_batch = 8},
           {.dp = 8, .micro_batch = 1},
           {.tp = 4, .pp = 2, .sequence_parallel = true, .micro_batch = 1},
           {.dp = 2, .tp = 2, .pp = 2, .micro_batch = 1},
           {.pp = 2, .virtual_stages = 2, .micro_batch = 1},
           {.pp = 4, .micro_batch = 1},
           {.dp = 4, .micro_batch = 1, .zero = 1, .zero_group = 2},
           {.dp = 4, .micro_batch = 1, .zero = 1, .overlap = all},
           {.dp = 4, .micro_batch = 1, .zero = 2, .overlap = all},
           {.dp = 4, .micro_batch = 1, .zero = 3, .overlap = all},
           {.dp = 4, .micro_batch = 1, .zero = 3, .overlap = none},
           {.dp = 2, .tp = 2, .pp = 2, .sequence_parallel = true, .micro_batch = 1, .zero = 3, .overlap = all}})
    expect_equal(model, strategy, one);
}

}  // namespace
}  // namespace foreshard
