// Searches for a fast schedule of a pipeline whose stages take different times: an order of forwards, input gradients and weight gradients,
// with one stage per rank and a limit on the micro-batches in flight on each rank. See docs/schedules.md, "An order of its own for stages
// that differ".
#pragma once

#include <variant>
#include <vector>

#include "strategy/schedule/schedule.h"

namespace foreshard {

// The rows of the schedule table that the search begins with: one stage per rank, one route, synchronous, and possible for the shape.
std::vector<ScheduleEntry> rules_with_one_stage_per_rank(const ScheduleShape& shape);

struct ScheduleSearch {
  int microbatches = 1;
  ScheduleTimes<double> times = {};      // seconds; as many stages as ranks
  std::vector<int> most_in_flight = {};  // [rank]: the most micro-batches in flight (forwards less weight gradients)
  int tries = 20'000;                    // changes of the first order that are tried
};
struct FoundSchedule {
  ScheduleLists lists = {};
  double makespan = 0;          // seconds
  std::string began_with = {};  // name of the first order: a row of the table, or "greedy"
  double makespan_then = 0;     // makespan of the first order
};

// Local search. The first order is the fastest among the rows of the table and two greedy orders that keep the limits. Then it moves single
// actions, chosen at random with a fixed seed, to another position in their rank's list, and keeps a move unless it makes the makespan
// longer or breaks a limit. So the result is never slower than the rows that keep the limits, and always the same for the same input.
// O(tries x actions). Infeasible: a limit below 1.
std::variant<FoundSchedule, Infeasible> search_schedule(const ScheduleSearch& search);

}  // namespace foreshard
