// What the files of ProcessMesh share. Included by them only.
#pragma once

#include "core/base/error.h"
#include "exec/mesh/mesh_frame.h"
#include "exec/mesh/process_mesh.h"

namespace foreshard {

// Who cannot be written to, or read, has a name, and mostly a reason.
template <class Work>
void ProcessMesh::blaming(int process, const Work& work) {
  try {
    work();
  } catch (const DeviceError& error) {
    blame(process, error.what());
  }
}

// Whether more may come after what `read` reads.
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
