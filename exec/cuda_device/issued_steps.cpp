#include "exec/cuda_device/issued_steps.h"

#include <algorithm>
#include <utility>

#include "exec/cuda/gpu_task.h"

namespace foreshard::gpu {

void IssuedSteps::allocate_kept(GpuMemory& memory) {
  constexpr std::int64_t kAlignment = 8;
  const auto room = [](const KeptNumbers& kept) {
    return ceil_div(kept.bytes().value * kRunsUnderWay, kAlignment) * kAlignment;
  };
  Bytes all = {};
  for (const auto& [step, kept] : kept_) all += Bytes{room(kept)};
  std::byte* next = memory.allocate(Space::PinnedHost, all);
  for (auto& [step, kept] : kept_) kept.copies = next, next += room(kept);
}

IssuedStep& IssuedSteps::add(int step, int run, const GpuTask* task) {
  IssuedStep& next = steps_.emplace_back();
  next.step = step, next.run = run;
  const auto [name, fresh] = names_.try_emplace(step);
  if (fresh) name->second = observer_->label(step);
  next.name = &name->second;
  next.meets = task && task->meets();
  if (const auto kept = kept_.find(step); kept != kept_.end()) next.kept = &kept->second;
  if (std::exchange(issued_run_, run) != run && !timed(run)) next.border = clock_.take();
  return next;
}

void IssuedSteps::give_events(IssuedStep& step) {
  if (timed(step.run))
    step.begin = clock_.take(), step.met = clock_.take(), step.over = step.end = clock_.take();
  else
    step.over = marks_.take();
}

void IssuedSteps::poll() {
  if (stop_.raised()) throw Stopped{};
  try {
    while (!steps_.empty() && steps_.front().enqueued.load() && runtime_.done(steps_.front().over)) {
      begin(steps_.front());
      deliver(steps_.front());
      steps_.pop_front();
    }
    if (!steps_.empty()) begin(steps_.front());
  } catch (const std::exception& problem) {
    observer_->fails(steps_.front().step, problem.what());
    throw Stopped{};
  }
  busy_.store(!steps_.empty() && steps_.front().enqueued.load() && !steps_.front().meets);
}

// Steps are told in issue order, so if the run hangs, the step that began last is the oldest one that has not ended.
void IssuedSteps::begin(IssuedStep& oldest) {
  if (!std::exchange(oldest.begun, true)) observer_->begins(oldest.step, oldest.run);
}

void IssuedSteps::deliver(const IssuedStep& done) {
  if (done.border) clock_.rebase(done.border, clock_.time_of(done.border), done.run);
  TaskTimes times;
  if (done.end) {
    times.begin = clock_.time_of(done.begin);
    times.end = std::max(clock_.time_of(done.end), times.begin + 1);
    if (done.has_met) times.met = std::clamp(clock_.time_of(done.met), times.begin, times.end);
    times.own = std::max<std::int64_t>(1, times.end - std::max(times.begin, times.met) - clock_.timing());
  }
  if (const KeptNumbers* kept = done.kept) times.kept = {kept->copy_of(done.run), kept->at.elements, kept->at.dtype};
  observer_->ends(done.step, done.run, times);
  if (done.in_graph) return;
  if (!done.end) return marks_.give(done.over);
  clock_.give(done.met);
  clock_.give(done.end);
  clock_.rebase(done.begin, times.begin, done.run);
}

}  // namespace foreshard::gpu
