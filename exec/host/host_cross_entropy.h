// Sizes of a cross-entropy, and what its phases derive from them. Used by exec/host and exec/cuda_ops.
#pragma once

#include <algorithm>
#include <cstdint>

#include "exec/host/host_kernel.h"

namespace foreshard::host {

struct LossSizes {
  std::int64_t rows = 0, columns = 0, classes = 0;
  TokenRows targets = {};
  double weight = 1;  // of this loss

  // Weight of a row in the mean loss of the step.
  double weight_of_row(const OpArguments& arguments) const {
    return weight * loss_weight(arguments, rows, targets.split.ranks);
  }
  std::int64_t size() const { return rows * columns; }
  // The first column of this rank, in the whole vocabulary. `split`: the vocabulary is split over tensor-parallel ranks.
  std::int64_t first(const OpArguments& arguments, bool split) const { return split ? arguments.tp_rank * columns : 0; }
  // Columns of this rank that are classes; the others pad the vocabulary.
  std::int64_t used(std::int64_t first_column) const { return std::clamp<std::int64_t>(classes - first_column, 0, columns); }
};

// The sizes of the instruction. Throws Error for a phase that its piece (core/op/loss.h) does not have, and for a whole cross-entropy with
// no class or more classes than columns.
LossSizes loss_sizes(const Form& form);

}  // namespace foreshard::host
