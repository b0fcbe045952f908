// Templates of ProcessMesh that several of its .cpp files use. Included by them only.
#pragma once

#include "core/base/error.h"
#include "exec/mesh/mesh_frame.h"
#include "exec/mesh/process_mesh.h"

namespace foreshard {

// Does `work`, which writes to the process or reads its memory. On DeviceError, the run fails with the name of the process and the reason.
template <class Work>
void ProcessMesh::blaming(int process, const Work& work) {
  try {
    work();
  } catch (const DeviceError& error) {
    blame(process, error.what());
  }
}

// Returns what `read` returns: whether more may arrive. False also if it throws DeviceError; then the run fails.
template <class Read>
bool ProcessMesh::goes_on(int process, const Read& read) {
  try {
    return read();
  } catch (const DeviceError& error) {
    lose(process, error.what());
    return false;
  }
}

}  // namespace foreshard
