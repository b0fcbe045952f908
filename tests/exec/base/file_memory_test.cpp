// Memory that is a file, and the stop of all ranks.
#include "exec/base/file_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "core/base/error.h"
#include "exec/base/stop.h"

namespace foreshard::file_memory_test {
namespace {

namespace fs = std::filesystem;

TEST(FileMemory, IsZeroedAndLeavesNoName) {
  const fs::path folder = fs::temp_directory_path() / "foreshard_file_memory_test";
  fs::create_directories(folder);
  setenv("TMPDIR", folder.c_str(), 1);
  {
    FileMemory memory({10'000});
    EXPECT_TRUE(std::all_of(memory.data(), memory.data() + 10'000, [](std::byte b) { return b == std::byte{0}; }));
    memory.data()[9'999] = std::byte{7};
    FileMemory moved(std::move(memory));
    EXPECT_EQ(moved.data()[9'999], std::byte{7});
    EXPECT_TRUE(fs::is_empty(folder));
  }
  setenv("TMPDIR", (folder / "missing").c_str(), 1);
  try {
    FileMemory memory({4'096});
    ADD_FAILURE() << "made in a folder that is not there";
  } catch (const DeviceError& error) {
    EXPECT_NE(std::string(error.what()).find("missing"), std::string::npos) << error.what();
  }
  unsetenv("TMPDIR");
  fs::remove_all(folder);
}

TEST(Stop, TheFirstReasonStaysAndWhoeverWaitsGivesUp) {
  Stop stop;
  EXPECT_FALSE(stop.raised());
  std::mutex mutex;
  std::condition_variable changed;
  bool stopped = false;
  std::thread waiting([&] {
    std::unique_lock lock(mutex);
    try {
      stop.wait(lock, changed, [] { return false; });
    } catch (const Stopped&) {
      stopped = true;
    }
  });
  stop.raise("the first");
  stop.raise("the second");
  waiting.join();
  EXPECT_TRUE(stopped);
  EXPECT_TRUE(stop.raised());
  EXPECT_EQ(stop.why(), "the first");
  std::unique_lock lock(mutex);
  EXPECT_NO_THROW(stop.wait(lock, changed, [] { return true; }));  // what is ready need not wait
}

}  // namespace
}  // namespace foreshard::file_memory_test
