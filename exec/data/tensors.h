// The tensors of a model and the shards of them that ranks hold: fills in initial weights, gathers whole tensors from the ranks, and
// scatters them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/plan/ranks.h"
#include "exec/arithmetic/host_init.h"
#include "exec/rank/rank_memory.h"

namespace foreshard {

// Fills a rank's shards of all values and master copies with initial weights (exec/arithmetic/host_init.h). Gradients and optimizer states
// stay zero, as allocated.
void fill_initial_state(const Plan& plan, const Ranks& ranks, RankId rank, const RankMemory& memory, std::uint64_t seed);

// A whole tensor of the model, gathered from the ranks; row-major.
struct WholeTensor {
  std::vector<double> elements = {};
  std::vector<char> held = {};    // [element]: 1 if a rank holds it
  double largest_difference = 0;  // largest difference between two ranks that hold the same element
};

// Knows which rank holds which elements of every tensor, in which buffer.
class TensorPieces {
 public:
  // Throws Error for a tensor that does not divide into its shards.
  TensorPieces(const Plan& plan, const Ranks& ranks);

  // The widest number format in which a rank keeps `part` of the tensor (value, gradient, master copy or an optimizer state) between runs;
  // nothing if no rank keeps it.
  std::optional<DType> dtype(TensorId tensor, TensorPart part) const;
  // Gathers `part` of the tensor. `memories`: [rank]; a rank without one (null) is left out. Some buffers are only partly up to date at the
  // end of a run (ZeRO 1-2: gradients outside the rank's slice, values before their all-gather); of them, only the slice that is up to date
  // is used.
  WholeTensor gather(const std::vector<const RankMemory*>& memories, TensorId tensor, TensorPart part) const;
  // The same, but each element is held by one process only: that of the first rank that has it. So the shares of all processes together
  // make the whole tensor, without duplicates.
  WholeTensor share(const std::vector<const RankMemory*>& memories, TensorId tensor, TensorPart part) const;
  // Whether a rank of `memories` keeps elements of `part` of the tensor between runs.
  bool kept(const std::vector<const RankMemory*>& memories, TensorId tensor, TensorPart part) const;
  // Writes `elements` (of the whole tensor, row-major) to every buffer of `memories` that keeps `part` of it, rounded to the number format
  // there.
  void scatter(const std::vector<const RankMemory*>& memories, TensorId tensor, TensorPart part,
               const std::vector<double>& elements) const;

 private:
  struct Piece {  // elements [first, first + count) of a rank's shard, at element `at` of the buffer
    RankId rank = {};
    BufferId buffer = {};
    DType dtype = {};
    TensorPart part = {};
    ShardCut cut = {};
    std::int64_t first = 0, count = 0, at = 0;
    std::int64_t fresh_from = 0, fresh_to = 0;  // elements of the buffer that are up to date at the end of a run

    std::int64_t begin() const;  // [begin, end): the elements of the piece that are up to date, as positions in the buffer
    std::int64_t end() const;
    std::vector<double> values(const RankMemory& memory) const;
  };
  void add(const Ranks& ranks, RankId rank, BufferId id, GroupId fresh);
  WholeTensor empty(TensorId tensor) const;

  const Plan& plan_;
  std::vector<std::vector<Piece>> pieces_;  // [tensor]
};

// `part` of every tensor, in the order of Plan::tensors.
std::vector<WholeTensor> gather_tensors(const Plan& plan, const Ranks& ranks, const std::vector<const RankMemory*>& memories,
                                        TensorPart part);

}  // namespace foreshard
