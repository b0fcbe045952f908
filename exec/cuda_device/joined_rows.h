// Instructions of a row that one product does: before the first step.
//
//   a row       d y = d z w2    d w2 = d z^T y    d fc1 = d y gelu'(fc1)    d x = d fc1 w1    d w1 = d fc1^T x, d b1
//   is run as   nothing         d w2              d fc1, d b1               d x               d w1
//               |------------- one span ---------------------|
//
// The product goes to the place of the activation, where all that it reads is still there if no member in between wrote there, and what it writes
// may be written. No other stream sees that: but for the last no member of a row is waited for.
#pragma once

#include <optional>

#include "exec/cuda_device/compute_task.h"

namespace foreshard::gpu {

// The members of a row from `at` on that one task does now; none: they stay as they are. `memory` grows to what the new kernels need.
std::optional<JoinedTasks> join_tasks(const TaskRow& row, std::size_t at, Runtime& runtime, StreamMemory& memory);

}  // namespace foreshard::gpu
