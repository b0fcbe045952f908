// Processes of one machine: large messages are taken straight from the sender's memory (process_vm_readv of Linux), one copy instead of two and
// nothing through the network. Where the system does not let them (other users, other containers, Yama's ptrace_scope), they are sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "exec/mesh/socket.h"

namespace foreshard {

// What stands at an address of another process. Whether all of it could be read; else errno tells why not.
bool read_memory(int process, std::uint64_t address, void* to, std::size_t bytes);

struct Nearness {
  int borrows_from = 0;   // its process number on this machine, if its memory can be read; else 0
  bool lends_to = false;  // it can read the memory of this one
};
// By each of two processes that are connected: of all `others` at once. `lends`: whether this one lets its memory be read.
std::vector<Nearness> find_neighbours(const std::vector<Socket*>& others, bool lends, Deadline until);

}  // namespace foreshard
