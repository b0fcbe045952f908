// Cuts a layer list into a chain of layers, with the dominator tree of its DAG.
#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/dominator_tree.hpp>

#include "core/graph/op_graph_layer_list.h"

namespace foreshard {

std::vector<std::vector<int>> chain_layers(const LayerList& list) {
  using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS>;
  const std::vector<std::vector<int>> inputs = input_layers(list);
  const std::size_t entries = inputs.size();
  if (entries == 0) return {};
  Graph graph(entries + 1);  // vertex 0: the sample; vertex i + 1: entry i
  for (std::size_t i = 0; i < entries; ++i) {
    for (const int from : inputs[i]) boost::add_edge(static_cast<std::size_t>(from + 1), i + 1, graph);
  }
  const auto none = boost::graph_traits<Graph>::null_vertex();
  std::vector<Graph::vertex_descriptor> dominator(entries + 1, none);
  boost::lengauer_tarjan_dominator_tree(graph, 0, dominator.data());

  std::vector<std::size_t> frontiers;  // entries that every path to the end passes, the end first
  for (auto v = entries; v != 0 && v != none; v = dominator[v]) frontiers.push_back(v - 1);
  std::reverse(frontiers.begin(), frontiers.end());
  std::vector<bool> cut(entries, false);
  for (std::size_t f = 0; f + 1 < frontiers.size(); ++f) {
    const LayerOp next = list.layers[frontiers[f] + 1].op;
    cut[frontiers[f]] = next == LayerOp::Conv2d || next == LayerOp::Linear;
  }
  // The layer of an entry is one past that of the nearest cut that dominates it.
  std::vector<int> layer(entries + 1, 0);
  std::vector<std::vector<int>> chain(1);
  for (std::size_t v = 1; v <= entries; ++v) {
    const auto above = dominator[v];
    layer[v] = above == 0 || above == none ? 0 : layer[above] + (cut[above - 1] ? 1 : 0);
    if (static_cast<std::size_t>(layer[v]) >= chain.size()) chain.resize(static_cast<std::size_t>(layer[v]) + 1);
    chain[static_cast<std::size_t>(layer[v])].push_back(static_cast<int>(v) - 1);
  }
  return chain;
}

}  // namespace foreshard
