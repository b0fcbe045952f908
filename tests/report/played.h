// Results to test with: a pipeline plan from a schedule, and a plain player of plans that needs no engine. The player
// is slow and dull on purpose: it knows streams, `after`, events and meetings, and takes Cost::busy as the whole
// duration of everything.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "core/cluster/cluster.h"
#include "core/result/result.h"
#include "strategy/schedule/schedule.h"

namespace foreshard::played {

// One role per pipeline rank with `replicas` ranks on axis dp. Streams: 0 compute, 1 receive and 2 send activations,
// 3 receive and 4 send gradients, 5 gradient reduction. Times in units of `unit`.
struct Pipeline {
  Schedule schedule = Schedule::OneFOneB;
  int p = 4, m = 8, v = 1, replicas = 1;
  std::vector<int> forward = {1}, backward = {2};  // [stage], the last one counts for the stages after it
  int weight_gradient = 1;                         // the part of a backward that is its weight gradient
  int latency = 0;                                 // of a transfer between stages
  int reduce = 0, update = 0;                      // at the end of the step, 0: none
  bool norm = false;                               // a collective over all stages before the update, of length `reduce`
  std::int64_t unit = 1'000'000;                   // nanoseconds
};
Plan plan_of(const Pipeline& pipeline);

// 1F1B or GPipe of 1 to 5 stages that differ, 1 to 9 micro-batches, 1 to 3 replicas.
Pipeline drawn_pipeline(std::mt19937& random);

struct Slow {  // a rank whose compute takes `factor` times as long
  int rank = -1, factor = 1;
};
enum class Fold { None, Roles };  // Roles: one class per role, played by its first rank
Trace play(const Plan& plan, Fold fold = Fold::Roles, const Slow& slow = {});
Result result_of(const Pipeline& pipeline, Fold fold = Fold::Roles, const Slow& slow = {});

// Runs of compute spans of one (class, action) become one span, as at granularity "stage".
Trace merged(const Trace& trace);

// GPUs called "unit" of 1e12 FLOP/s in every format and 80 GiB.
Cluster cluster_of(int gpus);

// What find_bubbles is judged by: makespan minus the union of the spans on the compute streams.
Nanoseconds idle_of(const Plan& plan, const Trace& trace, ClassId who);

}  // namespace foreshard::played
