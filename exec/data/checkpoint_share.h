// Tensors of a checkpoint between the processes of a run: from all to process 0, which writes the file, and back from process 0,
// which reads it. The others need not see the disk.
#pragma once

#include <string>
#include <vector>

#include "core/base/dtype.h"
#include "exec/data/tensors.h"
#include "exec/mesh/process_mesh.h"

namespace foreshard {

// Called by every process in the same order, with TensorPieces::share of what it holds. At process 0 all elements, elsewhere
// nothing. Values travel as `dtype`. Both throw DeviceError when another process failed or ended.
WholeTensor gather_shares(ProcessMesh& mesh, const WholeTensor& own, DType dtype);

// The `count` elements that process 0 has, on all; the others pass nothing. Called by every process in the same order.
std::vector<double> share_elements(ProcessMesh& mesh, const std::vector<double>& elements, DType dtype, std::int64_t count);

// What travels for it: the format, then the elements. Throws DeviceError for a text that is not that of `count` elements.
std::vector<double> shared_elements_of(const std::string& text, std::int64_t count);

}  // namespace foreshard
