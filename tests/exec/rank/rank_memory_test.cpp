// The memory of a rank: places of blocks, what is alive, guards and poison.
#include "exec/rank/rank_memory.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "exec/host/host_device.h"

namespace foreshard::rank_memory_test {
namespace {

constexpr RoleId kRole{0};

Bytes of(const LiveBytes& live, Category category) { return live[static_cast<std::size_t>(category)]; }

std::string message(const std::function<void()>& run) {
  try {
    run();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

// Buffers: 0 weights, 64 bytes, resident; 1 activations, two slots of 32; 2 carried, 16 bytes, which the run releases before it acquires it;
// 3 in host memory. The role's arena on the device is 64 + 2 * 32 + 16 bytes.
class RankMemoryTest : public testing::Test {
 protected:
  Plan plan;
  Stop stop;
  HostDevice device{stop, nullptr};

  RankMemoryTest() {
    const Block carried{.buffer = {2}};
    plan.segments = {{.name = "s",
                      .instructions = {{.name = "a", .what = Mark{}, .releases = {carried}},
                                       {.name = "b", .what = Mark{}, .acquires = {carried}}}}};
    plan.roles = {
        {.name = "all",
         .buffers =
             {{.name = "w", .category = Category::Parameters, .dtype = DType::F32, .bytes = {64}, .resident = true},
              {.name = "x", .category = Category::Activations, .bytes = {32}, .offsets = {{64}, {96}}},
              {.name = "c", .category = Category::Gradients, .bytes = {16}, .offsets = {{128}}},
              {.name = "h", .category = Category::Optimizer, .space = Space::PinnedHost, .bytes = {48}, .resident = true}},
         .actions = {{.segment = {0}}}}};
  }
  RankMemory memory(const MemoryChecks& checks = {}) { return {plan, kRole, device, checks}; }
};

}  // namespace

TEST_F(RankMemoryTest, BlocksLieAtTheOffsetsOfThePlan) {
  const RankMemory all = memory();
  EXPECT_EQ(all.arena(Space::Device), Bytes{144});
  EXPECT_EQ(all.arena(Space::PinnedHost), Bytes{48});
  EXPECT_EQ(all.arena(Space::Nvme), Bytes{});
  EXPECT_EQ(all.block({0}, 0), 0);
  EXPECT_EQ(all.block({1}, 1), 2);
  EXPECT_EQ(all.block({2}, 0), 3);
  EXPECT_EQ(all.address(2) - all.address(BufferId{0}), 96);
  EXPECT_EQ(all.address(3) - all.address(BufferId{0}), 128);
  EXPECT_EQ(all.buffer(2).name, "x");
}

// On the device 64 bytes are resident and 16 carried over; what is in host memory does not count.
TEST_F(RankMemoryTest, CountsWhatIsAlive) {
  RankMemory all = memory();
  EXPECT_EQ(of(all.live_between_runs(), Category::Parameters), Bytes{64});
  EXPECT_EQ(of(all.live_between_runs(), Category::Gradients), Bytes{16});
  EXPECT_EQ(sum(all.live_between_runs()), Bytes{80});
  all.acquire({1, 2});
  EXPECT_EQ(of(all.live(), Category::Activations), Bytes{64});
  all.release({1, 3});
  EXPECT_EQ(sum(all.live()), Bytes{80 + 32 - 16});
  EXPECT_EQ(sum(all.live_between_runs()), Bytes{80});
}

TEST_F(RankMemoryTest, TwoLivesAtOnceAreRefused) {
  RankMemory all = memory();
  EXPECT_EQ(message([&] { all.acquire({3}); }), "acquire of \"c\" slot 0 failed: it is alive already");
  EXPECT_EQ(message([&] { all.release({2}); }), "release of \"x\" slot 1 failed: it is not alive");
  all.acquire({2});
  all.release({2});
  all.acquire({2});  // again
}

TEST_F(RankMemoryTest, OperandsAreWholeElementsOfABlock) {
  const RankMemory all = memory();
  const Operand part = all.operand({.buffer = {0}, .from = {8}, .length = Bytes{24}}, 0, "here");
  EXPECT_EQ(part.data - all.address(BufferId{0}), 8);
  EXPECT_EQ(part.elements, 6);
  EXPECT_EQ(part.dtype, DType::F32);
  EXPECT_EQ(all.operand({.buffer = {1}, .from = {4}}, 1, "here").elements, 14);  // to the end, bf16
  const std::string expected = ", expected whole elements of its 64 bytes";
  EXPECT_EQ(message([&] { all.operand({.buffer = {0}, .from = {48}, .length = Bytes{20}}, 0, "here"); }),
            "plan: here: found bytes 48 to 68 of \"w\"" + expected);
  EXPECT_EQ(message([&] { all.operand({.buffer = {0}, .from = {2}}, 0, "here"); }),
            "plan: here: found bytes 2 to 64 of \"w\"" + expected);
}

TEST_F(RankMemoryTest, ReadsAndWritesBetweenRuns) {
  const RankMemory all = memory();
  all.write({0}, {4}, std::vector<std::byte>(3, std::byte{9}));
  const std::vector<std::byte> around = all.read({0}, {3}, {5});
  EXPECT_EQ(around, (std::vector<std::byte>{std::byte{0}, std::byte{9}, std::byte{9}, std::byte{9}, std::byte{0}}));
}

// Every byte before and after a block is watched, also those of the padding to its guard.
TEST_F(RankMemoryTest, GuardsFindWritesOutside) {
  for (const auto& [block, at] : {std::pair{1, -1}, {1, 32}, {2, 32 + 223}, {3, 16}}) {
    HostDevice own(stop, nullptr);
    const RankMemory all(plan, kRole, own, {.guards = true});
    EXPECT_EQ(all.broken_guard(), "");
    std::byte* place = all.address(block);
    std::fill_n(place, all.buffer(block).bytes.value, std::byte{1});
    EXPECT_EQ(all.broken_guard(), "") << "its own bytes";
    place[at] = std::byte{1};
    EXPECT_NE(all.broken_guard(), "") << block << " " << at;
  }
  EXPECT_EQ(memory().broken_guard(), "");
}

// Blocks that are not alive are filled with NaN, at the beginning, at their acquire and at their release; resident ones are not.
TEST_F(RankMemoryTest, PoisonFillsWhatIsNotAlive) {
  RankMemory all = memory({.guards = true, .poison = true});
  const auto holds = [&](int block, int byte) {
    return std::all_of(all.address(block), all.address(block) + all.buffer(block).bytes.value,
                       [&](std::byte b) { return b == static_cast<std::byte>(byte); });
  };
  EXPECT_TRUE(holds(0, 0));
  EXPECT_TRUE(holds(3, 0));  // carried over
  all.acquire({1});
  EXPECT_TRUE(holds(1, 0xFF));
  std::fill_n(all.address(1), 32, std::byte{3});
  all.release({1});
  EXPECT_TRUE(holds(1, 0xFF));
  all.release({3});
  EXPECT_TRUE(holds(3, 0xFF));
}

TEST_F(RankMemoryTest, SharedBuffersAreRefused) {
  plan.roles[0].buffers[1].scope = Scope::Device;
  EXPECT_EQ(message([&] { memory(); }),
            "plan: roles[0].buffers[1]: found a buffer shared by the ranks of a device, expected one per rank");
}

}  // namespace foreshard::rank_memory_test
