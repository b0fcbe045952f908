// How the processes of a mesh find each other. Process 0 listens at MASTER_ADDR:MASTER_PORT; the others knock, say who they are and what they run, and
// get the list of all addresses; then each connects to those before it.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/mesh/mesh_options.h"
#include "exec/mesh/near_memory.h"
#include "exec/mesh/socket.h"

namespace foreshard {

struct MeshConnections {
  std::vector<Socket> sockets = {};  // [process]; own: not open
  std::vector<Nearness> near = {};   // [process]
  std::int64_t clock_offset = 0;     // nanoseconds to add to the own steady clock: that of process 0
};
// Throws DeviceError with who is missing or runs something else.
MeshConnections rendezvous(const MeshOptions& options, Deadline until);

}  // namespace foreshard
