// Products of 8 bits: the kernels that make the factors, code by code, and what the library is told.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "core/base/float8.h"
#include "core/op/eight_bit_factors.h"
#include "exec/cuda/gpu_memory.h"
#include "exec/cuda_checks/kernel_cases.h"
#include "exec/cuda_ops/gpu_kernel.h"
#include "tests/cuda/bent.h"
#include "tests/cuda/fake_training.h"
#include "tests/how_many.h"

namespace foreshard::gpu::eight_bits_test {

static std::vector<KernelCase> eighth_cases() {
  std::vector<KernelCase> all;
  for (KernelCase& at : kernel_cases())
    if (at.name.starts_with("eighth")) all.push_back(std::move(at));
  return all;
}

// Sizes of whole 16s go to the library in 8 bits, others, and all on a GPU that has none, as the numbers that the codes stand for.
TEST(EightBits, AreMultipliedByTheLibraryWhereItCan) {
  int cases = 0;
  for (const KernelCase& tried : eighth_cases()) {
    FakeRuntime runtime, without({.eight_bits = false});
    EXPECT_TRUE(run_case(tried, runtime).right(tried)) << tried.name;
    EXPECT_EQ(runtime.eight_bit_products() > 0, tried.name.find("_odd") == std::string::npos) << tried.name;
    EXPECT_TRUE(run_case(tried, without).right(tried)) << tried.name;
    EXPECT_EQ(without.eight_bit_products(), 0);
    ++cases;
  }
  EXPECT_GE(cases, 19);
}

TEST(EightBits, EveryValueThatIsWrongIsSeen) {
  const Bend<Multiply> bends[] = {{"the scale and not its inverse", [](Multiply& w) { w.a.scale -= 4; }},
                                  {"the other format", [](Multiply& w) { w.b.format = Float8::E5M2; }},
                                  {"the format of values for gradients", [](Multiply& w) { w.a.format = Float8::E4M3; }},
                                  {"b as it lies", [](Multiply& w) { w.b.transposed = false; }},
                                  {"a transposed", [](Multiply& w) { w.a.transposed = true; }},
                                  {"rows of b too close", [](Multiply& w) { w.b.row -= 16; }},
                                  {"a one code further", [](Multiply& w) { ++w.a.data; }},
                                  {"the next row of b", [](Multiply& w) { w.b.data += w.b.row; }},
                                  {"no scale", [](Multiply& w) { w.b.scale = nullptr; }}};
  for (const Bend<Multiply>& bend : bends) {
    int seen = 0;
    for (const KernelCase& tried : eighth_cases()) {
      if (tried.name.find("eighth_parts") == std::string::npos) continue;
      BentProducts runtime(bend, true);
      seen += run_case(tried, runtime).right(tried) ? 0 : 1;
    }
    EXPECT_GE(seen, 1) << bend.name;
  }
}

// Each of the 256 codes, the middles between them and what is beyond, by the kernel and by the host: the same codes, also transposed.
TEST(EightBits, KernelsMakeTheCodesOfTheHost) {
  for (const Float8 format : {Float8::E4M3, Float8::E5M2}) {
    std::vector<float> numbers;
    for (int code = 0; code < 256; ++code) {
      const float value = float8_value(static_cast<std::uint8_t>(code), format);
      if (!std::isfinite(value)) continue;
      const float next = float8_value(
          static_cast<std::uint8_t>(code % 128 == static_cast<int>(largest_code(format)) ? code : code + 1), format);
      for (const float x : {value, (value + next) / 2, value * 1.01F}) numbers.push_back(x);
    }
    while (numbers.size() % 37 != 0) numbers.push_back(-1e-20F);
    const auto count = static_cast<std::int64_t>(numbers.size()), rows = std::int64_t{37};
    FakeRuntime runtime;
    GpuMemory memory(runtime);
    Stream* stream = runtime.open_stream(false);
    std::byte *x = memory.allocate(Space::Device, {4 * count}), *y = memory.allocate(Space::Device, {count}),
              *scale = memory.allocate(Space::Device, {8});
    runtime.copy(x, reinterpret_cast<const std::byte*>(numbers.data()), {4 * count}, stream);
    const Launcher on(runtime, stream, nullptr);
    const View from = {.data = x, .elements = count, .type = Type::F32};
    on.launch(KernelId::max_magnitude, 1, 1, 256,
              MaxMagnitudeArgs{.x = from,
                               .out = scratch_array(scale, 2, Type::F32),
                               .count = count,
                               .per_block = count,
                               .last = true,
                               .gradient = format == Float8::E5M2});
    EightBitsArgs args = {.x = from, .y = scratch_array(y, count, Type::U8), .rows = rows, .columns = count / rows};
    args.scale = {.data = scale, .elements = 2, .type = Type::F32};
    args.gradient = format == Float8::E5M2;
    for (const bool transposed : {false, true}) {
      args.transposed = transposed;
      if (transposed)
        on.launch(KernelId::eight_bits, ceil_div(args.columns, 32), ceil_div(rows, 32), 256, args);
      else
        on.elements(KernelId::eight_bits, count, args);
      runtime.synchronize(stream);
      float found[2] = {};
      std::memcpy(found, scale, sizeof found);
      const float wanted = float8_scale(*std::max_element(numbers.begin(), numbers.end()), format);
      EXPECT_EQ(found[0], wanted);
      EXPECT_EQ(found[1], 1 / wanted);
      for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t at = transposed ? i % args.columns * rows + i / args.columns : i;
        ASSERT_EQ(static_cast<int>(y[at]), float8_code(numbers[static_cast<std::size_t>(i)] * wanted, format))
            << i << transposed;
      }
    }
    runtime.close_stream(stream);
  }
}

static Strategy trained_in_eight_bits(Strategy strategy) {
  strategy.dp = std::max(1, strategy.dp), strategy.batch.micro = 2, strategy.batch.global = 8;
  strategy.precision = DType::F8, strategy.attention = AttentionKernel::Flash, strategy.dropout = 0.1;
  return strategy;
}

static Execution trained(const Plan& plan, const FakeSettings& settings, int steps, std::int64_t& products) {
  FakeRuntime runtime(settings);
  Execution done = run(plan, on_fake(runtime, steps));
  EXPECT_EQ(runtime.allocated(), 0);
  for (const std::string& conflict : runtime.conflicts()) ADD_FAILURE() << conflict;
  products = runtime.eight_bit_products();
  return done;
}

// --precision fp8 through the backend: as on the host, but for what kernels of 16 bits round otherwise; and the same bits whether the library multiplies codes
// or the numbers that they stand for, in the plan's memory or in scratch.
TEST(EightBits, TrainingsAreThoseOfTheHost) {
  const Model gpt = two_layers(tiny_gpt()), llama = two_layers(tiny_llama());
  const std::vector<std::pair<Model, Strategy>> ways = {
      {gpt, {}}, {llama, {.dp = 2, .zero = {.stage = 3}}}, {gpt, {.tp = 2, .sequence_parallel = true}}, {llama, {.pp = 2}}};
  for (const auto& [model, way] : some_of(ways, 2)) {
    const Strategy strategy = trained_in_eight_bits(way);
    SCOPED_TRACE(model.name + " " + name_of(strategy));
    Plan plan = lowered(model, strategy);
    std::int64_t codes = 0, numbers = 0, elsewhere = 0;
    const Execution host = run(plan, fake_training(1)), fake = trained(plan, {}, 1, codes),
                    without = trained(plan, {.eight_bits = false}, 1, numbers);
    EXPECT_GT(codes, 0);
    EXPECT_EQ(numbers, 0);
    const Difference from_host = difference(fake, host), from_numbers = difference(fake, without);
    EXPECT_LE(from_host.loss, 1e-3);
    EXPECT_LE(from_host.gradients, 0.08)
        << from_host.worst;  // codes are an eighth apart: a last bit may round to the other neighbour
    EXPECT_LE(from_numbers.largest(), 1e-6) << from_numbers.worst;
    if (way.dp * way.tp * way.pp > 1) continue;
    for (Role& role : plan.roles)  // a place that is too small
      for (Buffer& buffer : role.buffers)
        if (buffer.name.ends_with(".factors.0")) buffer.bytes = {256};
    EXPECT_EQ(difference(trained(plan, {}, 1, elsewhere), fake).largest(), 0);
    EXPECT_EQ(elsewhere, codes);
  }
}

// Nothing but the partial sums of a bias gradient is needed beside the plan's memory, where the library multiplies codes.
TEST(EightBits, FactorsLieWhereThePlanSays) {
  FakeRuntime runtime, without({.eight_bits = false});
  for (const std::int64_t k : {32, 40})
    for (const Phase phase : {Phase::Forward, Phase::InputGrad, Phase::WeightGrad}) {
      const Compute what = {.op = ops::MatMul{}, .phase = phase, .shapes = {{{1, 48, 64, k}, DType::F8}}};
      std::byte* const memory = reinterpret_cast<std::byte*>(std::uintptr_t{1} << 20U);
      const auto array = [&](std::int64_t elements, DType type = DType::BF16) { return Operand{memory, elements, type}; };
      const Operand x = array(48 * k), w = array(64 * k), y = array(48 * 64);
      const std::int64_t bytes = eight_bit_memory(what.shapes[0], phase, {}).value;
      const std::vector<Operand> reads = phase == Phase::Forward     ? std::vector{x, w}
                                         : phase == Phase::InputGrad ? std::vector{y, w}
                                                                     : std::vector{y, x};
      const Operand& made = phase == Phase::Forward ? y : phase == Phase::InputGrad ? x : w;
      const auto scratch = [&](std::int64_t place, Runtime& library) {
        return make_kernel(what, reads, std::vector{made, array(place, DType::U8)}, {&library}).scratch.value;
      };
      EXPECT_EQ(scratch(bytes, runtime), 0) << k;
      EXPECT_GT(scratch(bytes - 1, runtime), 0) << k;
      if (k % 16 == 0) {
        EXPECT_GT(scratch(bytes, without), 0);  // numbers, where the plan has place for codes
      }
    }
}

// What is not finite stays so: an overflow of gradients is seen by who looks for it.
TEST(EightBits, WhatIsNotFiniteStaysSo) {
  for (const float bad : {INFINITY, -INFINITY, NAN})
    for (const bool library : {false, true}) {
      KernelCase tried = eighth_cases().front();
      ASSERT_EQ(tried.name, "eighth");
      tried.reads[0].set(5, bad);
      FakeRuntime runtime({.eight_bits = library});
      EXPECT_TRUE(std::isinf(run_case(tried, runtime).error));  // no finite number came out where the host has none
      std::vector<StoredArray> writes = tried.writes;
      run_on_host(tried.what, tried.reads, writes, tried.arguments);
      EXPECT_FALSE(std::isfinite(writes[0].at(0)));
    }
}

}  // namespace foreshard::gpu::eight_bits_test
