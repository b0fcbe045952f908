// Steps of a device that are launched as one CUDA graph.
#include "exec/cuda/cuda_device.h"

namespace foreshard::gpu {

// The unit is pushed with its last step; until then nothing else of this stream is.
void CudaDevice::join_unit(StreamId stream, StepGraphs::Place place, Pending& step, int run) {
  GraphUnit& unit = graphs_->unit(place.unit);
  GraphUnit::Instance& instance = unit.instances[static_cast<std::size_t>(run % kRunsUnderWay)];
  while (timed(run) && instance.begin.size() < unit.steps.size())
    instance.begin.push_back(times_.take()), instance.end.push_back(times_.take());
  if (!instance.over) instance.over = marks_.take();
  if (unit_steps_.size() < static_cast<std::size_t>(graphs_->count()))
    unit_steps_.resize(static_cast<std::size_t>(graphs_->count()));
  std::vector<Pending*>& steps =
      unit_steps_[static_cast<std::size_t>(place.unit)][static_cast<std::size_t>(run % kRunsUnderWay)];
  steps.resize(unit.steps.size());
  steps[place.at] = &step;
  step.in_graph = true;
  if (timed(run)) step.begin = instance.begin[place.at], step.end = instance.end[place.at];
  step.over = instance.over;
  if (place.at + 1 == unit.steps.size()) push(stream, {.kind = Kind::Graph, .index = place.unit, .run = run});
}

void CudaDevice::put_unit(Channel& on, int index, int run) {
  GraphUnit& unit = graphs_->unit(index);
  const auto turn = static_cast<std::size_t>(run % kRunsUnderWay);
  const std::vector<Pending*>& steps = unit_steps_[static_cast<std::size_t>(index)][turn];
  Graph*& graph = unit.instances[turn].graph;
  if (!graph) {
    runtime_.begin_capture(on.stream);
    for (std::size_t i = 0; i < steps.size(); ++i) put(on, *steps[i], unit.steps[i].task, run);
    graph = runtime_.end_capture(on.stream);
  }
  const Range range(runtime_, *steps.front()->name + " to " + *steps.back()->name);
  if (Event* border = steps.front()->border) runtime_.record(border, on.stream);
  runtime_.launch(graph, on.stream);
  // An event that a graph records keeps its former state until the GPU comes to it; this one is not done from here on.
  runtime_.record(unit.instances[turn].over, on.stream);
  for (Pending* step : steps) step->enqueued.store(true);
}

}  // namespace foreshard::gpu
