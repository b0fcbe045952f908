// How the live memory of a role changes during a MemoryRun, the consecutive instructions of a stream that a Span covers: computed once per
// run and used for all its spans. Internal to memory_timeline.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "core/result/memory_timeline.h"

namespace foreshard {

// Times are isolated, in nanoseconds since the start of the run; memory is in bytes.
struct MemoryRun {
  struct Step {
    std::int64_t at = 0;
    Category category = Category::Transient;
    std::int64_t bytes = 0;  // > 0: acquired, < 0: released
  };
  std::vector<Step> steps = {};          // in order of time; at equal times releases first
  std::vector<std::int64_t> times = {};  // the distinct times of the steps
  std::vector<std::int64_t> live = {};   // [time]: change of the sum since the start of the run, after all steps at that time
  std::int64_t highest = 0;              // the largest of `live`, at least 0
  std::int64_t total = 1;                // isolated time of the whole run, never 0
  LiveBytes net = {};                    // change over the whole run, by category
};

__extension__ using WideInteger = __int128;  // products of two times

// The time in nanoseconds at which isolated time `at` of the run falls in a span of it: the run is stretched to the length of the span.
inline std::int64_t time_in(const Span& span, const MemoryRun& run, std::int64_t at) {
  const std::int64_t length = span.end.value - span.begin.value;
  if (length == run.total) return span.begin.value + at;
  return span.begin.value + static_cast<std::int64_t>(static_cast<WideInteger>(at) * length / run.total);
}

// The runs of one role and their effect on one space.
class RoleMemory {
 public:
  // `root_of`: [group] not 0: the ranks are the root of it (core/plan/root_places.h); empty: the root of every group, as for a bound. The
  // plan must outlive this object.
  RoleMemory(const Plan& plan, RoleId role, Space space, std::vector<char> root_of = {});

  // Live bytes at the start of a run of the plan: resident and carried-over blocks.
  const LiveBytes& start() const { return start_; }
  const MemoryRun& run(const Span& span);  // the run of this span
  const MemoryRun& run(SegmentId segment, std::int32_t instruction, std::int32_t count);

 private:
  bool holds(const Instruction& run, const Block& block) const;
  MemoryRun make(SegmentId segment, std::int32_t instruction, std::int32_t count) const;
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
