// README, quickstart.sh and the examples show the same commands, and the README's picture is what the program draws.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <regex>

#include "tests/cli/session.h"

namespace foreshard {

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

}  // namespace foreshard
