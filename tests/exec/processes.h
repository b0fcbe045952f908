// Several processes of one run, each played by a thread of this one, over loopback.
#pragma once

#include <future>
#include <vector>

#include "exec/mesh/process_mesh.h"

namespace foreshard {

inline int free_port() { return ListeningSocket(0).port(); }

inline MeshOptions mesh_options(int process, int processes, int ranks, int port) {
  using namespace std::chrono_literals;
  return {.place = {process, processes, "127.0.0.1", port}, .ranks = ranks, .rendezvous = 20s, .patience = 20s};
}

// What a process says last while it joins, by hand: that nobody reads the other's memory (`process` 0), or that this one does keep the number
// that it is asked to keep.
inline void pass_as_neighbour(Socket& socket, std::int64_t process = 0) {
  static std::uint64_t kept[4];
  const Deadline until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  const std::uint64_t challenge[4] = {1, 2, 3, 4};
  std::int64_t place[2] = {process, static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(kept))};
  char verdict = 0;
  socket.send(challenge, sizeof challenge);
  static_cast<void>(socket.receive(kept, sizeof kept, until));
  socket.send(place, sizeof place);
  static_cast<void>(socket.receive(place, sizeof place, until));
  socket.send(&verdict, 1);
  static_cast<void>(socket.receive(&verdict, 1, until));
}

// Runs `body` for every process at once.
template <class Body>
void in_processes(int processes, int ranks, bool lends, const Body& body) {
  const int port = free_port();
  std::vector<std::future<void>> all;
  for (int p = 0; p < processes; ++p)
    all.push_back(std::async(std::launch::async, [&, p] {
      MeshOptions own = mesh_options(p, processes, ranks, port);
      own.lends = lends;
      ProcessMesh mesh(own);
      body(mesh);
    }));
  for (auto& one : all) one.get();
}
template <class Body>
void in_processes(int processes, int ranks, const Body& body) {
  in_processes(processes, ranks, true, body);
}

}  // namespace foreshard
