#include "core/base/start_thread.h"

#include <gtest/gtest.h>

namespace foreshard::start_thread_test {

TEST(StartThread, RunsTheWork) {
  int done = 0;
  std::thread first = start_thread([&] { ++done; });
  first.join();
  std::thread second = try_thread([&] { ++done; });
  ASSERT_TRUE(second.joinable());
  second.join();
  EXPECT_EQ(done, 2);
}

// A real refusal: tests/cli/refused_memory_test.cpp.
TEST(StartThread, ARefusalSaysWhatToLookAt) {
  const std::string what = refused_thread(std::system_error(EAGAIN, std::generic_category())).what();
  EXPECT_TRUE(what.starts_with("start of a thread failed: Resource temporarily unavailable")) << what;
  EXPECT_NE(what.find("ulimit -u"), std::string::npos) << what;
}

}  // namespace foreshard::start_thread_test
