// Busy polling: a thread that waits for a message reads the connection itself for a moment, instead of sleeping until the reader thread
// wakes it. In an all-reduce of 1 MiB, waking would take as long as the sums.
#include <algorithm>

#include "exec/mesh/process_mesh_parts.h"

namespace foreshard {

namespace {

using namespace std::chrono_literals;
// Busy polling ends after kMoment and at least kLooks polls: the time alone is not enough, because other threads may have the core in
// between.
constexpr std::chrono::nanoseconds kMoment = 100us;
constexpr int kLooks = 40;
constexpr std::chrono::nanoseconds kLongest = 2ms;  // after which the reader threads may read again

}  // namespace

MeshWatch::MeshWatch(ProcessMesh& mesh, std::span<const RankId> ranks) {
  std::vector<int> processes;
  for (const RankId rank : ranks)
    if (rank.valid() && mesh.process_of(rank) != mesh.process() && mesh.borrows_from(rank))
      processes.push_back(mesh.process_of(rank));
  std::sort(processes.begin(), processes.end());
  processes.erase(std::unique(processes.begin(), processes.end()), processes.end());
  for (const int process : processes) connections_.push_back({process, {mesh.peer_at(process).reading, std::defer_lock}});
}

void MeshWatch::begin() {
  if (since_ == 0) since_ = steady_now();
  for (Connection& it : connections_) {
    if (it.reading.owns_lock() || it.reading.try_lock()) continue;
    std::this_thread::yield();  // lets the reader thread end its read: it was interrupted by this thread, which it had woken
    static_cast<void>(it.reading.try_lock());
  }
}

void MeshWatch::end() {
  for (Connection& it : connections_)
    if (it.reading.owns_lock()) it.reading.unlock();
  since_ = 0;
}

bool MeshWatch::keeps(int process) const {
  return std::any_of(connections_.begin(), connections_.end(),
                     [&](const Connection& it) { return it.process == process && it.reading.owns_lock(); });
}

void MeshWatch::pause_if_long() {
  if (since_ != 0 && steady_now() - since_ > kLongest.count()) end();
}

// Polls for the message for a moment. Returns whether it has arrived.
bool ProcessMesh::look_out(int process, const MeshReceive& arrival, MeshWatch& watch) {
  using Waiting = MeshPeer::Waiting;
  const std::int64_t began = steady_now();
  watch.begin();
  const bool reads = watch.keeps(process);
  int looks = 0;
  do {
    const Waiting next = reads ? peer_at(process).waiting_frame() : Waiting::Nothing;
    if (next == Waiting::Long) return false;
    if (next == Waiting::Nothing)
      std::this_thread::yield();
    else if (!goes_on(process, [&] { return read_frame(process); }))
      return false;
    const std::lock_guard lock(mutex_);
    if (arrival.arrived()) return true;
  } while (++looks < kLooks || steady_now() - began < kMoment.count());
  return false;
}

}  // namespace foreshard
