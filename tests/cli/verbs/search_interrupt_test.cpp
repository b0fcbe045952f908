// Ctrl-C during a search: a real signal to a real process, at several moments of its work. The answer is the best so far.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <functional>

#include "core/json/json.h"
#include "tests/cli/session.h"
#include "tests/how_many.h"

namespace foreshard::search_interrupt_test {

namespace fs = std::filesystem;

namespace {

struct Stopped {
  int exit = -1;
  bool signalled = false;  // it had not ended before its moment came
  double at = 0;           // the progress that it had told
  std::string out = {};
};

// Starts the program with `options`, reads the lines that it tells, and interrupts it after the first one for which `now` holds.
Stopped interrupt(const std::vector<std::string>& options, const std::function<bool(const JsonReader&)>& now) {
  const fs::path answer = fs::temp_directory_path() / ("foreshard-interrupt-" + std::to_string(::getpid()) + ".json");
  int told[2];
  if (::pipe(told) != 0) throw std::runtime_error("pipe");
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(::open(answer.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600), STDOUT_FILENO);
    ::dup2(told[1], STDERR_FILENO);
    ::close(told[0]);
    std::vector<char*> words = {const_cast<char*>(FORESHARD_PROGRAM)};
    for (const std::string& option : options) words.push_back(const_cast<char*>(option.c_str()));
    words.push_back(nullptr);
    ::execv(FORESHARD_PROGRAM, words.data());
    ::_exit(127);
  }
  ::close(told[1]);
  Stopped stopped;
  FILE* lines = ::fdopen(told[0], "r");
  std::string line;
  for (int letter = std::fgetc(lines); letter != EOF; letter = std::fgetc(lines)) {
    line += static_cast<char>(letter);
    if (letter != '\n') continue;
    const JsonReader json = JsonReader::parse(std::exchange(line, {}), "line");
    if (json.has("progress")) stopped.at = json.at("progress").as_double();
    if (!stopped.signalled && now(json)) stopped.signalled = ::kill(child, SIGINT) == 0;
  }
  std::fclose(lines);
  int status = 0;
  ::waitpid(child, &status, 0);
  stopped.exit = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  stopped.out = read_text(answer.string());
  fs::remove(answer);
  return stopped;
}

std::vector<std::string> words(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> all;
  for (std::string word; in >> word;) all.push_back(word);
  return all;
}

}  // namespace

// While costs are measured (0 to 0.32 of the progress), points screened (to 0.56), the best refined (to 0.8), those simulated.
TEST(SearchInterrupt, PrintsTheBestSoFarWheneverItComes) {
  const std::vector<std::string> search =
      words("search --model gpt2-1.5b --cluster dgx-a100-x2 --global-batch 64 --threads 1 --progress json --json --top 50");
  for (const double moment : some_of<double>({0.0, 0.005, 0.2, 0.35, 0.6, 0.85}, 3)) {
    const Stopped stopped = interrupt(
        search, [&](const JsonReader& json) { return json.has("progress") && json.at("progress").as_double() >= moment; });
    SCOPED_TRACE(moment);
    ASSERT_TRUE(stopped.signalled);
    EXPECT_EQ(stopped.exit, 130) << stopped.out;
    const JsonReader answer = JsonReader::parse(stopped.out, "answer");
    ASSERT_TRUE(answer.has("results")) << stopped.out;
    EXPECT_TRUE(answer.at("interrupted").as_bool());
    if (moment < 0.5) {  // not all is screened
      EXPECT_TRUE(answer.at("lower_bound").is_null());
    }
    ASSERT_FALSE(answer.at("results").elements().empty());
    for (const JsonReader& each : answer.at("results").elements()) EXPECT_GE(each.at("margin_bytes").as_int(), 0);
  }
}

// As soon as the first strategy has been refined there is one to print.
TEST(SearchInterrupt, PrintsWhatWasTold) {
  std::string first;
  const Stopped stopped = interrupt(
      words("search --model gpt2-1.5b --cluster dgx-a100 --global-batch 64 --threads 1 --progress json --json --top 0"),
      [&](const JsonReader& json) {
        if (first.empty() && json.has("candidate")) first = json.at("candidate").at("strategy").found();
        return !first.empty();
      });
  ASSERT_TRUE(stopped.signalled);
  EXPECT_EQ(stopped.exit, 130);
  const JsonReader answer = JsonReader::parse(stopped.out, "answer");
  ASSERT_FALSE(answer.at("results").elements().empty());
}

// Of several clusters the first was searched in part and the second not at all: both are there, and nothing is compared.
TEST(SearchInterrupt, ClustersThatWereNotSearchedAreTold) {
  const Stopped stopped =
      interrupt(words("search --model gpt2-1.5b --cluster dgx-a100 --cluster dgx-h100 --global-batch 64 --threads 1 --progress "
                      "json --json"),
                [](const JsonReader& json) { return json.has("progress") && json.at("progress").as_double() > 0.1; });
  ASSERT_TRUE(stopped.signalled);
  EXPECT_EQ(stopped.exit, 130);
  const JsonReader answer = JsonReader::parse(stopped.out, "answer");
  EXPECT_TRUE(answer.at("interrupted").as_bool());
  ASSERT_EQ(answer.at("quotes").size(), 2u) << stopped.out;
  EXPECT_EQ(answer.at("quotes").at(0).at("search").as_string(), "partial");
  EXPECT_EQ(answer.at("quotes").at(1).at("search").as_string(), "not searched");
}

// Nothing fits on the cluster: an interrupt finds nothing either, and says so.
TEST(SearchInterrupt, SaysThatNothingWasFound) {
  const Stopped stopped = interrupt(
      words("search --model megatron-39b --cluster dgx-a100 --global-batch 64 --fix zero=0 --threads 1 --progress json --json"),
      [](const JsonReader& json) { return json.has("progress"); });
  if (!stopped.signalled) GTEST_SKIP() << "it had ended before";
  EXPECT_TRUE(stopped.exit == 130 || stopped.exit == 2) << stopped.exit;
  EXPECT_FALSE(JsonReader::parse(stopped.out, "answer").has("results")) << stopped.out;
}

}  // namespace foreshard::search_interrupt_test
