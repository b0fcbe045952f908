// Direct transfer between processes of one machine: the receiver reads a large message from the sender's memory with the Linux system call
// process_vm_readv. That is one copy instead of two, and nothing goes through the network stack. If the system forbids it (other users,
// other containers, ptrace_scope of the Yama security module), messages are sent through the socket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "exec/mesh/socket.h"

namespace foreshard {

// Copies `bytes` bytes at `address` in the memory of another process to `to`. `process`: its process id (pid) on this machine. Returns
// false if not all of it could be read; errno then holds the reason.
bool read_memory(int process, std::uint64_t address, void* to, std::size_t bytes);

// Whether two processes can read each other's memory.
struct PeerMemoryAccess {
  int borrows_from = 0;   // pid of the other process if this process can read its memory, else 0
  bool lends_to = false;  // whether the other process can read this process's memory
};
// Finds out, for each of `others` (the connections to all other processes), whether it can read this process's memory and the reverse.
// Every process calls it at the same time. `lends`: whether this process allows others to read its memory. Throws DeviceError if a
// connection ends or `until` passes.
std::vector<PeerMemoryAccess> find_peer_memory_access(const std::vector<Socket*>& others, bool lends, Deadline until);

}  // namespace foreshard
