// Every kernel against the host backend, in the emulator: several shapes, number formats, thread orders.
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "exec/cuda_checks/kernel_cases.h"
#include "tests/cuda/fake_runtime.h"
#include "tests/how_many.h"

namespace foreshard::gpu {

void PrintTo(const KernelCase& tried, std::ostream* out) { *out << tried.name; }

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

// Nothing but speed would tell that a kernel takes numbers one by one where it could take 16 bytes at a time.
TEST(KernelCases, ThoseOfWholePacksTakeThem) {
  int tried_cases = 0;
  for (const KernelCase& tried : kernel_cases()) {
    if (tried.name.find("_packed_") == std::string::npos) continue;
    std::int64_t packs = 0, elements = 0;
    FakeRuntime runtime({.kernels = {.packs = &packs}});
    static_cast<void>(run_case(tried, runtime));
    // Nearly all of the largest array, eight numbers at a time; rows and columns of other ranks are not touched.
    for (const auto& arrays : {tried.reads, tried.writes})
      for (const StoredArray& array : arrays) elements = std::max(elements, array.size());
    EXPECT_GE(packs, elements / 20) << tried.name;
    ++tried_cases;
  }
  EXPECT_GE(tried_cases, 100);
}

// A kernel that no case reaches is one that no test compares.
TEST(KernelCases, ReachEveryKernelButTheSumsOverRanks) {
  if (!all_of_it()) GTEST_SKIP() << "runs all cases once more: scripts/long_checks.sh tests";
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
