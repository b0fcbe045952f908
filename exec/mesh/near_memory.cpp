#include "exec/mesh/near_memory.h"

#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "core/base/error.h"

namespace foreshard {

namespace {

using Challenge = std::array<std::uint64_t, 4>;
struct Whereabouts {
  std::int64_t process = 0;   // pid; 0: it does not let its memory be read
  std::uint64_t address = 0;  // of the challenge in its memory
};

}  // namespace

bool read_memory(int process, std::uint64_t address, void* to, std::size_t bytes) {
  auto* at = static_cast<std::byte*>(to);
  while (bytes > 0) {
    const iovec here{.iov_base = at, .iov_len = bytes};
    const iovec there{.iov_base = reinterpret_cast<void*>(address), .iov_len = bytes};  // NOLINT: an address of the other
    const ssize_t got = ::process_vm_readv(process, &here, 1, &there, 1, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got, address += static_cast<std::uint64_t>(got), bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

// Each process sends a random number (challenge) to each other process, which stores it and answers with its pid and the address. If the
// asking process can read the same number there, then both are on one machine, reading is allowed, and the pid is that of the process at
// the other end of the connection.
std::vector<PeerMemoryAccess> find_peer_memory_access(const std::vector<Socket*>& others, bool lends, Deadline until) {
  const std::size_t count = others.size();
  std::vector<Challenge> asked(count), kept(count);
  std::vector<PeerMemoryAccess> near(count);
  const auto hear = [&](Socket& socket, auto& into) {
    if (!socket.receive(&into, sizeof into, until))
      throw DeviceError("rendezvous with " + socket.peer(), "the connection ended");
  };
  if (::getrandom(asked.data(), count * sizeof(Challenge), 0) != static_cast<ssize_t>(count * sizeof(Challenge)))
    throw DeviceError("getrandom", std::strerror(errno));
  for (std::size_t p = 0; p < count; ++p) others[p]->send(&asked[p], sizeof(Challenge), until);
  for (std::size_t p = 0; p < count; ++p) {
    hear(*others[p], kept[p]);
    const Whereabouts own{.process = lends ? ::getpid() : 0, .address = reinterpret_cast<std::uintptr_t>(&kept[p])};
    others[p]->send(&own, sizeof own, until);
  }
  for (std::size_t p = 0; p < count; ++p) {
    Whereabouts there;
    hear(*others[p], there);
    Challenge found = {};
    const bool named = there.process > 0 && there.process <= INT32_MAX;
    const bool same =
        named && read_memory(static_cast<int>(there.process), there.address, &found, sizeof found) && found == asked[p];
    near[p].borrows_from = same ? static_cast<int>(there.process) : 0;
    const char verdict = same ? 1 : 0;
    others[p]->send(&verdict, sizeof verdict, until);
  }
  for (std::size_t p = 0; p < count; ++p) {
    char verdict = 0;
    hear(*others[p], verdict);
    near[p].lends_to = verdict == 1;
  }
  return near;
}

}  // namespace foreshard
