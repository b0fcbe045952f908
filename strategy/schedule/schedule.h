// Schedules: the order of forward and backward actions of every pipeline rank. A schedule is one generator and one
// table entry. Formulas and golden numbers: docs/schedules.md. Symbols: p pipeline ranks, m micro-batches, v chunks per
// rank, g group size.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/plan/plan.h"
#include "core/strategy/strategy.h"

namespace foreshard {

struct ScheduleOp {
  Work work = Work::F;
  std::int32_t stage = 0;  // of p * v stages, in forward order; those of a second route follow (ScheduleEntry::routes)
  std::int32_t microbatch = 0;
  bool with_next = false;  // one cell with the next action of the list: a forward and a backward, or both its halves, that overlap
  bool operator==(const ScheduleOp&) const = default;
};
using ScheduleLists = std::vector<std::vector<ScheduleOp>>;  // [pipeline rank]

struct ScheduleShape {
  int p = 1, m = 1, v = 1, g = 0;  // g 0: p
};

struct FlightShape {
  double p = 1, m = 1, v = 1, rank = 0;
};
struct FillTimes {  // of a rank and one micro-batch, seconds; hop: of a transfer to a neighbour
  double forward = 0, input_grad = 0, weight_grad = 0, hop = 0;
  double ranks = 1, chunks = 1, microbatches = 1;
};
enum class Chunks : std::uint8_t { One, Two, Several, Any };  // virtual stages of a rank; several: two or more

// One row of the schedule table. `lists` may be called only for a shape that `refuse` lets pass.
struct ScheduleEntry {
  Schedule id = Schedule::OneFOneB;
  std::string name = {};     // "1f1b"
  std::string summary = {};  // one line for `list schedules`
  Chunks chunks = Chunks::One;
  std::optional<Infeasible> (*refuse)(const ScheduleShape&) = nullptr;  // why the shape is not possible
  ScheduleLists (*lists)(const ScheduleShape&) = nullptr;
  int (*rank_of_stage)(int stage, int p) = nullptr;
  int (*stage_of)(int rank, int chunk, int p) = nullptr;  // the other way round
  bool splits = false;                                    // I and W instead of B, or of some of them
  // Two: every stage stands on two ranks, once for the micro-batches that go down the ranks and once for those that go up. Stage
  // p + s is then stage s of the second route, whose micro-batches have numbers of their own.
  int routes = 1;
  // Asynchronous: after how many backwards of a micro-batch a stage is updated; null: once, when all are done. And how many versions of
  // its weights a rank keeps, so that the backward reads those that the forward read, or the newest.
  int (*backwards_per_update)(const ScheduleShape&) = nullptr;
  int (*weight_versions)(const ScheduleShape&, int rank) = nullptr;
  bool backward_reads_newest = false;
  bool one_update_late = false;  // the micro-batches of an update read the weights of one update before
  bool forwards_first = false;   // no backward before the last forward
  bool on_request = true;        // search looks at it only when it is asked for: a framework has to be able to run it

  // What search orders candidates by (docs/search-estimates.md, "Screen"). Chunks in flight on a rank at most:
  double (*in_flight)(const FlightShape&) = nullptr;
  // Idle seconds of a rank while the pipeline fills and drains, beside one that works all the time; null: the longest paths of 1F1B, or of
  // all forwards and then all backwards. And what no rank has alone, in transfers between neighbours.
  double (*idle)(const FillTimes&) = nullptr;
  int (*idle_hops)(int p) = nullptr;
};
const std::vector<ScheduleEntry>& schedules();
const ScheduleEntry& schedule_entry(Schedule id);
const ScheduleEntry* find_schedule(const std::string& name);
int rank_of_stage(Schedule id, int stage, int p);
int stage_of(Schedule id, int rank, int chunk, int p);

// Durations per stage; a transfer between different ranks adds `latency`, or hops[s] between the stages s and s+1 where that is
// given, and occupies nothing (docs/schedules.md, "The clock"). `in_turn`: it occupies the way from the one rank to the other, and
// the next one in that direction begins after it.
template <class Time>
struct ScheduleTimes {
  std::vector<Time> forward = {}, input_grad = {}, weight_grad = {};  // [stage]; B takes input_grad + weight_grad
  Time latency = {};
  std::vector<Time> hops = {};
  bool in_turn = false;
  int routes = 1;                             // number of pipelines that share the ranks; their stages follow each other
  Time saved = {};                            // a cell takes the sum of the times of its actions, less this
  std::vector<std::vector<Time>> exact = {};  // [rank][position in its list] of some actions; empty, negative: as above
};
// The same durations for every stage.
template <class Time>
ScheduleTimes<Time> equal_times(int stages, Time forward, Time input_grad, Time weight_grad, Time latency = {}) {
  const auto n = static_cast<std::size_t>(stages);
  return {std::vector<Time>(n, forward), std::vector<Time>(n, input_grad), std::vector<Time>(n, weight_grad), latency};
}
template <class Time>
struct ScheduleTiming {
  std::vector<std::vector<Time>> begin = {}, end = {};  // [rank][position in its list]
  Time makespan = {};
  std::vector<Time> idle = {};  // [rank]: makespan - busy
};
// Longest path through rank order and data edges, in O(actions). Empty result: the lists deadlock; `blocked` then holds
// the action that each unfinished rank is stuck at. Durations must not be negative. Instantiated for double,
// std::int64_t (exact).
template <class Time>
std::optional<ScheduleTiming<Time>> evaluate(const ScheduleLists& lists, const ScheduleTimes<Time>& times,
                                             std::vector<std::string>* blocked = nullptr);

// Peak number of chunks in flight per rank: forwards minus backwards (or weight gradients) in list order.
std::vector<int> peak_in_flight(const ScheduleLists& lists);

// Which weights the forward and the backward of each micro-batch of a rank read, counted in updates of the rank (version 0: before the
// first). Of an asynchronous schedule with one stage per rank (docs/schedules.md, "Without a flush").
struct VersionsRead {
  int forward = 0, backward = 0;
  bool operator==(const VersionsRead&) const = default;
};
std::vector<VersionsRead> versions_read(const ScheduleEntry& entry, const ScheduleShape& shape, int rank);  // [micro-batch]

// What is missing or double in the lists: every (stage, micro-batch) has one F and either one B or one I and one W, and
// a stage lives on one rank. Empty: complete. Order is not looked at; evaluate() does that.
std::optional<std::string> incomplete(const ScheduleLists& lists);

// Text: one rank per line, "0F0 0F1 2F0 ..." (stage, work, micro-batch); "0F3&3B1": one cell.
std::string to_text(const ScheduleOp& op);
std::string to_text(const ScheduleLists& lists);

// ASCII picture to scale, one row per rank and a legend; `columns` wide at most (at least 40).
std::string draw(const ScheduleLists& lists, const ScheduleTiming<double>& timing, int columns = 100);

}  // namespace foreshard
