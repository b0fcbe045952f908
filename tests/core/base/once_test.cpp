#include "core/base/once.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>
#include <vector>

namespace foreshard::once_test {

TEST(Once, OneOfManyDoesTheWork) {
  Once once;
  int done = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { once.call([&] { ++done; }); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(done, 1);
}

// Work that fails is not done: the next one tries.
TEST(Once, AnExceptionLeavesItUndone) {
  Once once;
  EXPECT_THROW(once.call([] { throw std::runtime_error("no"); }), std::runtime_error);
  int done = 0;
  once.call([&] { ++done; });
  once.call([&] { ++done; });
  EXPECT_EQ(done, 1);
}

}  // namespace foreshard::once_test
