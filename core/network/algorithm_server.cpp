// Parameter server and gather-to-root: all members push to the servers, then all pull. Gather-to-root has one server, the root. Where every
// member is a server, a reduce-scatter is the push and an all-gather the pull.
#include <algorithm>
#include <numeric>

#include "core/network/algorithms.h"

namespace foreshard {

namespace {

using namespace algorithms;

std::vector<CollectiveFlow> served(const Network& network, const Collective& collective, const Devices& members,
                                   const std::vector<int>& servers) {
  FlowBuilder push(network), pull(network);
  for (const int server : servers)
    for (const DeviceId worker : members) {
      push.hop(worker, members[static_cast<std::size_t>(server)]);
      pull.hop(members[static_cast<std::size_t>(server)], worker);
    }
  const double slice = full(collective) / static_cast<double>(servers.size());
  if (collective.kind == CollectiveKind::ReduceScatter) return {push.done(slice, 1)};
  if (collective.kind == CollectiveKind::AllGather) return {pull.done(slice, 1)};
  return {push.done(slice, 1), pull.done(slice, 1)};
}

// The parts of a reduce-scatter or all-gather belong to the members, so that each of them serves its own.
bool has_servers(CollectiveKind kind, int members, int servers) {
  return is_all_reduce(kind) || (is_reduce_scatter_or_all_gather(kind) && servers == members);
}

std::vector<CollectiveFlow> by_servers(const Network& network, const Collective& collective, const Devices& members) {
  return served(network, collective, members, serving_members(collective, static_cast<int>(members.size())));
}
std::vector<CollectiveFlow> by_root(const Network& network, const Collective& collective, const Devices& members) {
  return served(network, collective, members, {0});
}

void serve(CollectiveRounds& out, int n, const std::vector<int>& servers) {
  MessageRound push, pull;
  out.slices = static_cast<int>(servers.size());
  for (int slice = 0; slice < out.slices; ++slice)
    for (int worker = 0; worker < n; ++worker) {
      const int server = servers[static_cast<std::size_t>(slice)];
      if (worker == server) continue;
      push.push_back({worker, server, slice, true});
      pull.push_back({server, worker, slice, false});
    }
  out.rounds = {push, pull};
}

void rounds_of_servers(CollectiveRounds& out, const Collective& collective, int members, int) {
  serve(out, members, serving_members(collective, members));
  if (collective.kind == CollectiveKind::ReduceScatter) out.rounds.pop_back();
  if (collective.kind == CollectiveKind::AllGather) out.rounds.erase(out.rounds.begin());
}
void rounds_of_root(CollectiveRounds& out, const Collective&, int members, int) { serve(out, members, {0}); }

CollectiveVolume server_volume(CollectiveKind, double bytes, int n) { return {bytes * (n - 1), 2}; }

}  // namespace

std::vector<int> serving_members(const Collective& collective, int members) {
  const bool placed = std::ranges::all_of(collective.served_by, [&](int member) { return member < members; });
  if (placed && !collective.served_by.empty()) return {collective.served_by.begin(), collective.served_by.end()};
  std::vector<int> first(static_cast<std::size_t>(std::clamp(collective.servers, 1, members)));
  std::iota(first.begin(), first.end(), 0);
  return first;
}

AlgorithmEntry parameter_server_algorithm() {
  return {.algorithm = Algorithm::ParameterServer,
          .applies = has_servers,
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
