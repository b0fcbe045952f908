// What the files of ProcessMesh share. Included by exec/process_mesh*.cpp only.
#pragma once

#include <chrono>
#include <cstdint>

#include "core/base/error.h"
#include "exec/mesh/mesh_frame.h"
#include "exec/mesh/process_mesh.h"

namespace foreshard {

struct ProcessMesh::Frame : MeshFrame {};

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

namespace mesh {

inline constexpr std::chrono::milliseconds kBeat{300};
inline constexpr std::chrono::milliseconds kWord{1000};        // for the last words of one that cannot be written to any more
inline constexpr std::uint64_t kControl = 0;                   // the channel of words between processes
inline constexpr std::uint64_t kWorks = 1, kCommunicates = 2;  // in the channel of a beat

inline std::int64_t steady_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace mesh

}  // namespace foreshard
