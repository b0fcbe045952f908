// check_plan: an independent, dull validator of a Plan (design, section 3). It shares no code with `lower`.
//
// Order is judged as the plan promises it: by the streams and events of the role itself. Two runs are laid after each other
// without a barrier, so that a slot which the next run takes too early is found as well. Roles are classes: all ranks of a
// role do the same, and a peer or a group is the same pattern seen from each of them, so one representative decides.
//
// Rules, by the name a defect carries:
//   index-out-of-range       an index, slot, argument, byte range, count or size outside what it refers to
//   too-large                more order or memory state than a check can hold
//   exchange-mismatch        sends and receives of a (peer, tag) differ in count or bytes
//   peer-missing             some rank of the role has no such peer
//   collective-mismatch      members of a group differ in number, kind, algorithm, bytes or type of what they call
//   group-without-role       a role calls a group that does not list it
//   group-asymmetric         the roles of a group differ in axes outside the group
//   deadlock                 a dry run under rendezvous stops: every stream in order, both sides of an exchange and all
//                            members of a collective present before any of them goes on
//   operand-missing          an exchange, collective or copy without, or with too short, a block to read or write; a rank
//                            reads its part of an all-gather and writes its part of a reduce-scatter, all of it in place
//   wait-without-record      an event that the role never records
//   resident-acquired        a resident block acquired or released
//   double-acquire, release-without-acquire, life-not-closed
//   use-outside-life         a use before the end of the wait for, or without, the acquire; or after the release
//   release-unordered        a release that does not wait for an earlier use of the block
//   reuse-unordered          an acquire that does not wait for the previous release of the same block
//   shared-bytes-unordered   blocks that share bytes, alive together or not ordered release before acquire
//   access-unordered         two accesses to the same bytes, one of them a write, without order
//   work-missing, work-repeated, work-order   a (stage, micro-batch) without exactly one F and one B or I + W, F first
//   update-count             a (role, stage) with another number of updates than the plan says
//   weight-version           a backward with another weight version than its forward, unless it says that it takes the newest
//   shard-axes               a tensor cut over axes whose ranks hold the same part of it, cut flat over those that hold other parts,
//                            or experts that are not cut over an expert axis: by the kinds of the grid that the tensor is of
//   context-split            an operator that reads positions, and the context axes of its role or other such operators, disagree on how
//                            ranks share a sequence; a block of keys that a ring does not have
//   gradient-not-reduced     an update reads a gradient that was not reduced over all data-parallel ranks that hold it: the axes of
//                            data kinds in its grid (is_data), and all roles with a gradient of the same tensor
//   gradient-over-reduced    ... that was reduced twice over an axis, over different shards, over ranks that have it alike, or with
//                            a role that does not hold the tensor
//   gradient-lost            a gradient overwritten or released before anything read it
//   partial-sum              a part of a sum over a tensor-parallel axis (product of a cut weight, row sums of a cut vocabulary,
//                            gradient of a whole weight from some of the tokens) that is read or sent before it is reduced
//   update-without-gradient  an optimizer step of a data-parallel role that reads nothing a backward wrote
//   capacity, host-capacity
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/plan/plan.h"

namespace foreshard {

struct PlanDefect {
  std::string rule = {};   // as listed above
  std::string where = {};  // role, action, instruction
  std::string what = {};   // one sentence
  bool operator==(const PlanDefect&) const = default;
};

struct CheckPlanOptions {
  std::map<std::string, Bytes> capacity = {};  // device kind -> device memory; none: not checked
  Bytes host_capacity = {};                    // per node; 0: not checked
  int ranks_per_node = 0;                      // devices of a node; 0: host memory is not checked
  bool stale_weights_allowed = false;          // PipeMare
  int most_defects = 20;
};

// Empty: the plan is sound. Works per role and symmetric coordinates, so its time does not grow with the data-parallel size
// (only host memory per node and several ranks on one device are summed over ranks). An instruction is named once per rule.
std::vector<PlanDefect> check_plan(const Plan& plan, const CheckPlanOptions& options = {});

}  // namespace foreshard
