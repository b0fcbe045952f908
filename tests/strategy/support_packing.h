// Blocks for tests of strategy/memory, and the dull check of a packing.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <string>

#include "strategy/memory/packing.h"

namespace foreshard {

inline bool alive_together(const TimedBlock& a, const TimedBlock& b) {
  for (const Lifetime& one : a.lifetimes)
    for (const Lifetime& other : b.lifetimes)
      if (one.begin < other.end && other.begin < one.end) return true;
  return false;
}

// Every pair: alive together, so no byte in common. All in the arena, all aligned.
inline void expect_packed(const std::vector<TimedBlock>& blocks, const Packing& packing, std::int64_t alignment = 1) {
  ASSERT_EQ(packing.offsets.size(), blocks.size());
  for (std::size_t a = 0; a < blocks.size(); ++a) {
    const std::int64_t from = packing.offsets[a].value, to = from + blocks[a].bytes.value;
    ASSERT_GE(from, 0);
    ASSERT_EQ(from % alignment, 0);
    ASSERT_LE(to, packing.arena.value);
    for (std::size_t b = 0; b < a; ++b) {
      if (!alive_together(blocks[a], blocks[b])) continue;
      const std::int64_t other = packing.offsets[b].value;
      ASSERT_TRUE(to <= other || other + blocks[b].bytes.value <= from) << "blocks " << a << " and " << b;
    }
  }
}

struct RandomBlocks {
  int count = 7, times = 10, lifetimes = 1;
  std::int64_t most_bytes = 100;
};

inline std::vector<TimedBlock> random_blocks(const RandomBlocks& of, std::mt19937& random) {
  const auto number = [&](std::int64_t from, std::int64_t to) {
    return from + static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(to - from + 1));
  };
  std::vector<TimedBlock> blocks(static_cast<std::size_t>(of.count));
  for (TimedBlock& block : blocks) {
    block.bytes = {number(1, of.most_bytes)};
    for (int i = 0; i < of.lifetimes; ++i) {
      const std::int64_t begin = number(0, of.times - 1);
      block.lifetimes.push_back({begin, number(begin + 1, of.times)});
    }
  }
  return blocks;
}

// data/minimalloc/<letter>.1048576.csv: id, lower, upper, size; the capacity is in the name.
inline constexpr Bytes kMinimallocCapacity{1'048'576};
inline std::vector<TimedBlock> minimalloc_blocks(char letter) {
  std::ifstream file(std::string(FORESHARD_SOURCE) + "/data/minimalloc/" + letter + ".1048576.csv");
  std::string line;
  std::getline(file, line);
  std::vector<TimedBlock> blocks;
  std::int64_t id = 0, lower = 0, upper = 0, size = 0;
  for (char comma = 0; file >> id >> comma >> lower >> comma >> upper >> comma >> size;)
    blocks.push_back({.bytes = {size}, .lifetimes = {{lower, upper}}});
  return blocks;
}

}  // namespace foreshard
