// Asynchronous pipelines, which are not flushed between updates. All run in the order of 1F1B; they differ in when a stage is updated and
// in which version of the weights a backward reads:
//   pipedream      updated after every backward; the backward reads the weights of its forward, so rank r keeps p - r versions
//                  (Narayanan et al. 2019, "PipeDream", section 3.3, weight stashing)
//   pipedream-2bw  updated after every g backwards, with gradients computed from the weights before the newest; two versions (Narayanan
//                  et al. 2021, arXiv:2006.09503, section 3.1); g at least p - 1, so that this version is kept long enough
//   pipemare       updated after every backward; one version: a backward reads newer weights than its forward did (Yang et al. 2021,
//                  arXiv:1910.05124)
#include <algorithm>

#include "core/base/at.h"
#include "strategy/schedule/schedule_rules.h"

namespace foreshard {

static int after_every_one(const ScheduleShape&) { return 1; }
static int group_of(const ScheduleShape& shape) { return shape.g == 0 ? shape.p : shape.g; }

// Requires a multiple of the group size of micro-batches, since all gradients must be used by the end of a run.
static std::optional<Infeasible> refuse_2bw(const ScheduleShape& shape) {
  if (auto refused = refuse_chunks(shape, "pipedream-2bw")) return refused;
  const int group = group_of(shape);
  if (group + 1 >= shape.p && shape.m % group == 0) return {};
  return Infeasible{"schedule pipedream-2bw needs groups of at least " + std::to_string(shape.p - 1) +
                        " micro-batches that divide the micro-batches of a run, found groups of " + std::to_string(group) +
                        " of " + std::to_string(shape.m),
                    {"--microbatch-group " + std::to_string(shape.p), "another --global-batch"}};
}

static ScheduleEntry entry(Schedule id, const char* summary, std::optional<Infeasible> (*refuse)(const ScheduleShape&),
                           int (*backwards_per_update)(const ScheduleShape&),
                           int (*weight_versions)(const ScheduleShape&, int)) {
  return {.id = id,
          .name = name_of(id),
          .summary = summary,
          .refuse = refuse,
          .lists = one_f_one_b_lists,
          .rank_of_stage = straight_placement,
          .stage_of = loop_stage,
          .backwards_per_update = backwards_per_update,
          .weight_versions = weight_versions,
          .in_flight =
              [](const FlightShape& s) {
                const double most = std::min(s.m, s.p - s.rank);
                return static_cast<double>(ring_slots(static_cast<int>(s.m), static_cast<int>(most)));
              },
          .idle = [](const FillTimes&) { return 0.0; }};  // the next run begins while this one drains
}

ScheduleEntry pipedream_schedule() {
  return entry(
      Schedule::PipeDream, "1f1b without a flush, updated after every backward: p-r versions of the weights on rank r",
      [](const ScheduleShape& shape) { return refuse_chunks(shape, "pipedream"); }, after_every_one,
      [](const ScheduleShape& shape, int rank) { return ring_slots(shape.m, std::min(shape.p - rank, shape.m)); });
}
ScheduleEntry pipedream_2bw_schedule() {
  ScheduleEntry row = entry(Schedule::PipeDream2BW,
                            "1f1b without a flush, updated after every group of backwards, one update late: two versions",
                            refuse_2bw, group_of, [](const ScheduleShape&, int) { return 2; });
  row.one_update_late = true;
  return row;
}
ScheduleEntry pipemare_schedule() {
  ScheduleEntry row = entry(
      Schedule::PipeMare,
      "1f1b without a flush, updated after every backward: one version, backwards read newer weights than forwards",
      [](const ScheduleShape& shape) { return refuse_chunks(shape, "pipemare"); }, after_every_one,
      [](const ScheduleShape&, int) { return 1; });
  row.backward_reads_newest = true;
  return row;
}

int forwards_ahead(const std::vector<ScheduleOp>& list) {
  int forwards = 0;
  while (at(forwards) < list.size() && list[at(forwards)].work == Work::F) ++forwards;
  return std::max(forwards - 1, 0);
}

static int groups_of(int items, int needed) { return std::max(1, items / needed); }

int ring_slots(int items, int needed) { return ceil_div(items, groups_of(items, needed)); }

int ring_slot(int item, int items, int needed) {
  const int groups = groups_of(items, needed), size = items / groups,
            longer = items % groups;  // the first groups are longer by one
  const int in_longer = longer * (size + 1);
  return item < in_longer ? item % (size + 1) : (item - in_longer) % size;
}

std::vector<VersionsRead> versions_read(const ScheduleEntry& entry, const ScheduleShape& shape, int rank) {
  FS_ASSERT(entry.backwards_per_update);
  const int per_update = entry.backwards_per_update(shape);
  const int ahead = forwards_ahead(entry.lists(shape)[at(rank)]);
  std::vector<VersionsRead> read(at(shape.m));
  for (int i = 0; i < shape.m; ++i) {
    // F(i) follows B(i - ahead - 1). Both kinds of updates end with a run, so negative numbers count the same.
    const int newest = i - ahead;
    FS_ASSERT(entry.one_update_late || per_update == 1);
    read[at(i)].forward = entry.one_update_late ? i / per_update - 1 : newest;
    read[at(i)].backward = entry.backward_reads_newest ? i : read[at(i)].forward;
  }
  return read;
}

}  // namespace foreshard
