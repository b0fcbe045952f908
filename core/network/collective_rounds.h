// Who sends what to whom: an algorithm of collectives as rounds of messages between the members of a group. Pure arithmetic on the
// places of members in their group, the same on every rank. What executors carry out; the bytes of core/network/network.h are the same
// (tests/core/network/collective_rounds_test.cpp). Of the full tensor:
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
  int from = 0, to = 0;  // places in the group
  int slice = 0;         // one of CollectiveRounds::slices
  bool adds = false;     // to what the receiver has; else it takes its place
  bool operator==(const SliceMessage&) const = default;
};
using MessageRound = std::vector<SliceMessage>;  // in one round no member sends a slice that it also receives

struct CollectiveRounds {
  int slices = 1;  // equal parts of the tensor; of a reduce-scatter or all-gather part m is that of member m
  std::vector<MessageRound> rounds = {};
};

// Whether the algorithm is one for this kind and size of group; where it is not, a ring takes its place. Hierarchical and trees:
// `Collective::servers` members that follow each other share a node.
bool algorithm_applies(const Collective& collective, int members);

// Not of an all-to-all (every member sends to every other) nor of NvlinkSharp (the switch adds): no rounds.
//   Ring            all-reduce: n - 1 rounds add, n - 1 copy; reduce-scatter, all-gather: half of it; broadcast, reduce: a chain of n slices
//   Tree            chains inside the nodes to their heads, heads up a binary tree and down again, the whole tensor in each message
//   DoubleTree      half of the data on each of two mirrored trees
//   Hierarchical    rings inside the nodes reduce-scatter, rings across them all-reduce, rings inside all-gather
//   TwoDimensional  the same on a grid of rows of `grid_columns` members
//   ParameterServer one slice per server: all push, then all pull; the servers are the first Collective::servers members
//   GatherToRoot    the same with the first member alone
CollectiveRounds collective_rounds(const Collective& collective, int members);

// Columns of the squarest grid of n members: the least divisor that is at least sqrt(n). n or 1: there is none.
int grid_columns(int members);

}  // namespace foreshard
