// Flows: every transfer that the ranks of a plan can make, with the links it crosses. There is one flow per (rank, peer it sends to), per
// phase of a collective of a group instance, and per (rank, CopyPattern), independent of sizes, repetitions and times.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/network/network.h"
#include "core/plan/ranks.h"
#include "replay/patterns.h"

namespace foreshard::player {

struct Flows {
  // [flow]. Only flows with equal `kind` and `bytes` can be of one class.
  std::vector<std::uint64_t> kind = {};
  std::vector<double> bytes = {};   // over every entry of its links, per byte of the instruction
  std::vector<char> exchange = {};  // it is an exchange: its parties are sender and receiver
  // Where the parties and links of a flow begin in the two lists below; one element more than flows.
  std::vector<std::int32_t> first_party = {0}, first_link = {0};
  std::vector<RankId> all_parties = {};  // exchange: sender, receiver; collective: the members; copy: the rank
  std::vector<LinkId> all_links = {};    // a link crossed k times is listed k times; a flow may cross none

  // The flows of a slot (replay/patterns.h) of a rank: `phases` of them from `first` on, one after the other. -1: none.
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

// Throws Error when an exchange has no rank at its other end.
Flows find_flows(const Plan& plan, const Patterns& patterns, const Ranks& ranks, const Network& network);

// Mixes a word into a hash. 64 bits make equal hashes of different colours (replay/quotient.h) improbable, even among millions.
constexpr std::uint64_t mixed(std::uint64_t hash, std::uint64_t word) {
  std::uint64_t x = (hash ^ word) + 0x9e3779b97f4a7c15u + (hash << 7);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace foreshard::player
