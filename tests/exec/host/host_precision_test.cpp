// Float and 16-bit runs of every operator against the double run on the same (rounded) operands; and what every run promises:
// no allocation, no dependence on what the workspace held.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>

#include "exec/arithmetic/host_float16.h"
#include "tests/exec/host_graph.h"

namespace foreshard::host_precision_test {
namespace {

Array in_double(const Array& array, DType dtype) {
  const bool integer = dtype == DType::I64 || dtype == DType::U8;
  return {array.values(), integer ? dtype : DType::F64};
}

// Largest error over all operators, by dtype of the run.
double worst_error(DType compute, std::string& worst_name) {
  double worst = 0;
  const std::vector<GraphCase> narrow_cases = graph_cases(compute), exact_cases = graph_cases(DType::F64);
  for (std::size_t c = 0; c < narrow_cases.size(); ++c) {
    const OpGraph narrow_graph = build_op_graph(narrow_cases[c].model, narrow_cases[c].sharding);
    const OpGraph exact_graph = build_op_graph(exact_cases[c].model, exact_cases[c].sharding);
    for (std::size_t k = 0; k < narrow_graph.kinds.size(); ++k)
      for (std::size_t o = 0; o < narrow_graph.kinds[k].operators.size(); ++o) {
        const LayerGraph &layer = narrow_graph.kinds[k], &exact_layer = exact_graph.kinds[k];
        const Operator& op = layer.operators[o];
        OperatorRun narrow = random_run(layer, op, arguments_of(narrow_cases[c]), 17);
        OperatorRun exact = random_run(exact_layer, exact_layer.operators[o], arguments_of(exact_cases[c]), 17);
        for (std::size_t i = 0; i < op.inputs.size(); ++i)
          exact.inputs[i] = in_double(narrow.inputs[i], exact_layer.values[static_cast<std::size_t>(op.inputs[i])].dtype);
        for (std::size_t w = 0; w < op.weights.size(); ++w) exact.weights[w] = in_double(narrow.weights[w], DType::F64);
        narrow.forward();
        exact.forward();
        const auto note = [&](double error, const std::string& what) {
          if (error > worst) worst = error, worst_name = narrow_cases[c].name + ", " + op.name + ", " + what;
        };
        std::vector<Array> narrow_r, exact_r;
        for (std::size_t y = 0; y < op.outputs.size(); ++y) {
          note(relative_error(narrow.outputs[y], exact.outputs[y]), "output " + std::to_string(y));
          const Value& value = layer.values[static_cast<std::size_t>(op.outputs[y])];
          const bool graded = value.needs_grad && !is_loss(op.op);
          narrow_r.push_back(graded ? random_array(narrow.outputs[y].size(), 60 + y, value.dtype) : Array());
          exact_r.push_back(graded ? in_double(narrow_r.back(), DType::F64) : Array());
        }
        const auto narrow_g = narrow.backward(narrow_r), exact_g = exact.backward(exact_r);
        for (std::size_t i = 0; i < narrow_g.inputs.size(); ++i)
          note(relative_error(narrow_g.inputs[i], exact_g.inputs[i]), "gradient of input " + std::to_string(i));
        for (std::size_t w = 0; w < narrow_g.weights.size(); ++w)
          note(relative_error(narrow_g.weights[w], exact_g.weights[w]), "gradient of weight " + std::to_string(w));
      }
  }
  return worst;
}

// Sums of at most a hundred terms in float: a few tens of units of 6e-8.
TEST(HostPrecision, FloatAgainstDouble) {
  std::string name;
  EXPECT_LT(worst_error(DType::F32, name), 5e-6) << name;
}

// Operands and results are rounded once each, to 8 bits (2^-9 relative) or 11 bits (2^-12); saved results enter the backward
// rounded, and a softmax gradient subtracts numbers of its own size.
TEST(HostPrecision, BFloat16AgainstDouble) {
  std::string name;
  EXPECT_LT(worst_error(DType::BF16, name), 2e-2) << name;
}
TEST(HostPrecision, Float16AgainstDouble) {
  std::string name;
  EXPECT_LT(worst_error(DType::F16, name), 2e-3) << name;
}

// ---- 16-bit numbers ----

TEST(HostFloat16, EveryHalfSurvivesTheWayThroughFloat) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const Float16 half{static_cast<std::uint16_t>(bits)};
    const float value = to_float(half);
    const std::uint32_t exponent = (bits >> 10) & 31, fraction = bits & 1023;
    if (exponent == 31 && fraction != 0) {
      EXPECT_TRUE(std::isnan(value));
      EXPECT_TRUE(std::isnan(to_float(to_float16(value))));
      continue;
    }
    // IEEE 754: subnormals are fraction 2^-24, normals (1024 + fraction) 2^(exponent - 25).
    const double magnitude = exponent == 0    ? fraction * 0x1p-24
                             : exponent == 31 ? INFINITY
                                              : std::ldexp(1024.0 + fraction, static_cast<int>(exponent) - 25);
    ASSERT_EQ(value, static_cast<float>(bits & 0x8000 ? -magnitude : magnitude)) << bits;
    ASSERT_EQ(to_float16(value).bits, bits);
  }
}

TEST(HostFloat16, HalfwayGoesToTheEvenNeighbour) {
  for (std::uint32_t bits = 0; bits < 0x7BFF; ++bits) {
    const float low = to_float(Float16{static_cast<std::uint16_t>(bits)});
    const float high = to_float(Float16{static_cast<std::uint16_t>(bits + 1)});
    const float middle = (low + high) / 2;  // exact: one more bit
    const std::uint32_t even = bits % 2 == 0 ? bits : bits + 1;
    ASSERT_EQ(to_float16(middle).bits, even) << bits;
    ASSERT_EQ(to_float16(std::nextafter(middle, 0.0f)).bits, bits);
    ASSERT_EQ(to_float16(std::nextafter(middle, INFINITY)).bits, bits + 1);
  }
  EXPECT_EQ(to_float16(65519.0f).bits, 0x7BFF);  // below the middle of 65504 and 65536
  EXPECT_EQ(to_float16(65520.0f).bits, 0x7C00);
  EXPECT_EQ(to_float16(-1e9f).bits, 0xFC00);
}

TEST(HostFloat16, BFloat16IsTheUpperHalfRoundedToEven) {
  for (std::uint32_t bits = 0; bits < 0x7F7F; ++bits) {
    const float low = to_float(BFloat16{static_cast<std::uint16_t>(bits)});
    const float high = to_float(BFloat16{static_cast<std::uint16_t>(bits + 1)});
    const float middle = low + (high - low) / 2;
    ASSERT_EQ(to_bfloat16(low).bits, bits);
    ASSERT_EQ(to_bfloat16(middle).bits, bits % 2 == 0 ? bits : bits + 1);
    ASSERT_EQ(to_bfloat16(std::nextafter(middle, INFINITY)).bits, bits + 1);
  }
  EXPECT_TRUE(std::isnan(to_float(to_bfloat16(std::bit_cast<float>(0x7F800001u)))));
  EXPECT_EQ(to_float(to_bfloat16(INFINITY)), INFINITY);
}

}  // namespace
}  // namespace foreshard::host_precision_test
