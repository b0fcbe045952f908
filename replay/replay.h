// replay: runs a Plan on a Cluster against a Clock (discrete-event simulation). It reads the plan only, not the strategy. `simulate` is
// replay on SimGrid; on the light clock (replay/light_clock.h) the same code gives the same Result in less time.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/cluster/cluster.h"
#include "core/plan/plan.h"
#include "core/result/plan_memory.h"
#include "core/result/result.h"
#include "replay/clock.h"

namespace foreshard {

struct Straggler {  // a rank whose computes take `slowdown` times as long
  RankId rank = {};
  double slowdown = 1.0;
};

struct ReplayOptions {
  Granularity granularity = Granularity::Layer;
  Folding folding = Folding::Full;
  // Full folding puts ranks of a role into different classes where they cross different links (with 72 GPUs per node and 32 ranks per
  // role: 28 classes). With one class per role, a role is as slow as its slowest rank: an estimate, up to a hundred times faster.
  bool one_class_per_role = false;
  bool memory = true;          // fill Result::memory; needs runs == 1
  bool memory_events = false;  // keep the events of the memory timeline, not only its peaks
  // Replaces the plan's costs of instructions other than collectives and exchanges; needs Granularity::Op and Folding::None.
  std::function<Seconds(RankId rank, std::int32_t action, std::int32_t instruction)> measured = {};
  int runs = 1;  // how often the plan runs, without barriers between; action a of run r is number r * actions + a in the trace
  std::vector<Straggler> stragglers = {};              // ranks of different speed are in different classes
  const std::atomic<bool>* cancel = nullptr;           // when it becomes true, the run ends early with Error "cancelled"
  std::function<void(double fraction)> progress = {};  // called with the share of all spans that are done
};

struct PlayedLink {
  double bytes = 0;   // over one link of the class
  Seconds busy = {};  // time during which at least one flow crosses it
};

// The output of a run on a clock, in memory that the caller provides: plain numbers, so that another process can run it.
struct Played {
  double makespan = 0;               // seconds
  std::int64_t events = 0;           // Clock::events
  std::span<Span> spans = {};        // Replay::spans() elements
  std::span<PlayedLink> links = {};  // [link class], Replay::links() elements
};

// The part of a Result that is known before a run.
struct ResultFrame {
  Result result = {};
  std::optional<PlanMemory> memory = {};  // if ReplayOptions::memory
};

// A plan, folded and ready to be run any number of times with the costs that it has at construction; they must be finite and not
// negative. The constructor throws Error when plan and cluster do not belong together (unknown device kind, more ranks than devices,
// invalid numbers). play() throws Error when ranks wait for each other, which cannot happen in a plan that check_plan accepts.
class Replay {
 public:
  Replay(const Plan& plan, const Cluster& cluster, const ReplayOptions& options = {});  // the plan must outlive it
  ~Replay();
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  std::size_t spans() const;  // number of spans of a run
  std::size_t links() const;  // number of link classes
  // Runs the plan. `clock` must be new: nothing was added to it.
  void play(player::Clock& clock, Played& played) const;
  const std::vector<RankClass>& classes() const;  // Span::who of Played::spans is an index into these
  // The Result of a run: its trace, with the names and classes, and its memory. Result::plan stays empty.
  Result result(const Played& played) const;
  ResultFrame unplayed() const;

 private:
  struct Folded;
  const Plan& plan_;
  const ReplayOptions options_;
  std::unique_ptr<const Folded> folded_;
};

// Adds the times of a run, and the memory timeline if options.memory, to what Replay::unplayed() returned for the same plan and options.
Result add_played(ResultFrame unplayed, const ReplayOptions& options, const Played& played);

// Runs a Replay in this process and owns the memory of its output.
class LocalReplayOutput {
 public:
  LocalReplayOutput(const Replay& replay, player::Clock& clock);
  LocalReplayOutput(const LocalReplayOutput&) = delete;
  LocalReplayOutput& operator=(const LocalReplayOutput&) = delete;
  const Played& operator*() const { return played_; }
  const Played* operator->() const { return &played_; }

 private:
  std::vector<Span> spans_;
  std::vector<PlayedLink> links_;
  Played played_;
};

// Whether the period of many runs in a row differs in kind from a run by itself: the next run begins before this one has ended
// (runs_overlap), or reads weights of one update before, so that it does not wait for the last update.
bool has_steady_period(const Plan& plan);

// Of such a plan: seconds from the end of a run to the end of the next in the middle of many, on the light clock. `runs`: how
// many are replayed; the second half of them is counted. At least 2.
double steady_period(const Plan& plan, const Cluster& cluster, const ReplayOptions& options, int runs = 4);

// Replays the plan on the light clock and returns the seconds of an iteration: the makespan, or the steady period where there is one.
double makespan_of(const Plan& plan, const Cluster& cluster, const ReplayOptions& options = {});

// Replays the plan on a new clock.
Result replay(const Plan& plan, const Cluster& cluster, player::Clock& clock, const ReplayOptions& options = {});

}  // namespace foreshard
