// What an iteration puts on the links of a cluster. No iteration is shorter than its fullest link is busy; where stages share a
// NIC that is what holds a pipeline up. Internal to strategy/.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace foreshard {

// Collectives of a rank: over its tensor (or context) ranks, over the ranks that share what ZeRO cuts, over all replicas at once,
// over equal shards of different ZeRO groups.
enum class Flow : std::uint8_t { Tensor, Shards, Sums, Replicas };
inline constexpr std::size_t kFlows = 4;

// Of the first rank of a pipeline, one between, the last one: seconds in an iteration, each by itself.
using FlowSeconds = std::array<std::array<double, 3>, kFlows>;

// Measured once per grid of ranks: the links that could be the fullest.
struct LinkLoads {
  struct Link {
    // [flow][first rank, all between together, last]: seconds that the link is busy per second that the collective takes by itself.
    FlowSeconds collectives = {};
    // Seconds per byte: of all transfers between neighbours, outputs and gradients; of those from the last rank to the first, and back.
    double neighbours = 0, wraps = 0;
    bool operator==(const Link&) const = default;
  };
  std::vector<Link> links = {};

  // Drops links that are never fuller than another one.
  void keep_fullest();
  // Seconds that the fullest link is busy. Bytes that each rank sends to the next one, and the last one to the first.
  double busy(const FlowSeconds& collectives, double to_neighbours, double wrapping) const;
  bool operator==(const LinkLoads&) const = default;
};

}  // namespace foreshard
