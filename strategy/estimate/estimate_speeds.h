// How fast everything in a play of a pipeline is at a moment (estimate_talk.h): computes beside kernels of communication, talk and
// transfers beside what crosses the same links, collectives that computes wait for. Internal to strategy/.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "strategy/estimate/estimate_talk.h"

namespace foreshard {

// What is under way: flows (Links), and what each rank does, four bits each: 0, or 1 + 3 times the kind of its chunk + 0 for a forward,
// 1 for a backward, 2 for the last backward.
struct Moment {
  std::uint64_t flows = 0, doing = 0;
  bool operator==(const Moment&) const = default;
};

struct Rates {
  std::array<double, Ways::kMost> computes, talks;  // [rank] relative to being alone
  std::array<double, Links::kMost> flows;           // [flow] of those under way
};

// Of plays of one kind. Remembers what it has been asked.
class PlaySpeeds {
 public:
  // What the speeds depend on.
  struct Kind {
    // Of every second of an action what it stands still for collectives: of each rank, or of all alike.
    using Stands = std::array<std::array<double, Links::kStills>, 9>;  // [doing - 1]
    int ranks = 0;
    bool alike = true, sums = false;
    double share = 0;
    std::array<Stands, Ways::kMost> stands = {};  // [rank]
    Kind(const TalkTimes& talk, int ranks);
    bool operator==(const Kind&) const = default;
  };
  PlaySpeeds(const Kind& kind, const Ways& ways);
  PlaySpeeds(const PlaySpeeds&) = delete;
  bool is_of(const Kind& kind, const Ways& ways) const { return kind == kind_ && ways == ways_; }
  const Rates& at(const Moment& moment);

 private:
  // A collective that computes wait for: there for a part of the seconds of what its rank does.
  struct Still {
    int rank = 0, id = 0;
    double part = 0;
    bool in_turn = false;          // with what its rank says, in the same stream
    double alone = 1, slower = 1;  // beside what is under way all the time; beside the others, too
  };
  void find(const Moment& moment, Rates& rates);
  bool find_stills(const Moment& moment);
  void settle(const Rates& rates);
  void stand_still(std::uint64_t flows, Rates& rates);

  static constexpr std::size_t kKept = 512;
  const Kind kind_;
  const Ways ways_;
  LinkSpeeds links_;
  LinkSpeeds::Speeds without_, with_;  // a collective that is stood still for
  std::array<Still, Links::kStills * Ways::kMost> stills_;
  int count_ = 0;
  std::array<double, Ways::kMost> rate_;  // of ranks, with their stills
  std::array<Moment, kKept> asked_ = {};
  std::array<Rates, kKept> rates_;
};

// From one play to the next: of the last few kinds.
class PlayMemory {
 public:
  PlaySpeeds& of(const TalkTimes& talk, const Ways& ways, int ranks);

 private:
  static constexpr std::size_t kKinds = 8;
  std::vector<std::unique_ptr<PlaySpeeds>> kinds_ = {};  // the last one first
};

}  // namespace foreshard
