// CUDA graphs of a rank's steps: what one stream does between two events, the same in every run, is captured once and launched whole. Found by
// watching the second run (in the first, waits for events that are not recorded yet are missing), used from the third run on. A graph records the begin
// and end events of its own steps, so there is one per run that may be under way.
#pragma once

#include <array>
#include <unordered_map>
#include <vector>

#include "core/base/ids.h"
#include "exec/cuda/runtime.h"

namespace foreshard::gpu {

class GpuTask;
struct IssuedStep;

inline constexpr int kRunsUnderWay = 4;  // a rank does not get further ahead of its GPU

struct GraphUnit {
  struct Step {
    int step = 0;
    GpuTask* task = nullptr;
  };
  struct Instance {
    Graph* graph = nullptr;                    // null: not yet captured
    std::vector<Event*> begin = {}, end = {};  // [step], recorded by the graph
    Event* over = nullptr;                     // recorded after it
    std::vector<IssuedStep*> issued = {};      // [step], of the run that may be under way
  };
  std::vector<Step> steps = {};
  std::array<Instance, kRunsUnderWay> instances = {};
};

class StepGraphs {
 public:
  struct Place {
    int unit = -1;  // none: a step of its own
    std::size_t at = 0;
  };

  explicit StepGraphs(Runtime& runtime) : runtime_(runtime) {}
  ~StepGraphs();
  StepGraphs(const StepGraphs&) = delete;
  StepGraphs& operator=(const StepGraphs&) = delete;

  // Both in issue order.
  void event(StreamId stream) { close(stream); }
  Place step(StreamId stream, int step, GpuTask* task, int run);

  GraphUnit& unit(int index) { return units_[static_cast<std::size_t>(index)]; }
  int count() const { return static_cast<int>(units_.size()); }

 private:
  void close(StreamId stream);

  Runtime& runtime_;
  int first_run_ = -1;
  std::unordered_map<int, std::vector<GraphUnit::Step>> open_;  // by stream
  std::vector<GraphUnit> units_;
  std::unordered_map<int, Place> place_of_;  // by step
};

}  // namespace foreshard::gpu
