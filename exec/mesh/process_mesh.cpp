#include "exec/mesh/process_mesh.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/base/error.h"
#include "exec/mesh/process_mesh_parts.h"

namespace foreshard {

using namespace mesh;

namespace {

using namespace std::chrono_literals;
constexpr auto kLeaving = 5s;        // for the others to go too
constexpr auto kLeavingFailed = 1s;  // ... when the run has failed
constexpr auto kParting = 200ms;     // for a word to one that may be gone
constexpr auto kSoon = 10ms;         // for a beat

}  // namespace

int ProcessMesh::first_rank(int process) const {
  return static_cast<int>(std::int64_t{process} * options_.ranks / options_.place.processes);
}

int ProcessMesh::process_of(RankId rank) const {
  int process = static_cast<int>(std::int64_t{rank.value} * options_.place.processes / options_.ranks);
  while (first_rank(process) > rank.value) --process;
  while (first_rank(process + 1) <= rank.value) ++process;
  return process;
}

std::string ProcessMesh::name(int process) const {
  const int first = first_rank(process), end = first_rank(process + 1);
  return "process " + std::to_string(process) + " (rank " + std::to_string(first) +
         (end - first > 1 ? " to " + std::to_string(end - 1) : "") + ")";
}

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
  for (int p = 0; p < place.processes; ++p) peers_.push_back(std::make_unique<Peer>());
  const auto begin = std::chrono::steady_clock::now();
  const Deadline until = begin + options.rendezvous;
  if (place.process == 0) {
    ListeningSocket door(place.address, place.port);
    log("listens at " + door.address() + " port " + std::to_string(door.port()));
    invite(door, until);
  } else {
    const std::unique_ptr<ListeningSocket> door = knock(until);
    log("knocked at " + place.address + " port " + std::to_string(place.port));
  }
  compare_clocks(until);
  find_neighbours(until);
  for (int p = 0; p < place.processes; ++p) {
    if (p == place.process) continue;
    Peer& peer = *peers_[static_cast<std::size_t>(p)];
    peer.heard = steady_now();
    peer.reader = std::thread([this, p] { read(p); });
  }
  beats_ = std::thread([this] { beat(); });
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin).count();
  log(std::to_string(place.processes) + " processes are connected after " + std::to_string(took) + " ms");
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
  for (int p = 0; p < processes(); ++p)  // also to those that go too: everybody waits for this word of everybody
    if (p != process()) static_cast<void>(write_soon(p, {{.kind = MeshKind::Bye}}, {}, kParting));
  // Closing while something lies here unread would throw away what is on its way there: each waits until the other goes too.
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, failed ? kLeavingFailed : kLeaving, [&] {
    return std::all_of(peers_.begin(), peers_.end(), [](const auto& peer) { return !peer->reader.joinable() || peer->read; });
  });
  lock.unlock();
  for (const auto& peer : peers_) {
    peer->socket.shut();
    if (peer->reader.joinable()) peer->reader.join();
  }
}

void ProcessMesh::fail(const std::string& why) {
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) failure_ = why, first = true;
    if (stop_) stop_->raise(why);
    changed_.notify_all();
    for (auto& [channel, inbox] : inbox_)
      for (MeshArrival* arrival : inbox.places) arrival->changed->notify_all();
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

// Who does not take it, because it hangs or its network is cut, hears the connection end.
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
    Peer& peer = *peers_[static_cast<std::size_t>(p)];
    if (p == process() || peer.over) continue;
    if (!write_soon(p, {{.kind = MeshKind::Failed}}, bytes, kParting)) peer.socket.shut();
  }
}

std::string ProcessMesh::last_heard(int process) const {
  const std::lock_guard lock(mutex_);
  const std::string& running = peers_[static_cast<std::size_t>(process)]->running.name;
  return running.empty() ? "" : "; last heard of in " + running;
}

void ProcessMesh::progress(std::int64_t ended, bool works, const Running& running) {
  ended_ = ended, works_ = works;
  const std::lock_guard lock(mutex_);
  if (!running.name.empty()) running_ = running;  // between two steps nothing runs
}

void ProcessMesh::ask(std::function<Running()> what_runs) {
  const std::lock_guard lock(asking_);
  what_runs_ = std::move(what_runs);
}

std::int64_t ProcessMesh::others_ended() const {
  std::uint64_t sum = 0;  // a number of theirs may be any
  for (const auto& peer : peers_) sum += static_cast<std::uint64_t>(peer->ended.load());
  return static_cast<std::int64_t>(sum);
}

bool ProcessMesh::others_work() const {
  return std::any_of(peers_.begin(), peers_.end(), [](const auto& peer) { return peer->works.load(); });
}

std::vector<ProcessMesh::Running> ProcessMesh::others_running() const {
  std::vector<Running> all;
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
    Running running;
    {
      const std::lock_guard asking(asking_);
      if (what_runs_) running = what_runs_();
    }
    lock.lock();
    if (!running.name.empty()) running_ = running;  // else what ran last
    running = running_;
    lock.unlock();
    // A process that was stopped itself for a while has heard nobody meanwhile.
    const bool slept = steady_now() - last > 4 * std::chrono::nanoseconds(kBeat).count();
    last = steady_now();
    if (slept)
      for (const auto& peer : peers_) peer->heard = last;
    beat_once(running);
    lock.lock();
  }
}

void ProcessMesh::beat_once(const Running& running) {
  for (int p = 0; p < processes(); ++p) {
    Peer& peer = *peers_[static_cast<std::size_t>(p)];
    if (p == process() || peer.over) continue;
    if (steady_now() - peer.heard > std::chrono::nanoseconds(options_.patience).count()) {
      fail(name(p) + ": not heard of for " + std::to_string(options_.patience.count()) + " ms" + last_heard(p));
      peer.socket.shut();  // who is stuck sending to it goes on
      continue;
    }
    Frame frame;
    frame.kind = MeshKind::Beat, frame.when = ended_;
    frame.channel = (works_ ? kWorks : 0) | (running.communicates ? kCommunicates : 0);
    // While a message is on its way no beat is needed: its bytes tell.
    if (!peer.socket.can_send()) continue;
    static_cast<void>(write_soon(p, frame, std::as_bytes(std::span(running.name)), kSoon));
  }
}

}  // namespace foreshard
