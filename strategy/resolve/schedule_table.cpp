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

// Finds the slots of the versions of a rank. Under pipedream w + 1 versions are in use at once, and each run has m of them. Under
// pipedream-2bw two are, the newest and the one before: they take turns; where a run has an odd number of updates, the last one copies the
// version that it overwrites to the other slot, so that every run finds its newest version in slot 0.
class VersionSlots {
 public:
  VersionSlots(const ScheduleEntry& entry, int updates, int ahead)
      : late_(entry.one_update_late), newest_(entry.backward_reads_newest), updates_(updates), ahead_(ahead) {}

  int count() const { return newest_ ? 1 : late_ ? 2 : ring_slots(updates_, ahead_ + 1); }
  // The number of versions before that at the start of a run which the run reads.
  int older() const { return late_ ? 1 : ahead_; }
  bool copies() const { return late_ && updates_ % 2 == 1; }
  // `version`: as of VersionsRead. `before_update`: read ahead of the run, before the last update of the run before.
  int of(int version, bool before_update) const {
    if (newest_) return 0;
    if (!late_) return ring_slot((version + updates_) % updates_, updates_, ahead_ + 1);
    if (!copies()) return (version + updates_) % 2;
    if (version < 0) return before_update ? 0 : 1;
    return version == updates_ ? 0 : version % 2;
  }

 private:
  bool late_, newest_;
  int updates_, ahead_;
};

// Right before each of the last backwards of a run one forward of the next run is issued.
static std::vector<int> positions_ahead(const std::vector<ScheduleOp>& order, int ahead, int microbatches) {
  std::vector<int> positions;
  for (std::size_t i = 0; i < order.size(); ++i)
    if (order[i].work == Work::B && order[i].microbatch >= microbatches - ahead) positions.push_back(static_cast<int>(i) - 1);
  return positions;
}

// Of an asynchronous schedule: inserts the updates between the backwards, and fills in which weights each action reads.
static void add_updates(ScheduleTable& table, const ScheduleEntry& entry, const ScheduleShape& shape) {
  const int per_update = entry.backwards_per_update(shape);
  table.updates = shape.m / per_update;
  int sent_ahead = 0;  // forwards that the rank before issues ahead
  for (int rank = 0; rank < shape.p; ++rank) {
    const int ahead = forwards_ahead(table.order[at(rank)]);
    const VersionSlots slots(entry, table.updates, ahead);
    const std::vector<VersionsRead> read = versions_read(entry, shape, rank);
    std::vector<ScheduleOp> order;
    auto& weights = table.weights.emplace_back();
    int backwards = 0, &delay = table.delays.emplace_back(0);
    for (const ScheduleOp& op : table.order[at(rank)]) {
      const VersionsRead& of = read[at(op.microbatch)];
      const bool forward = op.work == Work::F;
      if (!forward) delay = std::max(delay, backwards / per_update - of.forward);
      const int version = forward ? of.forward : of.backward;
      order.push_back(op);
      weights.push_back({.version = version + slots.older(),
                         .slot = slots.of(version, forward && op.microbatch < ahead),
                         .newest = entry.backward_reads_newest && !forward});
      if (forward || ++backwards % per_update != 0) continue;
      const int made = backwards / per_update;
      order.push_back({Work::Update, op.stage, op.microbatch});
      weights.push_back(
          {.version = made + slots.older(), .slot = slots.of(made, false), .keeps = slots.copies() && made == table.updates});
    }
    table.weight_slots.push_back(slots.count());
    table.ahead.push_back(positions_ahead(order, ahead, shape.m));
    table.receives_ahead.push_back(sent_ahead > ahead);
    sent_ahead = ahead;
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
