// How many copies of a token leave for its experts if it is sent once to each rank, or each node, that has any of them.
#pragma once

#include <cstdint>

namespace foreshard {

// How the experts of a layer are distributed over equal parts of an expert group.
struct ExpertSpread {
  std::int64_t experts = 1, chosen = 1;                           // [E] of a layer, [k] of a token
  std::int64_t groups = 1, chosen_groups = 1, best_of_group = 1;  // as ops::Route
  int ranks = 1, parts = 1;                                       // ranks of the expert group; parts of equally many ranks
  bool dealt = false;  // round robin: expert e is on rank e mod ranks; false: a rank has consecutive experts
  auto operator<=>(const ExpertSpread&) const = default;
};

// The part that has the expert.
constexpr std::int64_t part_of(const ExpertSpread& spread, std::int64_t expert) {
  const std::int64_t rank = spread.dealt ? expert % spread.ranks : expert / (spread.experts / spread.ranks);
  return rank / (spread.ranks / spread.parts);
}

// The expected number of different parts that hold experts chosen by a token, if all experts are equally likely. Without groups
// n (1 - C(E - E/n, k) / C(E, k)) for n parts. With groups the mean over tokens with random scores from a fixed seed: groups are chosen by
// their best scores, so that their experts are used more evenly than k random experts of random groups would be.
double parts_of_token(const ExpertSpread& spread);

}  // namespace foreshard
