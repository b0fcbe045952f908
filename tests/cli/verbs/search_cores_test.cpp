// A search on one core of several, whatever number of threads is asked for: it ends, with the same answer.
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "tests/cli/session.h"

namespace foreshard::search_cores_test {

namespace fs = std::filesystem;

namespace {

int first_core() {
  cpu_set_t cores;
  if (::sched_getaffinity(0, sizeof cores, &cores) != 0) return 0;
  int core = 0;
  while (core + 1 < CPU_SETSIZE && !CPU_ISSET(core, &cores)) ++core;
  return core;
}

class SearchCores : public testing::TestWithParam<std::string> {};

// What it prints is the same as with all cores, whatever number of threads is asked for.
TEST_P(SearchCores, EndsOnOne) {
  const fs::path folder = fs::temp_directory_path() / ("foreshard-cores-" + std::to_string(::getpid()));
  fs::create_directories(folder);
  const std::string search =
      "foreshard search --model gpt2-124m --seq 256 --cluster dgx-a100 --global-batch 16 --rows 1 --top 1 --max-tp 2" +
      GetParam();
  const std::string all = run_in_shell(search, folder.string());
  const std::string one =
      run_in_shell("timeout -k 1 100 taskset -c " + std::to_string(first_core()) + " " + search, folder.string());
  fs::remove_all(folder);
  EXPECT_EQ(one, all);
}

INSTANTIATE_TEST_SUITE_P(Threads, SearchCores, testing::Values("", " --threads 2", " --threads 5"));

}  // namespace

}  // namespace foreshard::search_cores_test
