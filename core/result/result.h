// Result: a Trace with its MemoryTimeline, as written to a `.result` file (compact, columnar JSON; events are recomputed from
// the plan, which the file carries).
#pragma once

#include <string>

#include "core/plan/plan.h"
#include "core/result/memory_timeline.h"
#include "core/result/trace.h"

namespace foreshard {

enum class Granularity : std::uint8_t { Op, Layer, Stage };  // what one step of a replay covers (replay/steps.h)
// Which ranks one representative stands for: none but itself, equal ranks of one tensor-parallel group, or all equal ranks.
enum class Folding : std::uint8_t { None, Tp, Full };

// The hardware of a measured run; both members are empty if the file does not say.
struct MeasuredOn {
  std::string kind = {};   // "host", or the name that the GPU reports: "NVIDIA H200"
  std::string words = {};  // description: model of the processor, number of cores or GPUs, ...
  bool operator==(const MeasuredOn&) const = default;
};

struct Result {
  Plan plan = {};
  Trace trace = {};
  MemoryTimeline memory = {};
  Granularity granularity = Granularity::Layer;
  Folding folding = Folding::Full;
  double makespan_s = 0;  // in seconds, before rounding to nanoseconds
  // Of runs that overlap (Role::ahead): seconds from the end of one to the end of the next, in the middle of many; 0: they do not. The trace
  // and the makespan are then those of a run by itself, which fills the pipeline and drains it.
  double period_s = 0;
  std::int64_t engine_events = 0;  // timers and transfers that SimGrid completed
  MeasuredOn measured_on = {};     // of a simulation: empty
  bool operator==(const Result&) const = default;
};

// parse_result(to_json(r)) == r if the curves of r.memory have no events, or those of memory_timeline(plan, trace): events are not stored.
// Throw Error.
std::string to_json(const Result& result);
Result parse_result(const std::string& text, const std::string& file_name);
Result load_result(const std::string& path);
void save_result(const Result& result, const std::string& path);  // writes to a temporary name, then renames

}  // namespace foreshard
