// The parts of an instruction along the samples of a micro-batch, where operators are cut. Internal to strategy/.
//
// The values of a micro-batch of b samples then lie in memory as `groups` micro-batches of b / groups samples, one after another. What
// works on rows takes any range of them; what knows which row is which position of which sample (attention, embeddings, losses, gathers
// of a sequence) runs once for each group.
#pragma once

#include <optional>
#include <vector>

#include "strategy/lower/chunk_values.h"

namespace foreshard {

enum class Divides : std::uint8_t { Never, Rows, Groups };

class OperatorParts {
 public:
  OperatorParts(const ChunkFrame& frame, const std::vector<ChunkLayer>& layers) : frame_(frame), layers_(layers) {}

  bool any() const { return groups() > 1; }
  int groups() const { return frame_.lowering.tables.communication.sample_groups(); }
  Divides divides(const Instruction& whole) const;
  // Of a communication between ranks of a layer, which ends an operation: the parts of that operation.
  std::optional<int> ends_operation(const Instruction& whole) const;
  // One of `pieces`: its bytes, shapes and work; the first one acquires and waits, the last one releases and records. No `after`.
  Instruction piece(const Instruction& whole, int pieces, int index) const;
  // Whether the buffer holds something for each sample.
  bool of_samples(BufferId buffer) const;

 private:
  struct Found {
    const ChunkLayer* layer = nullptr;
    std::size_t op = 0;
  };
  std::optional<Found> find(const Instruction& whole) const;
  void cut_use(Use& use, int pieces, int index) const;
  void cut_compute(Instruction& part, int pieces, int index) const;

  const ChunkFrame& frame_;
  const std::vector<ChunkLayer>& layers_;
};

}  // namespace foreshard
