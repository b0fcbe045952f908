// Parameter server and gather-to-root: all members push to the servers, then all pull. Gather-to-root has one server, the root.
#include <algorithm>

#include "core/network/algorithms.h"

namespace foreshard {

namespace {

using namespace algorithms;

std::vector<CollectiveFlow> parameter_server(const Network& network, const Collective& collective, const Devices& members,
                                             int servers) {
  servers = std::clamp(servers, 1, static_cast<int>(members.size()));
  FlowBuilder push(network), pull(network);
  for (int s = 0; s < servers; ++s)
    for (const DeviceId worker : members) {
      push.hop(worker, members[static_cast<std::size_t>(s)]);
      pull.hop(members[static_cast<std::size_t>(s)], worker);
    }
  return {push.done(full(collective) / servers, 1), pull.done(full(collective) / servers, 1)};
}

std::vector<CollectiveFlow> by_servers(const Network& network, const Collective& collective, const Devices& members) {
  return parameter_server(network, collective, members, collective.servers);
}
std::vector<CollectiveFlow> by_root(const Network& network, const Collective& collective, const Devices& members) {
  return parameter_server(network, collective, members, 1);
}

void serve(CollectiveRounds& out, int n, int servers) {
  MessageRound push, pull;
  for (int server = 0; server < servers; ++server)
    for (int worker = 0; worker < n; ++worker) {
      if (worker == server) continue;
      push.push_back({worker, server, server, true});
      pull.push_back({server, worker, server, false});
    }
  out.rounds = {push, pull};
}

void rounds_of_servers(CollectiveRounds& out, const Collective& collective, int members, int) {
  out.slices = std::clamp(collective.servers, 1, members);
  serve(out, members, out.slices);
}
void rounds_of_root(CollectiveRounds& out, const Collective&, int members, int) {
  out.slices = 1;
  serve(out, members, 1);
}

CollectiveVolume server_volume(CollectiveKind, double bytes, int n) { return {bytes * (n - 1), 2}; }

}  // namespace

AlgorithmEntry parameter_server_algorithm() {
  return {.algorithm = Algorithm::ParameterServer,
          .applies = of_all_reduce,
          .rounds = rounds_of_servers,
          .phases = by_servers,
          .volume = server_volume};
}
AlgorithmEntry gather_to_root_algorithm() {
  return {.algorithm = Algorithm::GatherToRoot,
          .applies = of_all_reduce,
          .rounds = rounds_of_root,
          .phases = by_root,
          .volume = server_volume,
          .compared = false};
}

}  // namespace foreshard
