// What the files of ProcessMesh share. Included by exec/process_mesh*.cpp only.
#pragma once

#include <chrono>
#include <cstdint>

#include "exec/mesh_frame.h"
#include "exec/process_mesh.h"

namespace foreshard {

struct ProcessMesh::Frame : MeshFrame {};

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
