// Blocks that hold data only on the root of a collective. All ranks of a group run the same program, so all acquire the block in which the
// root gathers what the others send. On the other ranks the block is empty and does not count as alive.
#pragma once

#include <algorithm>
#include <vector>

#include "core/plan/ranks.h"

namespace foreshard {

// Whether `block`, which `run` acquires, is such a block: the instruction is a collective with Algorithm::GatherToRoot that neither reads
// nor writes it. It holds the data received until they are added.
inline bool is_root_only_block(const Instruction& run, const Block& block) {
  const auto* collective = std::get_if<Collective>(&run.what);
  if (!collective || collective->algorithm != Algorithm::GatherToRoot) return false;
  const auto names = [&](const Use& use) { return use.buffer == block.buffer; };
  return std::ranges::none_of(run.reads, names) && std::ranges::none_of(run.writes, names);
}

// Whether the rank is the first member of its instance of the group. It has to belong to the group.
inline bool is_root(const Plan& plan, const Ranks& ranks, RankId rank, GroupId group) {
  const Group& of = plan.groups[group.index()];
  if (!of.roles.empty() && of.roles.front() != ranks.role(rank)) return false;
  return std::ranges::all_of(of.over, [&](AxisId axis) { return ranks.coordinate(rank, axis) == 0; });
}

// The groups whose collectives acquire such blocks.
inline std::vector<GroupId> groups_with_root_only_blocks(const Plan& plan) {
  std::vector<GroupId> groups;
  for (const Segment& segment : plan.segments)
    for (const Instruction& run : segment.instructions)
      for (const Block& block : run.acquires)
        if (is_root_only_block(run, block))
          if (const GroupId group = std::get<Collective>(run.what).group; std::ranges::find(groups, group) == groups.end())
            groups.push_back(group);
  return groups;
}

}  // namespace foreshard
