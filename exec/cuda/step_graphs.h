// CUDA graphs of a rank's steps. Consecutive steps of a stream that have no event between them, and that are the same in every run, are
// captured once as a graph (a unit) and then launched together; a unit is not continued behind a step of another run. The units are found in the second run (in the first, waits for events that
// have not been recorded are missing), and used from the third run on. A graph records the begin and end events of its steps. So each unit
// has one graph per run that may be in flight.
#pragma once

#include <array>
#include <unordered_map>
#include <vector>

#include "core/base/ids.h"
#include "exec/cuda/runtime.h"

namespace foreshard::gpu {

class GpuTask;
struct IssuedStep;

inline constexpr int kRunsUnderWay = 4;  // runs in flight: a rank issues at most this many runs ahead of its GPU

struct GraphUnit {
  struct Step {
    int step = 0;
    GpuTask* task = nullptr;
  };
  struct Instance {                            // for one of the runs in flight
    Graph* graph = nullptr;                    // null: not yet captured
    std::vector<Event*> begin = {}, end = {};  // [step of the unit], recorded by the graph
    Event* over = nullptr;                     // recorded after the graph
    std::vector<IssuedStep*> issued = {};      // [step of the unit], in the run that uses this instance
  };
  std::vector<Step> steps = {};
  std::array<Instance, kRunsUnderWay> instances = {};  // [run % kRunsUnderWay]
};

class StepGraphs {
 public:
  struct Place {
    int unit = -1;       // index of the unit; -1: the step is in none
    std::size_t at = 0;  // position in the unit
  };

  explicit StepGraphs(Runtime& runtime) : runtime_(runtime) {}
  ~StepGraphs();
  StepGraphs(const StepGraphs&) = delete;
  StepGraphs& operator=(const StepGraphs&) = delete;

  // Both are called in issue order, for every wait or record and every step. `step` returns the step's place in a unit.
  void event(StreamId stream) { close(stream); }
  Place step(StreamId stream, int step, GpuTask* task, int run);

  GraphUnit& unit(int index) { return units_[static_cast<std::size_t>(index)]; }
  int count() const { return static_cast<int>(units_.size()); }  // number of units

 private:
  void close(StreamId stream);  // ends the unit that is being collected on the stream

  Runtime& runtime_;
  int first_run_ = -1, last_run_ = -1;                          // the first run, and that of the step before
  std::unordered_map<int, std::vector<GraphUnit::Step>> open_;  // by stream
  std::vector<GraphUnit> units_;
  std::unordered_map<int, Place> place_of_;  // by step
};

}  // namespace foreshard::gpu
