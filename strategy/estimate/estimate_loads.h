// The traffic of an iteration on the links of a cluster. An iteration takes at least as long as its busiest link is busy. Where stages
// share a NIC, that is often what limits a pipeline. Internal to strategy/.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace foreshard {

// Kinds of collectives: over tensor (or context) ranks; over the ranks of a ZeRO shard group; over all replicas (without ZeRO); over equal
// shards of different ZeRO groups.
enum class Flow : std::uint8_t { Tensor, Shards, AllReplicas, BetweenZeroGroups };
inline constexpr std::size_t kFlows = 4;

// [flow][first pipeline rank, one between, last]: isolated seconds of these collectives in an iteration.
using FlowSeconds = std::array<std::array<double, 3>, kFlows>;

// The links that could be the busiest, measured once per grid of ranks.
struct LinkLoads {
  struct Link {
    // [flow][first pipeline rank, all ranks between, last]: seconds that the link is busy per isolated second of the collective, summed
    // over these ranks.
    FlowSeconds collectives = {};
    // Seconds that the link is busy per byte, summed over all transfers of outputs and gradients between neighbouring ranks; and over those
    // between the last and the first rank, in both directions.
    double neighbours = 0, wraps = 0;
    bool operator==(const Link&) const = default;
  };
  std::vector<Link> links = {};

  // Drops links that cannot be busier than some other link.
  void keep_fullest();
  // Seconds that the busiest link is busy. `to_neighbours`: bytes that each rank sends to the next; `wrapping`: bytes that the last rank
  // sends to the first. Gradients go back in the same number of bytes.
  double busy(const FlowSeconds& collectives, double to_neighbours, double wrapping) const;
  bool operator==(const LinkLoads&) const = default;
};

}  // namespace foreshard
