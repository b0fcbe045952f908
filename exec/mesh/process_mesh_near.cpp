// Processes of one machine: large messages are taken straight from the sender's memory (process_vm_readv of Linux), one copy instead of two and
// nothing through the network. Where the system does not let them (other users, other containers, Yama's ptrace_scope), they are sent.
#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "core/base/error.h"
#include "exec/mesh/process_mesh_parts.h"

namespace foreshard {

using namespace mesh;

namespace {

constexpr std::size_t kLeastLent = 32 << 10;  // bytes; smaller ones travel with their frame

using Challenge = std::array<std::uint64_t, 4>;
struct Whereabouts {
  std::int64_t process = 0;   // its number on its machine
  std::uint64_t address = 0;  // where it keeps the challenge
};

// What stands at an address of another process. Whether all of it could be read.
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

}  // namespace

// Each asks each other to keep a random number in its memory and to say where; who can read it there is on the same machine, may read, and
// knows that the process is the one at the other end of the connection.
void ProcessMesh::find_neighbours(Deadline until) {
  const std::size_t count = peers_.size();
  std::vector<Challenge> asked(count), kept(count);
  const auto each = [&](const auto& speak) {
    for (std::size_t p = 0; p < count; ++p)
      if (static_cast<int>(p) != process()) speak(*peers_[p], p);
  };
  const auto hear = [&](Peer& peer, auto& into) {
    if (!peer.socket.receive(&into, sizeof into, until))
      throw DeviceError("rendezvous with " + peer.socket.peer(), "the connection ended");
  };
  if (::getrandom(asked.data(), count * sizeof(Challenge), 0) != static_cast<ssize_t>(count * sizeof(Challenge)))
    throw DeviceError("getrandom", std::strerror(errno));
  each([&](Peer& peer, std::size_t p) { peer.socket.send(&asked[p], sizeof(Challenge), until); });
  each([&](Peer& peer, std::size_t p) {
    hear(peer, kept[p]);
    const Whereabouts own{.process = lends() ? ::getpid() : 0, .address = reinterpret_cast<std::uintptr_t>(&kept[p])};
    peer.socket.send(&own, sizeof own, until);
  });
  each([&](Peer& peer, std::size_t p) {
    Whereabouts there;
    hear(peer, there);
    Challenge found = {};
    const bool named = there.process > 0 && there.process <= INT32_MAX;
    const bool same =
        named && read_memory(static_cast<int>(there.process), there.address, &found, sizeof found) && found == asked[p];
    peer.borrows_from = same ? static_cast<int>(there.process) : 0;
    const char verdict = same ? 1 : 0;
    peer.socket.send(&verdict, sizeof verdict, until);
  });
  int near = 0;
  each([&](Peer& peer, std::size_t) {
    char verdict = 0;
    hear(peer, verdict);
    peer.lends_to = verdict == 1;
    near += peer.borrows_from != 0 ? 1 : 0;
  });
  log(std::to_string(near) + " of the others are on this machine and let their memory be read");
}

bool ProcessMesh::lends() const { return options_.lends; }

bool ProcessMesh::lends_to(RankId to) const { return peers_[static_cast<std::size_t>(process_of(to))]->lends_to; }
bool ProcessMesh::borrows_from(RankId from) const {
  return peers_[static_cast<std::size_t>(process_of(from))]->borrows_from != 0;
}

bool ProcessMesh::lend(RankId from, RankId to, std::uint64_t channel, std::span<const std::byte> bytes, std::int64_t when) {
  if (bytes.size() < kLeastLent || !lends_to(to)) {
    send(from, to, channel, bytes, when);
    return false;
  }
  Frame frame;
  frame.kind = MeshKind::Lent, frame.from = from.value, frame.to = to.value, frame.channel = channel,
  frame.when = when + offset_;
  frame.bytes = static_cast<std::int64_t>(bytes.size());
  const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
  std::array<std::byte, sizeof(MeshFrame) + sizeof address> words;
  std::memcpy(words.data(), static_cast<const MeshFrame*>(&frame), sizeof(MeshFrame));
  std::memcpy(words.data() + sizeof(MeshFrame), &address, sizeof address);
  write_words(process_of(to), words);
  return true;
}

void ProcessMesh::hear_of_lent(Peer& peer, const Channel& channel, const Frame& frame) {
  std::uint64_t address = 0;
  if (!peer.socket.receive(&address, sizeof address))
    throw DeviceError("receiving from " + peer.socket.peer(), "the connection ended");
  if (peer.borrows_from == 0 || address == 0)
    throw DeviceError("receiving from " + peer.socket.peer(), "a message in a memory that cannot be read");
  put(channel, {.when = frame.when - offset_, .lent = address, .size = static_cast<std::size_t>(frame.bytes)});
}

// By the thread that needs the bytes, into the caches of its core.
void ProcessMesh::take(RankId from, const MeshArrival& arrival, std::size_t at, std::span<std::byte> piece) {
  const int there = process_of(from);
  const int process = peers_[static_cast<std::size_t>(there)]->borrows_from;
  blaming(there, [&] {
    if (!read_memory(process, arrival.lent + at, piece.data(), piece.size()))
      throw DeviceError("reading the memory of process " + std::to_string(process) + " of this machine", std::strerror(errno));
  });
}

}  // namespace foreshard
