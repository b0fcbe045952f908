// Every kernel against the host backend, in the emulator: several shapes, number formats, thread orders.
#include <gtest/gtest.h>

#include "tests/cuda/kernel_cases.h"

namespace foreshard::gpu {

class Kernels : public testing::TestWithParam<KernelCase> {};

TEST_P(Kernels, EqualTheHost) {
  const KernelCase& tried = GetParam();
  for (const std::uint64_t order : {0, 1, 5}) {
    const Outcome outcome = run_case(tried, {.order = order});
    EXPECT_EQ(outcome.fault, "") << "order " << order;
    EXPECT_LE(outcome.error, tried.tolerance) << "order " << order;
    EXPECT_TRUE(outcome.borders_whole) << "order " << order;
    EXPECT_EQ(outcome.conflicts, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Kernels, testing::ValuesIn(kernel_cases()), [](const auto& info) { return info.param.name; });

}  // namespace foreshard::gpu
