// Training in 8 and 4 bits: gathers of sequence parallelism, casts of operands, parameters. "Codes" are numbers in such a format. Where every
// reader of a gathered tensor is a product of codes, Transformer Engine and torchao quantise each rank's part before they gather it: inputs of
// column-parallel products (in the backward once more for the gradients of the weights), and gradients of the results of row-parallel
// ones (docs/cost-model.md, `fp8_gathers`). Not so rows and gradients of experts, which the dispatcher gathers.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/plan/plan.h"
#include "strategy/cost/framework_preset.h"
#include "strategy/kernels/machine_constants.h"

namespace foreshard {

// [instruction of the segment]: the gather of codes that it is, or whose result it reads, as an index into the segment; -1: neither.
std::vector<int> narrow_gathers(const Plan& plan, const Role& role, const Segment& segment);

// [instruction of the segment]: a norm of a forward or a recomputation whose result only products of codes read, directly or behind a
// gather of `gathers` (as above), or a product that reads such a result. Transformer Engine's norms then write codes, in place of a cast
// (docs/cost-model.md, `fp8_norms`).
std::vector<bool> coded_norms(const Segment& segment, const std::vector<int>& gathers);

// How an operand of a product in codes is cast.
struct OperandCast {
  int members = 1;  // of a gather before which each rank casts its own part alone, and behind which a transposed copy is made
  bool coded = false;  // a norm wrote it in codes; of a norm: it writes codes
};
// Bytes, at the speed of a stream, that casting the operand of a product moves beyond those of op_cost.h, which reads (2) and writes (1)
// each element and transposes the codes (2); or that a norm writes beyond a result in 16 bits. May be negative. 0 for other computes and,
// without scales of rows, for gradients of weights, whose operands are there.
Bytes further_casts(const Compute& what, const EightBits& rules, const MachineConstants& machine, const OperandCast& cast);
// Speed of products in 8 bits, over that with one scale per tensor: below 1 with scales of blocks.
double product_speed(const EightBits& rules, const MachineConstants& machine);

// Parameters of a role that 8-bit products read. A framework whose parameters are kept in 8 bits gathers these as they are
// stored, the others (embeddings, norms, the head) in 16 bits (docs/cost-model.md, `fp8_parameters`).
class EightBitWeights {
 public:
  EightBitWeights(const Plan& plan, const Role& role);
  // Share of the bytes of `gathered`, a part of a buffer of the role, that are such parameters.
  double share(const Role& role, const Use& gathered) const;
  // Factor of the bytes that the instruction sends: below 1 for gathers of 16-bit parameters.
  double factor(const Role& role, const Instruction& run) const;

 private:
  using Range = std::pair<std::int64_t, std::int64_t>;  // bytes: from, to
  std::map<std::int32_t, std::set<Range>> read_ = {};   // [buffer]: disjoint
};

// What is narrow about the instruction that is costed.
struct NarrowState {
  const Collective* gather = nullptr;  // the gather of codes that it is, or reads from
  bool coded = false;                  // a norm that writes codes, or a product that reads these
  double share = 1;                    // bytes of that gather, over those in 16 bits: of the codes of the segment's products
  std::optional<EightBitWeights> weights = {};  // of a role

  // Before the instructions of a segment are costed.
  void begin(const Plan& plan, const Role& role, const Segment& segment, const EightBits& rules);
  // Before the instruction of this index is costed; `segment` as in begin.
  void next(const Segment& segment, std::size_t instruction);

 private:
  std::vector<int> gathers_ = {};  // [instruction], as narrow_gathers
  std::vector<bool> norms_ = {};   // [instruction], as coded_norms
};

// coded_size of the code of the segment's products, over 2 bytes; 1: there are no such products.
double code_share(const Segment& segment);

}  // namespace foreshard
