#include "strategy/partition/partition_dag.h"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/topological_sort.hpp>
#include <limits>
#include <set>

#include "core/base/at.h"
#include "core/base/error.h"
#include "core/base/never.h"

namespace foreshard {

namespace {

using Members = std::vector<bool>;  // [layer]: whether it is in the set

std::vector<int> topological_order(const std::vector<DagLayer>& graph) {
  boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS> edges(graph.size());
  for (std::size_t i = 0; i < graph.size(); ++i)
    for (const int input : graph[i].inputs) boost::add_edge(at(input), i, edges);
  std::vector<int> order;
  try {
    boost::topological_sort(edges, std::back_inserter(order));
  } catch (const boost::not_a_dag&) {
    throw Error("model graph", "layers", "a cycle", "layers that read earlier ones only");
  }
  std::reverse(order.begin(), order.end());
  return order;
}

// A closed set, with the sums over its layers. Sums over a stage are differences of those of two sets.
struct Closed {
  Members members = {};
  int size = 0;
  double time = 0, states = 0, kept = 0, crossing = 0;
};

// All closed sets: the empty set first, every other one after the sets that it contains. Empty if there are more than `most`.
std::vector<Members> all_closed(const std::vector<DagLayer>& graph, const std::vector<int>& order, std::size_t most) {
  std::vector<Members> sets = {Members(graph.size(), false)};
  std::set<Members> seen(sets.begin(), sets.end());
  for (std::size_t next = 0; next < sets.size(); ++next)
    for (const int layer : order) {
      if (sets[next][at(layer)]) continue;
      const auto& inputs = graph[at(layer)].inputs;
      if (!std::all_of(inputs.begin(), inputs.end(), [&](int input) { return sets[next][at(input)]; })) continue;
      Members larger = sets[next];
      larger[at(layer)] = true;
      if (!seen.insert(larger).second) continue;
      if (sets.size() >= most) return {};
      sets.push_back(std::move(larger));
    }
  return sets;
}

std::vector<Members> prefixes(const std::vector<int>& order) {
  std::vector<Members> sets = {Members(order.size(), false)};
  for (const int layer : order) {
    sets.push_back(sets.back());
    sets.back()[at(layer)] = true;
  }
  return sets;
}

Closed measured(const std::vector<DagLayer>& graph, Members members) {
  Closed set;
  Members crosses(graph.size(), false);
  for (std::size_t i = 0; i < graph.size(); ++i) {
    if (members[i]) {
      const ChainLayer& cost = graph[i].cost;
      ++set.size, set.time += cost.forward + cost.backward, set.states += cost.states, set.kept += cost.kept;
    } else {
      for (const int input : graph[i].inputs) crosses[at(input)] = crosses[at(input)] || members[at(input)];
    }
  }
  for (std::size_t i = 0; i < graph.size(); ++i)
    if (crosses[i]) set.crossing += graph[i].cost.output;
  set.members = std::move(members);
  return set;
}

bool contains(const Members& large, const Members& small) {
  for (std::size_t i = 0; i < small.size(); ++i)
    if (small[i] && !large[i]) return false;
  return true;
}

}  // namespace

// slowest[r][set]: the least cost of the set's layers on ranks 0 .. r.
DagPartition partition_dag(const std::vector<DagLayer>& graph, const std::vector<StagePlace>& places, int microbatches,
                           double bandwidth, std::size_t most_sets) {
  const std::vector<int> order = topological_order(graph);
  std::vector<Members> members = all_closed(graph, order, most_sets);
  DagPartition partition{.exact = !members.empty()};
  if (members.empty()) members = prefixes(order);
  std::vector<Closed> sets;
  for (Members& each : members) sets.push_back(measured(graph, std::move(each)));
  std::stable_sort(sets.begin(), sets.end(), [](const Closed& a, const Closed& b) { return a.size < b.size; });
  const std::size_t count = sets.size(), stages = places.size();
  std::vector<std::vector<double>> slowest(stages, std::vector<double>(count, kNever));
  std::vector<std::vector<std::size_t>> before(stages, std::vector<std::size_t>(count, count));
  for (std::size_t r = 0; r < stages; ++r) {
    const double flight = std::min(microbatches, static_cast<int>(stages - r));
    for (std::size_t to = 1; to < count; ++to)
      for (std::size_t from = 0; from < to; ++from) {
        if (r == 0 ? from != 0 : from == 0 || slowest[r - 1][from] >= slowest[r][to]) continue;
        const double time = places[r].slowdown * (sets[to].time - sets[from].time);
        const double bytes = sets[to].states - sets[from].states + flight * (sets[to].kept - sets[from].kept);
        const double link = 2 * sets[from].crossing / bandwidth;
        const double cost = std::max({time, link, r == 0 ? 0.0 : slowest[r - 1][from]});
        if (cost >= slowest[r][to] || bytes > places[r].capacity * (1 + 1e-12)) continue;
        if (sets[from].size == sets[to].size || !contains(sets[to].members, sets[from].members)) continue;
        slowest[r][to] = cost, before[r][to] = from;
      }
  }
  if (stages == 0 || count < 2 || slowest[stages - 1][count - 1] == kNever) return partition;
  partition.cost = slowest[stages - 1][count - 1];
  for (std::size_t r = stages, to = count - 1; r-- > 0;) {
    const std::size_t from = before[r][to];
    std::vector<int> stage;
    for (std::size_t i = 0; i < graph.size(); ++i)
      if (sets[to].members[i] && !sets[from].members[i]) stage.push_back(static_cast<int>(i));
    partition.stages.push_back(std::move(stage));
    to = from;
  }
  std::reverse(partition.stages.begin(), partition.stages.end());
  return partition;
}

}  // namespace foreshard
