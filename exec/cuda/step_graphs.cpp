#include "exec/cuda/step_graphs.h"

#include <utility>

#include "exec/cuda/gpu_task.h"

namespace foreshard::gpu {

StepGraphs::~StepGraphs() {
  for (const GraphUnit& unit : units_)
    for (const GraphUnit::Instance& instance : unit.instances)
      if (instance.graph) runtime_.drop_graph(instance.graph);
}

void StepGraphs::close(StreamId stream) {
  std::vector<GraphUnit::Step>& steps = open_[stream.value];
  if (steps.size() >= 2) {  // a single step is as fast without a graph
    for (std::size_t i = 0; i < steps.size(); ++i) place_of_[steps[i].step] = {.unit = count(), .at = i};
    units_.push_back({.steps = std::move(steps)});
  }
  steps.clear();
}

StepGraphs::Place StepGraphs::step(StreamId stream, int step, GpuTask* task, int run) {
  if (first_run_ < 0) first_run_ = run;
  if (std::exchange(last_run_, run) != run)
    for (auto& [open, steps] : open_) close({open});
  if (run == first_run_ + 1) {
    if (task && task->repeats())
      open_[stream.value].push_back({step, task});
    else
      close(stream);
  }
  if (run < first_run_ + 2) return {};
  for (auto& [open, steps] : open_) close({open});  // those at the end of the second run
  open_.clear();
  const auto found = place_of_.find(step);
  return found == place_of_.end() ? Place{} : found->second;
}

}  // namespace foreshard::gpu
