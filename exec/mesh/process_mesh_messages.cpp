// Sending and receiving of messages by the ranks and processes of a mesh.
#include <array>
#include <cerrno>
#include <cstring>

#include "core/base/error.h"
#include "exec/mesh/mesh_words.h"
#include "exec/mesh/near_memory.h"
#include "exec/mesh/process_mesh_parts.h"

namespace foreshard {

namespace {

constexpr std::chrono::milliseconds kWord{1000};  // how long to wait for the reason, after a write to a process has failed
constexpr std::size_t kLeastLent = 32 << 10;      // bytes; smaller messages are sent with their frame

}  // namespace

void ProcessMesh::send(RankId from, RankId to, std::uint64_t channel, std::span<const std::byte> bytes, std::int64_t when) {
  const int there = process_of(to);
  if (there == process()) {
    put({from.value, to.value, channel}, {{bytes.begin(), bytes.end()}, when});
    return;
  }
  const MeshFrame frame{
      .kind = MeshKind::Message, .from = from.value, .to = to.value, .channel = channel, .when = when + offset_};
  blaming(there, [&] { peer_at(there).write(frame, bytes); });
}

void ProcessMesh::blame(int process, const std::string& problem) {
  {
    // The reader thread knows more: the reason that the other process sent, or that it has ended.
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kWord, [&] { return !failure_.empty(); });
  }
  fail(options_.name_of(process) + ": " + problem + last_heard(process));
  const std::lock_guard lock(mutex_);
  throw DeviceError("the run", failure_);
}

bool ProcessMesh::lends_to(RankId to) const { return peer_at(process_of(to)).lends_to; }
bool ProcessMesh::borrows_from(RankId from) const { return peer_at(process_of(from)).borrows_from != 0; }

bool ProcessMesh::lend(RankId from, RankId to, std::uint64_t channel, std::span<const std::byte> bytes, std::int64_t when) {
  if (bytes.size() < kLeastLent || !lends_to(to)) {
    send(from, to, channel, bytes, when);
    return false;
  }
  const MeshFrame frame{.kind = MeshKind::Lent,
                        .from = from.value,
                        .to = to.value,
                        .channel = channel,
                        .when = when + offset_,
                        .bytes = static_cast<std::int64_t>(bytes.size())};
  const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
  std::array<std::byte, sizeof frame + sizeof address> words;
  std::memcpy(words.data(), &frame, sizeof frame);
  std::memcpy(words.data() + sizeof frame, &address, sizeof address);
  const int there = process_of(to);
  blaming(there, [&] { peer_at(there).write_words(words); });
  return true;
}

// ---- what has come ----------------------------------------------------------------------------------------------------------

void ProcessMesh::put(const Channel& channel, MeshMessage message) {
  const std::lock_guard lock(mutex_);
  if (!inbox_.put(channel, std::move(message))) changed_.notify_all();
}

void ProcessMesh::post(RankId from, RankId to, std::uint64_t channel, MeshReceive& arrival) {
  const std::lock_guard lock(mutex_);
  inbox_.post({from.value, to.value, channel}, arrival);
}

void ProcessMesh::await(RankId from, MeshReceive& arrival, const Stop& stop, MeshWatch& watch) {
  meet(from, arrival, stop, watch);
  if (arrival.lent != 0) take(from, arrival, 0, arrival.place);
}

void ProcessMesh::meet(RankId from, MeshReceive& arrival, const Stop& stop, MeshWatch& watch) {
  const int there = process_of(from);
  watch.pause_if_long();
  std::unique_lock lock(mutex_);
  if (!arrival.arrived()) {
    lock.unlock();
    if (!look_out(there, arrival, watch)) watch.end();
    lock.lock();
  }
  stop.wait(lock, *arrival.changed, [&] { return arrival.arrived() || peer_at(there).over; });
  if (!arrival.arrived()) throw DeviceError("receiving from " + options_.name_of(there), "it has ended");
  if (arrival.state == MeshReceive::State::Wrong)
    throw DeviceError("receiving from " + options_.name_of(there), sizes(arrival));
  arrival.state = MeshReceive::State::Idle;
}

// Called by the thread that needs the bytes, so that they land in the caches of its core.
void ProcessMesh::take(RankId from, const MeshReceive& arrival, std::size_t at, std::span<std::byte> piece) {
  const int there = process_of(from);
  const int process = peer_at(there).borrows_from;
  blaming(there, [&] {
    if (!read_memory(process, arrival.lent + at, piece.data(), piece.size()))
      throw DeviceError("reading the memory of process " + std::to_string(process) + " of this machine", std::strerror(errno));
  });
}

void ProcessMesh::forget(RankId from, RankId to, std::uint64_t channel, MeshReceive& arrival) {
  std::unique_lock lock(mutex_);
  inbox_.forget({from.value, to.value, channel}, arrival);
  MeshPeer& peer = peer_at(process_of(from));
  if (peer.filling == &arrival) {  // the rest of the message is discarded
    peer.filling = nullptr;
    changed_.wait(lock, [&] { return !peer.touches; });
  }
  arrival.state = MeshReceive::State::Idle;
}

// ---- words between processes ------------------------------------------------------------------------------------------------

std::vector<std::string> ProcessMesh::gather(const std::string& own) {
  const auto bytes = std::as_bytes(std::span(own));
  if (process() != 0) {
    const MeshFrame frame{.kind = MeshKind::Message, .from = -1 - process(), .to = -1, .channel = kControl};
    blaming(0, [&] { peer_at(0).write(frame, bytes); });
    return {};
  }
  std::vector<std::string> all = {own};
  for (int p = 1; p < processes(); ++p) all.push_back(wait_for_text(p));
  return all;
}

std::string ProcessMesh::wait_for_text(int from) {
  std::unique_lock lock(mutex_);
  const Channel channel{-1 - from, -1 - process(), kControl};
  changed_.wait(lock, [&] { return !failure_.empty() || inbox_.has(channel) || peer_at(from).over; });
  const std::optional<MeshMessage> message = inbox_.next(channel);
  if (!message) throw DeviceError("the run", failure_.empty() ? options_.name_of(from) + ": it has ended" : failure_);
  return {reinterpret_cast<const char*>(message->bytes.data()), message->bytes.size()};
}

std::vector<std::string> ProcessMesh::all_gather(const std::string& own) {
  std::vector<std::string> all = gather(own);
  if (process() != 0) return unpacked(wait_for_text(0), static_cast<std::size_t>(processes()), options_.name_of(0));
  const std::string text = packed(all);
  for (int p = 1; p < processes(); ++p) {
    const MeshFrame frame{.kind = MeshKind::Message, .from = -1, .to = -1 - p, .channel = kControl};
    blaming(p, [&] { peer_at(p).write(frame, std::as_bytes(std::span(text))); });
  }
  return all;
}

}  // namespace foreshard
