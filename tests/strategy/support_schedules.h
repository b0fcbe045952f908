// What the schedule tests share: every admissible shape of every table entry, and a slow, obvious longest path.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "strategy/schedule/schedule.h"

namespace foreshard {

struct ScheduleCase {
  const ScheduleEntry* entry = nullptr;
  ScheduleShape shape = {};
  ScheduleLists lists = {};
  int routes() const { return entry->routes; }
  int stages() const { return shape.p * shape.v * routes(); }  // of all routes
  bool is_first(int stage) const { return stage % (shape.p * shape.v) == 0; }
  bool is_last(int stage) const { return is_first(stage + 1); }
  std::string name() const {
    return entry->name + " p" + std::to_string(shape.p) + " m" + std::to_string(shape.m) + " v" + std::to_string(shape.v) +
           " g" + std::to_string(shape.g);
  }
};

// All shapes with p in {1, 2, 3, 4, 5, 8}, m up to 3p + 1, v up to 4 and every group size that the entry lets pass.
inline std::vector<ScheduleCase> all_schedule_cases() {
  std::vector<ScheduleCase> cases;
  for (const ScheduleEntry& entry : schedules())
    for (const int p : {1, 2, 3, 4, 5, 8})
      for (int m = 1; m <= 3 * p + 1; ++m)
        for (int v = 1; v <= (entry.chunks != Chunks::One ? 4 : 1); ++v)
          for (int g = 0; g <= (entry.chunks != Chunks::One ? m : 0); ++g) {
            const ScheduleShape shape = {.p = p, .m = m, .v = v, .g = g};
            if (!entry.refuse(shape)) cases.push_back({&entry, shape, entry.lists(shape)});
          }
  return cases;
}

// Repeats "an action starts when the one before it and its inputs are finished" until nothing changes; no order is
// assumed. Returns the makespan, -1 when the starts grow for ever (the lists deadlock).
inline std::int64_t obvious_makespan(const ScheduleLists& lists, const ScheduleTimes<std::int64_t>& times) {
  std::map<std::tuple<char, int, int>, std::int64_t> forward_or_gradient_end;  // ('F' or 'G', stage, micro-batch)
  std::map<int, std::size_t> rank_of;
  std::int64_t bound = 0;
  int stages = 0;
  for (std::size_t rank = 0; rank < lists.size(); ++rank)
    for (const ScheduleOp& op : lists[rank]) {
      rank_of[op.stage] = rank;
      stages = std::max(stages, op.stage + 1);
      const auto s = static_cast<std::size_t>(op.stage);
      bound += times.forward[s] + times.input_grad[s] + times.weight_grad[s] + times.latency;
    }
  const int per_route = stages / times.routes;
  std::int64_t makespan = 0;
  for (bool changed = true; changed && makespan <= bound;) {
    changed = false;
    for (std::size_t rank = 0; rank < lists.size(); ++rank) {
      std::int64_t now = 0;
      const auto wait = [&](const ScheduleOp& op) {
        const auto need = [&](char kind, int stage) {
          if (stage < 0 || stage >= stages || stage / per_route != op.stage / per_route) return;
          const std::int64_t hop = rank_of[stage] == rank ? 0 : times.latency;
          now = std::max(now, forward_or_gradient_end[{kind, stage, op.microbatch}] + hop);
        };
        if (op.work == Work::F) need('F', op.stage - 1);
        if (op.work == Work::B || op.work == Work::I) need('F', op.stage), need('G', op.stage + 1);
        if (op.work == Work::W) need('G', op.stage);
      };
      const auto length = [&](const ScheduleOp& op) {
        const auto s = static_cast<std::size_t>(op.stage);
        if (op.work == Work::F) return times.forward[s];
        return (op.work == Work::W ? 0 : times.input_grad[s]) + (op.work == Work::I ? 0 : times.weight_grad[s]);
      };
      const auto ends = [&](const ScheduleOp& op) {
        if (op.work == Work::W) return;
        std::int64_t& end = forward_or_gradient_end[{op.work == Work::F ? 'F' : 'G', op.stage, op.microbatch}];
        if (now > end) end = now, changed = true;
      };
      for (std::size_t k = 0; k < lists[rank].size(); ++k) {
        const ScheduleOp& op = lists[rank][k];
        wait(op);
        if (!op.with_next) {
          now += length(op), ends(op);
          continue;
        }
        const ScheduleOp& other = lists[rank][++k];
        wait(other);
        now += length(op) + std::max<std::int64_t>(0, length(other) - times.saved);
        ends(op), ends(other);
      }
      makespan = std::max(makespan, now);
    }
  }
  return makespan > bound ? -1 : makespan;
}

}  // namespace foreshard
