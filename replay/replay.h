// replay: plays a Plan on a Cluster over a Clock. It obeys the plan and knows nothing of strategies. `simulate` is replay on
// SimGrid; on the light clock (replay/light_clock.h) the same player gives the same Result sooner.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/cluster/cluster.h"
#include "core/plan/plan.h"
#include "core/result/result.h"
#include "replay/clock.h"

namespace foreshard {

struct Straggler {  // compute of one rank is slower by a factor
  RankId rank = {};
  double slowdown = 1.0;
};

struct ReplayOptions {
  Granularity granularity = Granularity::Layer;
  Folding folding = Folding::Full;
  // Full folding puts ranks of a role apart where they cross other links (72 GPUs to a node and 32 to a role: 28 classes of it). With one
  // class per role a role is as slow as its slowest rank: an estimate, up to a hundred times sooner.
  bool one_class_per_role = false;
  bool memory = true;          // Result::memory; else it stays empty. One run only
  bool memory_events = false;  // keep the events of the memory timeline, not only its peaks
  // Instead of the plan's costs: how long a rank takes for what is no collective and no exchange; with Granularity::Op and Folding::None.
  std::function<Seconds(RankId rank, std::int32_t action, std::int32_t instruction)> measured = {};
  int runs = 1;  // of the plan, back to back without a barrier; action a of run r is number r * actions + a in the trace
  std::vector<Straggler> stragglers = {};              // split their class
  const std::atomic<bool>* cancel = nullptr;           // set: the run ends early with Error "cancelled"
  std::function<void(double fraction)> progress = {};  // of the actions of all classes
};

struct PlayedLink {
  double bytes = 0;   // over one link of a class
  Seconds busy = {};  // with at least one flow
};

// What comes from a clock, in memory of the caller's: plain numbers, so that another process can play.
struct Played {
  double makespan = 0;  // seconds
  std::int64_t events = 0;
  std::span<Span> spans = {};
  std::span<PlayedLink> links = {};  // [link class]
};

// A plan whose flows are found and folded, ready to be played any number of times, with the costs that it had then, finite and not
// negative. The constructor throws Error when plan and cluster do not belong together (unknown device kind, more ranks than devices,
// broken numbers), play() when ranks wait for each other; a plan that check_plan accepts always comes to an end.
class Replay {
 public:
  Replay(const Plan& plan, const Cluster& cluster, const ReplayOptions& options = {});  // the plan must outlive it
  ~Replay();
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  std::size_t spans() const;  // for which Played has room
  std::size_t links() const;
  // `clock` is new: nothing was added to it before.
  void play(player::Clock& clock, Played& played) const;
  const std::vector<RankClass>& classes() const;  // which Played::spans name
  // Names, classes and memory beside what was played. Result::plan stays empty.
  Result result(const Played& played) const;
  Result unplayed() const;  // what no clock changes; add_played() gives it the rest

 private:
  struct Folded;
  const Plan& plan_;
  const ReplayOptions options_;
  std::unique_ptr<const Folded> folded_;
};

// The trace, and the memory of options.memory, of a result that Replay::unplayed() made of the same plan and options.
void add_played(Result& result, const Plan& plan, const ReplayOptions& options, const Played& played);

// Played in this process, with room of its own.
class PlayedHere {
 public:
  PlayedHere(const Replay& replay, player::Clock& clock);
  PlayedHere(const PlayedHere&) = delete;
  PlayedHere& operator=(const PlayedHere&) = delete;
  const Played& operator*() const { return played_; }
  const Played* operator->() const { return &played_; }

 private:
  std::vector<Span> spans_;
  std::vector<PlayedLink> links_;
  Played played_;
};

// Once on the light clock: seconds of the run.
double makespan_of(const Plan& plan, const Cluster& cluster, const ReplayOptions& options = {});

// Once: played and made a Result.
Result replay(const Plan& plan, const Cluster& cluster, player::Clock& clock, const ReplayOptions& options = {});

}  // namespace foreshard
