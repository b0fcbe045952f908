#include "cli/program/failure.h"

#include <gtest/gtest.h>

#include <new>
#include <sstream>
#include <system_error>
#include <thread>

#include "cli/program/shell_words.h"
#include "core/base/error.h"

namespace foreshard::failure_test {

namespace {

struct Told {
  ExitCode code = ExitCode::Ok;
  std::string text = {};
};

template <class Thrown>
Told told(const Thrown& thrown) {
  std::ostringstream err;
  try {
    throw thrown;
  } catch (...) {
    const ExitCode code = tell_failure({"simulate", "--set", "model.name=a b"}, err);
    return {code, err.str()};
  }
}

}  // namespace

TEST(Failure, OneSentenceForEachKind) {
  const Told wrong = told(Error("a.json", "layers", "0", "1 or more"));
  EXPECT_EQ(wrong.code, ExitCode::WrongInput);
  EXPECT_EQ(wrong.text, "foreshard: a.json: layers: found 0, expected 1 or more\n");
  const Told device = told(DeviceError("open", "5"));
  EXPECT_EQ(device.code, ExitCode::DeviceFailure);
  EXPECT_EQ(device.text, "foreshard: open failed: 5\n");
  const Told bug = told(Bug("a == b is false (here.cpp:1)"));
  EXPECT_EQ(bug.code, ExitCode::Bug);
  EXPECT_EQ(
      bug.text,
      "foreshard: internal error: a == b is false (here.cpp:1); please report it with this command: foreshard simulate --set "
      "'model.name=a b'\n");
  EXPECT_EQ(told(std::out_of_range("at")).code, ExitCode::Bug);
  EXPECT_EQ(told(7).code, ExitCode::Bug);
}

// What the language and its library throw where the system has no more to give is a failure of the machine, not a bug.
TEST(Failure, NoMemoryAndNoThreads) {
  const Told memory = told(std::bad_alloc());
  EXPECT_EQ(memory.code, ExitCode::DeviceFailure);
  EXPECT_TRUE(memory.text.starts_with("foreshard: out of memory: an allocation was refused when the process had "))
      << memory.text;
  EXPECT_EQ(memory.text.find(" 0 MiB"), std::string::npos) << memory.text;
  EXPECT_EQ(told(std::system_error(EAGAIN, std::generic_category())).code, ExitCode::DeviceFailure);
}

// A thread that throws ends the program in a sentence as well, with the exit code of its kind.
TEST(FailureDeathTest, WhatNobodyCatches) {
  const auto thrown_nowhere = [](auto problem) {
    end_uncaught_with_a_sentence();
    std::thread([&] { throw problem; }).join();
  };
  EXPECT_EXIT(thrown_nowhere(std::bad_alloc()), testing::ExitedWithCode(3), "^foreshard: out of memory: ");
  EXPECT_EXIT(thrown_nowhere(Bug("a is false")), testing::ExitedWithCode(70),
              "^foreshard: internal error: a is false; please report it");
}

TEST(ShellWords, AsAShellReadsThem) {
  EXPECT_EQ(shell_line({"foreshard", "--set", "strategy.tp=2"}), "foreshard --set strategy.tp=2");
  EXPECT_EQ(shell_line({"a b", "", "it's", "$HOME"}), "'a b' '' 'it'\\''s' '$HOME'");
  const Arguments arguments({{"FILE", {"a.csv", "b c.csv"}}, {"--json", {"true"}}, {"--svg", {"x.svg"}}});
  EXPECT_EQ(shell_line("validate", {{.name = "FILE", .value = "FILE"}, {.name = "--json"}, {.name = "--svg", .value = "FILE"}},
                       arguments),
            "foreshard validate a.csv 'b c.csv' --json --svg x.svg");
}

}  // namespace foreshard::failure_test
