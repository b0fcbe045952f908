// What the generators share: refusals that hold for every schedule, and stage placements.
#pragma once

#include "strategy/schedule/schedule.h"

namespace foreshard {

// p, m, v at least 1, and lists that fit in memory.
std::optional<Infeasible> refuse_size(const ScheduleShape& shape);
// The same, and one chunk per rank.
std::optional<Infeasible> refuse_chunks(const ScheduleShape& shape, const char* schedule);
// Sizes, no groups of micro-batches, and two chunks per rank.
std::optional<Infeasible> refuse_all_but_two(const ScheduleShape& shape, const std::string& schedule);

// The lists of 1f1b, which the schedules without a flush have too.
ScheduleLists one_f_one_b_lists(const ScheduleShape& shape);

int straight_placement(int stage, int p);    // stage s on rank s
int loop_placement(int stage, int p);        // stage s on rank s mod p
int v_placement(int stage, int p);           // down the ranks with chunk 0, back up with chunk 1
int loop_stage(int rank, int chunk, int p);  // the inverse of both straight and loop
int v_stage(int rank, int chunk, int p);
// Of two routes: the rank holds stage r of the one and stage p-1-r of the other; chunk 0 is the stage nearer to the model's input, so that
// the same chunks of the ranks r and p-1-r are the same stage.
int mirrored_stage(int rank, int chunk, int p);

}  // namespace foreshard
