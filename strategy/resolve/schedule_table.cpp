#include "strategy/resolve/schedule_table.h"

#include <algorithm>

#include "core/base/at.h"
#include "strategy/schedule/schedule_read.h"

namespace foreshard {

bool splits_backwards(const Strategy& s) {
  if (*s.pipeline.schedule != Schedule::Listed) return schedule_entry(*s.pipeline.schedule).splits;
  return std::ranges::any_of(s.pipeline.order, [](const std::string& rank) { return rank.find('I') != std::string::npos; });
}

bool has_cells(const Strategy& s) {
  if (*s.pipeline.schedule != Schedule::Listed) return schedule_entry(*s.pipeline.schedule).cells;
  return std::ranges::any_of(s.pipeline.order, [](const std::string& rank) { return rank.find('&') != std::string::npos; });
}

ScheduleShape schedule_shape(const Strategy& s, int microbatches) {
  return {.p = s.pp,
          .m = microbatches,
          .v = s.virtual_stages,
          .g = s.pipeline.microbatch_group,
          .times = s.pipeline.times.value_or(ActionTimes{})};
}

static std::vector<int> stages_in(const std::vector<ScheduleOp>& list) {
  std::vector<int> stages;
  for (const ScheduleOp& op : list) stages.push_back(op.stage);
  std::ranges::sort(stages);
  stages.erase(std::unique(stages.begin(), stages.end()), stages.end());
  return stages;
}

std::vector<int> ranks_of_stages(const Strategy& s) {
  std::vector<int> ranks(at(s.pp * s.virtual_stages));
  if (*s.pipeline.schedule != Schedule::Listed) {
    for (int stage = 0; stage < s.pp * s.virtual_stages; ++stage)
      ranks[at(stage)] = rank_of_stage(*s.pipeline.schedule, stage, s.pp);
    return ranks;
  }
  const ScheduleLists lists = parse_order(s.pipeline.order);
  for (std::size_t rank = 0; rank < lists.size(); ++rank)
    for (const ScheduleOp& op : lists[rank]) ranks[at(op.stage)] = static_cast<int>(rank);
  return ranks;
}

// If the schedule splits backwards, replaces each B by I and W, also in a cell. In a cell, puts the forward first: it acquires its buffers
// before the backward releases its own.
static void halve_backwards(std::vector<ScheduleOp>& list, bool splits) {
  for (std::size_t i = 0; i + 1 < list.size(); ++i)
    if (list[i].with_next && list[i].work != Work::F) {
      std::swap(list[i], list[i + 1]);
      list[i].with_next = true, list[i + 1].with_next = false;
    }
  std::vector<ScheduleOp> halved;
  halved.reserve(list.size());
  for (ScheduleOp op : list) {
    if (splits && op.work == Work::B) {
      const bool in_cell = op.with_next || (!halved.empty() && halved.back().with_next);
      halved.push_back({Work::I, op.stage, op.microbatch, in_cell});
      op.work = Work::W;
    }
    halved.push_back(op);
  }
  list = std::move(halved);
}

// [version]: its slot. A version is needed until the last action that reads it; after that its slot may be reused. A new version takes the
// lowest free slot. Sets `slots` to the number of slots.
static std::vector<int> slots_of_versions(const std::vector<ScheduleTable::Weights>& weights,
                                          const std::vector<ScheduleOp>& order, int updates, int& slots) {
  std::vector<int> last_read(at(updates + 1), -1), slot(at(updates + 1), 0), holds;  // [version], [version], [slot]: version
  for (std::size_t i = 0; i < order.size(); ++i)
    if (order[i].work != Work::Update) last_read[at(weights[i].version)] = static_cast<int>(i);
  holds.push_back(0);
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i].work != Work::Update) continue;
    const int made = weights[i].version;
    const auto is_free = [&](int version) { return last_read[at(version)] < static_cast<int>(i); };
    const auto found = std::ranges::find_if(holds, is_free);
    slot[at(made)] = static_cast<int>(found - holds.begin());
    if (found == holds.end())
      holds.push_back(made);
    else
      *found = made;
  }
  FS_ASSERT(slot[at(updates)] == 0);  // no action follows the last update, so every slot is free
  slots = static_cast<int>(holds.size());
  return slot;
}

// Of an asynchronous schedule: inserts the updates between the backwards, and fills in which weights each action reads.
static void add_updates(ScheduleTable& table, const ScheduleEntry& entry, const ScheduleShape& shape) {
  const int per_update = entry.backwards_per_update(shape);
  table.updates = shape.m / per_update;
  for (int rank = 0; rank < shape.p; ++rank) {
    const std::vector<VersionsRead> read = versions_read(entry, shape, rank);
    std::vector<ScheduleOp> order;
    auto& weights = table.weights.emplace_back();
    int backwards = 0, &delay = table.delays.emplace_back(0);
    for (const ScheduleOp& op : table.order[at(rank)]) {
      const VersionsRead& of = read[at(op.microbatch)];
      if (op.work == Work::B) delay = std::max(delay, backwards / per_update - of.forward);
      order.push_back(op);
      weights.push_back({.version = op.work == Work::F ? of.forward : of.backward,
                         .newest = entry.backward_reads_newest && op.work != Work::F});
      if (op.work != Work::B || ++backwards % per_update != 0) continue;
      order.push_back({Work::Update, op.stage, op.microbatch});
      weights.push_back({.version = backwards / per_update});
    }
    const std::vector<int> slots = slots_of_versions(weights, order, table.updates, table.weight_slots.emplace_back());
    for (ScheduleTable::Weights& each : weights) each.slot = slots[at(each.version)];
    table.order[at(rank)] = std::move(order);
  }
}

ScheduleTable schedule_table(const Strategy& s) {
  const ScheduleEntry& entry = schedule_entry(*s.pipeline.schedule);
  ScheduleTable table{.splits = splits_backwards(s), .routes = entry.routes, .delays_weights = s.pipeline.delay_wgrad};
  const auto microbatches = static_cast<int>(s.batch.global / (s.batch.micro * s.dp));
  if (*s.pipeline.schedule == Schedule::Listed)
    table.order = parse_order(s.pipeline.order);
  else if (s.stages.empty())
    table.order = entry.lists(schedule_shape(s, microbatches));

  const int chunks = s.virtual_stages * entry.routes;
  for (int rank = 0; rank < s.pp; ++rank) {
    std::vector<int>& stages = table.stages_of_rank.emplace_back();
    if (*s.pipeline.schedule == Schedule::Listed)
      stages = stages_in(table.order[at(rank)]);
    else
      for (int chunk = 0; chunk < chunks; ++chunk) stages.push_back(entry.stage_of(rank, chunk, s.pp));
  }
  table.rank_of_stage.resize(at(s.pp * chunks)), table.chunk_of_stage.resize(at(s.pp * chunks));
  for (int rank = 0; rank < s.pp; ++rank)
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const int stage = table.stages_of_rank[at(rank)][at(chunk)];
      table.rank_of_stage[at(stage)] = rank, table.chunk_of_stage[at(stage)] = chunk;
    }
  for (auto& list : table.order) halve_backwards(list, table.splits);
  if (entry.backwards_per_update) add_updates(table, entry, schedule_shape(s, microbatches));
  return table;
}

}  // namespace foreshard
