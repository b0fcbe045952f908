// check_plan: an independent validator of a Plan. It shares no code with `lower`.
//
// Two instructions of a role count as ordered only if the streams and events of that role order them; an order that only communication
// with other ranks enforces does not count. Two runs of the plan are checked back to back without a barrier, so that a slot which the
// second run acquires too early is found as well. All ranks of a role run the same program, and a peer or a group is the same pattern seen
// from each of them, so one representative rank per role is checked.
//
// Rules, by the name that a defect carries in PlanDefect::rule:
//   index-out-of-range       an index, slot, argument, byte range, count or size outside what it refers to
//   too-large                the plan has more instructions, byte ranges or micro-batches than the memory of the check allows
//   exchange-mismatch        sends and receives of a (peer, tag) differ in count or bytes
//   peer-missing             some rank of the role has no such peer
//   collective-mismatch      members of a group differ in the number of their calls, or in kind, algorithm, bytes or type of a call
//   group-without-role       a role calls a group that does not list it
//   group-asymmetric         the roles of a group differ in axes outside the group
//   deadlock                 a dry run stops in which every stream runs in order, and neither side of an exchange and no member of a
//                            collective continues before all of them have arrived (rendezvous)
//   operand-missing          an exchange, collective or copy whose block to read or write is missing or too short; a rank reads its part
//                            of an all-gather and writes its part of a reduce-scatter, or the whole tensor if it works in place
//   operand-size             an operand of a compute that does not have the number of elements which the shapes and settings of its
//                            operator say (core/check/operand_sizes.h), or too few or too many operands
//   operand-type             a copy, exchange or collective between blocks of other number formats
//   operator-differs         a recomputation or a backward whose operator, settings or shapes no forward of its layer has, or a forward
//                            whose operator none of the backwards of its layer has, though there are some of that operator; a backward
//                            that reads other values than a forward of its operator had, or gradients of other values than its results;
//                            weights and gradients, or states of an update, that are of different tensors; different loss scales
//   samples-differ           an operator that states its number of samples states another one than Plan::samples divided by replicas and
//                            micro-batches; the samples do not divide; or an action passes another micro-batch than it says
//   shard-size               shards that overlap, leave a gap in their buffer, or do not have the bytes of their part of the tensor;
//                            a tensor cut in two ways; a trained tensor without a value, a gradient, or a state that others have
//   use-undefined            a read of bytes that nothing has written since their block was acquired
//   wait-without-record      an event that the role never records
//   resident-acquired        a resident block acquired or released
//   double-acquire, release-without-acquire, life-not-closed
//   use-outside-life         a use of a block that is never acquired, or that is not ordered after its acquire and before its release
//   release-unordered        a release that is not ordered after every earlier use of the block
//   reuse-unordered          an acquire that is not ordered after the previous release of the same block
//   shared-bytes-unordered   two blocks share bytes, but neither is released before the other is acquired
//   access-unordered         two accesses to the same bytes, one of them a write, without order
//   work-missing, work-repeated, work-order   a (stage, micro-batch) that does not have exactly one F and then one B, or I and W
//   update-count             a (role, stage) whose number of updates is not Plan::updates
//   weight-version           a backward names another weight version than its forward; version -1 (the newest) is accepted
//   rate-delay               some update of the plan adapts its learning rate to the delay of its gradients (ops::DelayedRate), but this
//                            one does not, or with a delay that is not that of its gradients, or over another number of steps
//   shard-axes               a tensor cut (Shard::split_by) over axes whose ranks hold the same part of it, cut flat (flat_by) over axes
//                            whose ranks hold different parts, or an expert's tensor not cut over an expert axis. Kinds are those of the
//                            tensor's grid
//   frozen-tensor            a buffer holds a gradient or an optimizer state of a frozen tensor, or an instruction writes its value
//   context-split            an operator that depends on positions disagrees with the context axes of its role, or with other such
//                            operators, on how ranks share a sequence; or it reads a block of keys that its ring does not have
//   gradient-not-reduced     an update reads a gradient that was not reduced over all data-parallel ranks that hold it: the axes of
//                            data kinds in its grid (is_data), and all roles with a gradient of the same tensor
//   gradient-over-reduced    an update reads a gradient that was reduced twice over an axis, over different shards, over ranks that hold
//                            equal gradients, or with a role that does not hold the tensor
//   gradient-lost            what the backward of a micro-batch wrote into a gradient does not reach an update: it, or every sum, copy and
//                            conversion of it, is overwritten or released before, or no update reads it in this run or the next; or the
//                            backward of one micro-batch does not write it, those of others do; or received twice before an update;
//                            or a backward overwrites the gradient of a value to which it should add
//   gradient-repeated        an update reads a gradient that an update has read before, or a backward adds to one
//   partial-sum              a partial sum over a tensor-parallel axis (a product with a split weight, row sums over a split vocabulary,
//                            the gradient of a replicated weight from some of the tokens) is read or sent before it is reduced
//   collective-axes          a collective of values or their gradients over ranks that see other samples (but for tokens sent to experts)
//   slice-not-gathered       a slice that another stage sent (Exchange::slice) is read before an all-gather has brought the others
//   update-without-gradient  an optimizer step of a data-parallel role that reads nothing a backward wrote, or no newly received gradient
//   capacity, host-capacity  more memory on a device, or in the host memory of a node, than CheckPlanOptions allows
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
  std::map<std::string, Bytes> capacity = {};  // device memory by Role::device_kind; a kind without an entry is not checked
  Bytes host_capacity = {};                    // per node; 0: not checked
  int ranks_per_node = 0;                      // devices of a node; 0: host memory is not checked
  bool stale_weights_allowed = false;          // a backward may use newer weights than its forward (PipeMare)
  int most_defects = 20;                       // the check stops after this number of defects
};

// The defects of the plan; empty if it is sound. Time does not grow with the data-parallel degree, except that host memory per node and
// memory of devices with several ranks are summed over ranks. Each rule names an instruction of a segment and role at most once.
std::vector<PlanDefect> check_plan(const Plan& plan, const CheckPlanOptions& options = {});
// The first of them, "WHERE: WHAT [RULE]"; "" if the plan is sound.
std::string first_defect(const Plan& plan);
// For plans that this program has made: throws Bug with the first defect. A plan that is too large to be checked passes.
void expect_sound(const Plan& plan);

}  // namespace foreshard
