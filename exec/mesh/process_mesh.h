// The processes of one run, each connected with every other by TCP. Messages between ranks, messages between processes, and
// the watch over each other: what ends, fails or falls silent anywhere stops all.
//
//   process 0 listens at MASTER_ADDR:MASTER_PORT; the others knock, say who they are and what they run, and get the list of all
//   addresses; then each connects to those before it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "core/base/ids.h"
#include "exec/base/stop.h"
#include "exec/mesh/mesh_words.h"
#include "exec/mesh/process_place.h"
#include "exec/mesh/socket.h"

namespace foreshard {

class ProcessMesh;
class WaitingRoom;

struct MeshOptions {
  ProcessPlace place = {};
  int ranks = 1;  // of the plan; at least as many as processes
  // Lines "name=value" that have to be the same everywhere: what is run.
  std::string run = {};
  std::string job = {};  // letters and digits; who has another one belongs to another run and is sent away
  std::chrono::milliseconds rendezvous{30000};  // to find each other
  std::chrono::milliseconds patience{3000};     // without a sign of life from a process
  bool lends = true;                            // processes of one machine read large messages from each other's memory
  std::function<void(const std::string& event)> log = {};  // from any thread, one at a time
};

// A message that goes straight to where it belongs. Its place must stay until it is here or forgotten.
struct MeshArrival {
  // Here: in its place, or lent, as it is known where it stands. Wrong: of another size.
  enum class State : std::uint8_t { Idle, Posted, Filling, Here, Wrong };
  std::span<std::byte> place = {};
  std::condition_variable* changed = nullptr;  // of whoever waits for it
  std::int64_t when = 0;                       // the sender's, on the own clock
  State state = State::Idle;
  std::uint64_t lent = 0;  // its address in the sender's memory; 0: it is not lent
  std::size_t found = 0;   // bytes of a wrong one
};

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

 private:
  friend class ProcessMesh;
  struct Connection {
    int process = 0;
    std::unique_lock<std::mutex> reading = {};
  };
  bool keeps(int process) const;
  void pause_if_long();
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
  int first_rank(int process) const;  // ranks [first_rank(p), first_rank(p + 1)) are threads of process p
  int process_of(RankId rank) const;
  std::int64_t clock_offset() const { return offset_; }  // nanoseconds to add to the own steady clock: that of process 0

  // One message from rank to rank; received in the order sent, per channel. `when`: on the own clock, both ways.
  void send(RankId from, RankId to, std::uint64_t channel, std::span<const std::byte> bytes, std::int64_t when);
  // The same, but where both processes are on one machine and the system lets them, the receiver takes the bytes from here itself: they must
  // stay as they are until it says, in a message of its own, that it has them. False: they have been sent.
  bool lend(RankId from, RankId to, std::uint64_t channel, std::span<const std::byte> bytes, std::int64_t when);
  bool lends_to(RankId to) const;  // whether `lend` may do so
  bool borrows_from(RankId from) const;
  // The next message of the channel that nobody waits for yet goes to this place. `await` throws Stopped, and DeviceError for a message of
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
  struct Running {
    std::string name = {};      // of rank and instruction; empty: nothing
    bool communicates = false;  // it may be waiting for a partner
  };
  void progress(std::int64_t ended, bool works, const Running& running);
  // Asked from another thread before each sign of life; empty: nobody any more.
  void ask(std::function<Running()> what_runs);
  std::int64_t others_ended() const;
  bool others_work() const;
  std::vector<Running> others_running() const;  // as last heard

 private:
  friend class MeshWatch;
  struct Frame;
  struct Peer {
    Socket socket = {};
    std::mutex sending = {};
    std::thread reader = {};
    std::mutex reading = {};  // of whoever reads a frame
    std::atomic<std::int64_t> heard = 0, ended = 0;
    std::atomic<bool> works = false, over = false;  // over: it said that it goes
    int borrows_from = 0;                           // its process number on this machine, if its memory can be read; else 0
    bool lends_to = false;                          // it can read the memory of this one
    bool read = false;                              // nothing more comes
    // Under `mutex_`:
    Running running = {};
    MeshArrival* filling = nullptr;  // where the message goes that comes just now
    bool touches = false;            // at this moment
  };
  using Channel = std::tuple<std::int32_t, std::int32_t, std::uint64_t>;  // from, to, channel; processes: channel kControl
  struct ChannelHash {
    std::size_t operator()(const Channel& channel) const;
  };
  struct Message {
    std::vector<std::byte> bytes = {};
    std::int64_t when = 0;
    std::uint64_t lent = 0;  // as of an arrival; then `bytes` is empty
    std::size_t size = 0;    // of what is lent
  };
  struct Inbox {  // messages that nobody waits for yet, or places that no message has come for yet
    std::deque<Message> messages = {};
    std::deque<MeshArrival*> places = {};
  };

  void invite(ListeningSocket& door, Deadline until);
  std::vector<const Socket*> companions() const;
  void expect_companions(Deadline until);
  void refuse_the_rest(WaitingRoom& room, const std::string& why, int missing);
  std::string refusal(const MeshHello& hello) const;
  void tell_all(const std::string& answer, Deadline until);
  std::unique_ptr<ListeningSocket> knock(Deadline until);
  void meet_others(ListeningSocket& door, const std::vector<MeshAddress>& addresses, Deadline until);
  void compare_clocks(Deadline until);
  void find_neighbours(Deadline until);
  void read(int process);
  void read_all(int process);
  bool read_frame(int process);
  template <class Read>
  bool goes_on(int process, const Read& read);
  void lose(int process, const std::string& problem);
  enum class Waiting : std::uint8_t { Nothing, Short, Long };
  Waiting waiting_frame(const Peer& peer) const;
  bool look_out(int process, const MeshArrival& arrival, MeshWatch& watch);
  void read_message(int process, const Frame& frame);
  MeshArrival* place_for(Peer& peer, const Channel& channel, const Frame& frame);
  bool land(Peer& peer, const Channel& channel, const Frame& frame);
  void fill(Peer& peer, std::span<std::byte> place);
  bool lends() const;
  void hear_of_lent(Peer& peer, const Channel& channel, const Frame& frame);
  void leave(Peer& peer, bool whole, bool broken);
  std::vector<std::byte> read_bytes(Peer& peer, std::int64_t bytes);
  void expect_sender(int process, const Frame& frame) const;
  void hear(int process, const Frame& frame);
  void beat();
  void beat_once(const Running& running);
  void write(int process, const Frame& frame, std::span<const std::byte> bytes);
  template <class Work>
  void blaming(int process, const Work& work);
  [[noreturn]] void blame(int process, const std::string& problem);
  void write_words(int process, std::span<const std::byte> words);
  void expect_room(const Peer& peer, std::int64_t bytes) const;
  bool write_soon(int process, const Frame& frame, std::span<const std::byte> bytes, std::chrono::milliseconds within);
  void put(const Channel& channel, Message message);
  static void arrive(MeshArrival& arrival, const Message& message);
  void fail(const std::string& why);
  void log(const std::string& event);
  std::string name(int process) const;
  std::string last_heard(int process) const;
  bool has_ended(int process) const { return peers_[static_cast<std::size_t>(process)]->over; }
  std::string wait_for_text(int from);

  MeshOptions options_;
  std::vector<std::unique_ptr<Peer>> peers_;  // [process]; own: no socket
  std::int64_t offset_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::unordered_map<Channel, Inbox, ChannelHash> inbox_;
  std::int64_t waiting_ = 0;  // bytes of messages there
  std::string failure_;
  Stop* stop_ = nullptr;
  bool closed_ = false, told_ = false;  // told: the others, of the failure
  std::atomic<std::int64_t> ended_ = 0;
  std::atomic<bool> works_ = false;
  Running running_;
  std::mutex asking_;
  std::function<Running()> what_runs_;  // under `asking_`
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
