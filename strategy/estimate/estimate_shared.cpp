// Whether the communications of a plan get into each other's way.
#include <set>
#include <tuple>

#include "strategy/estimate/estimate.h"
#include "strategy/estimate/estimate_alone.h"

namespace foreshard {

namespace {

using Used = std::tuple<std::int32_t, std::int32_t, int>;  // role, stream, kind of traffic

void add_traffic(const Plan& plan, RoleId role, AloneTimes& alone, std::set<Used>& all) {
  std::set<std::int32_t> segments;
  for (const Action& action : plan.roles[role.index()].actions) segments.insert(action.segment.value);
  for (const std::int32_t segment : segments)
    for (const Instruction& run : plan.segments[static_cast<std::size_t>(segment)].instructions) {
      const auto* what = std::get_if<Exchange>(&run.what);
      if (what && !what->to) continue;  // its sender has it
      if (const int kind = alone.kind(role, run); kind >= 0) all.emplace(role.value, run.stream.value, kind);
    }
}

}  // namespace

bool shares_links(const Plan& plan, const Cluster& cluster) {
  AloneTimes alone(plan, cluster);
  std::set<Used> all;
  for (std::size_t role = 0; role < plan.roles.size(); ++role) add_traffic(plan, {static_cast<std::int32_t>(role)}, alone, all);
  for (auto a = all.begin(); a != all.end(); ++a)
    for (auto b = std::next(a); b != all.end(); ++b) {
      const bool in_turn = std::get<0>(*a) == std::get<0>(*b) && std::get<1>(*a) == std::get<1>(*b);
      if (!in_turn && alone.meet(std::get<2>(*a), std::get<2>(*b))) return true;
    }
  return false;
}

}  // namespace foreshard
