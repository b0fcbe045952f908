// Kernel fusion in a row of compute tasks, before the first step: a matrix product with an activation as its epilogue (cuBLASLt), in the
// forward and in the backward. Example, the backward of an MLP z = gelu(fc1) w2^T, fc1 = x w1^T + b1, with y = gelu(fc1) ("d" is a
// gradient):
//
//   task          1                2                 3                             4                   5
//   of the plan   d y = d z w2     d w2 = d z^T y    d fc1 = d y * gelu'(fc1)      d x = d fc1 w1      d w1 = d fc1^T x, d b1
//   runs as       nothing          d w2              d fc1 and d b1 from d z       d x                 d w1
//                 |----------------- reported as one span -----------------|
//
// The fused kernel runs at the place of the activation (task 3). It is fused only if all that it reads is still intact there, and what it
// writes may be overwritten there. Other streams cannot notice, because they wait only for the last task of a row (TaskRow).
#pragma once

#include <optional>

#include "exec/cuda_device/compute_task.h"

namespace foreshard::gpu {

// Tries to fuse the task at position `at` of the row with those after it. Returns the members that now run as one (`row` of the result is
// not set), or nothing if they stay as they are. at + 1 < number of members.
std::optional<JoinedTasks> join_tasks(const TaskRow& row, std::size_t at, Runtime& runtime);

}  // namespace foreshard::gpu
