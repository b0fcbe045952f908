#include "exec/mesh/mesh_rendezvous.h"

#include <algorithm>
#include <memory>

#include "core/base/error.h"
#include "core/base/printable.h"
#include "exec/mesh/greeting_reader.h"
#include "exec/mesh/near_memory.h"

namespace foreshard {

namespace {

constexpr int kPings = 8;
constexpr std::chrono::seconds kRefusing{3};
const std::string kWelcome = "welcome\n", kRefused = "refused ";

void send_text(Socket& socket, const std::string& text, Deadline until) {
  const MeshFrame frame{.bytes = static_cast<std::int64_t>(text.size())};
  socket.send(&frame, sizeof frame, until);
  socket.send(text.data(), text.size(), until);
}

std::string receive_text(Socket& socket, Deadline until) {
  MeshFrame frame;
  if (!socket.receive(&frame, sizeof frame, until))
    throw DeviceError("receiving from " + socket.peer(), "the connection ended");
  check_frame(frame, socket.peer());
  if (frame.bytes > kMostWords) throw DeviceError("receiving from " + socket.peer(), "not a process of foreshard run");
  std::string text(static_cast<std::size_t>(frame.bytes), ' ');
  if (!text.empty() && !socket.receive(text.data(), text.size(), until))
    throw DeviceError("receiving from " + socket.peer(), "the connection ended");
  return text;
}

class Rendezvous {
 public:
  Rendezvous(const MeshOptions& options, Deadline until)
      : options_(options), until_(until), sockets_(static_cast<std::size_t>(options.place.processes)) {}
  MeshConnections meet();

 private:
  void invite(ListeningSocket& door);
  void send_away(GreetingReader::Visitor& visitor, int port);
  std::vector<const Socket*> companions() const;
  void expect_companions();
  std::string missing_processes() const;
  std::string unreachable(const ListeningSocket& door) const;
  void refuse_the_rest(GreetingReader& room, const std::string& why, int missing);
  std::string refusal(const MeshHello& hello) const;
  void tell_all(const std::string& answer);
  std::unique_ptr<ListeningSocket> knock();
  void meet_others(ListeningSocket& door, const std::vector<MeshAddress>& addresses);
  std::int64_t compare_clocks();
  void answer_with_clock();
  std::vector<PeerMemoryAccess> compare_places();

  int process() const { return options_.place.process; }
  int processes() const { return options_.place.processes; }
  Socket& socket(int process) { return sockets_[static_cast<std::size_t>(process)]; }
  const Socket& socket(int process) const { return sockets_[static_cast<std::size_t>(process)]; }
  void log(const std::string& event) const {
    if (options_.log) options_.log(event);
  }

  const MeshOptions& options_;
  const Deadline until_;
  std::vector<Socket> sockets_;  // [process]; own: not open
};

MeshConnections Rendezvous::meet() {
  const ProcessPlace& place = options_.place;
  if (place.process == 0) {
    ListeningSocket door(place.address, place.port);
    log("listens at " + door.address() + " port " + std::to_string(door.port()));
    invite(door);
  } else {
    const std::unique_ptr<ListeningSocket> door = knock();
    log("knocked at " + place.address + " port " + std::to_string(place.port));
  }
  const std::int64_t offset = compare_clocks();
  std::vector<PeerMemoryAccess> near = compare_places();
  return {.sockets = std::move(sockets_), .near = std::move(near), .clock_offset = offset};
}

// Why the run cannot use a process with this greeting; empty: it can.
std::string Rendezvous::refusal(const MeshHello& hello) const {
  const std::string who = "process " + std::to_string(hello.process);
  const bool known = hello.process > 0 && hello.process < processes() && hello.port > 0;
  if (hello.processes != processes() || !known || socket(hello.process).open())
    return who + ": found " + who + " of " + std::to_string(hello.processes) + ", expected each of 1 to " +
           std::to_string(processes() - 1) + " once";
  if (const auto [own, other] = first_difference(options_.run, hello.run); own != other)
    return who + ": found " + (other.empty() ? "nothing" : printable(other, kMostPrinted)) + ", expected " +
           (own.empty() ? "nothing" : own) + ", which process 0 runs";
  return "";
}

void Rendezvous::tell_all(const std::string& answer) {
  for (Socket& other : sockets_)
    if (other.open()) send_text(other, answer, until_);
}

std::vector<const Socket*> Rendezvous::companions() const {
  std::vector<const Socket*> open;
  for (const Socket& other : sockets_)
    if (other.open()) open.push_back(&other);
  return open;
}

// Throws DeviceError if a process that had connected has ended before all were connected, and tells the others which one.
void Rendezvous::expect_companions() {
  for (int p = 1; p < processes(); ++p) {
    Socket& other = socket(p);
    if (!other.open() || !other.ended()) continue;
    other.close();
    const std::string why = options_.name_of(p) + " has ended before all had come";
    tell_all(kRefused + why);
    throw DeviceError("rendezvous", why);
  }
}

// Tells the reason to the processes that have not connected yet; otherwise they would only see a connection that ends.
void Rendezvous::refuse_the_rest(GreetingReader& room, const std::string& why, int missing) {
  const Deadline until = std::chrono::steady_clock::now() + kRefusing;
  try {
    while (missing > 0) {
      GreetingReader::Visitor visitor = room.next(until);
      if (visitor.hello.job != options_.job) continue;
      send_text(visitor.socket, kRefused + why, until);
      --missing;
    }
  } catch (const DeviceError&) {  // they do not come
  }
}

// Rejects a process of another job; this run keeps waiting for its own.
void Rendezvous::send_away(GreetingReader::Visitor& visitor, int port) {
  log("sent away a process of another job, from " + visitor.socket.peer());
  try {
    send_text(visitor.socket,
              kRefused + "another job (FORESHARD_JOB) meets at port " + std::to_string(port) +
                  ": choose another MASTER_PORT for one of them",
              until_);
  } catch (const DeviceError&) {  // it has gone already
  }
}

std::string Rendezvous::missing_processes() const {
  std::string who;
  for (int p = 1; p < processes(); ++p)
    if (!socket(p).open()) who += (who.empty() ? "" : ", ") + std::to_string(p);
  return who;
}

// Debian's /etc/hosts gives the machine's own name a loopback address.
std::string Rendezvous::unreachable(const ListeningSocket& door) const {
  const std::string& asked = options_.place.address;
  if (!door.only_this_machine() || asked == door.address() || asked == "localhost") return "";
  return "; " + asked + " is " + door.address() +
         " here, where other machines cannot connect (MASTER_ADDR: an address of the network)";
}

void Rendezvous::invite(ListeningSocket& door) {
  std::vector<MeshAddress> addresses(sockets_.size());
  GreetingReader room(door);
  int strangers = 0;
  for (int missing = processes() - 1; missing > 0;) {
    GreetingReader::Visitor visitor;
    try {
      visitor = room.next(until_, companions());
    } catch (const DeviceError&) {
      expect_companions();
      throw DeviceError("rendezvous on port " + std::to_string(door.port()) + " (MASTER_PORT)",
                        "of " + std::to_string(processes()) + " processes these did not come within " +
                            std::to_string(options_.rendezvous.count()) + " ms: " + missing_processes() +
                            (strangers > 0 ? "; of another job (FORESHARD_JOB) came " + std::to_string(strangers) : "") +
                            unreachable(door));
    }
    const MeshHello& hello = visitor.hello;
    if (hello.job != options_.job) {
      ++strangers;
      send_away(visitor, door.port());
      continue;
    }
    if (const std::string why = refusal(hello); !why.empty()) {
      tell_all(kRefused + why);
      send_text(visitor.socket, kRefused + why, until_);
      refuse_the_rest(room, why, missing - 1);
      throw DeviceError("rendezvous", why);
    }
    log("process " + std::to_string(hello.process) + " came from " + visitor.socket.peer());
    addresses[static_cast<std::size_t>(hello.process)] = {visitor.socket.peer(), hello.port};
    socket(hello.process) = std::move(visitor.socket);
    --missing;
  }
  tell_all(kWelcome + text_of(addresses));
}

// Connects to process 0 and to the processes with smaller numbers. Returns the listening socket to which those with larger numbers connect.
std::unique_ptr<ListeningSocket> Rendezvous::knock() {
  const ProcessPlace& place = options_.place;
  const std::string where = "rendezvous of process " + std::to_string(place.process) + " (MASTER_ADDR, MASTER_PORT)";
  Socket& first = socket(0);
  std::unique_ptr<ListeningSocket> door;
  std::string answer;
  try {
    first = Socket::connect(place.address, place.port, until_);
    door = std::make_unique<ListeningSocket>(first.own_address(), 0);
    send_text(first, text_of({place.process, place.processes, door->port(), options_.job, options_.run}), until_);
    answer = receive_text(first, until_);
  } catch (const DeviceError& error) {
    throw DeviceError(where, error.what());
  }
  if (answer.starts_with(kRefused)) throw DeviceError("rendezvous", printable(answer.substr(kRefused.size()), kMostPrinted));
  if (!answer.starts_with(kWelcome)) throw DeviceError(where, place.address + " is no process 0 of foreshard run");
  meet_others(*door, addresses_of(answer.substr(kWelcome.size()), sockets_.size(), place.address));
  return door;
}

void Rendezvous::meet_others(ListeningSocket& door, const std::vector<MeshAddress>& addresses) {
  for (int p = 1; p < process(); ++p) {
    const auto& [address, port] = addresses[static_cast<std::size_t>(p)];
    socket(p) = Socket::connect(address, port, until_);
    send_text(socket(p), text_of({process(), processes(), 0, options_.job, ""}), until_);
  }
  GreetingReader room(door);
  for (int missing = processes() - 1 - process(); missing > 0;) {
    GreetingReader::Visitor visitor = room.next(until_, {&socket(0)});
    const MeshHello& hello = visitor.hello;
    const bool expected =
        hello.job == options_.job && hello.processes == processes() && hello.process > process() && hello.process < processes();
    if (!expected || socket(hello.process).open()) continue;  // a stranger
    socket(hello.process) = std::move(visitor.socket);
    --missing;
  }
}

// Asks process 0 several times for its clock and uses the fastest answer: its clock was read in the middle between question and answer
// (Cristian, "Probabilistic clock synchronization", 1989).
std::int64_t Rendezvous::compare_clocks() {
  if (process() == 0) return answer_with_clock(), 0;
  const auto usable = [](std::int64_t time) { return time > -kMostTime && time < kMostTime; };
  Socket& first = socket(0);
  std::int64_t least = INT64_MAX, offset = 0;
  for (int i = 0; i < kPings; ++i) {
    const std::int64_t before = steady_now();
    std::int64_t there = 0;
    first.send(&before, sizeof before, until_);
    if (!first.receive(&there, sizeof there, until_)) throw DeviceError("rendezvous with process 0", "the connection ended");
    if (!usable(there)) throw DeviceError("rendezvous with process 0", "a clock that is none");
    const std::int64_t after = steady_now();
    if (after - before >= least) continue;
    least = after - before;
    offset = there - (before + after) / 2;
  }
  log("clock of process 0: " + std::to_string(offset) + " ns ahead, asked and answered in " + std::to_string(least) + " ns");
  return offset;
}

void Rendezvous::answer_with_clock() {
  for (int p = 1; p < processes(); ++p) {
    for (int i = 0; i < kPings; ++i) {
      std::int64_t asked = 0;
      if (!socket(p).receive(&asked, sizeof asked, until_))
        throw DeviceError("rendezvous with process " + std::to_string(p), "the connection ended");
      const std::int64_t answer = steady_now();
      socket(p).send(&answer, sizeof answer, until_);
    }
  }
}

std::vector<PeerMemoryAccess> Rendezvous::compare_places() {
  std::vector<Socket*> others;
  for (int p = 0; p < processes(); ++p)
    if (p != process()) others.push_back(&socket(p));
  std::vector<PeerMemoryAccess> near = find_peer_memory_access(others, options_.lends, until_);
  const auto count = std::count_if(near.begin(), near.end(), [](const PeerMemoryAccess& one) { return one.borrows_from != 0; });
  log(std::to_string(count) + " of the others are on this machine and let their memory be read");
  near.insert(near.begin() + process(), PeerMemoryAccess{});
  return near;
}

}  // namespace

MeshConnections rendezvous(const MeshOptions& options, Deadline until) { return Rendezvous(options, until).meet(); }

}  // namespace foreshard
