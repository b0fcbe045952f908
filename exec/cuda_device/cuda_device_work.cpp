// What the thread of a stream does: it enqueues steps on the CUDA stream, one by one or many as one CUDA graph.
#include "exec/cuda_device/cuda_device.h"

namespace foreshard::gpu {

void CudaDevice::work(Channel& on) {
  int step = 0;
  try {
    enter();
    while (const std::optional<Command> command = on.commands.take(stop_)) {
      if (stop_.raised()) break;
      if (command->kind == Command::Kind::Step) step = command->index;
      if (command->kind == Command::Kind::Graph) step = graphs_->unit(command->index).steps.front().step;
      run(on, *command);
    }
  } catch (const Stopped&) {  // the reason is reported by the thread that raised the stop
  } catch (const std::exception& problem) {
    steps_.fails(step, problem.what());
  }
  on.over.store(true);
}

void CudaDevice::run(Channel& on, const Command& command) {
  switch (command.kind) {
    case Command::Kind::Record: return events_.record(command.index, command.count, on.stream);
    case Command::Kind::Wait: return events_.wait(command.index, command.count, on.stream);
    case Command::Kind::Step: return put_step(on, command);
    case Command::Kind::Graph: return put_unit(on, command.index, command.run);
  }
}

void CudaDevice::put_step(Channel& on, const Command& command) {
  if (!alone_ || (command.task && command.task->meets())) {
    put(on, *command.step, command.task);
  } else {  // it locks `alone_` when everything before it has ended, and unlocks it when it has ended itself
    while (!runtime_.idle(on.stream)) yield_unless_stopped(stop_);
    const std::lock_guard lock(*alone_);
    put(on, *command.step, command.task);
    while (!runtime_.idle(on.stream)) yield_unless_stopped(stop_);
  }
  command.step->enqueued.store(true);
}

void CudaDevice::put(Channel& on, IssuedStep& step, GpuTask* task) {
  const Range range(runtime_, *step.name);
  if (step.border && !step.in_graph) runtime_.record(step.border, on.stream);
  if (step.begin) runtime_.record(step.begin, on.stream);
  if (task) {
    OnStream work{.runtime = runtime_, .stream = on.stream, .scratch = on.scratch, .workspace = on.workspace, .met = step.met};
    on.loads = !task->meets();
    task->enqueue(work, step.run);
    on.loads = false;
    step.has_met = work.has_met;
  }
  if (const KeptNumbers* kept = step.kept) runtime_.copy(kept->copy_of(step.run), kept->at.data, kept->bytes(), on.stream);
  if (step.end)
    runtime_.record(step.end, on.stream);
  else if (!step.in_graph)
    runtime_.record(step.over, on.stream);
}

// Adds a step to the run of its graph. The graph is pushed with its last step; until then this stream pushes nothing else.
void CudaDevice::join_unit(StreamId stream, StepGraphs::Place place, IssuedStep& step) {
  GraphUnit& unit = graphs_->unit(place.unit);
  GraphUnit::Instance& instance = unit.instances[static_cast<std::size_t>(step.run % kRunsUnderWay)];
  const bool timed = steps_.timed(step.run);
  while (timed && instance.begin.size() < unit.steps.size())
    instance.begin.push_back(clock_.take()), instance.end.push_back(clock_.take());
  if (!instance.over) instance.over = marks_.take();
  instance.issued.resize(unit.steps.size());
  instance.issued[place.at] = &step;
  step.in_graph = true;
  if (timed) step.begin = instance.begin[place.at], step.end = instance.end[place.at];
  step.over = instance.over;
  if (place.at + 1 == unit.steps.size()) push(stream, {.kind = Command::Kind::Graph, .index = place.unit, .run = step.run});
}

void CudaDevice::put_unit(Channel& on, int index, int run) {
  GraphUnit& unit = graphs_->unit(index);
  GraphUnit::Instance& instance = unit.instances[static_cast<std::size_t>(run % kRunsUnderWay)];
  const std::vector<IssuedStep*>& steps = instance.issued;
  if (!instance.graph) {
    runtime_.begin_capture(on.stream);
    for (std::size_t i = 0; i < steps.size(); ++i) put(on, *steps[i], unit.steps[i].task);
    instance.graph = runtime_.end_capture(on.stream);
  }
  const Range range(runtime_, *steps.front()->name + " to " + *steps.back()->name);
  if (Event* border = steps.front()->border) runtime_.record(border, on.stream);
  runtime_.launch(instance.graph, on.stream);
  // An event that a graph records keeps its state of the previous run until the GPU reaches it, so it might still count as done. `over` is
  // recorded on the stream and counts as not done from here on.
  runtime_.record(instance.over, on.stream);
  for (IssuedStep* step : steps) step->enqueued.store(true);
}

}  // namespace foreshard::gpu
