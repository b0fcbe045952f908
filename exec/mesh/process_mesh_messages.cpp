// Messages of a mesh: what is sent, what has come, and the threads that read the connections.
#include <unistd.h>

#include <algorithm>
#include <exception>

#include "core/base/error.h"
#include "core/base/printable.h"
#include "exec/mesh/process_mesh_parts.h"

namespace foreshard {

using namespace mesh;

namespace {

constexpr std::size_t kMostAtOnce = std::size_t{16} << 20U;

// Half the memory of the machine: messages that wait there beyond it come from a peer that is broken.
std::int64_t most_waiting() {
  static const std::int64_t most = static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE) / 2;
  return most;
}

std::string text(std::size_t bytes) { return std::to_string(bytes) + " bytes"; }

}  // namespace

std::size_t ProcessMesh::ChannelHash::operator()(const Channel& channel) const {
  const auto& [from, to, word] = channel;
  return (word ^ (static_cast<std::uint64_t>(from) << 32U) ^ static_cast<std::uint32_t>(to)) * 0x9E3779B97F4A7C15U;
}

// ---- sending --------------------------------------------------------------------------------------------------------------

void ProcessMesh::write(int process, const Frame& frame, std::span<const std::byte> bytes) {
  Peer& peer = *peers_[static_cast<std::size_t>(process)];
  const std::lock_guard lock(peer.sending);
  MeshFrame header = frame;
  header.bytes = static_cast<std::int64_t>(bytes.size());
  peer.socket.send(&header, sizeof header);
  if (!bytes.empty()) peer.socket.send(bytes.data(), bytes.size());
}

// For words that must not hold their sender up. False: somebody sends for longer than that, or the other does not take it; then the connection
// is of no use any more.
bool ProcessMesh::write_soon(int process, const Frame& frame, std::span<const std::byte> bytes,
                             std::chrono::milliseconds within) {
  Peer& peer = *peers_[static_cast<std::size_t>(process)];
  const Deadline until = std::chrono::steady_clock::now() + within;
  std::unique_lock lock(peer.sending, std::try_to_lock);  // not a timed mutex: ThreadSanitizer does not know those of glibc
  for (; !lock.owns_lock(); static_cast<void>(lock.try_lock())) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  MeshFrame header = frame;
  header.bytes = static_cast<std::int64_t>(bytes.size());
  try {
    peer.socket.send(&header, sizeof header, until);
    if (!bytes.empty()) peer.socket.send(bytes.data(), bytes.size(), until);
  } catch (const DeviceError&) {
    peer.socket.shut();
    return false;
  }
  return true;
}

void ProcessMesh::send(RankId from, RankId to, std::uint64_t channel, std::span<const std::byte> bytes, std::int64_t when) {
  const int there = process_of(to);
  if (there == process()) {
    put({from.value, to.value, channel}, {{bytes.begin(), bytes.end()}, when});
    return;
  }
  Frame frame;
  frame.kind = MeshKind::Message, frame.from = from.value, frame.to = to.value, frame.channel = channel;
  frame.when = when + offset_;
  blaming(there, [&] { write(there, frame, bytes); });
}

void ProcessMesh::write_words(int process, std::span<const std::byte> words) {
  Peer& peer = *peers_[static_cast<std::size_t>(process)];
  blaming(process, [&] {
    const std::lock_guard lock(peer.sending);
    peer.socket.send(words.data(), words.size());
  });
}

void ProcessMesh::blame(int process, const std::string& problem) {
  {
    std::unique_lock lock(mutex_);  // who reads this connection knows more: what the other said last, or that it has ended
    changed_.wait_for(lock, kWord, [&] { return !failure_.empty(); });
  }
  fail(name(process) + ": " + problem + last_heard(process));
  const std::lock_guard lock(mutex_);
  throw DeviceError("the run", failure_);
}

// ---- what has come ----------------------------------------------------------------------------------------------------------

void ProcessMesh::put(const Channel& channel, Message message) {
  const std::lock_guard lock(mutex_);
  Inbox& inbox = inbox_[channel];
  if (inbox.places.empty()) {
    waiting_ += static_cast<std::int64_t>(message.bytes.size());
    inbox.messages.push_back(std::move(message));
    changed_.notify_all();
    return;
  }
  MeshArrival& arrival = *inbox.places.front();
  inbox.places.pop_front();
  arrive(arrival, message);
  arrival.changed->notify_all();
}

void ProcessMesh::arrive(MeshArrival& arrival, const Message& message) {
  const std::size_t size = message.lent != 0 ? message.size : message.bytes.size();
  const bool fits = size == arrival.place.size();
  if (fits) std::copy(message.bytes.begin(), message.bytes.end(), arrival.place.begin());
  arrival.found = size, arrival.when = message.when, arrival.lent = message.lent;
  arrival.state = fits ? MeshArrival::State::Here : MeshArrival::State::Wrong;
}

void ProcessMesh::post(RankId from, RankId to, std::uint64_t channel, MeshArrival& arrival) {
  const std::lock_guard lock(mutex_);
  Inbox& inbox = inbox_[{from.value, to.value, channel}];
  if (inbox.messages.empty()) {
    arrival.state = MeshArrival::State::Posted;
    inbox.places.push_back(&arrival);
    return;
  }
  const Message message = std::move(inbox.messages.front());
  inbox.messages.pop_front();
  waiting_ -= static_cast<std::int64_t>(message.bytes.size());
  arrive(arrival, message);
}

void ProcessMesh::await(RankId from, MeshArrival& arrival, const Stop& stop, MeshWatch& watch) {
  meet(from, arrival, stop, watch);
  if (arrival.lent != 0) take(from, arrival, 0, arrival.place);
}

void ProcessMesh::meet(RankId from, MeshArrival& arrival, const Stop& stop, MeshWatch& watch) {
  const int there = process_of(from);
  using State = MeshArrival::State;
  const auto here = [&] { return arrival.state == State::Here || arrival.state == State::Wrong; };
  watch.pause_if_long();
  std::unique_lock lock(mutex_);
  if (!here()) {
    lock.unlock();
    if (!look_out(there, arrival, watch)) watch.end();
    lock.lock();
  }
  stop.wait(lock, *arrival.changed, [&] { return here() || has_ended(there); });
  if (!here()) throw DeviceError("receiving from " + name(there), "it has ended");
  if (arrival.state == State::Wrong)
    throw DeviceError("receiving from " + name(there),
                      "a message of " + text(arrival.found) + " instead of " + text(arrival.place.size()));
  arrival.state = State::Idle;
}

void ProcessMesh::forget(RankId from, RankId to, std::uint64_t channel, MeshArrival& arrival) {
  std::unique_lock lock(mutex_);
  std::erase(inbox_[{from.value, to.value, channel}].places, &arrival);
  Peer& peer = *peers_[static_cast<std::size_t>(process_of(from))];
  if (peer.filling == &arrival) {  // what is still to come is thrown away
    peer.filling = nullptr;
    changed_.wait(lock, [&] { return !peer.touches; });
  }
  arrival.state = MeshArrival::State::Idle;
}

// ---- words between processes ------------------------------------------------------------------------------------------------

std::vector<std::string> ProcessMesh::gather(const std::string& own) {
  const auto bytes = std::as_bytes(std::span(own));
  if (process() != 0) {
    Frame frame;
    frame.kind = MeshKind::Message, frame.from = -1 - process(), frame.to = -1, frame.channel = kControl;
    blaming(0, [&] { write(0, frame, bytes); });
    return {};
  }
  std::vector<std::string> all = {own};
  for (int p = 1; p < processes(); ++p) {
    all.push_back(wait_for_text(p));
  }
  return all;
}

std::string ProcessMesh::wait_for_text(int from) {
  std::unique_lock lock(mutex_);
  Inbox& inbox = inbox_[{-1 - from, -1 - process(), kControl}];
  changed_.wait(lock, [&] { return !failure_.empty() || !inbox.messages.empty() || has_ended(from); });
  if (inbox.messages.empty()) throw DeviceError("the run", failure_.empty() ? name(from) + ": it has ended" : failure_);
  const Message message = std::move(inbox.messages.front());
  inbox.messages.pop_front();
  waiting_ -= static_cast<std::int64_t>(message.bytes.size());
  return {reinterpret_cast<const char*>(message.bytes.data()), message.bytes.size()};
}

std::vector<std::string> ProcessMesh::all_gather(const std::string& own) {
  std::vector<std::string> all = gather(own);
  if (process() != 0) return unpacked(wait_for_text(0), static_cast<std::size_t>(processes()), name(0));
  const std::string text = packed(all);
  Frame frame;
  frame.kind = MeshKind::Message, frame.from = -1, frame.channel = kControl;
  for (int p = 1; p < processes(); ++p) {
    frame.to = -1 - p;
    blaming(p, [&] { write(p, frame, std::as_bytes(std::span(text))); });
  }
  return all;
}

// ---- reading the connections ------------------------------------------------------------------------------------------------

void ProcessMesh::read(int process) {
  read_all(process);
  const std::lock_guard lock(mutex_);
  peers_[static_cast<std::size_t>(process)]->read = true;
  changed_.notify_all();
}

void ProcessMesh::read_all(int process) {
  Peer& peer = *peers_[static_cast<std::size_t>(process)];
  const auto next = [&] {
    static_cast<void>(peer.socket.wait_for_bytes(Deadline::max()));
    const std::lock_guard reading(peer.reading);
    return !peer.socket.has_bytes() || read_frame(process);  // none: who kept watch has read them
  };
  while (goes_on(process, next)) continue;
}

// False: nothing more will come.
bool ProcessMesh::read_frame(int process) {
  Peer& peer = *peers_[static_cast<std::size_t>(process)];
  Frame frame;
  if (!peer.socket.receive(static_cast<MeshFrame*>(&frame), sizeof(MeshFrame))) {
    fail(name(process) + ": it has ended" + last_heard(process));
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
  fail(name(process) + ": " + problem + last_heard(process));
}

// A rank of that process to a rank of this one, or the processes to each other.
void ProcessMesh::expect_sender(int process, const Frame& frame) const {
  const auto within = [&](std::int32_t rank, int owner) { return rank >= first_rank(owner) && rank < first_rank(owner + 1); };
  const bool ranks = frame.channel != kControl && within(frame.from, process) && within(frame.to, this->process());
  const bool words = frame.channel == kControl && frame.from == -1 - process && frame.to == -1 - this->process();
  if (!ranks && !words)
    throw DeviceError("receiving from " + peers_[static_cast<std::size_t>(process)]->socket.peer(),
                      "a message between others: from " + std::to_string(frame.from) + " to " + std::to_string(frame.to));
}

void ProcessMesh::read_message(int process, const Frame& frame) {
  expect_sender(process, frame);
  Peer& peer = *peers_[static_cast<std::size_t>(process)];
  const Channel channel{frame.from, frame.to, frame.channel};
  if (frame.kind == MeshKind::Lent) return hear_of_lent(peer, channel, frame);
  if (land(peer, channel, frame)) return;
  expect_room(peer, frame.bytes);
  put(channel, {read_bytes(peer, frame.bytes), frame.when - offset_});
}

void ProcessMesh::expect_room(const Peer& peer, std::int64_t bytes) const {
  const std::lock_guard lock(mutex_);
  if (bytes > most_waiting() - waiting_)
    throw DeviceError("receiving from " + peer.socket.peer(), "more messages than this machine can keep");
}

// The place that waits for a message, now being filled; null: there is none.
MeshArrival* ProcessMesh::place_for(Peer& peer, const Channel& channel, const Frame& frame) {
  const std::lock_guard lock(mutex_);
  Inbox& inbox = inbox_[channel];
  if (inbox.places.empty()) return nullptr;
  MeshArrival* arrival = inbox.places.front();
  inbox.places.pop_front();
  arrival->found = static_cast<std::size_t>(frame.bytes), arrival->when = frame.when - offset_, arrival->lent = 0;
  if (arrival->found != arrival->place.size()) {
    arrival->state = MeshArrival::State::Wrong;
    arrival->changed->notify_all();
    throw DeviceError("receiving from " + peer.socket.peer(),
                      "a message of " + text(arrival->found) + " instead of " + text(arrival->place.size()));
  }
  arrival->state = MeshArrival::State::Filling;
  peer.filling = arrival;
  return arrival;
}

// Straight to the place that waits for it; false: there is none.
bool ProcessMesh::land(Peer& peer, const Channel& channel, const Frame& frame) {
  const MeshArrival* arrival = place_for(peer, channel, frame);
  if (!arrival) return false;
  if (frame.bytes == 0)
    leave(peer, true, false);
  else
    fill(peer, arrival->place);
  return true;
}

// Bytes are taken without waiting while the place is touched, so that whoever forgets it waits for a moment only.
void ProcessMesh::fill(Peer& peer, std::span<std::byte> place) {
  std::vector<std::byte> unwanted;
  for (std::size_t at = 0; at < place.size();) {
    static_cast<void>(peer.socket.wait_for_bytes(Deadline::max()));
    bool wanted = false;
    {
      const std::lock_guard lock(mutex_);
      wanted = peer.touches = peer.filling != nullptr;
    }
    if (!wanted && unwanted.empty()) unwanted.resize(std::min(place.size(), kMostAtOnce));
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

void ProcessMesh::leave(Peer& peer, bool whole, bool broken) {
  const std::lock_guard lock(mutex_);
  peer.touches = false;
  if (!peer.filling) return changed_.notify_all();  // forgotten meanwhile
  if (whole) peer.filling->state = MeshArrival::State::Here, peer.filling->changed->notify_all();
  if (whole || broken) peer.filling = nullptr;
}

std::vector<std::byte> ProcessMesh::read_bytes(Peer& peer, std::int64_t count) {
  std::vector<std::byte> bytes;
  while (const std::size_t left = static_cast<std::size_t>(count) - bytes.size()) {
    const std::size_t at = bytes.size();
    bytes.resize(at + std::min(left, kMostAtOnce));  // memory for what has come, not for what is promised
    for (std::size_t end = at; end < bytes.size();) {
      static_cast<void>(peer.socket.wait_for_bytes(Deadline::max()));
      end += peer.socket.receive_some(bytes.data() + end, bytes.size() - end);
      peer.heard = steady_now();
    }
  }
  return bytes;
}

void ProcessMesh::hear(int process, const Frame& frame) {
  Peer& peer = *peers_[static_cast<std::size_t>(process)];
  const std::vector<std::byte> bytes = read_bytes(peer, frame.bytes);
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
