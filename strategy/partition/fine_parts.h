// Into how many parts along the samples each of a chain of operations is cut, so that one part's communication hides behind the next
// part's compute (fine-grained pipeline inside a transformer layer, AccTFM, IEEE TPDS 2022; the algorithm is ours).
//
//   compute        c1.1 c1.2      c2.1 c2.2      c3.1 ...        one stream, parts in order
//   communication       m1.1 m1.2      m2.1 m2.2      ...        one stream, parts in order
//
// Part k of an operation of n parts begins when the stream is free and parts 1 .. ceil(k n'/n) of the communication of the operation
// before it, of n' parts, are done. Operations: the blocks of layers, each ending in a sum over tensor-parallel ranks.
#pragma once

#include <cstdint>
#include <vector>

namespace foreshard {

struct FineOperation {  // seconds; a part of n takes overhead + compute / n, then latency + communication / n
  double compute = 0, communication = 0;
  double overhead = 0, latency = 0;
};

// When the last communication is done. `parts`: one number for each operation.
double fine_seconds(const std::vector<FineOperation>& operations, const std::vector<int>& parts);

enum class FineSearch : std::uint8_t {
  // Of every operation and number of parts one state, O(operations). Three times, the state whose communication, compute or sum of both
  // ends first, and the best of the three: keeping what ends first alone came out up to 10 % above the optimum.
  SingleState,
  Pareto  // every state that no other beats in all components: exact
};
struct FineParts {
  std::vector<int> parts = {};
  double seconds = 0;
  std::int64_t steps = 0;        // parts that were placed in time while searching
  std::int64_t most_states = 0;  // of one operation and number of parts
};
// Every operation gets one of the `allowed` numbers (at least one of them, each at least 1).
FineParts plan_fine_parts(const std::vector<FineOperation>& operations, const std::vector<int>& allowed,
                          FineSearch search = FineSearch::SingleState);

}  // namespace foreshard
