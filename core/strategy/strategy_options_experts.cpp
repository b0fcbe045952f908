// The part of the table in strategy_options.cpp that is about mixtures of experts.
#include "core/strategy/strategy_option_kinds.h"

namespace foreshard::option_kinds {

static std::vector<Dispatcher> dispatchers() {
  std::vector<Dispatcher> all;
  for (const DispatcherRow& row : kDispatchers) all.push_back(row.dispatcher);
  return all;
}

std::vector<StrategyOption> expert_options() {
  constexpr std::int64_t kMostRanks = 1'000'000;
  const std::string group = "parallelism";
  return {
      integer(part(&Strategy::experts, &ExpertChoice::ep), 1, kMostRanks,
              {.path = "ep",
               .flag = "--ep",
               .unit = "GPUs",
               .help = "expert-parallel GPUs that share the experts of a layer, out of tp x cp x dp",
               .constraint = "divides the number of experts; ep x etp divides tp x cp x dp",
               .group = group}),
      integer(part(&Strategy::experts, &ExpertChoice::etp), 1, kMostRanks,
              {.path = "etp",
               .flag = "--etp",
               .unit = "GPUs",
               .help = "expert-tensor-parallel GPUs that share each expert",
               .constraint = "divides the width of an expert",
               .group = group}),
      expert_load({.path = "expert_load",
                   .flag = "--expert-load",
                   .help =
                       "how many rows the most loaded rank of an expert group has: balanced (as every other), equal (equal "
                       "experts, by chance), gini:0.15, zipf:0.5, 1.3 (times the mean), worst (room for every token), file:F "
                       "(measured loads of each layer)",
                   .constraint = "tokens for which a rank has no room are dropped when the plan runs",
                   .group = group}),
      number(part(&Strategy::experts, &ExpertChoice::capacity), 0, 1e6, false,
             {.path = "expert_capacity",
              .flag = "--expert-capacity",
              .help =
                  "an expert takes so many times its balanced share of a rank's tokens, the rest are dropped, and its rows are "
                  "padded to as many; 0: it takes all that choose it",
              .group = group}),
      flag([](Strategy& s) -> bool& { return s.experts.unpadded; },
           {.path = "expert_unpadded",
            .flag = "--expert-unpadded",
            .help = "only the rows that an expert takes are sent, instead of rows padded with zeros to its capacity",
            .constraint = "with --expert-capacity",
            .group = group}),
      choice(
          part(&Strategy::experts, &ExpertChoice::dispatcher), dispatchers(),
          {.path = "expert_dispatcher",
           .flag = "--expert-dispatcher",
           .help =
               "how tokens reach their experts: all-to-all of rows; all-gather of tokens; hierarchical: all-to-all inside the "
               "nodes, then between them; once-per-rank and once-per-node: a token is sent once to each rank or node that has "
               "experts of it",
           .constraint = "ep above 1; once-per-node: expert groups of more than one node",
           .group = group}),
      integer(part(&Strategy::experts, &ExpertChoice::node_ranks), 0, kMostRanks,
              {.path = "expert_node_ranks",
               .flag = "--expert-node-ranks",
               .unit = "GPUs",
               .help = "GPUs of an expert group that count as a node; 0: those that are on one",
               .constraint = "with --expert-dispatcher once-per-node; divides ep",
               .group = group}),
  };
}

}  // namespace foreshard::option_kinds
