// Which values of a graph to keep, and which to make again, when memory is short: the schedules of Checkmate (Jain et al. 2020,
// "Checkmate: breaking the memory wall with optimal tensor rematerialization", section 4). Node t is computed for the first time
// in stage t; S[t] is what is kept from stage t-1 to stage t.
#pragma once

#include <vector>

namespace foreshard {

struct RecomputeNode {
  double seconds = 0;
  int bytes = 0;                 // of its value
  std::vector<int> inputs = {};  // earlier nodes
  bool once = false;             // never computed again: a backward, which adds to the gradients of weights
};

struct GraphSchedule {
  std::vector<std::vector<bool>> keep = {};     // S[stage][node]; empty: not possible
  std::vector<std::vector<bool>> compute = {};  // R[stage][node]
  double seconds = 0;
  int peak = 0;  // bytes; the inputs of a node live until it is done, then those that are not needed later are freed
};

// The cheapest computes for what is kept: each stage computes its node and what it needs again.
GraphSchedule schedule_of(const std::vector<RecomputeNode>& graph, const std::vector<std::vector<bool>>& keep);

// From keeping everything, drops again and again a stretch between two uses until the peak is inside the budget. Every stretch
// that could go is played through (schedule_of): the one with the best ratio of peak bytes freed to seconds that the play takes
// longer goes; bytes times stages break ties. Then keep_longer.
GraphSchedule recompute_greedy(const std::vector<RecomputeNode>& graph, int budget);
// What is made in one stage and again in a later one is kept between the two where that stays inside the budget.
GraphSchedule keep_longer(const std::vector<RecomputeNode>& graph, GraphSchedule schedule, int budget);
// All schedules on that way, from keeping everything to the first inside the budget, or the last that it finds.
std::vector<GraphSchedule> recompute_greedy_path(const std::vector<RecomputeNode>& graph, int budget);

}  // namespace foreshard
