// Mistakes in kernels are seen: each barrier is left out, each array is given one element late.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "exec/cuda_checks/kernel_cases.h"
#include "tests/cuda/fake_runtime.h"
#include "tests/how_many.h"

namespace foreshard::gpu::kernel_mutation_test {

static bool right(const KernelCase& tried, const emulator::Settings& settings, int shifted = -1) {
  FakeRuntime runtime({.kernels = settings, .shifted_view = shifted});
  return run_case(tried, runtime).right(tried);
}

static std::vector<std::string> barriers_of(const KernelCase& tried) {
  std::vector<std::string> barriers;
  static_cast<void>(right(tried, {.barriers = &barriers}));
  return barriers;
}

// A barrier that no case needs would be one that no test can miss.
TEST(KernelMutations, EveryBarrierIsMissedInEveryOrder) {
  std::vector<std::string> all, missed;
  for (const KernelCase& tried : kernel_cases())
    for (const std::string& barrier : barriers_of(tried)) {
      if (std::find(all.begin(), all.end(), barrier) == all.end()) all.push_back(barrier);
      if (std::find(missed.begin(), missed.end(), barrier) != missed.end()) continue;
      bool seen = true;
      for (const std::uint64_t order : some_of<std::uint64_t>({0, 1, 2, 3}, 1))
        seen = seen && !right(tried, {.order = order, .no_barrier = barrier});
      if (seen) missed.push_back(barrier);
    }
  EXPECT_GE(all.size(), 11U);
  for (const std::string& barrier : all)
    EXPECT_TRUE(std::find(missed.begin(), missed.end(), barrier) != missed.end()) << barrier << " is not needed by any case";
}

// What comes out tells of it too, without the emulator's account of shared memory, in some order.
TEST(KernelMutations, AMissingBarrierChangesWhatComesOut) {
  const std::vector<KernelCase> cases = kernel_cases();
  const auto flash =
      std::find_if(cases.begin(), cases.end(), [](const KernelCase& c) { return c.name == "attention_flash64_all"; });
  ASSERT_NE(flash, cases.end());
  for (const std::string& barrier : barriers_of(*flash)) {
    int wrong = 0;
    for (std::uint64_t order = 0; order < 6; ++order)
      wrong += right(*flash, {.order = order, .no_barrier = barrier, .checks_sharing = false}) ? 0 : 1;
    EXPECT_GE(wrong, 1) << barrier;
  }
}

TEST(KernelMutations, AnArrayOneElementLateIsSeen) {
  int tried_arrays = 0;
  std::map<KernelId, int> cases_of;
  const int enough = how_many(1, 3);  // cases of each kernel
  for (const KernelCase& tried : kernel_cases()) {
    if (tried.tolerance == 0) continue;  // those do nothing with their operands, or the same with what lies beside them
    FakeRuntime whole;
    static_cast<void>(run_case(tried, whole));
    bool further = false;
    for (const auto& [kernel, count] : whole.launches()) further = ++cases_of[kernel] <= enough || further;
    if (!further) continue;
    const int views = whole.views();
    for (int view = tried_arrays % how_many(6, 1); view < views; view += how_many(6, 1), ++tried_arrays)
      EXPECT_FALSE(right(tried, {}, view)) << tried.name << ": array " << view << " of " << views;
  }
  EXPECT_GE(tried_arrays, how_many(20, 250));
}

}  // namespace foreshard::gpu::kernel_mutation_test
