// The processes of one run, each connected with every other by TCP. Messages between ranks, messages between processes, and
// the watch over each other: what ends, fails or falls silent anywhere stops all.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/base/ids.h"
#include "exec/base/stop.h"
#include "exec/mesh/mesh_inbox.h"
#include "exec/mesh/mesh_options.h"
#include "exec/mesh/mesh_peer.h"
#include "exec/mesh/own_progress.h"

namespace foreshard {

class ProcessMesh;

// A thread that works with ranks of other processes of this machine reads their connections itself whenever it waits for them, so that no other
// has to be woken for each message. From `begin`, or the first wait, to `end`; a wait that takes long ends it too. Of one thread at a time; made
// once, used again and again.
class MeshWatch {
 public:
  MeshWatch(ProcessMesh& mesh, std::span<const RankId> ranks);
  ~MeshWatch() { end(); }
  MeshWatch(const MeshWatch&) = delete;
  MeshWatch& operator=(const MeshWatch&) = delete;
  void begin();
  void end();
  bool keeps(int process) const;  // it reads this connection now
  void pause_if_long();

 private:
  struct Connection {
    int process = 0;
    std::unique_lock<std::mutex> reading = {};
  };
  std::vector<Connection> connections_;
  std::int64_t since_ = 0;  // 0: it does not watch
};

class ProcessMesh {
 public:
  // Returns when all are connected. Throws DeviceError with who is missing, Error when the processes do not run the same.
  explicit ProcessMesh(const MeshOptions& options);
  ~ProcessMesh();
  ProcessMesh(const ProcessMesh&) = delete;
  ProcessMesh& operator=(const ProcessMesh&) = delete;

  int process() const { return options_.place.process; }
  int processes() const { return options_.place.processes; }
  int first_rank(int process) const { return options_.first_rank(process); }
  int process_of(RankId rank) const { return options_.process_of(rank); }
  std::int64_t clock_offset() const { return offset_; }  // nanoseconds to add to the own steady clock: that of process 0

  // One message from rank to rank; received in the order sent, per channel. `when`: on the own clock, both ways.
  void send(RankId from, RankId to, std::uint64_t channel, std::span<const std::byte> bytes, std::int64_t when);
  // The same, but where both processes are on one machine and the system lets them, the receiver takes the bytes from here itself: they must
  // stay as they are until it says, in a message of its own, that it has them. False: they have been sent.
  bool lend(RankId from, RankId to, std::uint64_t channel, std::span<const std::byte> bytes, std::int64_t when);
  bool lends_to(RankId to) const;  // whether `lend` may do so
  bool borrows_from(RankId from) const;
  // The next message of the channel without a posted receive goes to this place. `await` throws Stopped, and DeviceError for a message of
  // another size, or when the sender has ended. `meet` is an await that leaves what is lent where it is, to be taken piece by piece: bytes from
  // `at` on. After `forget` nothing is written to the place any more.
  void post(RankId from, RankId to, std::uint64_t channel, MeshArrival& arrival);
  void await(RankId from, MeshArrival& arrival, const Stop& stop, MeshWatch& watch);
  void meet(RankId from, MeshArrival& arrival, const Stop& stop, MeshWatch& watch);
  void take(RankId from, const MeshArrival& arrival, std::size_t at, std::span<std::byte> piece);
  void forget(RankId from, RankId to, std::uint64_t channel, MeshArrival& arrival);

  // Called by one thread of every process, in the same order; throw DeviceError when another process failed or ended.
  std::vector<std::string> all_gather(const std::string& own);  // [process]
  std::vector<std::string> gather(const std::string& own);      // [process] at process 0; empty elsewhere

  void guard(Stop* stop);                     // to be raised when another process fails; nullptr: none any more
  void tell_failure(const std::string& why);  // to all others
  // How far this process is and what one of its ranks runs now, for the others; how far they are.
  void progress(const ProcessProgress& own) { progress_.tell(own); }
  // Asked from another thread before each sign of life; empty: no longer asked.
  void ask(std::function<MeshRunning()> what_runs) { progress_.ask(std::move(what_runs)); }
  std::int64_t others_ended() const;
  bool others_work() const;
  std::vector<MeshRunning> others_running() const;  // as last heard

 private:
  friend class MeshWatch;
  using Channel = MeshInbox::Channel;

  // Sending.
  template <class Work>
  void blaming(int process, const Work& work);
  [[noreturn]] void blame(int process, const std::string& problem);
  void put(const Channel& channel, MeshMessage message);
  std::string wait_for_text(int from);
  // Reading.
  void read(int process);
  void read_all(int process);
  bool read_frame(int process);
  template <class Read>
  bool goes_on(int process, const Read& read);
  void lose(int process, const std::string& problem);
  bool look_out(int process, const MeshArrival& arrival, MeshWatch& watch);
  void read_message(int process, const MeshFrame& frame);
  MeshArrival* place_for(MeshPeer& peer, const Channel& channel, const MeshFrame& frame);
  bool land(MeshPeer& peer, const Channel& channel, const MeshFrame& frame);
  void fill(MeshPeer& peer, std::span<std::byte> place);
  void leave(MeshPeer& peer, bool whole, bool broken);
  void hear_of_lent(MeshPeer& peer, const Channel& channel, const MeshFrame& frame);
  void expect_sender(int process, const MeshFrame& frame) const;
  void expect_room(const MeshPeer& peer, std::int64_t bytes) const;
  void hear(int process, const MeshFrame& frame);
  // Watching over each peer.
  void beat();
  void beat_once(const ProcessProgress& own);
  void fail(const std::string& why);
  void log(const std::string& event);
  std::string last_heard(int process) const;
  MeshPeer& peer_at(int process) { return *peers_[static_cast<std::size_t>(process)]; }
  const MeshPeer& peer_at(int process) const { return *peers_[static_cast<std::size_t>(process)]; }

  MeshOptions options_;
  std::vector<std::unique_ptr<MeshPeer>> peers_;  // [process]; own: no socket
  std::int64_t offset_ = 0;
  OwnProgress progress_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  MeshInbox inbox_;
  std::string failure_;
  Stop* stop_ = nullptr;
  bool closed_ = false, told_ = false;  // told: the others, of the failure
  std::thread beats_;
  std::mutex log_mutex_;
};

// Does `work`; when it throws, the other processes hear why.
template <class Work>
auto telling_others(ProcessMesh* mesh, const Work& work) {
  try {
    return work();
  } catch (const std::runtime_error& error) {
    if (mesh) mesh->tell_failure(error.what());
    throw;
  }
}

}  // namespace foreshard
