// Places that only the root of a collective holds. The ranks of a group run one program, so all of them acquire the places in which a root
// gathers what the others send; on the others there is nothing in them, and they count as not alive.
#pragma once

#include <algorithm>
#include <vector>

#include "core/plan/ranks.h"

namespace foreshard {

// A block that a gather on a root acquires without reading or writing it: what arrives lies there until it is added.
inline bool is_root_place(const Instruction& run, const Block& block) {
  const auto* collective = std::get_if<Collective>(&run.what);
  if (!collective || collective->algorithm != Algorithm::GatherToRoot) return false;
  const auto names = [&](const Use& use) { return use.buffer == block.buffer; };
  return std::ranges::none_of(run.reads, names) && std::ranges::none_of(run.writes, names);
}

// Whether the rank, which belongs to the group, is the first member of its instance.
inline bool is_root(const Plan& plan, const Ranks& ranks, RankId rank, GroupId group) {
  const Group& of = plan.groups[group.index()];
  if (!of.roles.empty() && of.roles.front() != ranks.role(rank)) return false;
  return std::ranges::all_of(of.over, [&](AxisId axis) { return ranks.coordinate(rank, axis) == 0; });
}

// The groups that have such places.
inline std::vector<GroupId> groups_with_roots(const Plan& plan) {
  std::vector<GroupId> groups;
  for (const Segment& segment : plan.segments)
    for (const Instruction& run : segment.instructions)
      for (const Block& block : run.acquires)
        if (is_root_place(run, block))
          if (const GroupId group = std::get<Collective>(run.what).group; std::ranges::find(groups, group) == groups.end())
            groups.push_back(group);
  return groups;
}

}  // namespace foreshard
