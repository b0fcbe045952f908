#include "exec/mesh/mesh_peer.h"

#include <algorithm>

#include "core/base/error.h"
#include "exec/mesh/mesh_frame.h"

namespace foreshard {

namespace {

constexpr std::int64_t kShort = 64 << 10;  // bytes of a message

}  // namespace

void MeshPeer::write(const MeshFrame& frame, std::span<const std::byte> bytes) {
  const std::lock_guard lock(sending);
  MeshFrame header = frame;
  header.bytes = static_cast<std::int64_t>(bytes.size());
  socket.send(&header, sizeof header);
  if (!bytes.empty()) socket.send(bytes.data(), bytes.size());
}

bool MeshPeer::write_soon(const MeshFrame& frame, std::span<const std::byte> bytes, std::chrono::milliseconds within) {
  const Deadline until = std::chrono::steady_clock::now() + within;
  std::unique_lock lock(sending, std::try_to_lock);  // not a timed mutex: ThreadSanitizer does not know those of glibc
  for (; !lock.owns_lock(); static_cast<void>(lock.try_lock())) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  MeshFrame header = frame;
  header.bytes = static_cast<std::int64_t>(bytes.size());
  try {
    socket.send(&header, sizeof header, until);
    if (!bytes.empty()) socket.send(bytes.data(), bytes.size(), until);
  } catch (const DeviceError&) {
    socket.shut();
    return false;
  }
  return true;
}

void MeshPeer::write_words(std::span<const std::byte> words) {
  const std::lock_guard lock(sending);
  socket.send(words.data(), words.size());
}

std::vector<std::byte> MeshPeer::read_bytes(std::int64_t count) {
  std::vector<std::byte> bytes;
  while (const std::size_t left = static_cast<std::size_t>(count) - bytes.size()) {
    const std::size_t at = bytes.size();
    // allocates for bytes that arrive, not for the size that the peer announces
    bytes.resize(at + std::min(left, kMostAtOnce));
    for (std::size_t end = at; end < bytes.size();) {
      static_cast<void>(socket.wait_for_bytes(Deadline::max()));
      end += socket.receive_some(bytes.data() + end, bytes.size() - end);
      heard = steady_now();
    }
  }
  return bytes;
}

MeshPeer::Waiting MeshPeer::waiting_frame() const {
  MeshFrame frame;
  if (socket.look(&frame, sizeof frame) < sizeof frame) return Waiting::Nothing;
  const bool last = frame.magic != MeshFrame::kMagic || frame.kind == MeshKind::Bye;  // after either, reading ends
  const std::int64_t body = frame.kind == MeshKind::Lent ? static_cast<std::int64_t>(sizeof(std::uint64_t)) : frame.bytes;
  if (last || body < 0 || body > kShort) return Waiting::Long;
  if (body > 0 && socket.waiting() < sizeof frame + static_cast<std::size_t>(body)) return Waiting::Nothing;
  return Waiting::Short;
}

}  // namespace foreshard
