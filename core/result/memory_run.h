// What the memory of a role does while a run of instructions plays: computed once per run and read for every span that
// plays it. Internal to memory_timeline.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "core/result/memory_timeline.h"

namespace foreshard {

// Times are isolated times since the begin of the run.
struct MemoryRun {
  struct Step {
    std::int64_t at = 0;
    Category category = Category::Transient;
    std::int64_t bytes = 0;  // > 0: comes to life
  };
  std::vector<Step> steps = {};          // in time order; at one time releases first
  std::vector<std::int64_t> times = {};  // the distinct times of the steps ...
  std::vector<std::int64_t> live = {};   // ... and the change since the begin of the run after all steps at that time
  std::int64_t highest = 0;              // of live, at least 0
  std::int64_t total = 1;                // isolated time of the whole run, never 0
  LiveBytes net = {};                    // change over the whole run
};

__extension__ using WideInteger = __int128;  // products of two times

// Where an isolated time of the run lies in a span that plays it.
inline std::int64_t time_in(const Span& span, const MemoryRun& run, std::int64_t at) {
  const std::int64_t length = span.end.value - span.begin.value;
  if (length == run.total) return span.begin.value + at;
  return span.begin.value + static_cast<std::int64_t>(static_cast<WideInteger>(at) * length / run.total);
}

// The runs of one role, seen from one space.
class RoleMemory {
 public:
  // `root_of`: [group] of which its ranks are the root (core/plan/root_places.h); empty: of all, as a bound asks. The plan must outlive it.
  RoleMemory(const Plan& plan, RoleId role, Space space, std::vector<char> root_of = {});

  const LiveBytes& start() const { return start_; }  // resident and carried-over blocks
  const MemoryRun& run(const Span& span);            // of the run that the span plays

 private:
  bool holds(const Instruction& run, const Block& block) const;
  MemoryRun make(const Segment& segment, const std::vector<Cost>* costs, const Span& span) const;
  void find_start();

  const Plan& plan_;
  const Role& role_;
  Space space_;
  std::vector<char> root_of_;
  const CostTable* costs_ = nullptr;
  LiveBytes start_ = {};
  std::unordered_map<std::uint64_t, MemoryRun> runs_;  // looked up, never iterated
};

}  // namespace foreshard
