// Products that do the work of the instructions behind them: alone, in trainings, and what is told of their time.
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "exec/cuda_checks/kernel_cases.h"
#include "exec/cuda_device/cuda_device.h"
#include "report/tables/compare.h"
#include "tests/cuda/bent.h"
#include "tests/cuda/fake_training.h"
#include "tests/how_many.h"

namespace foreshard::gpu::epilogue_test {

TEST(Epilogues, EqualTheInstructionsOneByOne) {
  for (const FusedCase& tried : fused_cases()) {
    FakeRuntime runtime;
    const std::optional<Outcome> outcome = run_case(tried, runtime);
    ASSERT_TRUE(outcome) << tried.name;
    EXPECT_TRUE(outcome->right(tried)) << tried.name << ": " << outcome->fault << " " << outcome->error;
    EXPECT_TRUE(runtime.conflicts().empty()) << tried.name;
    EXPECT_FALSE(runtime.launches().contains(KernelId::activation_forward)) << tried.name;
    EXPECT_FALSE(runtime.launches().contains(KernelId::activation_backward)) << tried.name;
    FakeRuntime without({.epilogues = false});
    EXPECT_FALSE(run_case(tried, without)) << tried.name;
  }
}

namespace {

std::vector<Bend<Multiply>> bends() {
  return {{"bias left out", [](Multiply& w) { w.bias = nullptr; }},
          {"bias of the next column", [](Multiply& w) { w.bias += w.bias ? 2 : 0; }},
          {"rows of the saved input too far apart", [](Multiply& w) { w.aux_row += w.aux ? 8 : 0; }},
          {"rows of the saved input that are no multiple of 8", [](Multiply& w) { w.aux_row += w.aux ? 4 : 0; }},
          {"rows of the saved input too close", [](Multiply& w) { w.aux_row -= w.aux ? 8 : 0; }},
          {"a saved input 2 bytes further", [](Multiply& w) { w.aux += w.aux ? 2 : 0; }},
          {"a saved input 16 bytes further", [](Multiply& w) { w.aux += w.aux ? 16 : 0; }},
          {"no GELU", [](Multiply& w) { w.epilogue = Epilogue::None, w.aux = nullptr; }},
          {"GELU for its gradient",
           [](Multiply& w) {
             if (w.epilogue == Epilogue::GeluSlope) w.epilogue = Epilogue::Gelu;
           }},
          {"result and saved input the other way round",
           [](Multiply& w) {
             if (w.aux) std::swap(w.aux, w.c.data);
           }},
          {"sums of the next column", [](Multiply& w) { w.sums_to += w.sums_to ? 4 : 0; }}};
}

}  // namespace

TEST(Epilogues, EveryValueThatIsWrongIsSeen) {
  for (const Bend<Multiply>& bend : bends()) {
    int seen = 0;
    for (const FusedCase& tried : fused_cases()) {
      BentProducts runtime(bend);
      const std::optional<Outcome> outcome = run_case(tried, runtime);
      seen += outcome && outcome->right(tried) ? 0 : 1;
    }
    EXPECT_GE(seen, 1) << bend.name;
  }
}

// The gradient of a bias is the sum over the rows of dy, which is the first factor of the product.
TEST(Epilogues, SumsOfTheOtherFactorAreSeen) {
  // Of c^T = b^T a the factor is the other one.
  const Bend<Multiply> other{"", [](Multiply& w) {
                               if (w.sums != Sums::OfFactor) return;
                               std::swap(w.a, w.b), std::swap(w.m, w.n);
                               w.a.transposed = !w.a.transposed, w.b.transposed = !w.b.transposed;
                             }};
  int cases = 0;
  for (KernelCase tried : kernel_cases()) {
    if (tried.name.find("linear_weight_grad") == std::string::npos || tried.reads[0].operand().dtype != DType::BF16) continue;
    FakeRuntime plain;
    EXPECT_TRUE(run_case(tried, plain).right(tried)) << tried.name;
    EXPECT_GE(plain.products_with(Epilogue::None, Sums::OfFactor), 1) << tried.name;
    EXPECT_FALSE(plain.launches().contains(KernelId::column_sums)) << tried.name;
    BentProducts wrong(other);
    EXPECT_FALSE(run_case(tried, wrong).right(tried)) << tried.name;
    ++cases;
  }
  EXPECT_GE(cases, 4);
}

static Strategy in_bf16(Strategy strategy) {
  strategy = in_double(strategy);
  strategy.precision = DType::BF16;
  strategy.state_dtypes.param = strategy.state_dtypes.grad = strategy.state_dtypes.state = {};
  return strategy;
}

static Execution train(const Plan& plan, FakeRuntime& runtime, const GpuRuns& runs, int steps) {
  ExecuteOptions options = fake_training(steps);
  options.devices = ranks_on(runtime, runs);
  Execution done = run(plan, options);
  for (const std::string& conflict : runtime.conflicts()) ADD_FAILURE() << conflict;
  return done;
}

// With sequence parallelism d fc1 lies where d z was: that product must not be late.
TEST(Epilogues, TrainingsLearnWhatTheyLearnWithout) {
  std::uint64_t seed = 70;
  for (const Strategy& strategy :
       some_of<Strategy>({{.dp = 2, .batch = {.micro = 2}, .zero = {.stage = 3}},
                          {.tp = 2, .sequence_parallel = true, .batch = {.micro = 4}},
                          {.pp = 2, .pipeline = {.schedule = Schedule::ZeroBubbleH1}, .batch = {.micro = 4}},
                          {.batch = {.micro = 4}, .recompute = parse_recompute("full", "test")}},
                         2)) {
    const Plan plan = lowered(two_layers(tiny_gpt()), in_bf16(strategy));
    FakeSettings settings;
    settings.seed = seed++;
    FakeRuntime with(settings), without(settings);
    const Execution fused = train(plan, with, {}, 1), plain = train(plan, without, {.fuse = false}, 1);
    EXPECT_GE(with.products_with(Epilogue::Gelu, Sums::None), 1) << name_of(strategy);
    EXPECT_EQ(with.products_with(Epilogue::GeluSlope, Sums::OfResult) + with.products_with(Epilogue::GeluSlope, Sums::None) > 0,
              !strategy.sequence_parallel)
        << name_of(strategy);
    EXPECT_EQ(without.products_with(Epilogue::Gelu, Sums::None), 0);
    for (std::size_t step = 0; step < plain.steps.size(); ++step)
      EXPECT_NEAR(fused.steps[step].loss, plain.steps[step].loss, 2e-3 * plain.steps[step].loss) << name_of(strategy);
    EXPECT_LE(difference(fused, plain).gradients, 0.05) << name_of(strategy) << " " << difference(fused, plain).worst;
  }
}

namespace {

// The backward of a small layer by hand: d z [8, 16], w2, fc1 [8, 32], x, d y, d fc1, d w2, d w1, d b1.
class HandMade {
 public:
  enum Name { Dz, W2, Fc1, X, Dy, Dfc1, Dw2, Dw1, Db1, Y, kNames };
  HandMade() {
    at_ = device_.arena(Space::Device, {65536});
    for (int name = 0; name < kNames; ++name) move(static_cast<Name>(name), name);
  }
  void move(Name name, std::int64_t place) {
    constexpr std::int64_t kElements[] = {128, 512, 256, 128, 256, 256, 512, 512, 32, 256};
    operands_[name] = {at_ + place * 4096, kElements[name], DType::BF16};
  }
  void add(Operation op, Phase phase, const std::vector<std::int64_t>& dims, const std::vector<Name>& reads,
           const std::vector<Name>& writes, const std::vector<Name>& ends = {}) {
    std::vector<Operand> from, to;
    for (const Name name : reads) from.push_back(operands_[name]);
    for (const Name name : writes) to.push_back(operands_[name]);
    const Compute what{.op = std::move(op), .phase = phase, .shapes = {{dims}}};
    TaskRow::Member& member = row_.members.emplace_back();
    member.task = tasks_.emplace_back(device_.compute({0}, what, from, to, {})).get();
    for (const Name name : ends)
      member.ends.emplace_back(operands_[name].data, static_cast<std::size_t>(2 * operands_[name].elements));
  }
  void forward() {
    row_.stream = {0};
    add(ops::MatMul{}, Phase::Forward, {1, 8, 32, 16}, {X, W2}, {Fc1});
    add(kGelu, Phase::Forward, {8, 32}, {Fc1}, {Y});
  }
  void backward(bool ends = true) {
    row_.stream = {0};
    add(ops::MatMul{}, Phase::InputGrad, {1, 8, 16, 32}, {Dz, Fc1, W2}, {Dy});
    add(ops::MatMul{}, Phase::WeightGrad, {1, 8, 16, 32}, {Dz, Fc1}, {Dw2});
    add(kGelu, Phase::InputGrad, {8, 32}, {Dy, Fc1}, {Dfc1}, ends ? std::vector{Dy} : std::vector<Name>{});
    add(ops::MatMul{}, Phase::WeightGrad, {1, 8, 32, 16}, {Dfc1, X}, {Dw1, Db1});
  }
  // Members that are made one; 0: none.
  std::size_t joined() {
    const std::vector<JoinedTasks> all = device_.prepare(std::span(&row_, 1));
    return all.empty() ? 0 : all[0].count;
  }
  bool sums_with_the_activation() {
    std::byte *scratch = device_.arena(Space::Device, {65536}), *workspace = device_.arena(Space::Device, kMultiplyWorkspace);
    Stream* stream = runtime_.open_stream(false);
    for (const auto& task : tasks_) {
      OnStream on{.runtime = runtime_, .stream = stream, .scratch = scratch, .workspace = workspace, .met = nullptr};
      static_cast<GpuTask&>(*task).enqueue(on, 0);
    }
    runtime_.synchronize(stream);
    runtime_.close_stream(stream);
    return runtime_.products_with(Epilogue::GeluSlope, Sums::OfResult) == 1 &&
           runtime_.products_with(Epilogue::None, Sums::OfFactor) == 0;
  }

 private:
  static constexpr ops::Activation kGelu{.function = ops::Activation::Function::Gelu};
  FakeRuntime runtime_;
  GpuMemory memory_{runtime_};
  ProductChoice choice_{runtime_, ""};
  Stop stop_;
  CudaDevice device_{runtime_, memory_, choice_, 0, stop_, nullptr};
  std::byte* at_ = nullptr;
  Operand operands_[kNames] = {};
  std::vector<std::unique_ptr<StreamTask>> tasks_;
  TaskRow row_;
};

}  // namespace

TEST(Epilogues, OnlyWhereNobodySeesTheDifference) {
  const auto tried = [](bool backward, const std::function<void(HandMade&)>& change = {}, bool ends = true) {
    HandMade layer;
    if (change) change(layer);
    backward ? layer.backward(ends) : layer.forward();
    return layer.joined();
  };
  using enum HandMade::Name;
  EXPECT_EQ(tried(false), 2U);
  EXPECT_EQ(tried(false, [](HandMade& at) { at.move(Y, X); }), 0U);    // y takes the place of x, which the product reads
  EXPECT_EQ(tried(false, [](HandMade& at) { at.move(Y, Fc1); }), 0U);  // ... of what is saved
  EXPECT_EQ(tried(true), 3U);
  EXPECT_EQ(tried(true, {}, false), 0U);                                 // somebody may still read d y
  EXPECT_EQ(tried(true, [](HandMade& at) { at.move(Dfc1, Dz); }), 0U);   // d fc1 takes the place of d z
  EXPECT_EQ(tried(true, [](HandMade& at) { at.move(Dfc1, Fc1); }), 0U);  // ... of what the activation saved
  EXPECT_EQ(tried(true, [](HandMade& at) { at.move(Dw2, W2); }), 0U);    // the gradient in between overwrites the weight
  EXPECT_EQ(tried(true, [](HandMade& at) { at.move(Dfc1, X); }), 3U);    // x is not read by any of the three
}

TEST(Epilogues, TheGradientOfTheBiasIsMadeEarlyOnlyWhereNobodyTouchesItsPlace) {
  HandMade plain, taken;
  plain.backward();
  EXPECT_EQ(plain.joined(), 3U);
  EXPECT_TRUE(plain.sums_with_the_activation());
  taken.move(HandMade::Db1, HandMade::Dw2);  // written by the gradient in between
  taken.backward();
  EXPECT_EQ(taken.joined(), 3U);
  EXPECT_FALSE(taken.sums_with_the_activation());
}

// A group is one span of the trace, and no instruction is told twice or not at all; compare finds the twin of each.
TEST(Epilogues, AGroupIsOneSpanThatCompareCutsByThePlansCosts) {
  const Plan plan = lowered(two_layers(tiny_gpt()), in_bf16({.batch = {.micro = 4}}));
  FakeRuntime with, without;
  const Execution fused = train(plan, with, {}, 1), plain = train(plan, without, {.fuse = false}, 1);
  std::map<std::int32_t, int> by_count;
  std::int64_t told = 0, instructions = 0, marks = 0;
  for (const Span& span : fused.result.trace.spans) {
    ++by_count[span.count], told += span.count;
    if (span.count == 1) continue;
    EXPECT_GE((span.end - span.begin).value, 1000 * (span.count - 1)) << span.instruction;  // each product takes 1000
  }
  for (const Action& action : plan.roles[0].actions)
    for (const Instruction& one : plan.segments[action.segment.index()].instructions)
      ++instructions, marks += std::holds_alternative<Mark>(one.what) ? 1 : 0;
  EXPECT_EQ(told, instructions);
  EXPECT_EQ(static_cast<std::int64_t>(plain.result.trace.spans.size()), instructions);
  EXPECT_EQ(by_count[2], 2 * 2);  // two layers, two micro-batches: fc1 and its GELU
  EXPECT_EQ(by_count[3], 2 * 2);  // the gradients of fc2 and of the GELU
  const Comparison compared = compare(plain.result, fused.result);
  EXPECT_EQ(compared.without_twin, 0);
  EXPECT_EQ(compared.joined, instructions - marks);
}

}  // namespace foreshard::gpu::epilogue_test
