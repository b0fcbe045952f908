// MemoryTimeline: live bytes by category over time. Three different sizes: the live peak (the most bytes alive at one time, depends on
// timing), the order bound (core/result/order_bound.h, independent of timing) and the arena (the allocation that holds all blocks).
#pragma once

#include <array>
#include <vector>

#include "core/plan/plan.h"
#include "core/result/trace.h"

namespace foreshard {

using LiveBytes = std::array<Bytes, kCategories>;  // indexed by Category
Bytes sum(const LiveBytes& live);

// At `when` a block of `category` is acquired (bytes > 0) or released (bytes < 0).
struct MemoryEvent {
  Nanoseconds when = {};
  Category category = Category::Transient;
  Bytes bytes = {};
  bool operator==(const MemoryEvent&) const = default;
};

// The live bytes of one class of ranks in one space.
struct MemoryCurve {
  ClassId who = {};
  Space space = Space::Device;
  LiveBytes start = {};                  // at time 0: resident and carried-over blocks
  std::vector<MemoryEvent> events = {};  // in order of time; at equal times releases first. Empty if only peaks are wanted
  LiveBytes peak = {};                   // by category, at the first time with the largest sum; time 0 counts
  Nanoseconds peak_time = {};
  Bytes arena = {};  // arena_bytes of the role
  bool operator==(const MemoryCurve&) const = default;
};

struct MemoryTimeline {
  std::vector<MemoryCurve> curves = {};
  bool operator==(const MemoryTimeline&) const = default;
};

struct MemoryTimelineOptions {
  bool events = true;  // false: peaks only, much cheaper
};

// The curves of a trace of the plan: one per class and per space that its role uses (always for the device), in that order.
//
// A block is alive from the start of the instruction that acquires it to the end of the one that releases it, the end excluded: live(t)
// includes all events at times <= t, so a block without duration is never alive. In a span of several instructions, each begins at
// span.begin + (isolated times before it) * (length of the span / isolated time of all), rounded down; without isolated times they are
// equally long. A block that the role releases before it acquires it is carried over from the previous run of the plan. Buffers of
// Scope::Device count for every class whose role lists them. Every instruction that acquires or releases must be in exactly one span, and
// spans must be in the order of Trace::spans.
MemoryTimeline memory_timeline(const Plan& plan, const Trace& trace, const MemoryTimelineOptions& options = {});

// The arena of `role` in `space`: the largest offset + size of any block.
Bytes arena_bytes(const Role& role, Space space);

}  // namespace foreshard
