// README, quickstart.sh and the examples show the same commands, and the README's picture is what the program draws.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <sstream>

#include "tests/cli/session.h"

namespace foreshard::readme_test {

namespace fs = std::filesystem;
static const std::string kSource = FORESHARD_SOURCE;

TEST(Readme, ShowsTheCommandOfQuickstart) {
  const std::vector<Command> commands = commands_of(read_text(kSource + "/README.md"));
  ASSERT_FALSE(commands.empty());
  const std::string arguments = commands.front().line.substr(std::string("foreshard ").size());
  EXPECT_NE(read_text(kSource + "/quickstart.sh").find("\"$program\" " + arguments), std::string::npos) << arguments;
}

TEST(Readme, NamesBothScriptsAndOnlyFilesThatExist) {
  const std::string text = read_text(kSource + "/README.md");
  for (const char* name : {"./quickstart.sh", "./test.sh"}) EXPECT_NE(text.find(name), std::string::npos) << name;
  // Words in backquotes that look like files, as they stand or below docs/.
  const std::regex quoted("`([\\w/.-]+\\.(?:md|svg|sh)|[\\w-]+/)`");
  int count = 0;
  for (std::sregex_iterator it(text.begin(), text.end(), quoted), end; it != end; ++it, ++count) {
    const std::string name = (*it)[1];
    EXPECT_TRUE(fs::exists(kSource + "/" + name) || fs::exists(kSource + "/docs/" + name)) << name;
  }
  EXPECT_GT(count, 8);
}

TEST(Readme, ThePictureIsWhatTheProgramDraws) {
  const std::string folder = (fs::temp_directory_path() / ("foreshard-readme-" + std::to_string(::getpid()))).string();
  fs::create_directories(folder);
  const std::vector<Command> commands = commands_of(read_text(kSource + "/README.md"));
  const auto draws = std::find_if(commands.begin(), commands.end(),
                                  [](const Command& command) { return command.line.find("--svg") != std::string::npos; });
  ASSERT_NE(draws, commands.end());
  run_in_shell(draws->line, folder);
  const std::string drawn = read_text(folder + "/timeline.svg"), shown = read_text(kSource + "/docs/timeline.svg");
  EXPECT_TRUE(drawn == shown) << "docs/timeline.svg is not what this prints: $ " << draws->line;
  fs::remove_all(folder);
}

namespace {

// What follows `label` on the first line that begins with it, from its first number on: "  iteration time   18.05 ms".
std::vector<std::string> numbers_after(const std::string& output, const std::string& label) {
  std::istringstream lines(output);
  const std::regex number("[-+]?[0-9][0-9.,]*");
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(label)) continue;
    line.erase(0, label.size());
    std::vector<std::string> all;
    for (std::sregex_iterator it(line.begin(), line.end(), number), end; it != end; ++it) all.push_back(it->str());
    return all;
  }
  return {};
}

}  // namespace

// Predict, run, compare: each shows what the one before made, so the figures are of one go. Two of them in the same unit (a table has two decimals)
// are the same number.
TEST(Readme, TheMeasuredFiguresAreOfOneRun) {
  std::string predicted, ran, compared;
  for (const Command& command : commands_of(read_text(kSource + "/README.md"))) {
    if (!command.measured) continue;
    if (command.line.starts_with("foreshard simulate")) predicted = command.output;
    if (command.line.starts_with("foreshard run")) ran = command.output;
    if (command.line.starts_with("foreshard compare")) compared = command.output;
  }
  const std::vector<std::string> both = numbers_after(compared, "  iteration time");
  ASSERT_EQ(both.size(), 3U) << compared;  // A, B, error
  const std::vector<std::string> simulated = numbers_after(predicted, "  iteration time");
  const std::vector<std::string> measured = numbers_after(ran, "iteration");
  ASSERT_FALSE(simulated.empty() || measured.empty());
  EXPECT_EQ(simulated[0], both[0]) << "what was simulated and what is compared";
  EXPECT_NEAR(std::stod(measured[0]), std::stod(both[1]), 0.0051) << "what was measured and what is compared";
  EXPECT_NEAR(std::stod(both[2]), (std::stod(both[0]) / std::stod(both[1]) - 1) * 100, 0.1);
  EXPECT_NEAR(std::stod(numbers_after(ran, "memory").at(0)), std::stod(numbers_after(compared, "  memory peak").at(1)), 0.0051);
  const std::size_t hash = std::string("plan 0123456789abcdef").size();
  EXPECT_EQ(ran.substr(0, hash), compared.substr(0, hash));
}

TEST(Examples, AreAtLeastFiveAndListed) {
  const std::string index = read_text(kSource + "/examples/README.md");
  int count = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(kSource + "/examples")) {
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() != ".md" || name == "README.md") continue;
    ++count;
    EXPECT_NE(index.find("(" + name + ")"), std::string::npos) << name;
    EXPECT_FALSE(commands_of(read_text(entry.path().string())).empty()) << name;
  }
  EXPECT_GE(count, 5);
}

}  // namespace foreshard::readme_test
