// Sends the tensors of a checkpoint between processes: when saving, from processes without access to the file to process 0; when loading,
// from process 0, which reads the file, to all others.
#pragma once

#include <string>
#include <vector>

#include "core/base/dtype.h"
#include "exec/data/tensors.h"
#include "exec/mesh/process_mesh.h"

namespace foreshard {

// Called by all processes, for the same tensors in the same order. `own`: the elements that this process holds (TensorPieces::share).
// `sends`: it sends them to process 0; process 0 itself never does. Returns the elements that the process has to write to the file: process
// 0 its own and those sent to it, a process that sent none, any other its own. Elements are sent as `dtype`. Throws DeviceError if another
// process failed or ended.
WholeTensor gather_shares(ProcessMesh& mesh, WholeTensor own, bool sends, DType dtype);

// Broadcast: returns the `count` elements that process 0 passes, in all processes; the others pass none. Called by all processes in the
// same order. Elements are sent as `dtype`. Throws DeviceError if another process failed or ended.
std::vector<double> share_elements(ProcessMesh& mesh, const std::vector<double>& elements, DType dtype, std::int64_t count);

// Decodes a message of share_elements: one byte for the number format, then the elements. Throws DeviceError if it does not hold `count`
// elements.
std::vector<double> shared_elements_of(const std::string& text, std::int64_t count);

}  // namespace foreshard
