// Schedule: what each pipeline rank does, in order. The second of the tables between a strategy and its plan.
#pragma once

#include <vector>

#include "core/strategy/strategy.h"
#include "strategy/schedule/schedule.h"

namespace foreshard {

// With two routes every stage of the model stands on two ranks: the stages of the second route are numbered on from those of the first,
// and micro-batches are counted by each route for itself.
struct ScheduleTable {
  std::vector<std::vector<int>> stages_of_rank = {};  // [pipeline rank][chunk]
  ScheduleLists order = {};                           // [pipeline rank]
  bool splits = false;                                // backwards come in two halves: I and W instead of B
  int routes = 1;

  // Asynchronous: updates stand in the order too, as often as the stage is updated in a run. Versions of the weights are numbered by these
  // updates; each lies in a slot, the first one and the last one in slot 0.
  struct Weights {
    int version = 0, slot = 0;  // that an action reads, or that an update makes
    bool newest = false;        // a backward reads what there is, not what its forward read
  };
  int updates = 1;                                 // of each stage in a run
  std::vector<int> weight_slots = {};              // [pipeline rank]; empty: one each
  std::vector<std::vector<Weights>> weights = {};  // [pipeline rank][position in the order]; empty: one version
  // [pipeline rank]: the most updates between the weights that a forward reads and those that its gradients change.
  std::vector<int> delays = {};
  bool asynchronous() const { return !weights.empty(); }

  // The other way round: [stage]
  std::vector<int> rank_of_stage = {}, chunk_of_stage = {};

  int per_route() const { return static_cast<int>(rank_of_stage.size()) / routes; }
  int model_stage(int stage) const { return stage % per_route(); }
  bool is_first(int stage) const { return model_stage(stage) == 0; }
  bool is_last(int stage) const { return model_stage(stage) + 1 == per_route(); }
  int microbatch(const ScheduleOp& op) const { return op.microbatch * routes + op.stage / per_route(); }  // of the whole step
  bool ends_hold_both() const {
    return rank_of(0) == rank_of(per_route() - 1) || routes > 1;
  }  // the first and the last stage on one rank

  int ranks() const { return static_cast<int>(stages_of_rank.size()); }
  int rank_of(int stage) const { return rank_of_stage[static_cast<std::size_t>(stage)]; }
  int chunk_of(int stage) const { return chunk_of_stage[static_cast<std::size_t>(stage)]; }
};

// Of a resolved strategy; with degrees of their own for stages there is no order (lower_stages.cpp).
ScheduleTable schedule_table(const Strategy& strategy);

// [stage]: its pipeline rank, of the first route.
std::vector<int> ranks_of_stages(const Strategy& strategy);

// Its schedule computes input and weight gradients apart.
bool splits_backwards(const Strategy& strategy);

}  // namespace foreshard
