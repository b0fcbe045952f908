// Flows: every transfer that the ranks of a plan can make, with the links it crosses. One flow per (rank, peer it sends
// to), per phase of a collective of a group instance, and per (rank, way of copying); whatever is sent, how often and
// when.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/network/network.h"
#include "core/plan/ranks.h"
#include "replay/patterns.h"

namespace foreshard::player {

struct Flows {
  // Per flow. Flows that differ in `kind` or `bytes` do different things.
  std::vector<std::uint64_t> kind = {};
  std::vector<double> bytes = {};                                 // over every link entry, per byte of the instruction
  std::vector<char> exchange = {};                                // its parties are sender and receiver
  std::vector<std::int32_t> first_party = {0}, first_link = {0};  // one more than flows
  std::vector<RankId> all_parties = {};  // exchange: sender, receiver; collective: the members; copy: the rank
  std::vector<LinkId> all_links = {};    // a link crossed k times is listed k times; none: nothing to share

  // What slot `slot` of `rank` stands for: `phases` flows, one after the other.
  struct Asked {
    std::int32_t first = -1;
    std::int32_t phases = 0;
  };
  std::vector<Asked> asked = {};  // [rank * slot_count + slot]
  int slot_count = 0;

  int count() const { return static_cast<int>(kind.size()); }
  bool is_exchange(int flow) const { return exchange[static_cast<std::size_t>(flow)] != 0; }
  std::span<const RankId> parties(int flow) const { return part(all_parties, first_party, flow); }
  std::span<const LinkId> links(int flow) const { return part(all_links, first_link, flow); }
  const Asked& at(RankId rank, int slot) const {
    return asked[rank.index() * static_cast<std::size_t>(slot_count) + static_cast<std::size_t>(slot)];
  }

 private:
  template <class T>
  static std::span<const T> part(const std::vector<T>& all, const std::vector<std::int32_t>& first, int flow) {
    const auto i = static_cast<std::size_t>(flow);
    return {all.data() + first[i], all.data() + first[i + 1]};
  }
};

// Throws Error when an exchange has no other end.
Flows find_flows(const Plan& plan, const Patterns& patterns, const Ranks& ranks, const Network& network);

// Mixes a word into a hash; 64 bits, so that two different colours among millions do not meet.
constexpr std::uint64_t mixed(std::uint64_t hash, std::uint64_t word) {
  std::uint64_t x = (hash ^ word) + 0x9e3779b97f4a7c15u + (hash << 7);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace foreshard::player
