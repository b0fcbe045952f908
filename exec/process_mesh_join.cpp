// How the processes of a mesh find each other.
#include <algorithm>
#include <optional>
#include <sstream>

#include "core/error.h"
#include "exec/mesh_frame.h"
#include "exec/process_mesh.h"

namespace foreshard {

namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 40U;
constexpr std::int64_t kMostText = 1 << 20;
constexpr int kPings = 8;

std::int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void send_text(Socket& socket, const std::string& text) {
  MeshFrame frame{.bytes = static_cast<std::int64_t>(text.size())};
  socket.send(&frame, sizeof frame);
  socket.send(text.data(), text.size());
}

std::string receive_text(Socket& socket, Deadline until) {
  MeshFrame frame;
  if (!socket.receive(&frame, sizeof frame, until))
    throw DeviceError("receiving from " + socket.peer(), "the connection ended");
  check_frame(frame, socket.peer());
  if (frame.bytes > kMostText) throw DeviceError("receiving from " + socket.peer(), "not a process of foreshard run");
  std::string text(static_cast<std::size_t>(frame.bytes), ' ');
  if (!text.empty()) static_cast<void>(socket.receive(text.data(), text.size(), until));
  return text;
}

constexpr std::chrono::seconds kGreeting{2};

// The first line of `own` that `other` does not have in its place: (own, other).
std::pair<std::string, std::string> first_difference(const std::string& own, const std::string& other) {
  std::istringstream a(own), b(other);
  while (true) {
    std::string left, right;
    const bool more_a = static_cast<bool>(std::getline(a, left)), more_b = static_cast<bool>(std::getline(b, right));
    if (!more_a && !more_b) return {};
    if (left != right) return {left, right};
  }
}

struct Hello {
  int process = 0, processes = 0, port = 0;
  std::string run = {};
};

std::string text_of(const Hello& hello) {
  return std::to_string(hello.process) + " " + std::to_string(hello.processes) + " " + std::to_string(hello.port) + "\n" +
         hello.run;
}

Hello hello_of(const std::string& text, const std::string& peer) {
  std::istringstream in(text);
  Hello hello;
  if (!(in >> hello.process >> hello.processes >> hello.port)) throw DeviceError("receiving from " + peer, "not a greeting");
  const std::size_t line = text.find('\n');
  hello.run = line == std::string::npos ? "" : text.substr(line + 1);
  return hello;
}

// What a connection says first. Nothing: a stranger (a scanner of ports, another program), with whom nobody has to do.
std::optional<Hello> greeting(Socket& socket, Deadline until) {
  try {
    return hello_of(receive_text(socket, std::min(until, std::chrono::steady_clock::now() + kGreeting)), socket.peer());
  } catch (const DeviceError&) {
    return {};
  }
}

}  // namespace

void check_frame(const MeshFrame& frame, const std::string& peer) {
  if (frame.magic != MeshFrame::kMagic || frame.bytes < 0 || frame.bytes > kMostBytes)
    throw DeviceError("receiving from " + peer, "not a process of this version of foreshard run");
}

void ProcessMesh::invite(ListeningSocket& door, Deadline until) {
  std::vector<std::pair<std::string, int>> addresses(peers_.size());
  std::string refused;
  for (int missing = processes() - 1; missing > 0;) {
    Socket socket;
    try {
      socket = door.accept(until);
    } catch (const DeviceError&) {
      std::string who;
      for (int p = 1; p < processes(); ++p)
        if (!peers_[static_cast<std::size_t>(p)]->socket.open()) who += (who.empty() ? "" : ", ") + std::to_string(p);
      throw DeviceError("rendezvous on port " + std::to_string(door.port()) + " (MASTER_PORT)",
                        "of " + std::to_string(processes()) + " processes these did not come within " +
                            std::to_string(options_.rendezvous.count()) + " ms: " + who);
    }
    const std::optional<Hello> said = greeting(socket, until);
    if (!said) continue;
    const Hello& hello = *said;
    const std::string who = "process " + std::to_string(hello.process);
    const bool known = hello.process > 0 && hello.process < processes();
    if (hello.processes != processes() || !known || peers_[static_cast<std::size_t>(hello.process)]->socket.open())
      refused = who + ": found " + who + " of " + std::to_string(hello.processes) + ", expected each of 1 to " +
                std::to_string(processes() - 1) + " once";
    else if (const auto [own, other] = first_difference(options_.run, hello.run); own != other)
      refused = who + ": found " + (other.empty() ? "nothing" : other) + ", expected " + (own.empty() ? "nothing" : own) +
                ", which process 0 runs";
    if (!known) break;
    addresses[static_cast<std::size_t>(hello.process)] = {socket.peer(), hello.port};
    peers_[static_cast<std::size_t>(hello.process)]->socket = std::move(socket);
    if (!refused.empty()) break;
    --missing;
  }
  std::string answer = refused.empty() ? "welcome\n" : "refused " + refused;
  for (int p = 1; p < processes() && refused.empty(); ++p)
    answer += addresses[static_cast<std::size_t>(p)].first + " " +
              std::to_string(addresses[static_cast<std::size_t>(p)].second) + "\n";
  for (int p = 1; p < processes(); ++p)
    if (Socket& socket = peers_[static_cast<std::size_t>(p)]->socket; socket.open()) send_text(socket, answer);
  if (!refused.empty()) throw Error(refused);
}

void ProcessMesh::knock(ListeningSocket& door, Deadline until) {
  const ProcessPlace& place = options_.place;
  Socket& first = peers_[0]->socket;
  try {
    first = Socket::connect(place.address, place.port, until);
  } catch (const DeviceError& error) {
    throw DeviceError("rendezvous of process " + std::to_string(place.process) + " (MASTER_ADDR, MASTER_PORT)", error.what());
  }
  send_text(first, text_of({place.process, place.processes, door.port(), options_.run}));
  const std::string answer = receive_text(first, until);
  if (answer.starts_with("refused ")) throw Error(answer.substr(8));
  std::istringstream lines(answer.substr(std::min(answer.size(), answer.find('\n') + 1)));
  std::vector<std::pair<std::string, int>> addresses(peers_.size());
  for (std::size_t p = 1; p < peers_.size(); ++p)
    if (!(lines >> addresses[p].first >> addresses[p].second))
      throw DeviceError("rendezvous with " + place.address, "no list of the other processes");
  meet_others(door, addresses, until);
}

void ProcessMesh::meet_others(ListeningSocket& door, const std::vector<std::pair<std::string, int>>& addresses,
                              Deadline until) {
  for (int p = 1; p < process(); ++p) {
    const auto& [address, port] = addresses[static_cast<std::size_t>(p)];
    Socket& socket = peers_[static_cast<std::size_t>(p)]->socket;
    socket = Socket::connect(address, port, until);
    send_text(socket, text_of({process(), processes(), 0, ""}));
  }
  for (int missing = processes() - 1 - process(); missing > 0;) {
    Socket socket = door.accept(until);
    const std::optional<Hello> said = greeting(socket, until);
    if (!said) continue;
    if (said->process <= process() || said->process >= processes() ||
        peers_[static_cast<std::size_t>(said->process)]->socket.open())
      throw DeviceError("a connection from " + socket.peer(), "unexpected process " + std::to_string(said->process));
    peers_[static_cast<std::size_t>(said->process)]->socket = std::move(socket);
    --missing;
  }
}

// Of several questions to process 0 the one answered fastest: its clock was read in the middle (Cristian 1989).
void ProcessMesh::compare_clocks(Deadline until) {
  if (process() != 0) {
    Socket& first = peers_[0]->socket;
    std::int64_t least = INT64_MAX;
    for (int i = 0; i < kPings; ++i) {
      const std::int64_t before = now();
      std::int64_t there = 0;
      first.send(&before, sizeof before);
      if (!first.receive(&there, sizeof there, until)) throw DeviceError("rendezvous with process 0", "the connection ended");
      const std::int64_t after = now();
      if (after - before >= least) continue;
      least = after - before;
      offset_ = there - (before + after) / 2;
    }
    return;
  }
  for (int p = 1; p < processes(); ++p) {
    Socket& socket = peers_[static_cast<std::size_t>(p)]->socket;
    for (int i = 0; i < kPings; ++i) {
      std::int64_t asked = 0;
      if (!socket.receive(&asked, sizeof asked, until))
        throw DeviceError("rendezvous with process " + std::to_string(p), "the connection ended");
      const std::int64_t answer = now();
      socket.send(&answer, sizeof answer);
    }
  }
}

}  // namespace foreshard
