// Runs every session of the repository (README, examples, golden files) and compares byte for byte. With
// FORESHARD_REFRESH=1 it rewrites the outputs instead (scripts/refresh_golden.sh); outputs with "..." stay.
#include "tests/cli/session.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace foreshard::session_test {

namespace fs = std::filesystem;

static std::vector<std::string> session_files() {
  const fs::path source = FORESHARD_SOURCE;
  std::vector<std::string> files = {"README.md"};
  for (const char* folder : {"examples", "tests/cli/golden"})
    if (fs::is_directory(source / folder))
      for (const fs::directory_entry& entry : fs::directory_iterator(source / folder))
        if (entry.path().extension() == ".md") files.push_back(fs::relative(entry.path(), source).string());
  std::sort(files.begin(), files.end());
  return files;
}

// A folder of its own for the files that the commands of one session write.
class SessionFolder {
 public:
  explicit SessionFolder(const std::string& session) {
    std::string name = session;
    for (char& c : name)
      if (c == '/' || c == '.') c = '_';
    path_ = fs::temp_directory_path() / ("foreshard-" + std::to_string(getpid()) + "-" + name);
    fs::create_directories(path_);
    fs::create_directory_symlink(fs::path(FORESHARD_SOURCE) / "examples", path_ / "examples");
  }
  ~SessionFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  SessionFolder(const SessionFolder&) = delete;
  SessionFolder& operator=(const SessionFolder&) = delete;
  std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

class Session : public testing::TestWithParam<std::string> {};

TEST_P(Session, PrintsWhatTheFileShows) {
  const std::string path = std::string(FORESHARD_SOURCE) + "/" + GetParam();
  const std::string text = read_text(path);
  const SessionFolder folder(GetParam());
  const bool refresh = std::getenv("FORESHARD_REFRESH") != nullptr;
  bool measured_anew = false;
  std::vector<std::string> outputs, measured;
  for (const Command& command : commands_of(text)) {
    const std::string output = run_in_shell(command.line, folder.path());
    const bool same = command.measured ? output_matches(without_numbers(command.output), without_numbers(output))
                                       : output_matches(command.output, output);
    outputs.push_back(same ? command.output : output);
    measured.push_back(command.measured ? output : outputs.back());
    measured_anew = measured_anew || (command.measured && !same);
    if (!refresh && !same) {
      EXPECT_EQ(command.output, output) << "$ " << command.line;
    }
  }
  // What is measured in one file is of one run: all of it is old, or all of it is new.
  if (refresh) std::ofstream(path) << with_outputs(text, measured_anew ? measured : outputs);
}

INSTANTIATE_TEST_SUITE_P(Files, Session, testing::ValuesIn(session_files()), [](const auto& session) {
  std::string name = session.param;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
});

TEST(SessionText, CommandsAndOutputs) {
  const std::string text = "words\n```console\n$ a b\none\ntwo\n$ c \\\n  d\n```\n```\n$ not run\n```\n";
  const std::vector<Command> expected = {{"a b\n", "one\ntwo\n"}, {"c \\\n  d\n", ""}};
  EXPECT_EQ(commands_of("```console measured\n$ a\n1 ms\n```\n"), (std::vector<Command>{{"a\n", "1 ms\n", true}}));
  EXPECT_EQ(commands_of(text), expected);
  EXPECT_EQ(with_outputs(text, {"three\n", "four\n"}),
            "words\n```console\n$ a b\nthree\n$ c \\\n  d\nfour\n```\n```\n$ not run\n```\n");
}

TEST(SessionText, DotsStandForLines) {
  EXPECT_TRUE(output_matches("a\n...\nd\n", "a\nb\nc\nd\n"));
  EXPECT_TRUE(output_matches("...\n", ""));
  EXPECT_FALSE(output_matches("a\n...\nd\n", "a\nb\n"));
  EXPECT_FALSE(output_matches("a\n", "a\nb\n"));
}

TEST(SessionText, MeasuredNumbersAreAny) {
  EXPECT_EQ(without_numbers("a  12.5 ms  -0.3 %"), without_numbers("a   1.2 s    +8 %"));
  EXPECT_NE(without_numbers("a 12 ms"), without_numbers("a 12 %"));
  EXPECT_NE(without_numbers("a 12"), without_numbers("a b"));
  EXPECT_EQ(without_numbers("----"), without_numbers("--"));
}

TEST(SessionText, ExitCodesAreShown) { EXPECT_EQ(run_in_shell("echo x; exit 3", "/tmp"), "x\n[exit 3]\n"); }

}  // namespace foreshard::session_test
