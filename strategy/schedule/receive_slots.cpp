#include "strategy/schedule/receive_slots.h"

#include <algorithm>

namespace foreshard {

namespace {

// Counts and times of one stage's actions, in the order of its rank's list; so times ascend.
struct StageWalk {
  int rank = -1;
  int in_flight = 0, most_in_flight = 0;  // forwards minus backwards (or input gradients)
  int deferred = 0, most_deferred = 0;    // input gradients whose weight gradient is still to come
  std::vector<std::int64_t> output_sent = {}, gradient_sent = {}, released = {};
};

std::vector<StageWalk> walk_stages(const ScheduleLists& lists, const ScheduleTiming<std::int64_t>& timing, int stages) {
  std::vector<StageWalk> walks(static_cast<std::size_t>(stages));
  for (std::size_t rank = 0; rank < lists.size(); ++rank)
    for (std::size_t k = 0; k < lists[rank].size(); ++k) {
      const ScheduleOp& op = lists[rank][k];
      StageWalk& stage = walks[static_cast<std::size_t>(op.stage)];
      stage.rank = static_cast<int>(rank);
      if (op.work == Work::F) {
        stage.most_in_flight = std::max(stage.most_in_flight, ++stage.in_flight);
        stage.output_sent.push_back(timing.end[rank][k]);
      }
      if (op.work == Work::I) stage.most_deferred = std::max(stage.most_deferred, ++stage.deferred);
      if (op.work == Work::W) --stage.deferred;
      if (op.work == Work::B || op.work == Work::I) {
        --stage.in_flight;
        stage.gradient_sent.push_back(timing.end[rank][k]);
      }
      if (op.work == Work::B || op.work == Work::W) stage.released.push_back(timing.end[rank][k]);
    }
  return walks;
}

// The most items that have arrived but not been released. If an arrival and a release have the same time, the release is first.
int most_held(const std::vector<std::int64_t>& came, const std::vector<std::int64_t>& released) {
  std::size_t gone = 0, most = 0;
  for (std::size_t k = 0; k < came.size(); ++k) {
    while (gone < released.size() && released[gone] <= came[k]) ++gone;
    most = std::max(most, k + 1 - std::min(gone, k));
  }
  return static_cast<int>(most);
}

}  // namespace

ReceiveSlots receive_slots(const ScheduleLists& lists, int routes) {
  int stages = 0;
  for (const auto& list : lists)
    for (const ScheduleOp& op : list) stages = std::max(stages, op.stage + 1);
  auto times = equal_times<std::int64_t>(stages, 1, 1, 1);
  times.routes = routes;
  const auto per_route = static_cast<std::size_t>(stages / routes);
  const auto timing = evaluate(lists, times);
  FS_ASSERT(timing.has_value());
  const std::vector<StageWalk> walks = walk_stages(lists, *timing, stages);
  ReceiveSlots slots = {std::vector<int>(walks.size(), 0), std::vector<int>(walks.size(), 0)};
  for (std::size_t s = 0; s < walks.size(); ++s) {
    const StageWalk& here = walks[s];
    const int microbatches = static_cast<int>(here.released.size());
    if (s % per_route > 0)
      slots.input[s] =
          std::min(microbatches, walks[s - 1].rank == here.rank ? most_held(walks[s - 1].output_sent, here.released)
                                                                : walks[s - 1].most_in_flight + here.most_deferred);
    if ((s + 1) % per_route > 0)
      slots.gradient[s] = std::min(
          microbatches, most_held(walks[s + 1].gradient_sent, here.released) + (walks[s + 1].rank == here.rank ? 0 : 1));
  }
  return slots;
}

}  // namespace foreshard
