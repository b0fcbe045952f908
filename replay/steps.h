// Steps: the instructions of a segment as the simulator plays them. At granularity "op" every instruction is a step;
// "layer" and "stage" merge a chain of instructions of one stream into one step when no rank or stream outside the chain can tell:
//
//   layer   neighbours of one stream and one layer, compute and marks only
//   stage   neighbours of one stream; collectives among ranks that do the same at the same time, on links that nobody
//   else
//           uses meanwhile, come along at their isolated time
//
// Inside a chain nothing but the last instruction records an event or has others after it, and nothing but the first
// waits.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/program.h"
#include "core/result/result.h"
#include "replay/patterns.h"

namespace foreshard::player {

enum class StepKind : std::uint8_t { Fixed, Compute, Exchange, Collective, Copy };

struct Step {
  std::int32_t first = 0, last = 0, count = 1;  // instructions; `count` of them are on `stream`
  std::int32_t stream = 0;
  StepKind kind = StepKind::Fixed;
  double seconds = 0;    // of a fixed or compute step; of the others: before the first byte
  double computing = 0;  // of these, what communication kernels slow down: not the collectives merged into a compute step
  double bytes = 0;      // on the wire; a collective: times FlowClass::bytes
  double sm_share = 0;
  std::int32_t slot = -1, from_slot = -1;             // what it sends, joins or copies; what it receives
  MeetingUse meeting = {}, from = {};                 // send side or group; receive side
  std::int32_t first_after = 0, end_after = 0;        // SegmentSteps::afters
  std::int32_t first_wait = 0, end_wait = 0;          // positions among the waits of the segment
  std::int32_t first_absorbed = 0, end_absorbed = 0;  // SegmentSteps::absorbed
  std::int32_t first_stretch = 0, end_stretch = 0;    // SegmentSteps::stretches; none where all of it computes
};

// A part of a merged step that only computes, or only communicates.
struct Stretch {
  double seconds = 0;
  bool computes = true;
};

// Collectives that a merged step plays by their formula: what they put on their links.
struct Absorbed {
  std::int32_t slot = 0;
  double bytes = 0, seconds = 0;
};

struct After {
  std::int32_t stream = 0, instruction = 0;
};

struct SegmentSteps {
  std::vector<Step> steps = {};
  std::vector<After> afters = {};
  std::vector<Absorbed> absorbed = {};
  std::vector<Stretch> stretches = {};
  std::vector<std::int32_t> of_stream = {};        // step numbers, stream by stream, in issue order
  std::vector<std::int32_t> first_of_stream = {};  // [stream] into of_stream; one more than streams

  int count(int stream) const {
    return first_of_stream[static_cast<std::size_t>(stream) + 1] - first_of_stream[static_cast<std::size_t>(stream)];
  }
  const Step& at(int stream, int position) const {
    return steps[static_cast<std::size_t>(
        of_stream[static_cast<std::size_t>(first_of_stream[static_cast<std::size_t>(stream)] + position)])];
  }
};

// What makes the steps of one segment differ between rank classes.
struct Flavour {
  const CostTable* costs = nullptr;
  double slowdown = 1;
  RoleId role = {};                   // decides where copies go; invalid when the segment has none
  std::vector<double> absorbed = {};  // [collective]: seconds per byte of a collective that may be merged; below 0: none
  auto operator<=>(const Flavour&) const = default;
};

SegmentSteps make_steps(const Plan& plan, const Patterns& patterns, SegmentId segment, const SegmentMeetings& meetings,
                        const Flavour& flavour, int streams, Granularity granularity);

}  // namespace foreshard::player
