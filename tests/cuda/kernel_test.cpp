// Every kernel against the host backend, in the emulator: several shapes, number formats, thread orders.
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "exec/cuda/kernel_cases.h"
#include "tests/cuda/fake_runtime.h"

namespace foreshard::gpu {

class Kernels : public testing::TestWithParam<KernelCase> {};

TEST_P(Kernels, EqualTheHost) {
  const KernelCase& tried = GetParam();
  for (const std::uint64_t order : {0, 1, 5}) {
    FakeRuntime runtime({.kernels = {.order = order}});
    const Outcome outcome = run_case(tried, runtime);
    EXPECT_EQ(outcome.fault, "") << "order " << order;
    EXPECT_LE(outcome.error, tried.tolerance) << "order " << order;
    EXPECT_TRUE(outcome.borders_whole) << "order " << order;
    EXPECT_TRUE(runtime.conflicts().empty());
  }
}

INSTANTIATE_TEST_SUITE_P(All, Kernels, testing::ValuesIn(kernel_cases()), [](const auto& info) { return info.param.name; });

// Keys of other ranks are not what an attention of this one's queries reads: refused, causal or not, rather than wrong.
TEST(Kernels, AttentionOfContextParallelRanksIsRefused) {
  int tried = 0;
  for (KernelCase at : kernel_cases()) {
    if (at.what.op != Op::Attention) continue;
    at.what.attributes += " cp=2";
    FakeRuntime runtime;
    EXPECT_THROW(static_cast<void>(run_case(at, runtime)), Error) << at.name;
    ++tried;
  }
  EXPECT_GE(tried, 5);
}

// A kernel that no case reaches is one that no test compares.
TEST(KernelCases, ReachEveryKernelButTheSumsOverRanks) {
  std::map<KernelId, int> launches;
  for (const KernelCase& tried : kernel_cases()) {
    FakeRuntime runtime;
    static_cast<void>(run_case(tried, runtime));
    for (const auto& [kernel, count] : runtime.launches()) launches[kernel] += count;
  }
  for (int k = 0; k < kKernels; ++k)
    EXPECT_EQ(launches.contains(static_cast<KernelId>(k)), static_cast<KernelId>(k) != KernelId::reduce_peers)
        << name_of(static_cast<KernelId>(k));
}

}  // namespace foreshard::gpu
