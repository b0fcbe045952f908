// calibrate --device cuda, on the runtime of the tests: its times mean nothing, its form does.
#include <gtest/gtest.h>

#include <unistd.h>
#include <map>
#include <set>

#include <filesystem>

#include "core/json/json.h"
#include "core/plan/joined_products.h"
#include "exec/calibrate/calibrate.h"
#include "exec/cuda_checks/calibrate_cuda.h"
#include "exec/nccl/cuda_communicator.h"
#include "tests/cuda/fake_runtime.h"
#include "tests/exec/training.h"

namespace foreshard::gpu::calibrate_test {

TEST(CudaCalibrate, FillsEveryPartOfAProfile) {
  FakeRuntime runtime;
  CudaMeasures measures(runtime, {.product = 16, .sum = 3000, .reduced = 16 << 10});
  CalibrateOptions options{.device = "a GPU", .dtypes = {DType::F32}, .largest_product = 16};
  options.measures = &measures;
  Strategy strategy = in_double({.dp = 2, .batch = {.micro = 4}});
  strategy.precision = DType::F32;
  const auto profile = calibrate({lowered(tiny_mlp(), strategy)}, options);
  ASSERT_TRUE(profile);
  EXPECT_EQ(profile->device, "a GPU");
  EXPECT_NE(profile->machine.find("a GPU that is not there"), std::string::npos);
  EXPECT_EQ(profile->copies.size(), 8U);       // 4 KiB, times 4 up to 64 MiB
  EXPECT_EQ(profile->all_reduces.size(), 2U);  // 4 and 16 KiB
  EXPECT_GT(profile->link_bandwidth.value, 0);
  EXPECT_GT(profile->launch_overhead.value, 0);
  // Products of three phases, the update, the activation, the loss.
  EXPECT_GE(profile->ops.size(), 6U);
  EXPECT_GE(profile->collective_share, 0);
  EXPECT_LE(profile->collective_share, 0.9);
  EXPECT_EQ(profile->outside_memory.value, FakeRuntime::kContext);
  EXPECT_EQ(parse_machine_profile(to_json(*profile), "again").ops, profile->ops);
  EXPECT_EQ(measures.host_copies().size(), 12U);  // pinned or not, to and fro, three sizes
  EXPECT_TRUE(runtime.conflicts().empty());
  EXPECT_EQ(runtime.allocated(), 0);
}

// Products of 8 bits have rows of their own: by shape and in a model; rounding the factors is part of their time.
TEST(CudaCalibrate, MeasuresProductsOfEightBits) {
  FakeRuntime runtime;
  CudaMeasures measures(runtime, {.product = 16, .sum = 3000, .reduced = 16 << 10});
  CalibrateOptions options{.device = "a GPU", .dtypes = {DType::BF16, DType::F8}, .least_product = 16, .largest_product = 32};
  options.measures = &measures;
  const auto profile = calibrate({}, options);
  ASSERT_TRUE(profile);
  for (const Phase phase : {Phase::Forward, Phase::InputGrad, Phase::WeightGrad}) {
    std::map<DType, std::size_t> samples;
    for (const ProfileOp& op : profile->ops)
      if (op.phase == phase) samples[op.dtype] += op.samples.size();
    EXPECT_EQ(samples[DType::BF16], 8U);  // two sizes of rows, columns and depth
    EXPECT_EQ(samples[DType::F8], 8U);
  }
  EXPECT_EQ(parse_machine_profile(to_json(*profile), "again").ops, profile->ops);
  EXPECT_TRUE(runtime.conflicts().empty());
  EXPECT_EQ(runtime.allocated(), 0);
}

// Ranks of two GPUs reach into each other's memory.
TEST(CudaCalibrate, AllReducesBetweenTwoGpus) {
  FakeRuntime runtime({.devices = 2});
  CudaMeasures measures(runtime, {.product = 16, .sum = 3000, .reduced = 16 << 10});
  EXPECT_EQ(measures.all_reduces().size(), 2U);
  EXPECT_TRUE(runtime.conflicts().empty());
  FakeRuntime apart({.devices = 2, .peers = 1});
  CudaMeasures unreachable(apart, {.reduced = 4096});
  EXPECT_THROW(unreachable.all_reduces(), DeviceError);
}

namespace {

// Sees what products read, and how much is written between them.
class Watched : public FakeRuntime {
 public:
  using FakeRuntime::FakeRuntime;
  void multiply(const Multiply& multiply, std::byte* workspace, Bytes bytes, Stream* stream) override {
    synchronize(stream);
    std::set<std::byte> seen(multiply.a.data, multiply.a.data + 32);
    if (seen.size() < 8) ++of_few_numbers;
    ++products;
    FakeRuntime::multiply(multiply, workspace, bytes, stream);
  }
  void fill(std::byte* to, std::byte with, Bytes bytes, Stream* stream) override {
    if (bytes.value >= 1 << 20) ++large_fills;
    FakeRuntime::fill(to, with, bytes, stream);
  }
  int products = 0, of_few_numbers = 0, large_fills = 0;
};

}  // namespace

// Each by itself: seven rows with cold caches and seven with warm ones, with other memory written before each. What is known is not measured again.
TEST(CudaCalibrate, InstructionsOnRandomNumbersWithColdAndWarmCaches) {
  Watched runtime;
  CudaMeasures measures(runtime, {.lasting = std::chrono::hours(1)});
  Strategy strategy = in_double({.dp = 2, .batch = {.micro = 4}});
  strategy.precision = DType::F32;
  const Plan plan = lowered(tiny_mlp(), strategy);
  int told = 0, products = 0;
  const auto tell = [&](const Compute& what, Seconds time, bool) {
    EXPECT_GT(time.value, 0);
    ++told, products += is<ops::MatMul>(what.op) ? 1 : 0;
  };
  measures.instructions(plan, 0, tell);
  EXPECT_GE(products, 6);  // two layers or more, three phases
  EXPECT_EQ(told % 2, 0);
  EXPECT_EQ(runtime.large_fills, told * 7);
  EXPECT_EQ(runtime.of_few_numbers, 0);
  EXPECT_EQ(runtime.products, products / 2 * (2 + 7 + 7 * 4));
  const int before = told;
  measures.instructions(plan, 0, tell);
  EXPECT_EQ(told, before);
  EXPECT_TRUE(runtime.conflicts().empty());
  EXPECT_EQ(runtime.allocated(), 0);
}

// Forward, recomputed and in the backward: joined products have samples of their own, of the sizes of the products, unless the library has none.
TEST(CudaCalibrate, ProductsWithTheirGelu) {
  Strategy strategy = in_double({.batch = {.micro = 2}, .recompute = {.kind = RecomputeKind::Full}});
  strategy.precision = DType::BF16;
  const Plan plan = lowered(tiny_gpt(), strategy);
  std::map<Phase, int> pairs;
  for (const Segment& segment : plan.segments)
    for (const JoinedProduct& pair : joined_products(segment))
      ++pairs[std::get<Compute>(segment.instructions[pair.product].what).phase];
  EXPECT_EQ(pairs.size(), 3U);  // forward, recompute, input gradient
  for (const bool library : {true, false}) {
    FakeSettings settings;
    settings.epilogues = library;
    FakeRuntime runtime(settings);
    CudaMeasures measures(runtime, {.product = 16, .sum = 3000, .reduced = 16 << 10});
    CalibrateOptions options{.device = "a GPU", .dtypes = {DType::BF16}, .largest_product = 16};
    options.measures = &measures;
    const auto profile = calibrate({plan}, options);
    ASSERT_TRUE(profile);
    std::set<Phase> joined;
    for (const ProfileOp& op : profile->ops)
      if (op.joined && op.op == "matmul") joined.insert(op.phase);
    EXPECT_EQ(joined.size(), library ? 3U : 0U);
    EXPECT_EQ(parse_machine_profile(to_json(*profile), "again").ops, profile->ops);
    EXPECT_TRUE(runtime.conflicts().empty());
    EXPECT_EQ(runtime.allocated(), 0);
  }
}

namespace {

// The library's attention wants this workspace; nothing else wants much.
class WantsMuch : public FakeRuntime {
 public:
  explicit WantsMuch(Bytes wants) : FakeRuntime({.library_attention = true}), wants_(wants) {}
  std::optional<Bytes> attention_workspace(const AttentionCall& call) override {
    const std::optional<Bytes> sums = FakeRuntime::attention_workspace(call);
    return sums ? std::optional(std::max(*sums, call.backward ? wants_ : Bytes{})) : sums;
  }
  Bytes free_memory(int device) override { return std::min(FakeRuntime::free_memory(device), free); }
  Bytes free = {INT64_MAX};

 private:
  Bytes wants_;
};

Plan with_attention() {
  Strategy strategy = in_double({.batch = {.micro = 2}, .attention = AttentionKernel::Flash});
  strategy.precision = DType::BF16;
  return lowered(tiny_gpt(), strategy);
}

}  // namespace

// What a run would not use is not measured: beyond a seventh of the GPU's memory (here 128 MiB) the kernels are ours. What does not fit is told.
TEST(CudaCalibrate, AnInstructionWhoseScratchDoesNotFitIsLeftOut) {
  const Plan plan = with_attention();
  const auto told = [&](WantsMuch& runtime, std::vector<std::string>& notes) {
    CudaMeasures measures(runtime, {.product = 16, .sum = 3000, .reduced = 16 << 10, .times = 2});
    int attentions = 0;
    measures.instructions(plan, 0, [&](const Compute& what, Seconds, bool) {
      attentions += is<ops::Attention>(what.op) && what.phase == Phase::InputGrad ? 1 : 0;
    });
    notes = measures.notes();
    EXPECT_EQ(runtime.allocated(), 0);
    return attentions;
  };
  std::vector<std::string> notes;
  WantsMuch within({100 << 20}), beyond({200 << 20}), full({100 << 20});
  full.free = {90 << 20};
  EXPECT_GE(told(within, notes), 1);
  EXPECT_TRUE(notes.empty());
  EXPECT_GE(within.library_attentions(), 1);
  EXPECT_GE(told(beyond, notes), 1);
  EXPECT_TRUE(notes.empty());
  EXPECT_EQ(beyond.library_attentions(), 0);
  EXPECT_EQ(told(full, notes), 0);
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_EQ(notes[0],
            "attention input_grad 2x16x4x8,2x16x4x8 is not measured: beside its operands it needs 100.00 MiB, and 90.00 MiB "
            "are free");
}

namespace {

// Fails in the n-th call of `instructions`, and in all from `until` on.
class Fails : public CudaMeasures {
 public:
  Fails(Runtime& runtime, int first, int until)
      : CudaMeasures(runtime, {.product = 16, .sum = 3000, .reduced = 16 << 10, .times = 2}), first_(first), until_(until) {}
  void instructions(const Plan& plan, int steps, const TellCompute& tell) override {
    CudaMeasures::instructions(plan, steps, tell);
    if (calls_ == first_ || calls_ >= until_) ++calls_, throw DeviceError("cudaMalloc of 7 bytes", "cudaErrorMemoryAllocation");
    ++calls_;
  }

 private:
  int first_, until_, calls_ = 0;
};

}  // namespace

// A probe that fails is told and left out; when the device does not go on, what was measured before is handed over.
TEST(CudaCalibrate, AFailureLosesNothingThatWasMeasured) {
  FakeRuntime runtime;
  Strategy strategy = in_double({.batch = {.micro = 2}});
  strategy.precision = DType::F32;
  const std::vector<Plan> probes(4, lowered(tiny_mlp(), strategy));
  const auto measured = [&](int first, int until, std::optional<MachineProfile>& kept, std::vector<std::string>& notes) {
    Fails measures(runtime, first, until);
    CalibrateOptions options{.device = "a GPU", .dtypes = {DType::F32}, .largest_product = 16};
    options.measures = &measures;
    options.keep = [&](const MachineProfile& found) { kept = found; };
    return calibrate(probes, options, &notes);
  };
  std::optional<MachineProfile> kept;
  std::vector<std::string> notes;
  const auto whole = measured(1, 99, kept, notes);
  ASSERT_TRUE(whole);
  EXPECT_FALSE(kept);
  EXPECT_EQ(notes, std::vector<std::string>{
                       "the rest of a probe is not measured: cudaMalloc of 7 bytes failed: cudaErrorMemoryAllocation"});
  EXPECT_THROW(measured(99, 1, kept, notes), DeviceError);
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->ops.size(), whole->ops.size());
  EXPECT_EQ(parse_machine_profile(to_json(*kept), "kept").ops, kept->ops);
}

// Products take the algorithms that runs take, and decide on those of which nobody knows.
TEST(CudaCalibrate, ProductsTakeTheAlgorithmsOfRuns) {
  const std::string path = testing::TempDir() + "calibrate-products-" + std::to_string(::getpid()) + ".json";
  FakeSettings two;
  two.product_times = {3000, 1000};  // of what the library names first, and of another
  Watched runtime(two);
  CudaMeasures measures(runtime, {.times = 2}, path);
  Strategy strategy = in_double({.dp = 1, .batch = {.micro = 4}});
  strategy.precision = DType::F32;
  measures.instructions(lowered(tiny_mlp(), strategy), 0, [](const Compute&, Seconds, bool) {});
  measures.products(DType::BF16, 64, {64}, [](const Compute&, Seconds) {});
  const auto forms = static_cast<int>(parse_product_file(read_file(path), path).rows.size());
  EXPECT_GE(forms, 6);  // two layers or more, and the linear layer of 64 by 64, forward and backward
  std::map<int, int> by = runtime.products_by();
  EXPECT_EQ(by[-1], 0);         // nothing is left to the library
  EXPECT_EQ(by[0], 4 * forms);  // when it was decided
  EXPECT_GT(by[1], 4 * forms);
  EXPECT_EQ(runtime.of_few_numbers, 8 * forms);  // only then are operands a constant
  std::filesystem::remove(path);
}

// A fill takes 1000 ns on this runtime, however long the two events do that it is measured with.
TEST(CudaCalibrate, TheTimeOfTimingIsSubtracted) {
  FakeRuntime runtime({.timed_event = 70'000});
  CudaMeasures measures(runtime, {});
  EXPECT_DOUBLE_EQ(measures.start().value, 1e-6);
}

}  // namespace foreshard::gpu::calibrate_test
