// Schedule: the actions of each pipeline rank, in order. The second of the five tables between a strategy and its plan.
#pragma once

#include <algorithm>
#include <vector>

#include "core/strategy/strategy.h"
#include "strategy/schedule/schedule.h"

namespace foreshard {

// Bidirectional schedules (Chimera, DualPipe) have two routes: two ranks hold every stage of the model, and half of the micro-batches go
// down the ranks, half up. Then stages are numbered through both routes (those of the second route follow those of the first), and each
// route counts its micro-batches from 0.
struct ScheduleTable {
  std::vector<std::vector<int>> stages_of_rank = {};  // [pipeline rank][chunk]: stage
  ScheduleLists order = {};                           // [pipeline rank]: its actions
  bool splits = false;                                // backwards are split into input gradients (I) and weight gradients (W)
  int routes = 1;                                     // 1 or 2
  bool delays_weights = false;                        // weight gradients of an unsplit backward follow the next communication

  // Asynchronous schedules (PipeDream) update a stage several times in a run, so the order of a rank contains its updates, and the next run
  // begins while this one drains. Versions of the weights are counted in updates from the oldest that a run reads. Each lies in a slot; the
  // newest one at the end of a run lies in slot 0.
  struct Weights {
    int version = 0, slot = 0;  // of the weights that an action reads, or that an update writes
    bool newest = false;        // a backward that reads the newest version instead of the one that its forward read
    bool keeps = false;         // an update that first copies the newest version, which it overwrites in slot 0, to slot 1
  };
  int updates = 1;                                 // of each stage in a run
  std::vector<int> weight_slots = {};              // [pipeline rank]: slots for versions; empty: one slot on each rank
  std::vector<std::vector<Weights>> weights = {};  // [pipeline rank][position in the order]; empty: synchronous, one version
  // [pipeline rank]: the largest number of updates between the version that a forward reads and the update that uses its gradients.
  std::vector<int> delays = {};
  // [pipeline rank][k]: action k of the next run is issued right after this position of the order. Empty: synchronous.
  std::vector<std::vector<int>> ahead = {};
  // [pipeline rank]: the input of the first forward behind those of `ahead` is received ahead, too, because its sender has sent it.
  std::vector<char> receives_ahead = {};
  bool asynchronous() const { return !weights.empty(); }
  // Slots of a ring of which a run of the rank needs so many at once, and the slot of a micro-batch in it.
  int slots_of_ring(int microbatches, int needed) const {
    return asynchronous() ? ring_slots(microbatches, std::min(needed, microbatches)) : needed;
  }
  int slot_in_ring(int microbatch, int microbatches, int needed) const {
    return asynchronous() ? ring_slot(microbatch, microbatches, std::min(needed, microbatches)) : microbatch % needed;
  }
  // Whether backwards read weights that may have been updated after their forward.
  bool backwards_read_newest() const { return asynchronous() && std::ranges::any_of(weights.front(), &Weights::newest); }

  // The inverse of stages_of_rank. [stage of any route]
  std::vector<int> rank_of_stage = {}, chunk_of_stage = {};

  int per_route() const { return static_cast<int>(rank_of_stage.size()) / routes; }  // stages of the model
  int model_stage(int stage) const { return stage % per_route(); }  // 0 .. per_route() - 1, for a stage of any route
  bool is_first(int stage) const { return model_stage(stage) == 0; }
  bool is_last(int stage) const { return model_stage(stage) + 1 == per_route(); }
  // Number of the action's micro-batch among those of both routes, which take turns.
  int microbatch(const ScheduleOp& op) const { return op.microbatch * routes + op.stage / per_route(); }
  // Whether the ranks that hold the first stage hold the last one, too.
  bool ends_hold_both() const { return rank_of(0) == rank_of(per_route() - 1) || routes > 1; }

  int ranks() const { return static_cast<int>(stages_of_rank.size()); }
  int rank_of(int stage) const { return rank_of_stage[static_cast<std::size_t>(stage)]; }
  int chunk_of(int stage) const { return chunk_of_stage[static_cast<std::size_t>(stage)]; }
};

// The table of a resolved strategy. If the stages have degrees of their own, `order` stays empty (stage_turns.h makes the order).
ScheduleTable schedule_table(const Strategy& strategy);

// The shape of a resolved strategy's schedule with so many micro-batches.
ScheduleShape schedule_shape(const Strategy& strategy, int microbatches);

// [stage of the first route]: its pipeline rank.
std::vector<int> ranks_of_stages(const Strategy& strategy);

// Whether the schedule has cells, in which a forward and the backward of another micro-batch run side by side.
bool has_cells(const Strategy& strategy);

// Whether the strategy's schedule computes input gradients and weight gradients as separate actions.
bool splits_backwards(const Strategy& strategy);

}  // namespace foreshard
