// What the generators share: refusals that hold for every schedule, and stage placements.
#pragma once

#include "strategy/schedule/schedule.h"

namespace foreshard {

// p, m, v at least 1, and lists that fit in memory.
std::optional<Infeasible> refuse_size(const ScheduleShape& shape);
// The same, and one chunk per rank.
std::optional<Infeasible> refuse_chunks(const ScheduleShape& shape, const char* schedule);

int straight_placement(int stage, int p);    // stage s on rank s
int loop_placement(int stage, int p);        // stage s on rank s mod p
int v_placement(int stage, int p);           // down the ranks with chunk 0, back up with chunk 1
int loop_stage(int rank, int chunk, int p);  // the inverse of both straight and loop
int v_stage(int rank, int chunk, int p);

}  // namespace foreshard
