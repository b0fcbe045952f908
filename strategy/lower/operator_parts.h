// Cuts one instruction into parts along the samples of a micro-batch (cut_segment.h cuts whole segments). Internal to strategy/.
//
// The values of a micro-batch of b samples then lie in memory as `groups` micro-batches of b / groups samples, one after another. An
// operator that treats each row by itself (matrix product, norm, activation) can be cut at any row. An operator that depends on a row's
// position in its sample (attention, embedding, loss, gather of a sequence) can only be cut between groups.
#pragma once

#include <optional>
#include <vector>

#include "strategy/lower/chunk_values.h"

namespace foreshard {

// Where an instruction may be cut: nowhere, between any two rows, or between groups.
enum class Divides : std::uint8_t { Never, Rows, Groups };

class OperatorParts {
 public:
  OperatorParts(const ChunkFrame& frame, const std::vector<ChunkLayer>& layers) : frame_(frame), layers_(layers) {}

  bool any() const { return groups() > 1; }  // whether anything is cut
  int groups() const { return frame_.lowering.tables.communication.sample_groups(); }
  Divides divides(const Instruction& whole) const;
  // Into how many parts the operation that the operator belongs to is cut.
  int parts_of(const ChunkLayer& layer, const Operator& op) const;
  // If the instruction is a collective of a layer, or decodes a sum that was sent as codes, it ends an operation: the number of parts of
  // that operation. Else nothing.
  std::optional<int> ends_operation(const Instruction& whole) const;
  // Part `index` of `pieces` parts, with its bytes, shapes and work. The first part has the acquires and waits of `whole`, the last part
  // its releases and records; no part has `after` edges.
  Instruction piece(const Instruction& whole, int pieces, int index) const;
  // Whether it sends codes of a sum. A compute on what arrives continues the sum.
  bool sends_codes(const Instruction& whole) const;
  // Whether the buffer holds values of each sample (so its bytes are cut), not parameters or a single number.
  bool of_samples(BufferId buffer) const;

 private:
  struct Found {
    const ChunkLayer* layer = nullptr;
    std::size_t op = 0;
  };
  std::optional<Found> find(const Instruction& whole) const { return find(whole, whole.name); }
  std::optional<Found> find(const Instruction& whole, const std::string& name) const;
  std::optional<Found> find_coded(const Instruction& whole) const;  // the sum that an instruction of a coded sum belongs to
  void cut_use(Use& use, int pieces, int index) const;
  void cut_compute(Instruction& part, int pieces, int index) const;

  const ChunkFrame& frame_;
  const std::vector<ChunkLayer>& layers_;
};

}  // namespace foreshard
