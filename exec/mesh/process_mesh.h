// The processes of one run, each connected with every other by TCP: messages between ranks, messages between processes, and failure
// detection. When a process ends, fails or sends no heartbeat for too long, all other processes of the run stop.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
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

// Lets a thread that waits for messages of ranks in other processes of this machine read those connections itself (busy polling), so that
// the reader thread need not be woken for each message. It reads from `begin`, or the first wait, to `end`; a long wait ends it too, and
// the reader threads take over. An object is used by one thread at a time, and may be used again and again.
class MeshWatch {
 public:
  MeshWatch(ProcessMesh& mesh, std::span<const RankId> ranks);  // `ranks`: those that the thread receives from
  ~MeshWatch() { end(); }
  MeshWatch(const MeshWatch&) = delete;
  MeshWatch& operator=(const MeshWatch&) = delete;
  void begin();
  void end();
  bool keeps(int process) const;  // whether it, and not the reader thread, reads the connection to this process now
  void pause_if_long();           // ends it if it has lasted for more than 2 ms, so that other threads may read

 private:
  struct Connection {
    int process = 0;
    std::unique_lock<std::mutex> reading = {};
  };
  std::vector<Connection> connections_;
  std::int64_t since_ = 0;  // begin on the steady clock, nanoseconds; 0: it has not begun
};

class ProcessMesh {
 public:
  // Returns when all processes are connected. Throws Error if there are more processes than ranks, and DeviceError as rendezvous() does: a
  // process is missing or runs something else.
  explicit ProcessMesh(const MeshOptions& options);
  ~ProcessMesh();
  ProcessMesh(const ProcessMesh&) = delete;
  ProcessMesh& operator=(const ProcessMesh&) = delete;

  int process() const { return options_.place.process; }
  int processes() const { return options_.place.processes; }
  int first_rank(int process) const { return options_.first_rank(process); }
  int process_of(RankId rank) const { return options_.process_of(rank); }
  std::int64_t clock_offset() const { return offset_; }  // MeshConnections::clock_offset

  // Sends one message from rank `from` of this process to rank `to`. Messages of one channel are received in the order sent. `when`: a time
  // of the sender that the receiver gets with the message, in nanoseconds. Sender and receiver each see it on their own steady clock.
  void send(RankId from, RankId to, std::uint64_t channel, std::span<const std::byte> bytes, std::int64_t when);
  // As `send`; but if the message has at least 32 KiB, both processes are on one machine and the system allows it, the receiver reads the
  // bytes directly from this process's memory. Then it returns true, and the bytes must not change until the receiver has confirmed, by a
  // message of the caller's protocol, that it has read them. False: the bytes have been sent.
  bool lend(RankId from, RankId to, std::uint64_t channel, std::span<const std::byte> bytes, std::int64_t when);
  bool lends_to(RankId to) const;        // whether the process of `to` can read this process's memory
  bool borrows_from(RankId from) const;  // whether this process can read the memory of the process of `from`
  // Receiving. `post` posts a receive: the next message of the channel that no earlier receive has taken is written to arrival.place.
  // `await` blocks until it is there; it throws Stopped, and DeviceError if the message has another size or the sender has ended. `meet` is
  // as `await`, but leaves a lent message in the sender's memory; `take` then copies bytes [at, at + piece.size()) of it. `forget` cancels
  // the receive: when it returns, nothing writes to arrival.place any more.
  void post(RankId from, RankId to, std::uint64_t channel, MeshReceive& arrival);
  void await(RankId from, MeshReceive& arrival, const Stop& stop, MeshWatch& watch);
  void meet(RankId from, MeshReceive& arrival, const Stop& stop, MeshWatch& watch);
  void take(RankId from, const MeshReceive& arrival, std::size_t at, std::span<std::byte> piece);
  void forget(RankId from, RankId to, std::uint64_t channel, MeshReceive& arrival);

  // Collectives over the processes, for texts: called by one thread of every process, in the same order. They throw DeviceError when
  // another process has failed or ended.
  std::vector<std::string> all_gather(const std::string& own);  // [process]
  std::vector<std::string> gather(const std::string& own);      // [process] at process 0; empty elsewhere

  void guard(Stop* stop);                     // the mesh raises it when another process fails; nullptr: it raises none
  void tell_failure(const std::string& why);  // tells all other processes, once, that this one has failed
  // Progress of this process, which its heartbeats report to the others.
  void progress(const ProcessProgress& own) { progress_.tell(own); }
  // Sets a function that is called, from a thread of the mesh, before each heartbeat; an empty function: none.
  void ask(std::function<MeshRunning()> what_runs) { progress_.ask(std::move(what_runs)); }
  // Progress of the other processes, from their last heartbeats.
  std::int64_t others_ended() const;                // ended steps of all of them together
  bool others_work() const;                         // whether one of them reports ProcessProgress::works
  std::vector<MeshRunning> others_running() const;  // one entry per process that runs something

 private:
  friend class MeshWatch;
  using Channel = MeshInbox::Channel;

  // Sending. `blaming` does `work`, which uses the connection to a process; on DeviceError it calls `blame`, which fails the run with the
  // name of the process.
  template <class Work>
  void blaming(int process, const Work& work);
  [[noreturn]] void blame(int process, const std::string& problem);
  void put(const Channel& channel, MeshMessage message);
  std::string wait_for_text(int from);
  // Reading.
  void read(int process);        // body of the reader thread
  void read_all(int process);    // until the connection ends
  bool read_frame(int process);  // one frame with its message; false: nothing more will come
  template <class Read>
  bool goes_on(int process, const Read& read);
  void lose(int process, const std::string& problem);                        // the connection has failed
  bool look_out(int process, const MeshReceive& arrival, MeshWatch& watch);  // busy polling; true: the message has arrived
  void read_message(int process, const MeshFrame& frame);
  MeshReceive* place_for(MeshPeer& peer, const Channel& channel, const MeshFrame& frame);
  bool land(MeshPeer& peer, const Channel& channel, const MeshFrame& frame);
  void fill(MeshPeer& peer, std::span<std::byte> place);
  void leave(MeshPeer& peer, bool whole, bool broken);  // the thread stops writing to the place of a receive
  void hear_of_lent(MeshPeer& peer, const Channel& channel, const MeshFrame& frame);
  void expect_sender(int process, const MeshFrame& frame) const;     // throws DeviceError
  void expect_room(const MeshPeer& peer, std::int64_t bytes) const;  // throws DeviceError
  void hear(int process, const MeshFrame& frame);                    // Beat, Failed, Bye
  // Heartbeats and failure detection.
  void beat();
  void beat_once(const ProcessProgress& own);
  void fail(const std::string& why);
  void start_threads();
  void end_readers();
  void log(const std::string& event);
  std::string last_heard(int process) const;
  MeshPeer& peer_at(int process) { return *peers_[static_cast<std::size_t>(process)]; }
  const MeshPeer& peer_at(int process) const { return *peers_[static_cast<std::size_t>(process)]; }

  MeshOptions options_;
  std::vector<std::unique_ptr<MeshPeer>> peers_;  // [process]; that of this process has no socket
  std::int64_t offset_ = 0;
  OwnProgress progress_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  MeshInbox inbox_;
  std::string failure_;
  Stop* stop_ = nullptr;
  bool closed_ = false, told_ = false;  // told_: the other processes have been told of the failure
  std::thread beats_;
  std::mutex log_mutex_;
};

// Does `work` and returns its result. If it throws, the other processes are told why, and the exception goes on to the caller. `mesh` may
// be null: a run of one process.
template <class Work>
auto telling_others(ProcessMesh* mesh, const Work& work) {
  try {
    return work();
  } catch (const std::exception& error) {
    if (mesh) mesh->tell_failure(error.what());
    throw;
  }
}

}  // namespace foreshard
