// The dispatchers: the ways in which tokens reach the ranks that hold their experts, and results come back (docs/experts.md). The graph is built
// from the columns of this table; no code asks for a dispatcher by name.
#pragma once

#include <array>
#include <cstdint>

namespace foreshard {

enum class Dispatcher : std::uint8_t { AllToAll, AllGather, Hierarchical, OncePerRank, OncePerNode };

struct DispatcherRow {
  Dispatcher dispatcher = Dispatcher::AllToAll;
  const char* name = "";
  // Every rank gathers the tokens of its expert group, computes the rows of its own experts, and a reduce-scatter adds the results.
  // false: an all-to-all sends rows.
  bool gathers = false;
  // A token is sent once to each part of the group that holds experts it chose, with the list of those experts, and results are added in
  // the part before they come back. false: it is sent once for each chosen expert.
  bool once = false;
  bool by_node = false;    // with `once`: a part is a node, inside which an all-to-all sends rows; false: a part is one rank
  bool two_level = false;  // all-to-alls run inside the nodes first, then between them (Algorithm::TwoLevel)
};

inline constexpr std::array<DispatcherRow, 5> kDispatchers = {
    {{.dispatcher = Dispatcher::AllToAll, .name = "all-to-all"},
     {.dispatcher = Dispatcher::AllGather, .name = "all-gather", .gathers = true},
     {.dispatcher = Dispatcher::Hierarchical, .name = "hierarchical", .two_level = true},
     {.dispatcher = Dispatcher::OncePerRank, .name = "once-per-rank", .once = true},
     {.dispatcher = Dispatcher::OncePerNode, .name = "once-per-node", .once = true, .by_node = true}}};

constexpr const DispatcherRow& row_of(Dispatcher dispatcher) { return kDispatchers[static_cast<std::size_t>(dispatcher)]; }
inline const char* name_of(Dispatcher dispatcher) { return row_of(dispatcher).name; }

}  // namespace foreshard
