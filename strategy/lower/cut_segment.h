// Cuts the operators of a segment into parts along the samples of a micro-batch, so that a part's computation overlaps the tensor-parallel
// all-reduce of the part before it. Internal to strategy/.
//
//   operation    instructions up to and including a communication between ranks, such as residual1 norm2 fc1 activation fc2 | fc2_reduce
//   whole        residual1 norm2 fc1 activation fc2 fc2_reduce
//   two parts    residual1 1/2 ... fc2 1/2 fc2_reduce 1/2  residual1 2/2 ... fc2 2/2 fc2_reduce 2/2
//
// Instructions that are not cut (copies to and from the host, reductions of parameters' gradients, gathers of parameters) are issued with
// the first part, or after the last part if they touch blocks that the parts use.
#pragma once

#include "strategy/lower/operator_parts.h"

namespace foreshard {

Segment cut_segment(Segment whole, const OperatorParts& parts);

}  // namespace foreshard
