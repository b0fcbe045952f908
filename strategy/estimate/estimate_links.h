// What the traffic of a pipeline's stages makes of the links where it meets: each rank's talk to those it shares shards with and to
// its other replicas, its transfers both ways, its tensor collectives. Links are shared equally (max-min), as on the simulator. Internal to strategy/.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

namespace foreshard {

template <class Visit>
void each_bit(std::uint64_t bits, Visit visit) {
  for (; bits != 0; bits &= bits - 1) visit(std::countr_zero(bits));
}

// Measured once per grid of ranks.
struct Links {
  static constexpr int kRanks = 16, kFlows = 4, kMost = kRanks * kFlows, kLinks = 64;
  enum Flow { Shards, Replicas, Output, Gradient };  // of a rank
  struct Crossing {
    int link = 0;
    double share = 0;  // of the link, at full speed
    bool own = false;  // it is held up there: not only others on the node that do the same
    bool operator==(const Crossing&) const = default;
  };
  struct Traffic {
    std::vector<Crossing> crosses = {};  // of links that could be full
    double growth = 1;                   // speeds grow in this proportion until a link is full
    bool operator==(const Traffic&) const = default;
  };
  static constexpr int flow(int rank, Flow which) { return rank * kFlows + which; }
  static constexpr std::uint64_t bit(int flow) { return std::uint64_t{1} << flow; }

  int links = 0;
  std::array<Traffic, kMost> traffic = {};   // [flow]
  std::array<Traffic, kRanks> sums = {};     // [rank] instead of Shards where gradients are summed over all replicas at once
  std::array<Traffic, kRanks> tensors = {};  // [rank]
  // Collectives that a rank stands still for, and by how much a pair of them slows each other down.
  enum Still { Tensor, OfShards, OfReplicas, kStills };
  static constexpr int still(int rank, int which) { return rank * kStills + which; }
  int stills = 0;
  std::vector<double> slower = {};  // [still][still], from find_slower()
  void find_slower(int ranks);
  const Traffic& standing(int still) const;
  bool operator==(const Links&) const = default;
};

// Speeds of flows that are under way together, relative to being alone. Those that meet on no link, not even through others, know nothing of
// each other: each lot is asked for by itself, and remembered.
class LinkSpeeds {
 public:
  struct Speeds {
    std::array<double, Links::kMost> of;  // [flow] 1 for those that meet nobody
    double still;
  };
  LinkSpeeds(const Links& links, bool sums, int ranks);

  // Writes those of the flows that are asked for, and of a collective that somebody stands still for.
  void find(std::uint64_t flows, int still, Speeds& speeds);
  static constexpr int kNone = -1;  // nobody does

  using Loads = std::array<double, Links::kLinks>;  // [link] the part that is used
  void clear(Loads& loads) const { std::fill_n(loads.begin(), links_.links, 0.0); }
  static void add(Loads& loads, const Links::Traffic& traffic, double speed) {
    for (const Links::Crossing& crossing : traffic.crosses)
      loads[static_cast<std::size_t>(crossing.link)] += crossing.share * speed;
  }
  // Of the links that hold it up: 1 or how many times full the fullest is.
  static double fullest(const Loads& loads, const Links::Traffic& traffic) {
    double most = 1;
    for (const Links::Crossing& crossing : traffic.crosses)
      if (crossing.own) most = std::max(most, loads[static_cast<std::size_t>(crossing.link)]);
    return most;
  }
  const Links::Traffic& traffic(int flow) const;

 private:
  static constexpr std::size_t kKept = 1024;
  std::uint64_t lot_of(std::uint64_t first, std::uint64_t flows) const;
  const Speeds& of_lot(std::uint64_t flows, int still);
  void share(std::uint64_t flows, int still, Speeds& speeds) const;

  const Links& links_;
  bool sums_;
  int ranks_;
  std::array<std::uint64_t, Links::kLinks> crossing_ = {};  // [link] flows
  std::array<std::uint64_t, Links::kMost> meets_ = {};      // [flow] those that cross a link that it crosses
  std::uint64_t meeting_ = 0;                               // flows that cross any
  std::array<std::uint64_t, kKept> asked_ = {};             // 0: nothing
  std::array<int, kKept> asked_still_;
  std::array<Speeds, kKept> speeds_;
  Speeds alone_;
};

}  // namespace foreshard
