// MemoryTimeline: live bytes by category over time. Live peak (depends on timing), order bound (the largest set of blocks that
// the plan's order lets live together) and arena are three numbers, never mixed.
#pragma once

#include <array>
#include <vector>

#include "core/plan.h"
#include "core/trace.h"

namespace foreshard {

using LiveBytes = std::array<Bytes, kCategories>;  // indexed by Category
Bytes sum(const LiveBytes& live);

// At `when` a block of `category` comes to life (bytes > 0) or dies (bytes < 0).
struct MemoryEvent {
  Nanoseconds when = {};
  Category category = Category::Transient;
  Bytes bytes = {};
  bool operator==(const MemoryEvent&) const = default;
};

// One space of one rank class.
struct MemoryCurve {
  ClassId who = {};
  Space space = Space::Device;
  LiveBytes start = {};                    // resident and carried-over blocks
  std::vector<MemoryEvent> events = {};    // in time order; at one instant releases first. Empty when only peaks were asked for
  LiveBytes peak = {};                     // at the moment of the largest sum
  Nanoseconds peak_time = {};
  Bytes arena = {};                        // highest offset + size of any block
  bool operator==(const MemoryCurve&) const = default;
};

struct MemoryTimeline {
  std::vector<MemoryCurve> curves = {};
  bool operator==(const MemoryTimeline&) const = default;
};

struct MemoryTimelineOptions {
  bool events = true;  // false: peaks only, much cheaper
};

// Blocks that share a space and a rank; a block inside a merged span lives from the isolated time of its instruction.
MemoryTimeline memory_timeline(const Plan& plan, const Trace& trace, const MemoryTimelineOptions& options = {});

// Highest end of any block of `space` in `role`.
Bytes arena_bytes(const Role& role, Space space);

}  // namespace foreshard
