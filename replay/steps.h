// Steps: the instructions of a segment as the player runs them. At granularity "op" every instruction is a step. "layer" and "stage" merge
// a chain of instructions of one stream into one step where that changes no time outside the chain:
//
//   layer   consecutive instructions of one stream and one layer, computes and marks only
//   stage   consecutive instructions of one stream; also collectives, at their isolated time, among ranks that do the same at the same
//           time, on links that nothing else uses meanwhile
//
// In a chain only the first instruction waits, and only the last one records an event or has instructions of other streams after it.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/program.h"
#include "core/result/result.h"
#include "replay/patterns.h"
#include "replay/rank_speed.h"

namespace foreshard::player {

enum class StepKind : std::uint8_t { Fixed, Compute, Exchange, Collective, Copy };

struct Step {
  std::int32_t first = 0, last = 0, count = 1;  // the instructions first..last of the segment; `count` of them are on `stream`
  std::int32_t stream = 0;
  StepKind kind = StepKind::Fixed;
  double seconds = 0;    // fixed or compute step: its duration; else: before the first byte
  double computing = 0;  // the part of `seconds` that is computation, which communication kernels slow (not merged collectives)
  double bytes = 0;      // size times the wire factor; a flow moves FlowClass::bytes for each of them
  double sm_share = 0;   // share of the compute units that it takes from computes of other streams
  std::int32_t slot = -1, from_slot = -1;           // slot of its send, collective or copy; slot of its receive; -1: none
  MeetingUse meeting = {}, from = {};               // of its send or collective; of its receive
  std::int32_t first_after = 0, end_after = 0;      // range of SegmentSteps::afters
  std::int32_t first_wait = 0, end_wait = 0;        // range of the waits of the segment
  std::int32_t first_merged = 0, end_merged = 0;    // range of SegmentSteps::merged
  std::int32_t first_stretch = 0, end_stretch = 0;  // range of SegmentSteps::stretches; empty where all of it computes
};

// A part of a merged step that only computes or only communicates.
struct Stretch {
  double seconds = 0;
  bool computes = true;
};

// A collective that is merged into a step at its isolated time: what it puts on its links.
struct MergedCollective {
  std::int32_t slot = 0;
  double bytes = 0, seconds = 0;
};

// An instruction of the same segment that must end before the step begins.
struct After {
  std::int32_t stream = 0, instruction = 0;
};

struct SegmentSteps {
  std::vector<Step> steps = {};
  std::vector<After> afters = {};
  std::vector<MergedCollective> merged = {};
  std::vector<Stretch> stretches = {};
  std::vector<std::int32_t> of_stream = {};        // indices into `steps`, stream by stream, in issue order
  std::vector<std::int32_t> first_of_stream = {};  // [stream]: its first element of of_stream; one element more than streams

  int count(int stream) const {
    return first_of_stream[static_cast<std::size_t>(stream) + 1] - first_of_stream[static_cast<std::size_t>(stream)];
  }
  const Step& at(int stream, int position) const {
    return steps[static_cast<std::size_t>(
        of_stream[static_cast<std::size_t>(first_of_stream[static_cast<std::size_t>(stream)] + position)])];
  }
};

// Everything in which the steps of one segment can differ between rank classes.
struct StepVariant {
  const CostTable* costs = nullptr;
  RankSpeed pace = {};
  RoleId role = {};                 // decides where copies go; invalid when the role has no copies
  std::vector<double> merged = {};  // [collective]: seconds per byte of a collective that may be merged; below 0: it may not
  auto operator<=>(const StepVariant&) const = default;
};

SegmentSteps make_steps(const Plan& plan, const Patterns& patterns, SegmentId segment, const SegmentMeetings& meetings,
                        const StepVariant& variant, int streams, Granularity granularity);

}  // namespace foreshard::player
