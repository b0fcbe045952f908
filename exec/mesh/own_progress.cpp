#include "exec/mesh/own_progress.h"

#include <utility>

namespace foreshard {

void OwnProgress::tell(const ProcessProgress& progress) {
  const std::lock_guard lock(mutex_);
  last_.ended = progress.ended, last_.works = progress.works;
  if (!progress.running.name.empty()) last_.running = progress.running;  // empty between two steps
}

void OwnProgress::ask(std::function<MeshRunning()> what_runs) {
  const std::lock_guard lock(asking_);
  what_runs_ = std::move(what_runs);
}

ProcessProgress OwnProgress::now() {
  MeshRunning running;
  {
    const std::lock_guard asking(asking_);
    if (what_runs_) running = what_runs_();
  }
  const std::lock_guard lock(mutex_);
  if (!running.name.empty()) last_.running = running;  // else the instruction that ran last
  return last_;
}

}  // namespace foreshard
