// Decides which values of a graph of operators to keep and which to recompute when memory is short. Schedules as in Checkmate (Jain et al.
// 2020, "Checkmate: breaking the memory wall with optimal tensor rematerialization", section 4): as many stages as nodes; node t is
// computed for the first time in stage t; S[t] are the values kept from stage t-1 to stage t, R[t] the nodes that stage t computes. The
// search for a schedule is greedy (ours), not the integer program of the paper.
#pragma once

#include <vector>

namespace foreshard {

struct RecomputeNode {
  double seconds = 0;
  int bytes = 0;                 // size of its value, in any unit
  std::vector<int> inputs = {};  // earlier nodes whose values it reads
  bool once = false;             // must not be recomputed: a backward, which adds to the gradients of weights
};

struct GraphSchedule {
  std::vector<std::vector<bool>> keep = {};     // S[stage][node]; empty: not possible
  std::vector<std::vector<bool>> compute = {};  // R[stage][node]
  double seconds = 0;
  int peak = 0;  // the most bytes alive at once, where a value that is not needed later is freed right after its last reader
};

// The schedule for given kept values (S = `keep`) that computes the fewest nodes: each stage computes its node, the values that S keeps
// from then on, and whatever these read that is not kept.
GraphSchedule schedule_of(const std::vector<RecomputeNode>& graph, const std::vector<std::vector<bool>>& keep);

// Begins with keeping every value until its last reader, and drops, one at a time, a value between two of its uses, until the peak is at
// most `budget`. Each time it tries every such drop (schedule_of) and takes the one with the best ratio of reduction of the peak to
// additional seconds; bytes times stages break ties. Then calls keep_longer. No schedule (`keep` empty) if the budget is not reached.
GraphSchedule recompute_greedy(const std::vector<RecomputeNode>& graph, int budget);
// Keeps a value that is computed in one stage and recomputed in a later one between the two, where the peak stays within the budget.
GraphSchedule keep_longer(const std::vector<RecomputeNode>& graph, GraphSchedule schedule, int budget);
// All schedules that recompute_greedy passes through before keep_longer: from keeping everything to the first one within the budget, or to
// the last one from which no drop lowers the peak further.
std::vector<GraphSchedule> recompute_greedy_path(const std::vector<RecomputeNode>& graph, int budget);

}  // namespace foreshard
