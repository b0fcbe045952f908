// Decides into how many parts along the samples each operation of a chain is cut, so that the communication of one part overlaps the
// compute of the next part (the fine-grained pipeline inside a transformer layer of AccTFM, Zeng et al., IEEE TPDS 2022; the algorithm is
// ours). See docs/fine-grained.md.
//
//   compute        c1.1 c1.2      c2.1 c2.2      c3.1 ...        one stream, parts in order
//   communication       m1.1 m1.2      m2.1 m2.2      ...        one stream, parts in order
//
// c2.1 is the compute of part 1 of operation 2, m2.1 its communication. An operation is a block of a layer (attention or MLP) that ends
// with a sum over tensor-parallel ranks. If an operation has n parts and the one before has n', the compute of part k begins when the
// compute stream is free and the communication of parts 1 .. ceil(k n'/n) of the operation before is done.
#pragma once

#include <cstdint>
#include <vector>

namespace foreshard {

// Seconds of an operation. If it is cut into n parts, each part computes for overhead + compute / n, then communicates for latency +
// communication / n.
struct FineOperation {
  double compute = 0, communication = 0;
  double overhead = 0, latency = 0;
};

// Seconds from the first compute to the end of the last communication. `parts`: [operation].
double fine_seconds(const std::vector<FineOperation>& operations, const std::vector<int>& parts);

enum class FineSearch : std::uint8_t {
  // A state is a choice of parts for the operations so far, with the times at which their parts end. Keeps one state for each number of
  // parts of the last operation; O(operations). Runs three times, keeping the state whose communication, compute, or sum of both ends
  // first, and returns the best result. (With the first run alone, results were up to 10 % above the optimum.)
  SingleState,
  Pareto  // keeps every state that no other state beats in all its times: exact
};
struct FineParts {
  std::vector<int> parts = {};   // [operation]
  double seconds = 0;            // fine_seconds of these parts
  std::int64_t steps = 0;        // work of the search: number of parts whose times were computed
  std::int64_t most_states = 0;  // the most states that were kept for one operation and number of parts
};
// The numbers of parts with the least fine_seconds that the search finds. Each is one of `allowed`, which must not be empty and has numbers
// of at least 1 (asserted).
FineParts plan_fine_parts(const std::vector<FineOperation>& operations, const std::vector<int>& allowed,
                          FineSearch search = FineSearch::SingleState);

}  // namespace foreshard
