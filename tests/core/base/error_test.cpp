#include "core/base/error.h"

#include <gtest/gtest.h>

#include <string>

namespace foreshard::error_test {

// A bug of ours can be caught and told; it is neither wrong input nor a failed device.
TEST(Bug, SaysTheConditionAndItsPlace) {
  const int one = 1;
  try {
    FS_ASSERT(one == 2);
    FAIL() << "goes on behind a condition that is false";
  } catch (const Error&) {
    FAIL() << "taken for wrong input";
  } catch (const Bug& bug) {
    const std::string what = bug.what();
    EXPECT_TRUE(what.starts_with("one == 2 is false (")) << what;
    EXPECT_NE(what.find("error_test.cpp:"), std::string::npos) << what;
  }
  EXPECT_NO_THROW(FS_ASSERT(one == 1));
}

}  // namespace foreshard::error_test
