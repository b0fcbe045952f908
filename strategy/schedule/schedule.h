// Pipeline schedules: the order of the forward and backward actions of every pipeline rank. Each schedule is a generator of lists and a row
// of a table. Formulas, sources and expected numbers: docs/schedules.md. Symbols: p pipeline ranks, m micro-batches, v chunks (virtual
// stages) per rank, g micro-batches that a rank runs through one chunk before it goes on to the next.
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
  std::int32_t stage = 0;  // 0 .. p * v - 1 in forward order; the stages of a second route follow (ScheduleEntry::routes)
  std::int32_t microbatch = 0;
  // This action and the next of the list form one cell: a forward and a backward (or its halves) that overlap.
  bool with_next = false;
  bool operator==(const ScheduleOp&) const = default;
};
using ScheduleLists = std::vector<std::vector<ScheduleOp>>;  // [pipeline rank]

struct ScheduleShape {
  int p = 1, m = 1, v = 1, g = 0;  // g = 0 stands for g = p
  ActionTimes times = {};          // only for schedules that are made for given times (ScheduleEntry::by_times)
};

struct FlightShape {  // arguments of ScheduleEntry::in_flight
  double p = 1, m = 1, v = 1, rank = 0;
};
struct FillTimes {  // arguments of ScheduleEntry::idle
  // Seconds that a rank works on one micro-batch, and of a transfer to a neighbouring rank.
  double forward = 0, input_grad = 0, weight_grad = 0, hop = 0;
  double ranks = 1, chunks = 1, microbatches = 1;
};
enum class Chunks : std::uint8_t { One, Two, Several, Any };  // chunks per rank that a schedule can have; Several: two or more

// One row of the schedule table.
struct ScheduleEntry {
  Schedule id = Schedule::OneFOneB;
  std::string name = {};     // "1f1b"
  std::string summary = {};  // one line for `list schedules`
  Chunks chunks = Chunks::One;
  std::optional<Infeasible> (*refuse)(const ScheduleShape&) = nullptr;  // why the shape is not possible; empty: it is
  ScheduleLists (*lists)(const ScheduleShape&) = nullptr;               // only for a shape that `refuse` does not refuse
  int (*rank_of_stage)(int stage, int p) = nullptr;
  int (*stage_of)(int rank, int chunk, int p) = nullptr;  // the inverse
  bool by_times = false;                                  // `lists` depends on ScheduleShape::times
  bool splits = false;                                    // all or some backwards are split: I and W instead of B
  // 2 (bidirectional): every stage is held by two ranks, once for the micro-batches that go down the ranks and once for those that go up.
  // Stage p + s is then stage s of the second route; each route numbers its micro-batches from 0.
  int routes = 1;
  // Of asynchronous schedules (no flush between updates): the number of backwards after which a stage is updated, and the number of
  // versions of its weights that a rank keeps. Null: synchronous, one update after all backwards, one version.
  int (*backwards_per_update)(const ScheduleShape&) = nullptr;
  int (*weight_versions)(const ScheduleShape&, int rank) = nullptr;
  bool backward_reads_newest = false;  // a backward reads the newest weights, not the version that its forward read
  // Micro-batches of update n + 1 read the weights after update n - 1, not n (PipeDream-2BW).
  bool one_update_late = false;
  bool forwards_first = false;  // all forwards of a rank come before its first backward
  bool cells = false;           // most of its actions are cells of a forward and an unsplit backward
  bool on_request = true;       // search tries it only if the user names it, since not every framework can run it

  // Closed forms by which search orders candidates before it simulates any (docs/search-estimates.md, "Screen").
  // The most chunk activations (of one micro-batch each) that the rank has in flight at once.
  double (*in_flight)(const FlightShape&) = nullptr;
  // An iteration takes m micro-batches of the busiest rank, plus the sum of `idle` over all other ranks (seconds that a rank with these
  // times adds while the pipeline fills and drains), plus idle_hops transfers. Null: the closed form of interleaved 1F1B if v > 1, else the
  // longest path of GPipe if forwards_first, of 1F1B if not.
  double (*idle)(const FillTimes&) = nullptr;
  int (*idle_hops)(int p) = nullptr;  // null: 0
};
const std::vector<ScheduleEntry>& schedules();
const ScheduleEntry& schedule_entry(Schedule id);
const ScheduleEntry* find_schedule(const std::string& name);  // null: no schedule has this name
int rank_of_stage(Schedule id, int stage, int p);
int stage_of(Schedule id, int rank, int chunk, int p);

// Durations of actions and transfers, in any unit. A transfer between stages s and s + 1 on different ranks takes hops[s], or `latency` if
// there are no hops, and does not delay other transfers (docs/schedules.md, "The clock"). With `in_turn`, transfers from one rank to
// another run one at a time.
template <class Time>
struct ScheduleTimes {
  std::vector<Time> forward = {}, input_grad = {}, weight_grad = {};  // [stage]; B takes input_grad + weight_grad
  Time latency = {};
  std::vector<Time> hops = {};
  bool in_turn = false;
  int routes = 1;   // number of pipelines that share the ranks; stages are numbered through all of them
  Time saved = {};  // overlap: a cell takes this much less than the sum of the times of its actions
  // [rank][position in its list]: durations of single actions; negative, or empty: those of the stage.
  std::vector<std::vector<Time>> exact = {};
};
// Equal durations for every stage.
template <class Time>
ScheduleTimes<Time> equal_times(int stages, Time forward, Time input_grad, Time weight_grad, Time latency = {}) {
  const auto n = static_cast<std::size_t>(stages);
  return {std::vector<Time>(n, forward), std::vector<Time>(n, input_grad), std::vector<Time>(n, weight_grad), latency};
}
// The medians over the stages, the lower one of two.
ActionTimes median_times(const ScheduleTimes<double>& times);
template <class Time>
struct ScheduleTiming {
  std::vector<std::vector<Time>> begin = {}, end = {};  // [rank][position in its list]
  Time makespan = {};                                   // when the last action ends; the first one begins at 0
  std::vector<Time> idle = {};                          // [rank]: makespan less the durations of its actions
};
// Times of all actions: the longest path through the order of each rank and the data dependencies, in O(actions). Empty result: the lists
// deadlock, and `blocked` gets the action that each unfinished rank waits at, as text. Durations must not be negative. Instantiated for
// double and std::int64_t (exact).
template <class Time>
std::optional<ScheduleTiming<Time>> evaluate(const ScheduleLists& lists, const ScheduleTimes<Time>& times,
                                             std::vector<std::string>* blocked = nullptr);

// [rank]: the most chunk activations in flight, that is, forwards less backwards (or weight gradients) so far in the order of its list.
std::vector<int> peak_in_flight(const ScheduleLists& lists);

// Which versions of the weights the forward and the backward of each micro-batch on a rank read, in a run that follows many others: version
// n is that after n updates of the rank in this run; below 0, of the runs before. In the first run these are the initial weights.
// For asynchronous schedules with one stage per rank (docs/schedules.md, "Without a flush").
struct VersionsRead {
  int forward = 0, backward = 0;
  bool operator==(const VersionsRead&) const = default;
};
std::vector<VersionsRead> versions_read(const ScheduleEntry& entry, const ScheduleShape& shape, int rank);  // [micro-batch]

// Forwards of the next run on a rank of an asynchronous schedule that are issued before the last backward of this run: with the list
// F0 .. F(w-1), F(w) B0, F(w+1) B1, ... the first w. Forward j of the next run stands right before B(m-w+j) of this one, so the rank goes on
// with one forward and one backward in turn.
int forwards_ahead(const std::vector<ScheduleOp>& list);

// A buffer whose slots the items 0 .. m-1 of every run take in turn, where an item may not have the slot of any of the `needed` - 1 items
// before it, those of the run before included. As all runs use the same slots, m items are cut into m / needed groups of nearly equal size,
// and item i has its place in its group as its slot. So a multiple of `needed` items takes no more slots than that.
int ring_slots(int items, int needed);
int ring_slot(int item, int items, int needed);

// The first action that is missing or repeated in the lists, as a message; empty: they are complete. Every (stage, micro-batch) must have
// one F and either one B or one I and one W, and all actions of a stage must be on one rank. Does not check the order; evaluate() does.
std::optional<std::string> incomplete(const ScheduleLists& lists);

// Text: one rank per line, "0F0 0F1 2F0 ..." (stage, work, micro-batch); "0F3&3B1" is a cell.
std::string to_text(const ScheduleOp& op);
std::string to_text(const ScheduleLists& lists);

// ASCII picture to scale, one row per rank and a legend, at most `columns` characters wide (at least 40).
std::string draw(const ScheduleLists& lists, const ScheduleTiming<double>& timing, int columns = 100);

}  // namespace foreshard
