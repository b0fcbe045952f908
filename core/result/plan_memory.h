// PlanMemory: the part of a memory timeline that depends on the plan and its classes of ranks, not on times. It can be computed before a
// run, or while one is simulated.
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "core/result/memory_run.h"
#include "core/result/memory_timeline.h"

namespace foreshard {

class PlanMemory {
 public:
  // `classes`: those of the trace. The plan must outlive this object.
  PlanMemory(const Plan& plan, const std::vector<RankClass>& classes);

  // Computes ahead how the memory of this class changes in a span of `count` instructions of this segment, from `instruction` on.
  // Spans that were not prepared are computed by timeline().
  void prepare(ClassId who, SegmentId segment, std::int32_t instruction, std::int32_t count);
  // memory_timeline() of a trace with these classes.
  MemoryTimeline timeline(const Trace& trace, const MemoryTimelineOptions& options);

 private:
  struct OfSpace {
    Space space = Space::Device;
    RoleMemory* memory = nullptr;  // an element of memories_
  };
  const Plan& plan_;
  std::map<std::tuple<RoleId, Space, std::vector<char>>, RoleMemory> memories_ = {};
  std::vector<std::vector<OfSpace>> of_class_ = {};  // [class]: one element per space that its role uses, the device first
};

}  // namespace foreshard
