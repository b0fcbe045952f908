// Measured rates of products against the shipped tables themselves: exact at their points, continuous between, formulas outside; shapes and
// GPUs that are left out.
#include "strategy/kernels/kernel_rates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>

#include "core/base/error.h"
#include "strategy/kernels/machine_constants.h"
#include "strategy/kernels/op_cost.h"

namespace foreshard::kernel_rates_test {
namespace {

// Calls `visit` with each measured point of a table.
void each_point(const Gpu& gpu, const ProductRates& rates,
                const std::function<void(const Gemm&, Seconds, std::size_t)>& visit) {
  std::size_t index = 0;
  for (std::size_t m = 0; m < rates.m.size(); ++m)
    for (std::size_t n = 0; n < rates.n.size(); ++n)
      for (std::size_t k = 0; k < rates.k.size(); ++k, ++index)
        if (const Seconds time = measured_product(gpu, rates, m, n, k); time.value > 0)
          visit({1, rates.m[m], rates.n[n], rates.k[k]}, time, index);
}

double predicted(const KernelRates& rates, const Gpu& gpu, const Gemm& gemm, DType type) {
  return product_formula(gpu, gemm, type).value * rates.product_ratio(gpu, gemm, type);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

TEST(KernelRates, ExactAtMeasuredPoints) {
  int points = 0;
  for (const GpuRates& of : shipped_kernel_rates()) {
    const Gpu gpu = load_gpu(of.gpu);
    for (const ProductRates& table : of.products)
      each_point(gpu, table, [&](const Gemm& gemm, Seconds time, std::size_t) {
        ++points;
        EXPECT_NEAR(predicted(kernel_rates(), gpu, gemm, table.format) / time.value, 1, 1e-9) << of.gpu;
      });
  }
  EXPECT_GT(points, 8000);
}

// A short run of a product, as the tables have it, is what op_pieces says without the power limit of long runs.
TEST(KernelRates, CostsOfComputesUseThem) {
  for (const char* name : {"a100-80", "h200", "gb200", "l40s"}) {
    const Gpu gpu = load_gpu(name);
    const auto of = std::ranges::find(shipped_kernel_rates(), name, &GpuRates::gpu);
    ASSERT_NE(of, shipped_kernel_rates().end());
    each_point(gpu, of->products.front(), [&](const Gemm& gemm, Seconds time, std::size_t) {
      const Compute what = {.op = ops::MatMul{},
                            .phase = Phase::Forward,
                            .shapes = {{.dims = {1, gemm.m, gemm.n, gemm.k}, .dtype = DType::BF16}},
                            .flops = {2.0 * static_cast<double>(gemm.m * gemm.n) * static_cast<double>(gemm.k)},
                            .traffic = {2 * (gemm.m * gemm.k + gemm.n * gemm.k + gemm.m * gemm.n)}};
      OpTime pieces = op_pieces(gpu, what);
      pieces.arithmetic = pieces.arithmetic * sustained_share(gpu);
      EXPECT_NEAR((pieces.total() - gpu.launch_overhead).value / time.value, 1, 1e-9) << name;
    });
  }
}

// Every fifth point of every table is left out and predicted from the others.
TEST(KernelRates, ShapesLeftOut) {
  for (const GpuRates& of : shipped_kernel_rates()) {
    const Gpu gpu = load_gpu(of.gpu);
    for (const ProductRates& table : of.products) {
      std::vector<double> errors;
      for (const std::size_t first : {std::size_t{0}, std::size_t{2}}) {
        GpuRates thinned{.gpu = of.gpu, .products = {table}};
        for (std::size_t i = first; i < table.teraflops.size(); i += 5) thinned.products.front().teraflops[i] = 0;
        const KernelRates rates({thinned});
        each_point(gpu, table, [&](const Gemm& gemm, Seconds time, std::size_t index) {
          if (index % 5 == first) errors.push_back(std::abs(predicted(rates, gpu, gemm, table.format) / time.value - 1));
        });
      }
      std::printf("  %-13s %-4s %4zu shapes left out: median %4.1f %%\n", of.gpu.c_str(), name_of(table.format), errors.size(),
                  100 * median(errors));
      EXPECT_LT(median(errors), 0.05) << of.gpu;
    }
  }
}

// Every GPU is predicted from the tables of the others: of its kind, or of all.
TEST(KernelRates, GpusLeftOut) {
  for (const GpuRates& of : shipped_kernel_rates()) {
    std::vector<GpuRates> others;
    std::ranges::copy_if(shipped_kernel_rates(), std::back_inserter(others),
                         [&](const GpuRates& other) { return other.gpu != of.gpu; });
    const KernelRates rates(others);
    const Gpu gpu = load_gpu(of.gpu);
    for (const ProductRates& table : of.products) {
      std::vector<double> errors, signed_errors;
      each_point(gpu, table, [&](const Gemm& gemm, Seconds time, std::size_t) {
        signed_errors.push_back(predicted(rates, gpu, gemm, table.format) / time.value - 1);
        errors.push_back(std::abs(signed_errors.back()));
      });
      const RateOrigin origin = rates.product_origin(gpu, table.format);
      std::printf("  %-13s %-4s from %zu GPUs: median %4.1f %%, signed %+5.1f %%, spread %4.1f %%\n", of.gpu.c_str(),
                  name_of(table.format), origin.gpus.size(), 100 * median(errors), 100 * median(signed_errors),
                  100 * origin.spread);
      EXPECT_FALSE(origin.own);
      EXPECT_LT(median(errors), 0.12) << of.gpu;
    }
  }
}

// GPUs without a table have the formula alone, whose ceiling for NVFP4 is a median of these tables (MachineConstants::fp4_share).
TEST(KernelRates, TheFormulaAloneForNvfp4) {
  int tables = 0;
  for (const GpuRates& of : shipped_kernel_rates())
    for (const ProductRates& table : of.products) {
      if (table.format != DType::F4) continue;
      const Gpu gpu = load_gpu(of.gpu);
      std::vector<double> errors;
      each_point(gpu, table, [&](const Gemm& gemm, Seconds time, std::size_t) {
        errors.push_back(product_formula(gpu, gemm, DType::F4).value / time.value - 1);
      });
      std::printf("  %-13s nvfp4, formula alone: median %+5.1f %%\n", of.gpu.c_str(), 100 * median(errors));
      EXPECT_NEAR(median(errors), 0, 0.04) << of.gpu;
      ++tables;
    }
  EXPECT_EQ(tables, 4);
}

// Small steps of a size change the ratio by little, and beyond the grid it stays that of its border, so that times rise with the formula's.
TEST(KernelRates, ContinuousAndConstantBeyondTheGrid) {
  const Gpu gpu = load_gpu("h100-80");
  for (const DType type : {DType::BF16, DType::F8})
    for (std::int64_t size = 1024; size < 65536; size += size / 64) {
      const auto ratio = [&](std::int64_t k) { return kernel_rates().product_ratio(gpu, {1, 4096, 5000, k}, type); };
      EXPECT_NEAR(ratio(size + size / 64) / ratio(size), 1, 0.05) << size;
    }
  const auto ratio = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
    return kernel_rates().product_ratio(gpu, {1, m, n, k}, DType::BF16);
  };
  EXPECT_DOUBLE_EQ(ratio(16384, 4096, 8192), ratio(1 << 20, 4096, 8192));
  EXPECT_DOUBLE_EQ(ratio(4096, 65536, 8192), ratio(4096, 1 << 18, 8192));
  EXPECT_DOUBLE_EQ(ratio(4096, 4096, 1024), ratio(4096, 4096, 16));
  EXPECT_NE(ratio(4096, 4096, 8192), ratio(4096, 4096, 7000));
}

// An A800 has the kernels of an A100, a GB300 its own; a V100 has no relatives and gets the mean of all; fp32 has no table. The power limit
// of a GeForce does not bind, that of its relatives does.
TEST(KernelRates, OriginOfTheRatio) {
  const Gemm gemm = {1, 4096, 4096, 4096};
  const auto origin = [&](const char* name, DType type = DType::BF16) {
    return kernel_rates().product_origin(load_gpu(name), type);
  };
  EXPECT_TRUE(origin("gb300").own);
  EXPECT_EQ(origin("gb300").spread, 0);
  EXPECT_EQ(origin("a800-80").gpus, std::vector<std::string>{"a100-80"});
  EXPECT_FALSE(origin("a800-80").own);
  EXPECT_EQ(origin("b300").gpus, (std::vector<std::string>{"b200", "gb200", "gb300"}));
  EXPECT_GT(origin("b300").spread, 0.02);
  EXPECT_LT(origin("b300").spread, 0.15);
  EXPECT_GT(origin("a800-80").spread, 0.05);  // of all: one relative says nothing about its own
  EXPECT_EQ(origin("rtx-6000-ada").gpus, (std::vector<std::string>{"l40s", "rtx-pro-6000"}));
  for (const char* geforce : {"rtx-4090", "rtx-5060-ti", "rtx-5090"}) {
    EXPECT_TRUE(origin(geforce).gpus.empty()) << geforce;
    EXPECT_GT(origin(geforce).spread, 0.05) << geforce;
    EXPECT_EQ(kernel_rates().product_ratio(load_gpu(geforce), gemm, DType::F8), 1) << geforce;
  }
  EXPECT_EQ(origin("v100-32").gpus.size(), 8u);
  EXPECT_EQ(origin("a100-80", DType::F8).gpus.size(), 7u);
  EXPECT_TRUE(origin("h100-80", DType::F32).gpus.empty());
  EXPECT_EQ(kernel_rates().product_ratio(load_gpu("h100-80"), gemm, DType::F32), 1);
  const double mean = (std::log(kernel_rates().product_ratio(load_gpu("b200"), gemm, DType::BF16)) +
                       std::log(kernel_rates().product_ratio(load_gpu("gb200"), gemm, DType::BF16)) +
                       std::log(kernel_rates().product_ratio(load_gpu("gb300"), gemm, DType::BF16))) /
                      3;
  EXPECT_NEAR(kernel_rates().product_ratio(load_gpu("b300"), gemm, DType::BF16), std::exp(mean), 1e-12);
}

// The benchmark's overhead is taken off: 100 us measured, less 2.5 us of the launch, 8 us, and 5 bytes for each of 1024 x 2048 inputs and 2
// for each of 1024 x 4096 results at 0.85 of 8 TB/s, 2.7756 us.
TEST(KernelRates, OverheadIsTakenOff) {
  const Gpu gpu = load_gpu("gb300");
  const ProductRates rates{.format = DType::F4,
                           .m = {1024},
                           .n = {4096},
                           .k = {2048},
                           .teraflops = {171.79869184},
                           .quantisation = {8e-6},
                           .quantisation_bytes = 5,
                           .result_bytes = 2};
  EXPECT_NEAR(measured_product(gpu, rates, 0, 0, 0).value, 86.7244e-6, 1e-10);
}

TEST(KernelRates, RefusesBadTables) {
  const auto table = [](const std::string& body) {
    return R"({"gpu": "a100-80", "source": "x", "products": {"bf16": {"kernel": "y", )" + body + "}}}";
  };
  const auto parse = [&](const std::string& body) { return parse_gpu_rates(table(body), "rates.json"); };
  EXPECT_EQ(parse(R"("m": [1], "n": [2], "k": [3, 4], "teraflops": [[5, 0]])").products.front().teraflops,
            (std::vector<double>{5, 0}));
  EXPECT_THROW(parse(R"("m": [1], "n": [2], "k": [4, 3], "teraflops": [[5, 6]])"), Error);
  EXPECT_THROW(parse(R"("m": [1], "n": [2], "k": [3, 4], "teraflops": [[5]])"), Error);
  EXPECT_THROW(parse(R"("m": [1], "n": [2, 3], "k": [4], "teraflops": [[5]])"), Error);
  EXPECT_THROW(parse(R"("m": [], "n": [2], "k": [4], "teraflops": [])"), Error);
  EXPECT_THROW(parse(R"("m": [1], "n": [2], "k": [4], "teraflops": [[-5]])"), Error);
  EXPECT_EQ(parse(R"("result_bytes": 2, "m": [1], "n": [2], "k": [4], "teraflops": [[5]])").products.front().result_bytes, 2);
  EXPECT_THROW(parse(R"("result_bytes": -2, "m": [1], "n": [2], "k": [4], "teraflops": [[5]])"), Error);
}

}  // namespace
}  // namespace foreshard::kernel_rates_test
