#include "strategy/frameworks/optimizer_shard.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>

#include "core/base/error.h"
#include "core/base/units.h"

namespace foreshard {

namespace {

constexpr std::int64_t kStart = 64, kEnd = 128;  // elements: alignment of a parameter, of a rank's part of the buffer

}  // namespace

std::vector<double> optimizer_shard(const std::vector<double>& parameters, int ranks, int rank) {
  FS_ASSERT(ranks >= 1 && rank >= 0 && rank < ranks);
  std::vector<std::pair<std::int64_t, std::int64_t>> places;
  std::int64_t at = 0;
  for (auto parameter = parameters.rbegin(); parameter != parameters.rend(); ++parameter) {
    at = round_up(at, kStart);
    places.emplace_back(at, at + static_cast<std::int64_t>(*parameter));
    at = places.back().second;
  }
  const std::int64_t part = round_up(at, std::lcm(std::int64_t{ranks}, kEnd)) / ranks;
  std::vector<double> held;
  for (const auto& [begin, end] : places) {
    const std::int64_t inside = std::min(end, part * (rank + 1)) - std::max(begin, part * rank);
    if (inside > 0) held.push_back(static_cast<double>(inside));
  }
  std::ranges::reverse(held);
  return held;
}

}  // namespace foreshard
