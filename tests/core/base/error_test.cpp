#include "core/base/error.h"

#include <gtest/gtest.h>

#include <string>

namespace foreshard::error_test {

TEST(Errors, AreOneLineWhateverTheFileHas) {
  const Error error("a\n.json", "key\nof two lines", "\"one\ntwo\"", "a name");
  EXPECT_STREQ(error.what(), "a\\x0a.json: key\\x0aof two lines: found \"one\\x0atwo\", expected a name");
}

TEST(Errors, ShowTheBeginningOfALongValue) {
  const std::string what = Error("a.json", std::string(10'000, 'k'), std::string(10'000, 'v'), "a number").what();
  EXPECT_EQ(what, "a.json: " + std::string(500, 'k') + "...: found " + std::string(500, 'v') + "..., expected a number");
}

TEST(Errors, CutNoLetterInTwo) {
  std::string text(499, 'v');
  text += "\u00e4 and more";  // two bytes, of which the first is the 500th
  const std::string what = Error("a.json", "", text, "").what();
  EXPECT_EQ(what, "a.json: found " + std::string(499, 'v') + "...");
}

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
