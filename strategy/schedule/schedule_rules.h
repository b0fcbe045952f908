// Functions that the generators of schedules share: checks of the shape, and placements of stages on ranks.
#pragma once

#include "strategy/schedule/schedule.h"

namespace foreshard {

// Why a shape is not possible; empty: it is. refuse_size requires p, m and v of at least 1 and lists that fit in memory (20 million
// actions); refuse_chunks also requires one chunk per rank; refuse_all_but_two also two chunks per rank and no micro-batch groups (g = 0).
// `schedule`: its name, for the message.
std::optional<Infeasible> refuse_size(const ScheduleShape& shape);
std::optional<Infeasible> refuse_chunks(const ScheduleShape& shape, const char* schedule);
std::optional<Infeasible> refuse_all_but_two(const ScheduleShape& shape, const std::string& schedule);

// Why interleaved 1F1B is not possible for the groups of micro-batches of a shape (docs/schedules.md, "Interleaved 1F1B").
std::optional<Infeasible> refuse_groups(const ScheduleShape& shape, const std::string& schedule);
// The order in which interleaved 1F1B visits (chunk, micro-batch) pairs in forwards, the chunk as the stage; backwards visit the mirrored
// chunks. With one chunk per rank it is the order of the micro-batches.
std::vector<ScheduleOp> interleaved_turns(const ScheduleShape& shape);

// The lists of 1F1B, which the asynchronous schedules have, too.
ScheduleLists one_f_one_b_lists(const ScheduleShape& shape);

// Rank of a stage.
int straight_placement(int stage, int p);  // rank s
int loop_placement(int stage, int p);      // rank s mod p
int v_placement(int stage, int p);         // stages 0 .. p-1 on ranks 0 .. p-1, stages p .. 2p-1 on ranks p-1 .. 0
// Stage of a chunk of a rank.
int loop_stage(int rank, int chunk, int p);  // the inverse of straight_placement and of loop_placement
int v_stage(int rank, int chunk, int p);     // the inverse of v_placement
// With two routes, rank r holds stage r of one route and stage p-1-r of the other. Chunk 0 is the one nearer to the model's input, so equal
// chunks of the ranks r and p-1-r hold the same stage of the model.
int mirrored_stage(int rank, int chunk, int p);

}  // namespace foreshard
