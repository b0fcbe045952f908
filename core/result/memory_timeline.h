// MemoryTimeline: live bytes by category over time. Live peak (depends on timing), order bound (the largest set of blocks that
// the plan's order lets live together) and arena are three numbers, never mixed.
#pragma once

#include <array>
#include <vector>

#include "core/plan/plan.h"
#include "core/result/trace.h"

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
  LiveBytes start = {};                  // resident and carried-over blocks
  std::vector<MemoryEvent> events = {};  // in time order; at one instant releases first. Empty when only peaks were asked for
  LiveBytes peak = {};                   // at the first moment of the largest sum, the start included
  Nanoseconds peak_time = {};
  Bytes arena = {};  // highest offset + size of any block
  bool operator==(const MemoryCurve&) const = default;
};

struct MemoryTimeline {
  std::vector<MemoryCurve> curves = {};
  bool operator==(const MemoryTimeline&) const = default;
};

struct MemoryTimelineOptions {
  bool events = true;  // false: peaks only, much cheaper
};

// One curve per class and space that its role uses (device always), in that order.
//
// A block lives from the begin of the instruction that acquires it to the end of the one that releases it, the end excluded:
// live(t) counts what happened at times <= t, so a block without duration is never alive. Inside a span of several
// instructions each begins at span.begin + (isolated times before it) * (length of the span / isolated time of the run),
// rounded down; a run without isolated times is cut in equal parts. A block is carried over from the previous run when the
// role releases it before it acquires it. Buffers of scope device are counted for every class that lists them.
// Every instruction that acquires or releases must be in exactly one span; spans in the order that Trace promises.
MemoryTimeline memory_timeline(const Plan& plan, const Trace& trace, const MemoryTimelineOptions& options = {});

// Highest end of any block of `space` in `role`.
Bytes arena_bytes(const Role& role, Space space);

}  // namespace foreshard
