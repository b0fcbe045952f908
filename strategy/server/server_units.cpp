#include "strategy/server/server_units.h"

#include <algorithm>
#include <numeric>

#include "core/base/count_text.h"

namespace foreshard {

bool trains(const Action& action) {
  return std::ranges::any_of(action.does, [](const Does& does) { return does.work != Work::Update; });
}

bool is_update(const Instruction& run) {
  const auto* what = std::get_if<Compute>(&run.what);
  return what && what->phase == Phase::Update;
}

bool is_exchanged(const Buffer& buffer) {
  return buffer.category == Category::Parameters || buffer.category == Category::Gradients;
}

namespace {

// Buffers that updates use together.
struct HeldUnit {
  int role = 0;
  std::vector<BufferId> buffers = {};
  Bytes bytes = {};  // of its parameters
};

// The units of a role, in the order of their first buffers.
std::vector<HeldUnit> units_of(const Plan& one, int index) {
  const Role& role = one.roles[static_cast<std::size_t>(index)];
  std::vector<std::size_t> first(role.buffers.size());  // [buffer]: the first buffer of its unit
  std::iota(first.begin(), first.end(), std::size_t{0});
  std::vector<char> used(role.buffers.size());
  for (std::size_t b = 0; b < used.size(); ++b) used[b] = is_exchanged(role.buffers[b]) ? 1 : 0;
  for (const Action& action : role.actions) {
    if (trains(action)) continue;
    for (const Instruction& run : one.segments[action.segment.index()].instructions) {
      if (!is_update(run)) continue;
      std::vector<std::size_t> together;
      for (const auto* uses : {&run.reads, &run.writes})
        for (const Use& use : *uses) together.push_back(use.buffer.index());
      for (const auto* blocks : {&run.acquires, &run.releases})
        for (const Block& block : *blocks) together.push_back(block.buffer.index());
      for (const std::size_t buffer : together) {
        used[buffer] = 1;
        const std::size_t joined = std::min(first[together.front()], first[buffer]);
        const std::size_t other = std::max(first[together.front()], first[buffer]);
        std::ranges::replace(first, other, joined);
      }
    }
  }
  std::vector<HeldUnit> units;
  for (std::size_t begin = 0; begin < first.size(); ++begin) {
    HeldUnit unit{.role = index};
    for (std::size_t b = begin; b < first.size(); ++b) {
      if (first[b] != begin || !used[b]) continue;
      unit.buffers.push_back({static_cast<std::int32_t>(b)});
      if (role.buffers[b].category == Category::Parameters) unit.bytes += role.buffers[b].bytes;
    }
    if (!unit.buffers.empty()) units.push_back(std::move(unit));
  }
  return units;
}

// Sets `original` of the unit's buffers if an earlier role holds the same parameters.
bool is_copy(const Plan& one, const HeldUnit& unit, ServerUnits& all) {
  const auto& buffers = one.roles[static_cast<std::size_t>(unit.role)].buffers;
  bool copy = false;
  for (const BufferId own : unit.buffers) {
    const Buffer& buffer = buffers[own.index()];
    if (buffer.category != Category::Parameters || buffer.holds.empty()) continue;
    for (int role = 0; role < unit.role && !copy; ++role) {
      const std::vector<Buffer>& others = one.roles[static_cast<std::size_t>(role)].buffers;
      const auto same = std::ranges::find_if(
          others, [&](const Buffer& other) { return other.holds == buffer.holds && other.bytes == buffer.bytes; });
      if (same == others.end()) continue;
      const BufferId id{static_cast<std::int32_t>(same - others.begin())};
      const ServedBuffer& of = all.of[static_cast<std::size_t>(role)][id.index()];
      const bool first = of.original_role < 0;
      all.of[static_cast<std::size_t>(unit.role)][own.index()] = {.original_role = first ? role : of.original_role,
                                                                  .original = first ? id : of.original};
      copy = true;
    }
  }
  return copy;
}

}  // namespace

std::variant<ServerUnits, Infeasible> server_units(const Plan& one, int servers) {
  ServerUnits all{.servers = servers};
  for (const Role& role : one.roles) all.of.emplace_back(role.buffers.size());
  std::vector<HeldUnit> units;
  for (int role = 0; role < static_cast<int>(one.roles.size()); ++role)
    for (HeldUnit& unit : units_of(one, role))
      if (!is_copy(one, unit, all)) units.push_back(std::move(unit));
  const auto with_parameters = std::ranges::count_if(units, [](const HeldUnit& unit) { return unit.bytes > Bytes{}; });
  if (with_parameters < servers)
    return Infeasible{.reason = "an asynchronous server holds whole units of parameters: there are " +
                                counted(with_parameters, "unit") + " for " + counted(servers, "server"),
                      .would_help = {"fewer --servers"}};
  std::ranges::stable_sort(units, std::greater{}, &HeldUnit::bytes);
  std::vector<Bytes> held(static_cast<std::size_t>(servers));
  for (const HeldUnit& unit : units) {
    const auto& buffers = one.roles[static_cast<std::size_t>(unit.role)].buffers;
    const auto is_gradient = [&](BufferId id) { return buffers[id.index()].category == Category::Gradients; };
    if (servers > 1 && std::ranges::none_of(unit.buffers, is_gradient))
      continue;  // never updated: its values are the first ones
    const auto least = std::ranges::min_element(held);
    *least += unit.bytes;
    for (const BufferId buffer : unit.buffers)
      all.of[static_cast<std::size_t>(unit.role)][buffer.index()].server = static_cast<int>(least - held.begin());
  }
  for (std::vector<ServedBuffer>& role : all.of)  // the server of a copy is that of its original
    for (ServedBuffer& buffer : role)
      if (buffer.original_role >= 0)
        buffer.server = all.of[static_cast<std::size_t>(buffer.original_role)][buffer.original.index()].server;
  return all;
}

}  // namespace foreshard
