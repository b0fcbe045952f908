// Gathers of sequence parallelism in 8 or 4 bits. Where every reader of a gathered tensor is a product of codes, Transformer
// Engine and torchao quantise each rank's part before they gather it: inputs of column-parallel products (in the backward once
// more for the gradients of the weights), and gradients of the results of row-parallel ones (docs/cost-model.md, `fp8_gathers`).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/plan/plan.h"

namespace foreshard {

// [instruction of the segment]: the gather of codes that it is, or whose result it reads, as an index into the segment; -1: neither.
std::vector<int> narrow_gathers(const Plan& plan, const Role& role, const Segment& segment);

// Bytes that a product of codes moves beyond the casts of delayed scaling (strategy/kernels/op_cost.h): a pass that reads the
// operand (2) for its largest magnitude (`maxima`), less what quantising before a gather among `members` ranks spares, each of
// which measures, reads (2) and writes (1) its own part alone. May be negative. 0 for other computes and for gradients of
// weights, whose operands are there.
Bytes further_casts(const Compute& what, bool maxima, int members);

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
  double share = 1;                    // bytes of that gather, over those in 16 bits: of the codes of the segment's products
  std::optional<EightBitWeights> weights = {};  // of a role
};

// coded_size of the code of the segment's products, over 2 bytes; 1: there are no such products.
double code_share(const Segment& segment);

}  // namespace foreshard
