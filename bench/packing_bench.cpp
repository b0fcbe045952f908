// What it takes to pack the inputs of data/minimalloc into their capacity: a table for docs/memory-planning.md.
//
//   packing_bench [FOLDER]     data/minimalloc unless a folder is given
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "strategy/memory/packing.h"

namespace foreshard {

namespace {

constexpr Bytes kCapacity{1'048'576};
constexpr std::int64_t kMostNodes = 100'000'000;

std::vector<TimedBlock> blocks_of(const std::string& path) {
  std::ifstream file(path);
  std::string heading;
  std::getline(file, heading);
  std::vector<TimedBlock> blocks;
  std::int64_t id = 0, lower = 0, upper = 0, size = 0;
  for (char comma = 0; file >> id >> comma >> lower >> comma >> upper >> comma >> size;)
    blocks.push_back({.bytes = {size}, .lifetimes = {{lower, upper}}});
  return blocks;
}

// True if it is packed.
bool row_of(const std::string& folder, char letter) {
  const std::vector<TimedBlock> blocks = blocks_of(folder + "/" + letter + ".1048576.csv");
  const auto relative = [](Bytes bytes) { return static_cast<double>(bytes.value) / static_cast<double>(kCapacity.value); };
  const Bytes greedy = pack_by(blocks, PackRule::FirstFitSize).arena, fast = pack(blocks).arena;
  const auto before = std::chrono::steady_clock::now();
  const PackSearch found = pack_into(blocks, kCapacity, kMostNodes);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - before;
  const bool packed = found.answer == PackAnswer::Packed;
  std::printf("| %c | %zu | %.3f | %.3f | %.3f | %s | %lld | %.2f |\n", letter, blocks.size(), relative(live_bound(blocks)),
              relative(greedy), relative(fast), packed ? "yes" : "no", static_cast<long long>(found.nodes), seconds.count());
  std::fflush(stdout);
  return packed;
}

}  // namespace

}  // namespace foreshard

int main(int count, char** words) {
  const std::string folder = count > 1 ? words[1] : "data/minimalloc";
  std::puts("| input | buffers | live bound | first fit by size | fast | packed | nodes | seconds |");
  std::puts("|---|---|---|---|---|---|---|---|");
  bool all = true;
  for (const char letter : std::string("ABCDEFGHIJK")) all = foreshard::row_of(folder, letter) && all;
  return all ? EXIT_SUCCESS : EXIT_FAILURE;
}
