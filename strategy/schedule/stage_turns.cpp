#include "strategy/schedule/stage_turns.h"

#include <algorithm>
#include <numeric>

#include "core/base/error.h"
#include "core/base/units.h"

namespace foreshard {

static int of(const std::vector<int>& list, int stage) { return list[static_cast<std::size_t>(stage)]; }

int kept_in_turn(const std::vector<int>& replicas, int stage) {
  const int behind = std::accumulate(replicas.begin() + stage, replicas.end(), 0);
  return static_cast<int>(ceil_div(behind, of(replicas, stage)));
}

std::vector<StageTurns> stage_turns(Schedule schedule, const std::vector<int>& replicas, int microbatches) {
  FS_ASSERT(schedule == Schedule::GPipe || schedule == Schedule::OneFOneB);
  const int stages = static_cast<int>(replicas.size());
  std::vector<int> kept;
  for (int s = 0; s < stages; ++s) {
    const int own = microbatches / of(replicas, s);
    kept.push_back(schedule == Schedule::GPipe ? own : std::min(own, kept_in_turn(replicas, s)));
  }
  std::vector<StageTurns> turns;
  for (int s = 0; s < stages; ++s) {
    const int own = microbatches / of(replicas, s);
    StageTurns stage;
    for (int k = 0; k < of(kept, s) - 1; ++k) stage.list.push_back({Work::F, s, k});
    for (int k = 0; k < own; ++k) {
      if (const int next = k + of(kept, s) - 1; next < own) stage.list.push_back({Work::F, s, next});
      stage.list.push_back({Work::B, s, k});
    }
    // A slot for each micro-batch that the stage before has in flight, and for each that this stage begins before its first backward.
    if (s > 0)
      stage.input_slots = std::min(
          own, std::max(of(kept, s), static_cast<int>(ceil_div(of(kept, s - 1) * of(replicas, s - 1), of(replicas, s)))));
    // A slot for each gradient that the replicas of the next stage can send to one replica at once, and one in use.
    if (s + 1 < stages)
      stage.gradient_slots = std::min(own, static_cast<int>(ceil_div(of(replicas, s + 1), of(replicas, s))) + 1);
    turns.push_back(std::move(stage));
  }
  return turns;
}

}  // namespace foreshard
