// How the processes of a mesh find each other. Process 0 listens at MASTER_ADDR:MASTER_PORT. Every other process connects to it, sends its
// number and what it runs (MeshHello), and receives the list of all addresses. Then every process connects to all processes with a smaller
// number, so that there is one connection per pair.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/mesh/mesh_options.h"
#include "exec/mesh/near_memory.h"
#include "exec/mesh/socket.h"

namespace foreshard {

struct MeshConnections {
  std::vector<Socket> sockets = {};         // [process]; that of the calling process is not open
  std::vector<PeerMemoryAccess> near = {};  // [process]
  // Nanoseconds: this process's steady clock + clock_offset = clock of process 0. From the fastest of several round trips (Cristian,
  // "Probabilistic clock synchronization", 1989).
  std::int64_t clock_offset = 0;
};
// Blocks until all are connected. Throws DeviceError that names the processes which did not come by `until`, or one that runs something
// else (MeshOptions::run).
MeshConnections rendezvous(const MeshOptions& options, Deadline until);

}  // namespace foreshard
