#include "core/base/count_text.h"
#include "strategy/schedule/schedule_rules.h"

namespace foreshard {

// One per file strategy/schedule/schedule_<name>.cpp.
ScheduleEntry gpipe_schedule();
ScheduleEntry one_f_one_b_schedule();
ScheduleEntry interleaved_schedule();
ScheduleEntry zb_h1_schedule();
ScheduleEntry zb_h2_schedule();
ScheduleEntry zb_v_schedule();
ScheduleEntry looped_bfs_schedule();
ScheduleEntry interleaved_zb_schedule();
ScheduleEntry v_half_schedule();
ScheduleEntry v_min_schedule();
ScheduleEntry chimera_schedule();
ScheduleEntry dualpipe_schedule();
ScheduleEntry dualpipe_v_schedule();
ScheduleEntry cells_schedule();
ScheduleEntry chunk_cells_schedule();
ScheduleEntry pipedream_schedule();
ScheduleEntry pipedream_2bw_schedule();
ScheduleEntry pipemare_schedule();
ScheduleEntry zb_2p_schedule();
ScheduleEntry listed_schedule();

const std::vector<ScheduleEntry>& schedules() {
  static const std::vector<ScheduleEntry> table = {
      gpipe_schedule(),     one_f_one_b_schedule(),   interleaved_schedule(),    zb_h1_schedule(),  zb_h2_schedule(),
      zb_v_schedule(),      looped_bfs_schedule(),    interleaved_zb_schedule(), v_half_schedule(), v_min_schedule(),
      chimera_schedule(),   dualpipe_schedule(),      dualpipe_v_schedule(),     cells_schedule(),  chunk_cells_schedule(),
      pipedream_schedule(), pipedream_2bw_schedule(), pipemare_schedule(),       zb_2p_schedule(),  listed_schedule()};
  return table;
}

const ScheduleEntry& schedule_entry(Schedule id) {
  for (const ScheduleEntry& entry : schedules())
    if (entry.id == id) return entry;
  FS_ASSERT(!"every Schedule has an entry");
  return schedules().front();
}

const ScheduleEntry* find_schedule(const std::string& name) {
  for (const ScheduleEntry& entry : schedules())
    if (entry.name == name) return &entry;
  return nullptr;
}

int rank_of_stage(Schedule id, int stage, int p) { return schedule_entry(id).rank_of_stage(stage, p); }
int stage_of(Schedule id, int rank, int chunk, int p) { return schedule_entry(id).stage_of(rank, chunk, p); }

int straight_placement(int stage, int) { return stage; }
int loop_placement(int stage, int p) { return stage % p; }
int v_placement(int stage, int p) { return stage < p ? stage : 2 * p - 1 - stage; }
int loop_stage(int rank, int chunk, int p) { return chunk * p + rank; }
int v_stage(int rank, int chunk, int p) { return chunk == 0 ? rank : 2 * p - 1 - rank; }
int mirrored_stage(int rank, int chunk, int p) { return v_stage(rank, 2 * rank < p ? chunk : 1 - chunk, p); }

std::optional<Infeasible> refuse_size(const ScheduleShape& shape) {
  const auto need_one = [](const char* what, int found) {
    return Infeasible{"a pipeline needs at least one " + std::string(what) + ", found " + std::to_string(found), {}};
  };
  if (shape.p < 1) return need_one("rank", shape.p);
  if (shape.m < 1) return need_one("micro-batch", shape.m);
  if (shape.v < 1) return need_one("virtual stage per rank", shape.v);
  constexpr double most = 20e6;  // actions, 240 MB of lists; a pipeline of real size has a few million at most
  const double actions = 2.0 * shape.p * shape.m * shape.v;
  if (actions <= most) return {};
  return Infeasible{counted(shape.m, "micro-batch", "micro-batches") + " on " + counted(shape.p, "pipeline rank") + " with " +
                        std::to_string(shape.v) + " virtual stages each are more than 20 million actions",
                    {"a larger --micro-batch", "a smaller --global-batch"}};
}

std::optional<Infeasible> refuse_chunks(const ScheduleShape& shape, const char* schedule) {
  if (auto refused = refuse_size(shape)) return refused;
  if (shape.v == 1) return {};
  return Infeasible{std::string("schedule ") + schedule + " takes one virtual stage per rank, found " + std::to_string(shape.v),
                    {"--schedule interleaved-1f1b", "--virtual-stages 1"}};
}

std::optional<Infeasible> refuse_all_but_two(const ScheduleShape& shape, const std::string& schedule) {
  if (auto refused = refuse_size(shape)) return refused;
  if (shape.g != 0)
    return Infeasible{"schedule " + schedule + " has no groups of micro-batches, found groups of " + std::to_string(shape.g),
                      {"--microbatch-group 0", "--schedule interleaved-1f1b"}};
  if (shape.v == 2) return {};
  return Infeasible{"schedule " + schedule + " needs exactly 2 virtual stages per rank, found " + std::to_string(shape.v),
                    {"--virtual-stages 2", "--schedule zb-h1"}};
}

}  // namespace foreshard
