// Every way of splitting the work trains the same model: loss, every gradient and every weight after three steps are those of
// one device, in double precision.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <optional>
#include <random>
#include <tuple>

#include "core/check/check_plan.h"
#include "tests/exec/training.h"

namespace foreshard::equivalence_test {
namespace {

constexpr double kTolerance = 1e-12;

// What a run is compared with: one device, two samples per micro-batch, the same optimizer, clipping and dropout.
class References {
 public:
  References(Model model, DType precision) : model_(std::move(model)), precision_(precision) {}

  const Execution& of(const Strategy& s) {
    const auto key =
        std::tuple{s.optimizer.kind, s.optimizer.momentum, s.optimizer.clip_norm.value_or(0), s.dropout.value_or(0)};
    const auto found = known_.find(key);
    if (found != known_.end()) return found->second;
    Strategy one = in_double(
        {.batch = {.micro = 2},
         .dropout = s.dropout,
         .optimizer = {.kind = s.optimizer.kind, .momentum = s.optimizer.momentum, .clip_norm = s.optimizer.clip_norm}});
    one.precision = precision_;
    return known_.emplace(key, run(lowered(model_, one), settings())).first->second;
  }
  const Model& model() const { return model_; }
  DType precision() const { return precision_; }
  // In single precision Adam divides rounding errors by the root of its variance; a larger eps bounds that.
  ExecuteOptions settings() const {
    ExecuteOptions options = training();
    if (precision_ == DType::F32) options.optimizer.eps = 1e-2;
    return options;
  }

 private:
  Model model_;
  DType precision_;
  std::map<std::tuple<OptimizerKind, double, double, double>, Execution> known_ = {};
};

// `loss_scale` 0: a dynamic one.
void expect_equal(References& one, Strategy strategy, double loss_scale = 1, double tolerance = kTolerance) {
  SCOPED_TRACE(one.model().name + " " + name_of(strategy) + " loss scale " + std::to_string(loss_scale));
  strategy = in_double(strategy);
  strategy.precision = one.precision();
  strategy.optimizer.loss_scale = loss_scale;
  const Plan plan = lowered(one.model(), strategy);
  const auto defects = check_plan(plan);
  ASSERT_TRUE(defects.empty()) << defects[0].rule << " " << defects[0].where << " " << defects[0].what;
  ExecuteOptions options = one.settings();
  options.checks.poison = true;  // what nobody should read is not a number
  Execution done = run(plan, options);
  divide_gradients(done, done.steps.back().loss_scale.value_or(loss_scale));
  const Difference apart = difference(done, one.of(strategy));
  EXPECT_LE(apart.loss, tolerance);
  EXPECT_LE(apart.gradients, tolerance) << apart.worst;
  EXPECT_LE(apart.values, tolerance) << apart.worst;
}

template <class T>
T any(std::mt19937& random, std::initializer_list<T> choices) {
  return choices.begin()[random() % choices.size()];
}

// A strategy out of all products, or none when this draw does not exist (more than 8 ranks, no whole micro-batches, ...).
std::optional<Strategy> draw(std::mt19937& random, bool sequence_parallel, double dropout) {
  Strategy s{.dp = any(random, {1, 2, 4}), .tp = any(random, {1, 1, 2, 4}), .pp = any(random, {1, 2, 4}), .dropout = dropout};
  s.sequence_parallel = any(random, {true, false}) && sequence_parallel && s.tp > 1;
  s.batch.micro = any(random, {1, 1, 2});
  s.pipeline.schedule = any(random, {Schedule::GPipe, Schedule::OneFOneB, Schedule::Interleaved});
  s.virtual_stages = s.pipeline.schedule == Schedule::Interleaved ? 2 : 1;
  s.pipeline.layer_split = any<std::string>(random, {"", s.pp == 2 && s.virtual_stages == 1 ? "1,3" : ""});
  s.zero.stage = any(random, {0, 0, 1, 2, 3});
  s.zero.group = s.dp == 4 && s.zero.stage > 0 ? any(random, {0, 2}) : 0;
  s.communication.bucket = any<Bytes>(random, {{0}, {4096}, {300'000}});
  s.recompute = any<Recompute>(random, {{},
                                        {.kind = RecomputeKind::Selective},
                                        {.kind = RecomputeKind::Full},
                                        {.kind = RecomputeKind::Full, .layers = 1},
                                        {.kind = RecomputeKind::Modules, .modules = {"norm", "activation"}},
                                        {.kind = RecomputeKind::Modules, .modules = {"attention", "mlp", "dropout"}}});
  s.optimizer.clip_norm = any(random, {0.0, 0.0, 0.01});
  s.optimizer.kind = any(random, {OptimizerKind::Adam, OptimizerKind::Adam, OptimizerKind::Sgd});
  if (s.optimizer.kind == OptimizerKind::Sgd) s.optimizer.momentum = any(random, {0.0, 0.9});
  s.communication.overlap.emplace();
  for (const OverlapPart& part : kOverlapParts) *s.communication.overlap.*part.field = any(random, {true, false});
  using enum Algorithm;
  s.communication.algorithm = any<std::optional<Algorithm>>(
      random, {Ring, Ring, Tree, DoubleTree, Hierarchical, TwoDimensional, ParameterServer, GatherToRoot, {}});
  s.communication.servers = any(random, {0, 1, 2});
  if (s.zero.stage > 0) s.communication.servers = 0;  // every member serves its own part
  s.communication.transfers = any(random, {Transfers::Whole, Transfers::Split});
  s.communication.order = any(random, {SumOrder::Ready, SumOrder::Priority});
  s.communication.partition = any<Bytes>(random, {{0}, {4096}});
  const int ranks = s.dp * s.tp * s.pp;
  const auto micro_batches = static_cast<int>(8 / (s.batch.micro * s.dp));
  if (ranks < 2 || ranks > 8 || micro_batches < 1) return {};
  if (s.virtual_stages > 1 && (s.pp != 2 || micro_batches % s.pp != 0)) return {};
  return s;
}

void compare_drawn(const Model& model, bool sequence_parallel, double dropout, int count, unsigned seed,
                   DType precision = DType::F64, double tolerance = kTolerance) {
  References one(model, precision);
  std::mt19937 random(seed);
  for (int done = 0; done < count;) {
    const auto strategy = draw(random, sequence_parallel, dropout);
    if (!strategy) continue;
    expect_equal(one, *strategy, any(random, {1.0, 0.0, 1024.0, 3.0}), tolerance);
    ++done;
  }
}

TEST(Equivalence, DrawnGpt) { compare_drawn(tiny_gpt(), true, 0, 24, 1); }
TEST(Equivalence, DrawnGptWithDropout) { compare_drawn(tiny_gpt(false), true, 0.1, 16, 2); }
TEST(Equivalence, DrawnLlama) { compare_drawn(tiny_llama(), true, 0, 16, 3); }
TEST(Equivalence, DrawnBert) { compare_drawn(tiny_bert(), false, 0.1, 12, 4); }
TEST(Equivalence, DrawnGptInSinglePrecision) { compare_drawn(tiny_gpt(), true, 0, 8, 5, DType::F32, 1e-5); }
TEST(Equivalence, DrawnLlamaInSinglePrecision) { compare_drawn(tiny_llama(), true, 0, 6, 6, DType::F32, 1e-5); }

// Input and weight gradients apart.
std::optional<Strategy> draw_split(std::mt19937& random, bool sequence_parallel, double dropout) {
  auto s = draw(random, sequence_parallel, dropout);
  if (!s) return {};
  s->pipeline.schedule =
      any(random, {Schedule::ZeroBubbleH1, Schedule::ZeroBubbleH2, Schedule::ZeroBubbleV, Schedule::ZeroBubble2p});
  const bool v = s->pipeline.schedule == Schedule::ZeroBubbleV;
  s->virtual_stages = v ? 2 : 1;
  if (v) s->pipeline.layer_split.clear();
  s->zero.stage = std::min(s->zero.stage, 1);
  if (s->zero.stage == 0) s->zero.group = 0;
  if (v && s->pp != 2) return {};
  if (!s->pipeline.layer_split.empty() && s->pp != 2) return {};
  return s;
}

void compare_split(const Model& model, bool sequence_parallel, double dropout, int count, unsigned seed) {
  References one(model, DType::F64);
  std::mt19937 random(seed);
  for (int done = 0; done < count;) {
    const auto strategy = draw_split(random, sequence_parallel, dropout);
    if (!strategy) continue;
    expect_equal(one, *strategy, any(random, {1.0, 3.0}));
    ++done;
  }
}

TEST(Equivalence, DrawnZeroBubbleGpt) { compare_split(tiny_gpt(), true, 0, 20, 11); }  // tied embedding
TEST(Equivalence, DrawnZeroBubbleGptWithDropout) { compare_split(tiny_gpt(false), true, 0.1, 10, 12); }
TEST(Equivalence, DrawnZeroBubbleLlama) { compare_split(tiny_llama(), true, 0, 10, 13); }
TEST(Equivalence, DrawnZeroBubbleBert) { compare_split(tiny_bert(), false, 0.1, 8, 14); }

// Breadth first, interleaved halves, less memory on a V, two pipelines over the same ranks, forward and backward in one cell, and lists.
TEST(Equivalence, SchedulesOfOtherShapes) {
  References one(tiny_gpt(), DType::F64), untied(tiny_gpt(false), DType::F64), llama(tiny_llama(), DType::F64);
  const Overlap late{.gradients = false};
  for (References* of : {&one, &untied, &llama})
    for (const Strategy& strategy : std::vector<Strategy>{
             {.pp = 2, .virtual_stages = 2, .pipeline = {.schedule = Schedule::LoopedBfs}, .batch = {.micro = 1}},
             {.dp = 2,
             .pp = 2,
             .virtual_stages = 2,
             .pipeline = {.schedule = Schedule::InterleavedZeroBubble},
             .batch = {.micro = 1}},
             {.tp = 2, .pp = 2, .virtual_stages = 2, .pipeline = {.schedule = Schedule::VHalf}, .batch = {.micro = 1}},
             {.dp = 2,
             .pp = 2,
             .virtual_stages = 2,
             .pipeline = {.schedule = Schedule::VMin},
             .batch = {.micro = 1},
             .zero = {.stage = 1}},
             {.pp = 4, .pipeline = {.schedule = Schedule::Chimera}, .batch = {.micro = 1}},
             {.dp = 2, .tp = 2, .pp = 2, .pipeline = {.schedule = Schedule::Chimera}, .batch = {.micro = 1}},
             {.dp = 2,
             .pp = 2,
             .pipeline = {.schedule = Schedule::DualPipe},
             .batch = {.micro = 1},
             .communication = {.overlap = late}},
             {.pp = 4, .pipeline = {.schedule = Schedule::DualPipe}, .batch = {.micro = 1}},
             {.dp = 2, .pp = 2, .pipeline = {.schedule = Schedule::DualPipe}, .batch = {.micro = 1}, .zero = {.stage = 1}},
             {.dp = 4,
             .pp = 2,
             .pipeline = {.schedule = Schedule::Chimera},
             .batch = {.micro = 1},
             .zero = {.stage = 1, .group = 2}},
             {.tp = 2, .pp = 2, .virtual_stages = 2, .pipeline = {.schedule = Schedule::DualPipeV}, .batch = {.micro = 1}},
             {.tp = 2,
             .pp = 2,
             .pipeline = {.schedule = Schedule::Listed,
                         .order = {"0F0 0F1&0B0 0F2&0B1 0F3&0B2 0B3", "1F0 1B0 1F1 1B1 1F2 1B2 1F3 1B3"}},
             .batch = {.micro = 2},
             .communication = {.overlap = Overlap{.tp = true}}},
             {.pp = 2,
             .pipeline = {.schedule = Schedule::Listed,
                         .order = {"0F0 0F1 0B1 0I0 0F2 0W0 0F3 0B3 0B2", "1F0 1F1 1B1 1B0 1F2 1F3 1B3 1B2"}},
             .batch = {.micro = 2}}})
      expect_equal(*of, strategy);
}

// Clipping changes the gradients of the compared runs: the norm of one step is above the limit.
TEST(Equivalence, TheLimitOfTheNormBinds) {
  const auto norm = [](double limit) {
    const Execution one =
        run(lowered(tiny_gpt(), in_double({.batch = {.micro = 2}, .optimizer = {.clip_norm = limit}})), training(1));
    double squares = 0;
    for (const WholeTensor& tensor : one.gradients)
      for (const double g : tensor.elements) squares += g * g;
    return std::sqrt(squares);
  };
  EXPECT_GT(norm(0), 0.05);
  EXPECT_NEAR(norm(0.01), 0.01, 1e-12);
}

TEST(Equivalence, ChosenGpt) {
  References one(tiny_gpt(), DType::F64);
  const Overlap all{true, true, true, true}, none{false, false, false, false};
  for (const Strategy& strategy : std::vector<Strategy>{
           {.batch = {.micro = 8}},
           {.dp = 8, .batch = {.micro = 1}},
           {.tp = 4, .pp = 2, .sequence_parallel = true, .batch = {.micro = 1}},
           {.dp = 2, .tp = 2, .pp = 2, .batch = {.micro = 1}},
           {.pp = 2, .virtual_stages = 2, .batch = {.micro = 1}},
           {.pp = 4, .batch = {.micro = 1}},
           {.pp = 4, .pipeline = {.schedule = Schedule::ZeroBubbleH1}, .batch = {.micro = 1}},
           {.dp = 2,
           .pp = 4,
           .pipeline = {.schedule = Schedule::ZeroBubbleH2},
           .batch = {.micro = 1},
           .zero = {.stage = 1},
           .communication = {.overlap = all}},
           {.pp = 4,
           .pipeline = {.schedule = Schedule::ZeroBubble2p, .times = ActionTimes{3, 2, 1, 0.5}},
           .batch = {.micro = 1}},
           {.pp = 2, .virtual_stages = 2, .pipeline = {.schedule = Schedule::ZeroBubbleV}, .batch = {.micro = 1}},
           {.dp = 4, .batch = {.micro = 1}, .zero = {.stage = 1, .group = 2}},
           {.dp = 4, .batch = {.micro = 1}, .zero = {.stage = 1}, .communication = {.overlap = all}},
           {.dp = 4, .batch = {.micro = 1}, .zero = {.stage = 2}, .communication = {.overlap = all}},
           {.dp = 4, .batch = {.micro = 1}, .zero = {.stage = 3}, .communication = {.overlap = all}},
           {.dp = 4, .batch = {.micro = 1}, .zero = {.stage = 3}, .communication = {.overlap = none}},
           {.dp = 2,
           .tp = 2,
           .pp = 2,
           .sequence_parallel = true,
           .batch = {.micro = 1},
           .zero = {.stage = 3},
           .communication = {.overlap = all}}})
    expect_equal(one, strategy);
}

// Everything at once, on eight ranks.
TEST(Equivalence, ChosenWithClippingAndLossScale) {
  References one(tiny_gpt(), DType::F64);
  const Overlap all{true, true, true, true};
  for (int zero = 0; zero <= 3; ++zero)
    expect_equal(one,
                 {.dp = 2,
                  .tp = 2,
                  .pp = 2,
                  .sequence_parallel = true,
                  .pipeline = {.layer_split = "1,3"},
                  .batch = {.micro = 1},
                  .zero = {.stage = zero},
                  .recompute = {.kind = RecomputeKind::Full},
                  .optimizer = {.clip_norm = 0.01},
                  .communication = {.overlap = all}},
                 512);
}

// Layer lists are cut by data and pipeline only. Batch norm takes the statistics of each micro-batch, in the reference too.
TEST(Equivalence, Perceptron) {
  References one(tiny_mlp(), DType::F64);
  for (const Strategy& strategy :
       std::vector<Strategy>{{.dp = 4, .batch = {.micro = 1}},
                             {.pp = 2, .batch = {.micro = 1}},
                             {.dp = 2, .pp = 4, .pipeline = {.schedule = Schedule::GPipe}, .batch = {.micro = 1}},
                             {.pp = 2, .pipeline = {.schedule = Schedule::ZeroBubbleH1}, .batch = {.micro = 1}},
                             {.pp = 4, .pipeline = {.schedule = Schedule::ZeroBubbleH2}, .batch = {.micro = 2}},
                             {.pp = 2,
                             .virtual_stages = 2,
                             .pipeline = {.schedule = Schedule::ZeroBubbleV},
                             .batch = {.micro = 1},
                             .optimizer = {.clip_norm = 0.01}},
                             {.dp = 2, .batch = {.micro = 2}, .zero = {.stage = 1}, .optimizer = {.clip_norm = 0.01}},
                             {.dp = 4, .batch = {.micro = 1}, .zero = {.stage = 2}},
                             {.dp = 2, .pp = 2, .batch = {.micro = 1}, .zero = {.stage = 3}}})
    for (const double loss_scale : {1.0, 64.0}) expect_equal(one, strategy, loss_scale);
}

TEST(Equivalence, ToyMatmul) {
  References one(load_model("toy-matmul"), DType::F64);
  for (const Strategy& strategy : std::vector<Strategy>{{.dp = 2, .batch = {.micro = 1}},
                                                        {.dp = 4, .batch = {.micro = 2}, .zero = {.stage = 1}},
                                                        {.dp = 8, .zero = {.stage = 3}}})
    for (const double loss_scale : {1.0, 64.0}) expect_equal(one, strategy, loss_scale);
}

TEST(Equivalence, ConvolutionalNetwork) {
  References one(tiny_cnn(), DType::F64);
  for (const Strategy& strategy : std::vector<Strategy>{
           {.dp = 2, .batch = {.micro = 2}},
           {.dp = 4, .batch = {.micro = 2}},
           {.dp = 4, .batch = {.micro = 2}, .zero = {.stage = 1}, .optimizer = {.kind = OptimizerKind::Sgd, .momentum = 0.9}},
           {.dp = 2, .batch = {.micro = 2}, .zero = {.stage = 3}, .optimizer = {.clip_norm = 0.01}},
           {.pp = 2, .batch = {.micro = 2}},
           {.pp = 2, .pipeline = {.schedule = Schedule::ZeroBubbleH1}, .batch = {.micro = 2}},
           {.pp = 2, .virtual_stages = 2, .pipeline = {.schedule = Schedule::ZeroBubbleV}, .batch = {.micro = 2}},
           {.pp = 2, .pipeline = {.schedule = Schedule::GPipe}, .batch = {.micro = 2}},
           {.dp = 2, .pp = 2, .batch = {.micro = 2}, .zero = {.stage = 2}},
           {.dp = 2, .pp = 4, .batch = {.micro = 2}},
           {.dp = 2, .pp = 2, .pipeline = {.layer_split = "1,3"}, .batch = {.micro = 2}, .optimizer = {.clip_norm = 0.01}}})
    for (const double loss_scale : {1.0, 64.0}) expect_equal(one, strategy, loss_scale);
}

}  // namespace
}  // namespace foreshard::equivalence_test
