#include "exec/mesh/process_mesh.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/base/error.h"
#include "core/base/start_thread.h"
#include "exec/mesh/mesh_rendezvous.h"
#include "exec/mesh/process_mesh_parts.h"

namespace foreshard {

namespace {

using namespace std::chrono_literals;
constexpr std::chrono::milliseconds kBeat{300};
constexpr auto kLeaving = 5s;        // how long the destructor waits for the Bye of the others
constexpr auto kLeavingFailed = 1s;  // the same if the run has failed
constexpr auto kParting = 200ms;     // limit for sending a Bye or Failed to a process that may have ended
constexpr auto kSoon = 10ms;         // limit for sending a heartbeat

}  // namespace

void ProcessMesh::log(const std::string& event) {
  if (!options_.log) return;
  const std::lock_guard lock(log_mutex_);
  options_.log(event);
}

ProcessMesh::ProcessMesh(const MeshOptions& options) : options_(options) {
  const ProcessPlace& place = options.place;
  if (place.processes > options.ranks)
    throw Error("environment", "number of processes", std::to_string(place.processes),
                "at most " + std::to_string(options.ranks) + ", the ranks of the plan");
  const auto begin = std::chrono::steady_clock::now();
  MeshConnections found = rendezvous(options_, begin + options.rendezvous);
  offset_ = found.clock_offset;
  for (std::size_t p = 0; p < found.sockets.size(); ++p) {
    MeshPeer& peer = *peers_.emplace_back(std::make_unique<MeshPeer>());
    peer.socket = std::move(found.sockets[p]);
    peer.borrows_from = found.near[p].borrows_from, peer.lends_to = found.near[p].lends_to;
  }
  start_threads();
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin).count();
  log(std::to_string(place.processes) + " processes are connected after " + std::to_string(took) + " ms");
}

void ProcessMesh::start_threads() {
  try {
    for (int p = 0; p < processes(); ++p) {
      if (p == process()) continue;
      peer_at(p).heard = steady_now();
      peer_at(p).reader = start_thread([this, p] { read(p); });
    }
    beats_ = start_thread([this] { beat(); });
  } catch (const DeviceError& error) {  // some readers run
    tell_failure(error.what());
    end_readers();
    throw;
  }
}

void ProcessMesh::end_readers() {
  for (const auto& peer : peers_) {
    peer->socket.shut();
    if (peer->reader.joinable()) peer->reader.join();
  }
}

ProcessMesh::~ProcessMesh() {
  bool failed = false;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    failed = !failure_.empty();
    changed_.notify_all();
  }
  if (beats_.joinable()) beats_.join();
  for (int p = 0; p < processes(); ++p)  // also to those that leave themselves: every process waits for the Bye of every other
    if (p != process()) static_cast<void>(peer_at(p).write_soon({.kind = MeshKind::Bye}, {}, kParting));
  // Closing a socket with unread bytes resets the connection, and bytes still on their way to the peer would be lost. So each process waits
  // until the other leaves too.
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, failed ? kLeavingFailed : kLeaving, [&] {
    return std::all_of(peers_.begin(), peers_.end(), [](const auto& peer) { return !peer->reader.joinable() || peer->read; });
  });
  lock.unlock();
  end_readers();
}

void ProcessMesh::fail(const std::string& why) {
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) failure_ = why, first = true;
    if (stop_) stop_->raise(why);
    changed_.notify_all();
    inbox_.wake_all();
    for (const auto& peer : peers_)
      if (peer->filling) peer->filling->changed->notify_all();
  }
  if (first) log("failure: " + why);
}

void ProcessMesh::guard(Stop* stop) {
  const std::lock_guard lock(mutex_);
  stop_ = stop;
  if (stop_ && !failure_.empty()) stop_->raise(failure_);
}

// If a process does not accept the message, because it hangs or its network is cut, its connection is shut down instead.
void ProcessMesh::tell_failure(const std::string& why) {
  std::string reason;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(told_, true)) return;
    if (failure_.empty()) failure_ = why;
    reason = failure_;  // the first cause, not what followed from it
  }
  const auto bytes = std::as_bytes(std::span(reason)).first(std::min<std::size_t>(reason.size(), kMostWords));
  for (int p = 0; p < processes(); ++p) {
    MeshPeer& peer = peer_at(p);
    if (p == process() || peer.over) continue;
    if (!peer.write_soon({.kind = MeshKind::Failed}, bytes, kParting)) peer.socket.shut();
  }
}

std::string ProcessMesh::last_heard(int process) const {
  const std::lock_guard lock(mutex_);
  const std::string& running = peer_at(process).running.name;
  return running.empty() ? "" : "; last heard of in " + running;
}

std::int64_t ProcessMesh::others_ended() const {
  std::uint64_t sum = 0;  // unsigned: numbers from the network may overflow
  for (const auto& peer : peers_) sum += static_cast<std::uint64_t>(peer->ended.load());
  return static_cast<std::int64_t>(sum);
}

bool ProcessMesh::others_work() const {
  return std::any_of(peers_.begin(), peers_.end(), [](const auto& peer) { return peer->works.load(); });
}

std::vector<MeshRunning> ProcessMesh::others_running() const {
  std::vector<MeshRunning> all;
  const std::lock_guard lock(mutex_);
  for (const auto& peer : peers_)
    if (!peer->running.name.empty()) all.push_back(peer->running);
  return all;
}

void ProcessMesh::beat() {
  std::int64_t last = steady_now();
  std::unique_lock lock(mutex_);
  while (!closed_) {
    changed_.wait_for(lock, kBeat, [&] { return closed_; });
    if (closed_) return;
    lock.unlock();
    const ProcessProgress own = progress_.now();
    // If this process itself was suspended for a while, it has received nothing meanwhile; that is not the fault of the others.
    const bool slept = steady_now() - last > 4 * std::chrono::nanoseconds(kBeat).count();
    last = steady_now();
    if (slept)
      for (const auto& peer : peers_) peer->heard = last;
    beat_once(own);
    lock.lock();
  }
}

void ProcessMesh::beat_once(const ProcessProgress& own) {
  for (int p = 0; p < processes(); ++p) {
    MeshPeer& peer = peer_at(p);
    if (p == process() || peer.over) continue;
    if (steady_now() - peer.heard > std::chrono::nanoseconds(options_.patience).count()) {
      fail(options_.name_of(p) + ": not heard of for " + std::to_string(options_.patience.count()) + " ms" + last_heard(p));
      peer.socket.shut();  // a thread that blocks sending to it returns
      continue;
    }
    const std::uint64_t state = (own.works ? kWorks : 0) | (own.running.communicates ? kCommunicates : 0);
    const MeshFrame frame{.kind = MeshKind::Beat, .channel = state, .when = own.ended};
    // While a message is on its way no heartbeat is needed: its bytes are a sign of life.
    if (!peer.socket.can_send()) continue;
    static_cast<void>(peer.write_soon(frame, std::as_bytes(std::span(own.running.name)), kSoon));
  }
}

}  // namespace foreshard
