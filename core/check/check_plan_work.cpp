// Checks the work that actions declare (Does), and that devices and hosts have enough memory.
#include <algorithm>
#include <map>
#include <numeric>

#include "core/base/count_text.h"
#include "core/check/check_plan_rules.h"
#include "core/plan/ranks.h"
#include "core/result/memory_timeline.h"

namespace foreshard {
namespace {

struct Place {
  std::int32_t role = -1, action = -1, version = 0, times = 0;
};
struct Cell {  // one (stage, micro-batch)
  Place forward = {}, backward = {}, input = {}, weight = {};
};

const char* letter(Work work) {
  switch (work) {
    case Work::F: return "F";
    case Work::B: return "B";
    case Work::I: return "I";
    case Work::W: return "W";
    case Work::Update: return "Update";
  }
  return "?";
}

std::string where_of(const Plan& plan, const Place& place) {
  const std::string& name = plan.roles[static_cast<std::size_t>(place.role)].name;
  return "role " + std::to_string(place.role) + (name.empty() ? "" : " (" + name + ")") + ", action " +
         std::to_string(place.action);
}

Place* place_in(Cell& cell, Work work) {
  switch (work) {
    case Work::F: return &cell.forward;
    case Work::B: return &cell.backward;
    case Work::I: return &cell.input;
    case Work::W: return &cell.weight;
    case Work::Update: return nullptr;
  }
  return nullptr;
}

void check_cell(const Plan& plan, const Cell& cell, const std::string& name, bool stale_allowed, Defects& defects) {
  const bool whole = cell.backward.times == 1 && cell.input.times == 0 && cell.weight.times == 0;
  const bool halves = cell.backward.times == 0 && cell.input.times == 1 && cell.weight.times == 1;
  if (cell.forward.times == 0) return defects.add("work-missing", name, "has no forward");
  if (!whole && !halves)
    return defects.add(cell.backward.times + cell.input.times + cell.weight.times < 2 ? "work-missing" : "work-repeated", name,
                       "has " + std::to_string(cell.backward.times) + " B, " + std::to_string(cell.input.times) + " I and " +
                           std::to_string(cell.weight.times) +
                           " W instead of one B (backward), or one I and one W (its input and weight gradients)");
  const auto after = [&](const Place& first, const Place& second, const char* what) {
    if (first.role == second.role && second.action < first.action)
      defects.add("work-order", where_of(plan, second), name + ": " + what);
  };
  const Place& back = whole ? cell.backward : cell.input;
  after(cell.forward, back, "its backward stands before its forward");
  if (halves) after(cell.input, cell.weight, "its W stands before its I");
  if (stale_allowed) return;
  for (const Place* place : {&back, whole ? &cell.backward : &cell.weight})
    if (place->version >= 0 && place->version != cell.forward.version)  // -1: it uses the newest version
      return defects.add("weight-version", where_of(plan, *place),
                         name + ": the backward uses weight version " + std::to_string(place->version) + ", the forward used " +
                             std::to_string(cell.forward.version));
}

// Each role that updates a stage does so Plan::updates times in a run. A plan without any update is only a part of a step, and is accepted.
void check_updates(const Plan& plan, Defects& defects) {
  bool any = false;
  for (std::size_t r = 0; r < plan.roles.size(); ++r) {
    std::map<std::int32_t, int> times;  // of each stage
    for (const Action& action : plan.roles[r].actions)
      for (const Does& does : action.does)
        if (does.work == Work::Update) ++times[does.stage];
    any = any || !times.empty();
    for (const auto& [stage, found] : times)
      if (found != plan.updates)
        defects.add("update-count", "role " + std::to_string(r) + ", stage " + std::to_string(stage),
                    "is updated " + counted(found, "time") + " in a run, the plan says " + std::to_string(plan.updates));
  }
  if (!any && plan.updates > 1)
    defects.add("update-count", "plan", "says " + std::to_string(plan.updates) + " updates in a run, no stage has any");
}

// [stage]: the most updates between the weights that a forward of the role read and those that its gradients changed.
std::map<std::int32_t, int> delays_of(const Role& role) {
  std::map<std::pair<std::int32_t, std::int32_t>, int> read;  // [stage, micro-batch]: the version
  std::map<std::int32_t, int> oldest, delays;                 // [stage]; oldest: among the gradients of the next update
  for (const Action& action : role.actions)
    for (const Does& does : action.does) {
      if (does.work == Work::F) read[{does.stage, does.microbatch}] = does.version;
      if (does.work == Work::B || does.work == Work::W) {
        const int version = read[{does.stage, does.microbatch}];
        const auto [known, first] = oldest.try_emplace(does.stage, version);
        known->second = std::min(known->second, version);
      }
      if (does.work != Work::Update) continue;
      const auto found = oldest.find(does.stage);
      int& delay = delays[does.stage];
      if (found != oldest.end()) delay = std::max(delay, does.version - 1 - found->second);
      oldest.erase(does.stage);
    }
  return delays;
}

const ops::DelayedRate* rate_of(const Instruction& instruction) {
  const auto* compute = std::get_if<Compute>(&instruction.what);
  const auto* host = std::get_if<HostCompute>(&instruction.what);
  const Operation* op = compute ? &compute->op : host ? &host->op : nullptr;
  if (!op) return nullptr;
  if (const auto* adam = std::get_if<ops::Adam>(op)) return &adam->rate;
  const auto* sgd = std::get_if<ops::Sgd>(op);
  return sgd ? &sgd->rate : nullptr;
}

// If any update divides its rate by a delay, every update does, by its own delay and over the same number of steps.
void check_rates(const Plan& plan, Defects& defects) {
  std::int64_t annealed_over = 0;
  for (const Segment& segment : plan.segments)
    for (const Instruction& instruction : segment.instructions)
      if (const ops::DelayedRate* rate = rate_of(instruction)) annealed_over = std::max(annealed_over, rate->annealed_over);
  if (annealed_over == 0) return;
  for (std::size_t r = 0; r < plan.roles.size(); ++r) {
    const Role& role = plan.roles[r];
    const std::map<std::int32_t, int> delays = delays_of(role);
    for (std::size_t a = 0; a < role.actions.size(); ++a)
      for (const Does& does : role.actions[a].does) {
        if (does.work != Work::Update) continue;
        const int delay = delays.at(does.stage);
        const ops::DelayedRate expected = delay < 2 ? ops::DelayedRate{} : ops::DelayedRate{delay, annealed_over};
        const auto& instructions = plan.segments[role.actions[a].segment.index()].instructions;
        for (std::size_t i = 0; i < instructions.size(); ++i)
          if (const ops::DelayedRate* rate = rate_of(instructions[i]); rate && *rate != expected)
            defects.add("rate-delay", {static_cast<std::int32_t>(r)}, static_cast<std::int32_t>(a),
                        static_cast<std::int32_t>(i),
                        "divides its learning rate by a delay of " + std::to_string(rate->delay) + " over " +
                            counted(rate->annealed_over, "step") + "; its gradients are late by " + counted(delay, "update") +
                            ", other updates take " + counted(annealed_over, "step"));
      }
  }
}

}  // namespace

void check_work(const Plan& plan, bool stale_weights_allowed, Defects& defects) {
  check_updates(plan, defects);
  check_rates(plan, defects);
  const auto columns = static_cast<std::size_t>(plan.microbatches);
  const std::size_t cells = static_cast<std::size_t>(plan.stages) * columns;
  if (cells > std::size_t{1} << 20U) return defects.add("too-large", "plan", "too many (stage, micro-batch) cells to check");
  std::vector<Cell> table(cells);
  const auto name = [&](std::size_t cell) {
    return "stage " + std::to_string(cell / columns) + ", micro-batch " + std::to_string(cell % columns);
  };
  for (std::size_t r = 0; r < plan.roles.size(); ++r)
    for (std::size_t a = 0; a < plan.roles[r].actions.size(); ++a)
      for (const Does& does : plan.roles[r].actions[a].does) {
        if (does.work == Work::Update || does.microbatch < 0) continue;
        const std::size_t index = static_cast<std::size_t>(does.stage) * columns + static_cast<std::size_t>(does.microbatch);
        Place& place = *place_in(table[index], does.work);
        const Place here{static_cast<std::int32_t>(r), static_cast<std::int32_t>(a), does.version, place.times + 1};
        if (here.times == 2)
          defects.add("work-repeated", where_of(plan, here), name(index) + ": a second " + letter(does.work));
        place = here;
      }
  for (std::size_t c = 0; c < table.size() && !defects.full(); ++c)
    check_cell(plan, table[c], name(c), stale_weights_allowed, defects);
}

namespace {

std::string bytes_text(Bytes bytes) { return std::to_string(bytes.value) + " bytes"; }

void check_host(const Plan& plan, const Ranks& ranks, const CheckPlanOptions& options, Defects& defects) {
  if (options.host_capacity.value <= 0 || options.ranks_per_node <= 0) return;
  std::vector<Bytes> per_role;
  for (const Role& role : plan.roles)
    per_role.push_back(arena_bytes(role, Space::PinnedHost) + arena_bytes(role, Space::PageableHost));
  if (std::all_of(per_role.begin(), per_role.end(), [](Bytes b) { return b.value == 0; })) return;
  std::map<int, Bytes> per_node;
  for (int r = 0; r < ranks.count(); ++r)
    per_node[ranks.device(RankId{r}).value / options.ranks_per_node] += per_role[ranks.role(RankId{r}).index()];
  for (const auto& [node, bytes] : per_node)
    if (bytes > options.host_capacity)
      return defects.add(
          "host-capacity", "node " + std::to_string(node),
          "its ranks need " + bytes_text(bytes) + " of host memory, it has " + bytes_text(options.host_capacity));
}

}  // namespace

// Ranks share a device only with an explicit placement; without one, one rank of each role is checked.
void check_capacity(const Plan& plan, const CheckPlanOptions& options, Defects& defects) {
  if (options.capacity.empty() && options.host_capacity.value <= 0) return;
  const Ranks ranks(plan);
  std::map<DeviceId, std::pair<Bytes, RoleId>> devices;
  const auto add = [&](DeviceId device, RoleId role) {
    std::pair<Bytes, RoleId>& entry = devices.try_emplace(device, Bytes{}, role).first->second;
    entry.first += arena_bytes(plan.roles[role.index()], Space::Device);
  };
  if (plan.placement.explicit_devices.empty()) {
    for (std::size_t r = 0; r < plan.roles.size(); ++r) add({static_cast<std::int32_t>(r)}, {static_cast<std::int32_t>(r)});
  } else {
    for (int r = 0; r < ranks.count(); ++r) add(ranks.device(RankId{r}), ranks.role(RankId{r}));
  }
  for (const auto& [device, entry] : devices) {
    const auto& [arena, role] = entry;
    const Role& r = plan.roles[role.index()];
    const auto capacity = options.capacity.find(r.device_kind);
    if (capacity == options.capacity.end()) continue;
    const Bytes needed = arena + plan.framework + plan.reserve;
    if (needed > capacity->second)
      defects.add("capacity", "role " + std::to_string(role.value) + (r.name.empty() ? "" : " (" + r.name + ")"),
                  "arena " + bytes_text(arena) + " + framework " + bytes_text(plan.framework) + " + reserve " +
                      bytes_text(plan.reserve) + " is " + bytes_text(needed - capacity->second) + " more than the " +
                      bytes_text(capacity->second) + " of a " + r.device_kind);
  }
  check_host(plan, ranks, options, defects);
}

}  // namespace foreshard
