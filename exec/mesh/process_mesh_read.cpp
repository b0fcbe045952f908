// The threads of a mesh that read its connections.
#include <unistd.h>

#include <algorithm>
#include <exception>

#include "core/base/error.h"
#include "core/base/printable.h"
#include "exec/mesh/mesh_words.h"
#include "exec/mesh/process_mesh_parts.h"

namespace foreshard {

namespace {

// Limit on the bytes of messages kept in the inbox: half the memory of the machine. If a peer exceeds it, it is broken.
std::int64_t most_waiting() {
  static const std::int64_t most = static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE) / 2;
  return most;
}

}  // namespace

void ProcessMesh::read(int process) {
  read_all(process);
  const std::lock_guard lock(mutex_);
  peer_at(process).read = true;
  changed_.notify_all();
}

void ProcessMesh::read_all(int process) {
  MeshPeer& peer = peer_at(process);
  const auto next = [&] {
    static_cast<void>(peer.socket.wait_for_bytes(Deadline::max()));
    const std::lock_guard reading(peer.reading);
    return !peer.socket.has_bytes() || read_frame(process);  // no bytes: a MeshWatch has read them
  };
  while (goes_on(process, next)) continue;
}

// Returns false if nothing more will come.
bool ProcessMesh::read_frame(int process) {
  MeshPeer& peer = peer_at(process);
  MeshFrame frame;
  if (!peer.socket.receive(&frame, sizeof frame)) {
    fail(options_.name_of(process) + ": it has ended" + last_heard(process));
    return false;
  }
  check_frame(frame, peer.socket.peer());
  peer.heard = steady_now();
  if (frame.kind == MeshKind::Message || frame.kind == MeshKind::Lent)
    read_message(process, frame);
  else
    hear(process, frame);
  return frame.kind != MeshKind::Bye;
}

void ProcessMesh::lose(int process, const std::string& problem) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
  }
  fail(options_.name_of(process) + ": " + problem + last_heard(process));
}

// Throws DeviceError unless the message goes from a rank of that process to a rank of this one, or from that process to this one.
void ProcessMesh::expect_sender(int process, const MeshFrame& frame) const {
  const auto within = [&](std::int32_t rank, int owner) { return rank >= first_rank(owner) && rank < first_rank(owner + 1); };
  const bool ranks = frame.channel != kControl && within(frame.from, process) && within(frame.to, this->process());
  const bool words = frame.channel == kControl && frame.from == -1 - process && frame.to == -1 - this->process();
  if (!ranks && !words)
    throw DeviceError("receiving from " + peer_at(process).socket.peer(),
                      "a message between others: from " + std::to_string(frame.from) + " to " + std::to_string(frame.to));
}

void ProcessMesh::read_message(int process, const MeshFrame& frame) {
  expect_sender(process, frame);
  MeshPeer& peer = peer_at(process);
  const Channel channel{frame.from, frame.to, frame.channel};
  if (frame.kind == MeshKind::Lent) return hear_of_lent(peer, channel, frame);
  if (land(peer, channel, frame)) return;
  expect_room(peer, frame.bytes);
  put(channel, {peer.read_bytes(frame.bytes), frame.when - offset_});
}

void ProcessMesh::expect_room(const MeshPeer& peer, std::int64_t bytes) const {
  const std::lock_guard lock(mutex_);
  if (bytes > most_waiting() - inbox_.waiting())
    throw DeviceError("receiving from " + peer.socket.peer(), "more messages than this machine can keep");
}

// The posted receive that the message belongs to, now in state Filling; null: none is posted.
MeshReceive* ProcessMesh::place_for(MeshPeer& peer, const Channel& channel, const MeshFrame& frame) {
  const std::lock_guard lock(mutex_);
  MeshReceive* arrival = inbox_.next_place(channel);
  if (!arrival) return nullptr;
  arrival->found = static_cast<std::size_t>(frame.bytes), arrival->when = frame.when - offset_, arrival->lent = 0;
  if (arrival->found != arrival->place.size()) {
    arrival->state = MeshReceive::State::Wrong;
    arrival->changed->notify_all();
    throw DeviceError("receiving from " + peer.socket.peer(), sizes(*arrival));
  }
  arrival->state = MeshReceive::State::Filling;
  peer.filling = arrival;
  return arrival;
}

// Receives the message directly into the place of a posted receive; false: none is posted.
bool ProcessMesh::land(MeshPeer& peer, const Channel& channel, const MeshFrame& frame) {
  const MeshReceive* arrival = place_for(peer, channel, frame);
  if (!arrival) return false;
  if (frame.bytes == 0)
    leave(peer, true, false);
  else
    fill(peer, arrival->place);
  return true;
}

// While this thread writes to the place (`touches`), it takes only bytes that have arrived and does not block. So a thread that cancels the
// receive waits for a moment only.
void ProcessMesh::fill(MeshPeer& peer, std::span<std::byte> place) {
  std::vector<std::byte> unwanted;
  for (std::size_t at = 0; at < place.size();) {
    static_cast<void>(peer.socket.wait_for_bytes(Deadline::max()));
    bool wanted = false;
    {
      const std::lock_guard lock(mutex_);
      wanted = peer.touches = peer.filling != nullptr;
    }
    if (!wanted && unwanted.empty()) unwanted.resize(std::min(place.size(), MeshPeer::kMostAtOnce));
    std::size_t got = 0;
    std::exception_ptr problem;
    try {
      got = wanted ? peer.socket.receive_some(place.data() + at, place.size() - at)
                   : peer.socket.receive_some(unwanted.data(), std::min(unwanted.size(), place.size() - at));
    } catch (const DeviceError&) {
      problem = std::current_exception();
    }
    at += got;
    peer.heard = steady_now();
    if (wanted) leave(peer, at == place.size(), problem != nullptr);
    if (problem) std::rethrow_exception(problem);
  }
}

void ProcessMesh::leave(MeshPeer& peer, bool whole, bool broken) {
  const std::lock_guard lock(mutex_);
  peer.touches = false;
  if (!peer.filling) return changed_.notify_all();  // cancelled meanwhile
  if (whole) peer.filling->state = MeshReceive::State::Here, peer.filling->changed->notify_all();
  if (whole || broken) peer.filling = nullptr;
}

void ProcessMesh::hear_of_lent(MeshPeer& peer, const Channel& channel, const MeshFrame& frame) {
  std::uint64_t address = 0;
  if (!peer.socket.receive(&address, sizeof address))
    throw DeviceError("receiving from " + peer.socket.peer(), "the connection ended");
  if (peer.borrows_from == 0 || address == 0)
    throw DeviceError("receiving from " + peer.socket.peer(), "a message in a memory that cannot be read");
  put(channel, {.when = frame.when - offset_, .lent = address, .size = static_cast<std::size_t>(frame.bytes)});
}

void ProcessMesh::hear(int process, const MeshFrame& frame) {
  MeshPeer& peer = peer_at(process);
  const std::vector<std::byte> bytes = peer.read_bytes(frame.bytes);
  const std::string words = printable({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, kMostPrinted);
  switch (frame.kind) {
    case MeshKind::Message:
    case MeshKind::Lent: return;  // see read_message
    case MeshKind::Beat: {
      peer.ended = frame.when;
      peer.works = (frame.channel & kWorks) != 0;
      const std::lock_guard lock(mutex_);
      peer.running = {.name = words, .communicates = (frame.channel & kCommunicates) != 0};
      return;
    }
    case MeshKind::Failed: return fail(words);
    case MeshKind::Bye: {
      const std::lock_guard lock(mutex_);
      peer.over = true;
      changed_.notify_all();
      return;
    }
  }
}

}  // namespace foreshard
