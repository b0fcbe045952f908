// Several processes of one run, each played by a thread of this one, over loopback.
#pragma once

#include <future>
#include <vector>

#include "exec/process_mesh.h"

namespace foreshard {

inline int free_port() { return ListeningSocket(0).port(); }

inline MeshOptions mesh_options(int process, int processes, int ranks, int port) {
  using namespace std::chrono_literals;
  return {.place = {process, processes, "127.0.0.1", port}, .ranks = ranks, .rendezvous = 20s, .patience = 20s};
}

// Runs `body` for every process at once.
template <class Body>
void in_processes(int processes, int ranks, const Body& body) {
  const int port = free_port();
  std::vector<std::future<void>> all;
  for (int p = 0; p < processes; ++p)
    all.push_back(std::async(std::launch::async, [&, p] {
      ProcessMesh mesh(mesh_options(p, processes, ranks, port));
      body(mesh);
    }));
  for (auto& one : all) one.get();
}

}  // namespace foreshard
