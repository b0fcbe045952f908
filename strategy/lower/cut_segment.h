// A segment whose operators are cut along the samples of a micro-batch: the part of an operation that is computed hides the sum over
// tensor-parallel ranks of the part before it. Internal to strategy/.
//
//   operation    the instructions up to a communication between ranks, such as residual1 norm2 fc1 activation fc2 | fc2_reduce
//   whole        residual1 norm2 fc1 activation fc2 fc2_reduce
//   two parts    residual1 1/2 ... fc2 1/2 fc2_reduce 1/2  residual1 2/2 ... fc2 2/2 fc2_reduce 2/2
//
// What is not cut (copies to and from the host, sums of gradients, gathers of parameters) is issued with the first part, or behind the last
// one where it touches what the parts do.
#pragma once

#include "strategy/lower/operator_parts.h"

namespace foreshard {

Segment cut_segment(Segment whole, const OperatorParts& parts);

}  // namespace foreshard
