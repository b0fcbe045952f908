// How the processes of a mesh find each other.
#include <algorithm>

#include "core/base/error.h"
#include "core/base/printable.h"
#include "exec/mesh/process_mesh_parts.h"
#include "exec/mesh/waiting_room.h"

namespace foreshard {

using namespace mesh;

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

}  // namespace

void check_frame(const MeshFrame& frame, const std::string& peer) {
  const bool known = frame.magic == MeshFrame::kMagic && frame.kind <= MeshKind::Lent;
  const std::int64_t most = frame.kind == MeshKind::Message || frame.kind == MeshKind::Lent ? kMostMessage
                            : frame.kind == MeshKind::Bye                                   ? 0
                                                                                            : kMostWords;
  if (!known || frame.bytes < 0 || frame.bytes > most || frame.when > kMostTime || frame.when < -kMostTime)
    throw DeviceError("receiving from " + peer, "not a process of this version of foreshard run");
}

// Why the run cannot go on with who says this; empty: it can.
std::string ProcessMesh::refusal(const MeshHello& hello) const {
  const std::string who = "process " + std::to_string(hello.process);
  const bool known = hello.process > 0 && hello.process < processes() && hello.port > 0;
  if (hello.processes != processes() || !known || peers_[static_cast<std::size_t>(hello.process)]->socket.open())
    return who + ": found " + who + " of " + std::to_string(hello.processes) + ", expected each of 1 to " +
           std::to_string(processes() - 1) + " once";
  if (const auto [own, other] = first_difference(options_.run, hello.run); own != other)
    return who + ": found " + (other.empty() ? "nothing" : printable(other, kMostPrinted)) + ", expected " +
           (own.empty() ? "nothing" : own) + ", which process 0 runs";
  return "";
}

void ProcessMesh::tell_all(const std::string& answer, Deadline until) {
  for (const auto& peer : peers_)
    if (peer->socket.open()) send_text(peer->socket, answer, until);
}

std::vector<const Socket*> ProcessMesh::companions() const {
  std::vector<const Socket*> open;
  for (const auto& peer : peers_)
    if (peer->socket.open()) open.push_back(&peer->socket);
  return open;
}

// Who came and has ended before all were there is named to the others.
void ProcessMesh::expect_companions(Deadline until) {
  for (int p = 1; p < processes(); ++p) {
    Socket& socket = peers_[static_cast<std::size_t>(p)]->socket;
    if (!socket.open() || !socket.ended()) continue;
    socket.close();
    const std::string why = name(p) + " has ended before all had come";
    tell_all(kRefused + why, until);
    throw DeviceError("rendezvous", why);
  }
}

// Those who have yet to come hear why, instead of a connection that ends.
void ProcessMesh::refuse_the_rest(WaitingRoom& room, const std::string& why, int missing) {
  const Deadline until = std::chrono::steady_clock::now() + kRefusing;
  try {
    while (missing > 0) {
      WaitingRoom::Visitor visitor = room.next(until);
      if (visitor.hello.job != options_.job) continue;
      send_text(visitor.socket, kRefused + why, until);
      --missing;
    }
  } catch (const DeviceError&) {  // they do not come
  }
}

void ProcessMesh::invite(ListeningSocket& door, Deadline until) {
  std::vector<MeshAddress> addresses(peers_.size());
  WaitingRoom room(door);
  int strangers = 0;
  for (int missing = processes() - 1; missing > 0;) {
    WaitingRoom::Visitor visitor;
    try {
      visitor = room.next(until, companions());
    } catch (const DeviceError&) {
      expect_companions(until);
      std::string who;
      for (int p = 1; p < processes(); ++p)
        if (!peers_[static_cast<std::size_t>(p)]->socket.open()) who += (who.empty() ? "" : ", ") + std::to_string(p);
      throw DeviceError("rendezvous on port " + std::to_string(door.port()) + " (MASTER_PORT)",
                        "of " + std::to_string(processes()) + " processes these did not come within " +
                            std::to_string(options_.rendezvous.count()) + " ms: " + who +
                            (strangers > 0 ? "; of another job (FORESHARD_JOB) came " + std::to_string(strangers) : ""));
    }
    const MeshHello& hello = visitor.hello;
    if (hello.job != options_.job) {  // this run goes on without it
      ++strangers;
      log("sent away a process of another job, from " + visitor.socket.peer());
      try {
        send_text(visitor.socket,
                  kRefused + "another job (FORESHARD_JOB) meets at port " + std::to_string(door.port()) +
                      ": choose another MASTER_PORT for one of them",
                  until);
      } catch (const DeviceError&) {  // it has gone already
      }
      continue;
    }
    if (const std::string why = refusal(hello); !why.empty()) {
      tell_all(kRefused + why, until);
      send_text(visitor.socket, kRefused + why, until);
      refuse_the_rest(room, why, missing - 1);
      throw DeviceError("rendezvous", why);
    }
    log("process " + std::to_string(hello.process) + " came from " + visitor.socket.peer());
    addresses[static_cast<std::size_t>(hello.process)] = {visitor.socket.peer(), hello.port};
    peers_[static_cast<std::size_t>(hello.process)]->socket = std::move(visitor.socket);
    --missing;
  }
  tell_all(kWelcome + text_of(addresses), until);
}

// Gives back the own door, at which the processes after this one knock.
std::unique_ptr<ListeningSocket> ProcessMesh::knock(Deadline until) {
  const ProcessPlace& place = options_.place;
  const std::string where = "rendezvous of process " + std::to_string(place.process) + " (MASTER_ADDR, MASTER_PORT)";
  Socket& first = peers_[0]->socket;
  std::unique_ptr<ListeningSocket> door;
  std::string answer;
  try {
    first = Socket::connect(place.address, place.port, until);
    door = std::make_unique<ListeningSocket>(first.own_address(), 0);
    send_text(first, text_of({place.process, place.processes, door->port(), options_.job, options_.run}), until);
    answer = receive_text(first, until);
  } catch (const DeviceError& error) {
    throw DeviceError(where, error.what());
  }
  if (answer.starts_with(kRefused)) throw DeviceError("rendezvous", printable(answer.substr(kRefused.size()), kMostPrinted));
  if (!answer.starts_with(kWelcome)) throw DeviceError(where, place.address + " is no process 0 of foreshard run");
  meet_others(*door, addresses_of(answer.substr(kWelcome.size()), peers_.size(), place.address), until);
  return door;
}

void ProcessMesh::meet_others(ListeningSocket& door, const std::vector<MeshAddress>& addresses, Deadline until) {
  for (int p = 1; p < process(); ++p) {
    const auto& [address, port] = addresses[static_cast<std::size_t>(p)];
    Socket& socket = peers_[static_cast<std::size_t>(p)]->socket;
    socket = Socket::connect(address, port, until);
    send_text(socket, text_of({process(), processes(), 0, options_.job, ""}), until);
  }
  WaitingRoom room(door);
  for (int missing = processes() - 1 - process(); missing > 0;) {
    WaitingRoom::Visitor visitor = room.next(until, {&peers_[0]->socket});
    const MeshHello& hello = visitor.hello;
    const bool expected =
        hello.job == options_.job && hello.processes == processes() && hello.process > process() && hello.process < processes();
    if (!expected || peers_[static_cast<std::size_t>(hello.process)]->socket.open()) continue;  // a stranger
    peers_[static_cast<std::size_t>(hello.process)]->socket = std::move(visitor.socket);
    --missing;
  }
}

// Of several questions to process 0 the one answered fastest: its clock was read in the middle (Cristian 1989).
void ProcessMesh::compare_clocks(Deadline until) {
  const auto usable = [](std::int64_t time) { return time > -kMostTime && time < kMostTime; };
  if (process() != 0) {
    Socket& first = peers_[0]->socket;
    std::int64_t least = INT64_MAX;
    for (int i = 0; i < kPings; ++i) {
      const std::int64_t before = steady_now();
      std::int64_t there = 0;
      first.send(&before, sizeof before, until);
      if (!first.receive(&there, sizeof there, until)) throw DeviceError("rendezvous with process 0", "the connection ended");
      if (!usable(there)) throw DeviceError("rendezvous with process 0", "a clock that is none");
      const std::int64_t after = steady_now();
      if (after - before >= least) continue;
      least = after - before;
      offset_ = there - (before + after) / 2;
    }
    log("clock of process 0: " + std::to_string(offset_) + " ns ahead, asked and answered in " + std::to_string(least) + " ns");
    return;
  }
  for (int p = 1; p < processes(); ++p) {
    Socket& socket = peers_[static_cast<std::size_t>(p)]->socket;
    for (int i = 0; i < kPings; ++i) {
      std::int64_t asked = 0;
      if (!socket.receive(&asked, sizeof asked, until))
        throw DeviceError("rendezvous with process " + std::to_string(p), "the connection ended");
      const std::int64_t answer = steady_now();
      socket.send(&answer, sizeof answer, until);
    }
  }
}

}  // namespace foreshard
