#include "exec/process_mesh.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>

#include "core/error.h"
#include "exec/mesh_frame.h"

namespace foreshard {

namespace {

using namespace std::chrono_literals;
constexpr auto kBeat = 300ms;
constexpr auto kLeaving = 5s;  // for the others to go too
constexpr auto kWord = 1s;     // for the last words of one that cannot be written to any more
constexpr std::uint64_t kControl = 0;
constexpr std::size_t kMostAtOnce = std::size_t{16} << 20U;
constexpr std::uint64_t kWorks = 1, kCommunicates = 2;  // in the channel of a beat

std::int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

struct ProcessMesh::Frame : MeshFrame {};

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

ProcessMesh::ProcessMesh(const MeshOptions& options) : options_(options) {
  const ProcessPlace& place = options.place;
  if (place.processes > options.ranks)
    throw Error("environment", "number of processes", std::to_string(place.processes),
                "at most " + std::to_string(options.ranks) + ", the ranks of the plan");
  for (int p = 0; p < place.processes; ++p) peers_.push_back(std::make_unique<Peer>());
  const Deadline until = std::chrono::steady_clock::now() + options.rendezvous;
  ListeningSocket door(place.process == 0 ? place.port : 0);
  if (place.process == 0)
    invite(door, until);
  else
    knock(door, until);
  compare_clocks(until);
  for (int p = 0; p < place.processes; ++p) {
    if (p == place.process) continue;
    Peer& peer = *peers_[static_cast<std::size_t>(p)];
    peer.heard = now();
    peer.reader = std::thread([this, p] { read(p); });
  }
  beats_ = std::thread([this] { beat(); });
}

ProcessMesh::~ProcessMesh() {
  for (int p = 0; p < processes(); ++p)
    if (p != process() && !peers_[static_cast<std::size_t>(p)]->over) {
      try {
        write(p, {{.kind = MeshKind::Bye}}, {});
      } catch (const DeviceError&) {  // it is gone already
      }
    }
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }
  if (beats_.joinable()) beats_.join();
  // Closing while something lies here unread would throw away what is on its way there: each waits until the other goes too.
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, kLeaving, [&] {
    return std::all_of(peers_.begin(), peers_.end(), [](const auto& peer) { return !peer->reader.joinable() || peer->read; });
  });
  lock.unlock();
  for (const auto& peer : peers_) {
    peer->socket.shut();
    if (peer->reader.joinable()) peer->reader.join();
  }
}

// ---- messages -------------------------------------------------------------------------------------------------------------

void ProcessMesh::write(int process, const Frame& frame, std::span<const std::byte> bytes) {
  Peer& peer = *peers_[static_cast<std::size_t>(process)];
  const std::lock_guard lock(peer.sending);
  MeshFrame header = frame;
  header.bytes = static_cast<std::int64_t>(bytes.size());
  peer.socket.send(&header, sizeof header);
  if (!bytes.empty()) peer.socket.send(bytes.data(), bytes.size());
}

void ProcessMesh::put(const Channel& channel, Message message) {
  const std::lock_guard lock(mutex_);
  inbox_[channel].push_back(std::move(message));
  changed_.notify_all();
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
  try {
    write(there, frame, bytes);
  } catch (const DeviceError& error) {
    {
      std::unique_lock lock(mutex_);  // who reads this connection knows more: what the other said last, or that it has ended
      changed_.wait_for(lock, kWord, [&] { return !failure_.empty(); });
    }
    fail(name(there) + ": " + error.what() + last_heard(there));
    throw;
  }
}

ProcessMesh::Message ProcessMesh::receive(RankId from, RankId to, std::uint64_t channel, const Stop& stop) {
  std::unique_lock lock(mutex_);
  const Channel key{from.value, to.value, channel};
  auto found = inbox_.end();
  const int there = process_of(from);
  stop.wait(lock, changed_, [&] { return (found = inbox_.find(key)) != inbox_.end() || has_ended(there); });
  if (found == inbox_.end()) throw DeviceError("receiving from " + name(there), "it has ended");
  Message message = std::move(found->second.front());
  found->second.pop_front();
  if (found->second.empty()) inbox_.erase(found);
  return message;
}

std::vector<std::string> ProcessMesh::gather(const std::string& own) {
  const auto bytes = std::as_bytes(std::span(own));
  if (process() != 0) {
    Frame frame;
    frame.kind = MeshKind::Message, frame.from = -1 - process(), frame.to = -1, frame.channel = kControl;
    write(0, frame, bytes);
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
  const Channel key{-1 - from, -1 - process(), kControl};
  changed_.wait(lock, [&] { return !failure_.empty() || inbox_.contains(key) || has_ended(from); });
  const auto found = inbox_.find(key);
  if (found == inbox_.end()) throw DeviceError("the run", failure_.empty() ? name(from) + ": it has ended" : failure_);
  const std::vector<std::byte>& got = found->second.front().bytes;
  std::string text(reinterpret_cast<const char*>(got.data()), got.size());
  found->second.pop_front();
  if (found->second.empty()) inbox_.erase(found);
  return text;
}

std::vector<std::string> ProcessMesh::all_gather(const std::string& own) {
  std::vector<std::string> all = gather(own);
  if (process() == 0) {
    std::string packed;
    for (const std::string& part : all) packed += std::to_string(part.size()) + " " + part;
    Frame frame;
    frame.kind = MeshKind::Message, frame.from = -1, frame.channel = kControl;
    for (int p = 1; p < processes(); ++p) frame.to = -1 - p, write(p, frame, std::as_bytes(std::span(packed)));
    return all;
  }
  const std::string packed = wait_for_text(0);
  for (std::size_t at = 0; at < packed.size();) {
    std::size_t size = 0;
    const char* blank = std::from_chars(packed.data() + at, packed.data() + packed.size(), size).ptr;
    at = static_cast<std::size_t>(blank - packed.data()) + 1;
    all.push_back(packed.substr(at, size));
    at += size;
  }
  return all;
}

// ---- watching each other ---------------------------------------------------------------------------------------------------

void ProcessMesh::fail(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (failure_.empty()) failure_ = why;
  if (stop_) stop_->raise(why);
  changed_.notify_all();
}

void ProcessMesh::guard(Stop* stop) {
  const std::lock_guard lock(mutex_);
  stop_ = stop;
  if (stop_ && !failure_.empty()) stop_->raise(failure_);
}

void ProcessMesh::tell_failure(const std::string& why) {
  const auto bytes = std::as_bytes(std::span(why));
  for (int p = 0; p < processes(); ++p) {
    if (p == process()) continue;
    try {
      write(p, {{.kind = MeshKind::Failed}}, bytes);
    } catch (const DeviceError&) {  // it is gone already
    }
  }
}

void ProcessMesh::read(int process) {
  read_all(process);
  const std::lock_guard lock(mutex_);
  peers_[static_cast<std::size_t>(process)]->read = true;
  changed_.notify_all();
}

void ProcessMesh::read_all(int process) {
  Peer& peer = *peers_[static_cast<std::size_t>(process)];
  try {
    while (true) {
      Frame frame;
      if (!peer.socket.receive(static_cast<MeshFrame*>(&frame), sizeof(MeshFrame))) break;
      check_frame(frame, peer.socket.peer());
      std::vector<std::byte> bytes;
      while (const std::size_t left = static_cast<std::size_t>(frame.bytes) - bytes.size()) {
        const std::size_t at = bytes.size();
        bytes.resize(at + std::min(left, kMostAtOnce));  // memory for what has come, not for what is promised
        if (!peer.socket.receive(bytes.data() + at, bytes.size() - at))
          throw DeviceError("receiving from " + peer.socket.peer(), "the connection ended");
      }
      peer.heard = now();
      take(process, frame, std::move(bytes));
      if (frame.kind == MeshKind::Bye) return;
    }
    fail(name(process) + ": it has ended" + last_heard(process));
  } catch (const DeviceError& error) {
    {
      const std::lock_guard lock(mutex_);
      if (closed_) return;
    }
    fail(name(process) + ": " + error.what() + last_heard(process));
  }
}

std::string ProcessMesh::last_heard(int process) const {
  const std::lock_guard lock(mutex_);
  const std::string& running = peers_[static_cast<std::size_t>(process)]->running.name;
  return running.empty() ? "" : "; last heard of in " + running;
}

void ProcessMesh::take(int process, const Frame& frame, std::vector<std::byte> bytes) {
  Peer& peer = *peers_[static_cast<std::size_t>(process)];
  switch (frame.kind) {
    case MeshKind::Message: put({frame.from, frame.to, frame.channel}, {std::move(bytes), frame.when - offset_}); return;
    case MeshKind::Beat:
      peer.ended = frame.when;
      peer.works = (frame.channel & kWorks) != 0;
      {
        const std::lock_guard lock(mutex_);
        peer.running = {.name = {reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                        .communicates = (frame.channel & kCommunicates) != 0};
      }
      return;
    case MeshKind::Failed: fail(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size())); return;
    case MeshKind::Bye: {
      const std::lock_guard lock(mutex_);
      peer.over = true;
      changed_.notify_all();
      return;
    }
  }
}

void ProcessMesh::progress(std::int64_t ended, bool works, const Running& running) {
  ended_ = ended, works_ = works;
  const std::lock_guard lock(mutex_);
  if (!running.name.empty()) running_ = running;  // between two steps nothing runs
}

std::int64_t ProcessMesh::others_ended() const {
  std::int64_t sum = 0;
  for (const auto& peer : peers_) sum += peer->ended;
  return sum;
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

// A process that was stopped itself for a while has heard nobody meanwhile.
void ProcessMesh::beat() {
  std::int64_t last = now();
  std::unique_lock lock(mutex_);
  while (!closed_) {
    changed_.wait_for(lock, kBeat, [&] { return closed_; });
    if (closed_) return;
    const Running running = running_;
    lock.unlock();
    const bool slept = now() - last > 4 * std::chrono::nanoseconds(kBeat).count();
    last = now();
    for (int p = 0; p < processes(); ++p) {
      Peer& peer = *peers_[static_cast<std::size_t>(p)];
      if (p == process() || peer.over) continue;
      if (slept) peer.heard = last;
      if (last - peer.heard > std::chrono::nanoseconds(options_.patience).count())
        fail(name(p) + ": not heard of for " + std::to_string(options_.patience.count()) + " ms" + last_heard(p));
      Frame frame;
      frame.kind = MeshKind::Beat, frame.when = ended_;
      frame.channel = (works_ ? kWorks : 0) | (running.communicates ? kCommunicates : 0);
      try {
        write(p, frame, std::as_bytes(std::span(running.name)));
      } catch (const DeviceError& error) {
        fail(name(p) + ": " + error.what());
      }
    }
    lock.lock();
  }
}

}  // namespace foreshard
