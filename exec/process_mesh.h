// The processes of one run, each connected with every other by TCP. Messages between ranks, messages between processes, and
// the watch over each other: what ends, fails or falls silent anywhere stops all.
//
//   process 0 listens at MASTER_ADDR:MASTER_PORT; the others knock, say who they are and what they run, and get the list of all
//   addresses; then each connects to those before it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "core/ids.h"
#include "exec/process_place.h"
#include "exec/socket.h"
#include "exec/stop.h"

namespace foreshard {

struct MeshOptions {
  ProcessPlace place = {};
  int ranks = 1;  // of the plan; at least as many as processes
  // Lines "name=value" that have to be the same everywhere: what is run.
  std::string run = {};
  std::chrono::milliseconds rendezvous{30000};  // to find each other
  std::chrono::milliseconds patience{3000};     // without a sign of life from a process
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
  int first_rank(int process) const;  // ranks [first_rank(p), first_rank(p + 1)) are threads of process p
  int process_of(RankId rank) const;
  std::int64_t clock_offset() const { return offset_; }  // nanoseconds to add to the own steady clock: that of process 0

  // One message from rank to rank; received in the order sent, per channel. `when`: on the own clock, both ways.
  struct Message {
    std::vector<std::byte> bytes = {};
    std::int64_t when = 0;
  };
  void send(RankId from, RankId to, std::uint64_t channel, std::span<const std::byte> bytes, std::int64_t when);
  Message receive(RankId from, RankId to, std::uint64_t channel, const Stop& stop);  // throws Stopped

  // Called by one thread of every process, in the same order; throw DeviceError when another process failed or ended.
  std::vector<std::string> all_gather(const std::string& own);  // [process]
  std::vector<std::string> gather(const std::string& own);      // [process] at process 0; empty elsewhere

  void guard(Stop* stop);                     // to be raised when another process fails; nullptr: none any more
  void tell_failure(const std::string& why);  // to all others
  // How far this process is and what one of its ranks runs now, for the others; how far they are.
  struct Running {
    std::string name = {};      // of rank and instruction; empty: nothing
    bool communicates = false;  // it may be waiting for a partner
  };
  void progress(std::int64_t ended, bool works, const Running& running);
  std::int64_t others_ended() const;
  bool others_work() const;
  std::vector<Running> others_running() const;  // as last heard

 private:
  struct Frame;
  struct Peer {
    Socket socket = {};
    std::mutex sending = {};
    std::thread reader = {};
    std::atomic<std::int64_t> heard = 0, ended = 0;
    std::atomic<bool> works = false, over = false;  // over: it said that it goes
    bool read = false;                              // nothing more comes
    Running running = {};                           // under `mutex_`
  };
  using Channel = std::tuple<std::int32_t, std::int32_t, std::uint64_t>;  // from, to, channel; processes: channel kControl

  void invite(ListeningSocket& door, Deadline until);
  void knock(ListeningSocket& door, Deadline until);
  void meet_others(ListeningSocket& door, const std::vector<std::pair<std::string, int>>& addresses, Deadline until);
  void compare_clocks(Deadline until);
  void read(int process);
  void read_all(int process);
  void take(int process, const Frame& frame, std::vector<std::byte> bytes);
  void beat();
  void write(int process, const Frame& frame, std::span<const std::byte> bytes);
  void put(const Channel& channel, Message message);
  void fail(const std::string& why);
  std::string name(int process) const;
  std::string last_heard(int process) const;
  bool has_ended(int process) const { return peers_[static_cast<std::size_t>(process)]->over; }
  std::string wait_for_text(int from);

  MeshOptions options_;
  std::vector<std::unique_ptr<Peer>> peers_;  // [process]; own: no socket
  std::int64_t offset_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Channel, std::deque<Message>> inbox_;
  std::string failure_;
  Stop* stop_ = nullptr;
  bool closed_ = false;
  std::atomic<std::int64_t> ended_ = 0;
  std::atomic<bool> works_ = false;
  Running running_;
  std::thread beats_;
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
