// Tensors of a checkpoint between the processes of a run: from those that do not see the file to process 0, and back from process 0, which
// reads it.
#pragma once

#include <string>
#include <vector>

#include "core/base/dtype.h"
#include "exec/data/tensors.h"
#include "exec/mesh/process_mesh.h"

namespace foreshard {

// Called by every process in the same order, with TensorPieces::share of what it holds. What is left for it to write: at process 0, which never sends,
// that and what was sent; nothing where it was sent. Values travel as `dtype`. Both throw DeviceError when another process failed or ended.
WholeTensor gather_shares(ProcessMesh& mesh, WholeTensor own, bool sends, DType dtype);

// The `count` elements that process 0 has, on all; the others pass nothing. Called by every process in the same order.
std::vector<double> share_elements(ProcessMesh& mesh, const std::vector<double>& elements, DType dtype, std::int64_t count);

// What travels for it: the format, then the elements. Throws DeviceError for a text that is not that of `count` elements.
std::vector<double> shared_elements_of(const std::string& text, std::int64_t count);

}  // namespace foreshard
