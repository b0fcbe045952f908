// A schedule search for stages that differ: the order of forwards, input gradients and weight gradients of a pipeline with one stage per
// rank, under a limit of micro-batches in flight on each rank.
#pragma once

#include <variant>
#include <vector>

#include "strategy/schedule/schedule.h"

namespace foreshard {

// The rows of the table that such a search begins with: one stage per rank, one route, a flush, and possible for the shape.
std::vector<ScheduleEntry> rules_with_one_stage_per_rank(const ScheduleShape& shape);

struct ScheduleSearch {
  int microbatches = 1;
  ScheduleTimes<double> times = {};      // of each stage, which are as many as ranks
  std::vector<int> most_in_flight = {};  // [rank]: forwards less weight gradients
  int tries = 20'000;                    // orders that are looked at behind those it begins with
};
struct FoundSchedule {
  ScheduleLists lists = {};
  double makespan = 0;
  std::string began_with = {};  // the row of the table, or "greedy"
  double makespan_then = 0;
};

// Begins with the best of the rows of the table and of greedy orders that keep the limits, then moves single actions within the list of
// their rank as long as nothing gets slower. Never slower than such a row; the same answer for the same question.
// O(tries x actions). Infeasible: a limit below 1.
std::variant<FoundSchedule, Infeasible> search_schedule(const ScheduleSearch& search);

}  // namespace foreshard
