// What the tasks of a TcpCommunicator share: sending, receiving, and cancelling of receives after a failure. Used only by
// exec/communicator/tcp_communicator.cpp and tcp_rounds.cpp.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <span>

#include "exec/base/steady_now.h"
#include "exec/base/stop.h"
#include "exec/communicator/communicator.h"
#include "exec/device/device.h"
#include "exec/mesh/process_mesh.h"

namespace foreshard::tcp {

// The channel of the messages with this name: its FNV-1a hash of 64 bits. Never 0, which is the channel of messages between processes.
inline std::uint64_t channel_of(const std::string& words) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : words) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash | 1U;
}

// A name that the same collective has on all its members, and no other collective has.
inline std::string name_of(const CollectiveCall& call) {
  return "collective " + std::to_string(call.what.group.value) + " " + std::to_string(call.members.front().value) + " " +
         std::to_string(call.sequence);
}

// Sending by one rank. `when`: the sender's time, in nanoseconds of its steady clock. Bytes given to `lend` must stay unchanged until the
// receiver has confirmed that it has read them (ProcessMesh::lend).
struct RankSender {
  ProcessMesh& mesh;
  const Stop& stop;
  RankId own = {};
  MeshWatch* watch = nullptr;

  void send(RankId to, std::uint64_t channel, const std::byte* data, std::int64_t bytes, std::int64_t when) const {
    mesh.send(own, to, channel, {data, static_cast<std::size_t>(bytes)}, when);
  }
  void lend(RankId to, std::uint64_t channel, const std::byte* data, std::int64_t bytes, std::int64_t when) const {
    mesh.lend(own, to, channel, {data, static_cast<std::size_t>(bytes)}, when);
  }
};

// A receive of one message from rank `from`. After `post`, either `await` or `meet` completes it, or `forget` cancels it.
struct PendingReceive {
  RankId from = {};
  std::uint64_t channel = 0;
  MeshReceive arrival = {};

  void post(const RankSender& wire, std::byte* place, std::int64_t bytes, std::condition_variable& changed) {
    arrival.place = {place, static_cast<std::size_t>(bytes)}, arrival.changed = &changed;
    wire.mesh.post(from, wire.own, channel, arrival);
  }
  // Blocks until the message is in its place; sets `met` to the sender's time if that is later.
  void await(const RankSender& wire, std::int64_t& met) {
    wire.mesh.await(from, arrival, wire.stop, *wire.watch);
    met = std::max(met, arrival.when);
  }
  // As `await`, but a lent message stays in the sender's memory; `take` copies `bytes` bytes of it from offset `at` on.
  void meet(const RankSender& wire, std::int64_t& met) {
    wire.mesh.meet(from, arrival, wire.stop, *wire.watch);
    met = std::max(met, arrival.when);
  }
  bool lent() const { return arrival.lent != 0; }
  const std::byte* take(const RankSender& wire, std::int64_t at, std::byte* to, std::int64_t bytes) const {
    wire.mesh.take(from, arrival, static_cast<std::size_t>(at), {to, static_cast<std::size_t>(bytes)});
    return to;
  }
  void forget(const RankSender& wire) { wire.mesh.forget(from, wire.own, channel, arrival); }
};

// A task that communicates with other ranks. A derived class implements `meet`, which does the communication and sets times.own, and
// `forget`, which cancels all its receives after an exception.
class MeetingTask : public StreamTask {
 public:
  TaskTimes run(int) final {
    TaskTimes times{.met = steady_now()};
    watch_.begin();
    try {
      meet(times);
    } catch (...) {
      forget();
      watch_.end();
      throw;
    }
    watch_.end();
    return times;
  }

 protected:
  MeetingTask(const RankSender& wire, std::span<const RankId> partners) : wire_(wire), watch_(wire.mesh, partners) {
    wire_.watch = &watch_;
  }
  virtual void meet(TaskTimes& times) = 0;
  virtual void forget() = 0;  // when it returns, no message is written to the operands any more

  RankSender wire_;

 private:
  MeshWatch watch_;
};

}  // namespace foreshard::tcp
