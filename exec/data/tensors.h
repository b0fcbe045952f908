// Logical tensors and the parts of them that ranks hold: initial weights, and whole tensors put together again.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/plan/ranks.h"
#include "exec/arithmetic/host_init.h"
#include "exec/rank/rank_memory.h"

namespace foreshard {

// Fills values and master copies; gradients and optimizer states are zero as allocated.
void fill_initial_state(const Plan& plan, const Ranks& ranks, RankId rank, const RankMemory& memory, std::uint64_t seed);

// A tensor of the model, put together from all ranks; row-major.
struct WholeTensor {
  std::vector<double> elements = {};
  std::vector<char> held = {};    // [element]: some rank holds it
  double largest_difference = 0;  // between two ranks that hold the same element
};

// Where the parts of every tensor lie, over all ranks; made once.
class TensorPieces {
 public:
  // Throws Error for a cut that does not divide.
  TensorPieces(const Plan& plan, const Ranks& ranks);

  // The widest format in which some rank keeps `part` from run to run; none: no rank does.
  std::optional<DType> dtype(TensorId tensor, TensorPart part) const;
  // `memories` are those of the ranks, by number; ranks without one (null) are left out. Where a buffer holds more than is up
  // to date at the end of a run (ZeRO 1-2: gradients beside the own slice, values before their all-gather), only the slice
  // that is counts.
  WholeTensor gather(const std::vector<const RankMemory*>& memories, TensorId tensor, TensorPart part) const;
  // The same, but of what several ranks hold only the first one's, if it is here: the shares of all processes together are the
  // whole, without doubles.
  WholeTensor share(const std::vector<const RankMemory*>& memories, TensorId tensor, TensorPart part) const;
  // Whether one of these ranks keeps some of it from run to run.
  bool kept(const std::vector<const RankMemory*>& memories, TensorId tensor, TensorPart part) const;
  // Writes `elements` of the tensor wherever a rank keeps `part` of it, rounded to the format there.
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

    std::int64_t begin() const;  // elements of the buffer that count
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
