// A collective as rounds of messages between the members of a group. Executors send these messages. They follow from the positions of
// members in their group alone, so every rank computes the same rounds; core/network/network.h charges the same bytes
// (tests/core/network/collective_rounds_test.cpp). An all-reduce:
//
//   ring, 3 members, slices 0 1 2     round 0   0 -[2]-> 1 -[0]-> 2 -[1]-> 0     added
//                                     round 1   0 -[1]-> 1 -[2]-> 2 -[0]-> 0     added: member m has the sum of slice m
//                                     round 2   0 -[0]-> 1 -[1]-> 2 -[2]-> 0     copied
//                                     round 3   0 -[2]-> 1 -[0]-> 2 -[1]-> 0     copied
#pragma once

#include <vector>

#include "core/plan/plan.h"

namespace foreshard {

struct SliceMessage {
  int from = 0, to = 0;  // positions of members in the group, from 0
  int slice = 0;         // 0 .. CollectiveRounds::slices - 1
  bool adds = false;     // the receiver adds it to its own slice; false: it replaces its own
  bool operator==(const SliceMessage&) const = default;
};
using MessageRound = std::vector<SliceMessage>;  // in one round no member sends a slice that it also receives

struct CollectiveRounds {
  int slices = 1;  // number of equal parts of the tensor. In a reduce-scatter or all-gather, part m belongs to member m
  std::vector<MessageRound> rounds = {};
};

// Whether the algorithm of `collective` supports its kind and this number of members; if not, a ring is used. For Hierarchical and trees,
// each run of `Collective::servers` consecutive members shares a node.
bool algorithm_applies(const Collective& collective, int members);

// The rounds of a collective. None for an all-to-all (every member sends to every other) and for NvlinkSharp (the switch adds).
//   Ring            all-reduce: n - 1 rounds add, n - 1 copy; reduce-scatter, all-gather: half of it;
//                   broadcast, reduce: a chain of n slices
//   Tree            chains inside the nodes to their heads, heads up a binary tree and down again, the whole tensor in each message
//   DoubleTree      half of the data on each of two mirrored trees
//   Hierarchical    rings inside the nodes reduce-scatter, rings across nodes all-reduce, rings inside the nodes all-gather
//   TwoDimensional  the same on a grid of rows of `grid_columns` members
//   ParameterServer one slice per server: all push, then all pull; the servers are the members that serving_members() names. If all
//                   members serve: a reduce-scatter is the first round, an all-gather the second
//   GatherToRoot    the same with the first member as the only server
CollectiveRounds collective_rounds(const Collective& collective, int members);

// ParameterServer: the position of the server of each slice among `members` members: Collective::served_by, or the first
// Collective::servers ones.
std::vector<int> serving_members(const Collective& collective, int members);

// Columns of the squarest grid of `members` members: their least divisor that is at least sqrt(members). If the result is `members`, there
// is no grid of two rows.
int grid_columns(int members);

}  // namespace foreshard
