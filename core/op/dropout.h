// Dropout and sums of activations. Shapes: dimensions of x.
#pragma once

#include "core/op/op.h"
#include "core/op/sequence_part.h"

namespace foreshard::ops {

// x -> dropout(x), mask (1 byte per element). With a residual: x, skip -> skip + dropout(x + bias), mask; the bias [h] is optional. Layer,
// site, sample and element are the random key of a mask element.
struct Dropout : OperatorTraits {
  double p = 0;                    // probability that an element is dropped
  std::int64_t site = 0;           // number of the dropout within the layer
  bool sequence_parallel = false;  // the rows are the part of the sequence that this tensor-parallel rank holds
  SequenceSplit split = {};        // how context-parallel ranks share the positions; of attention maps: as in Attention

  static constexpr const char* kWord = "dropout";
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("p", self.p), visit("site", self.site), visit("sequence_parallel", self.sequence_parallel);
    visit("cp", self.split.ranks), visit("chunks", self.split.chunks);
  }
  static Saved saved() { return {.outputs = kSecond}; }
  static Works works(const Sizes& sizes) {
    const Bytes x = sizes.inputs[0], mask = sizes.outputs[1];
    const std::int64_t values = sizes.inputs.size() > 1 ? 3 : 2;
    return {.forward = {{}, values * x + mask}, .input_grad = {{}, 2 * x + mask}};
  }
  bool operator==(const Dropout&) const = default;
};

// The sum of its inputs, and of a bias [h] where there is one: x, skip -> x + bias + skip.
struct Add : OperatorTraits {
  static constexpr const char* kWord = "add";
  template <class Self, class Visit>
  static void fields(Self&, Visit&&) {}
  static Saved saved() { return {}; }
  static Works works(const Sizes& sizes) {  // the gradient of the bias: column sums
    return {.forward = {{}, sizes.inputs[0] * static_cast<std::int64_t>(sizes.inputs.size() + 1)},
            .weight_grad = {{}, sizes.weights ? sizes.inputs[0] : Bytes{}}};
  }
  static PartialSums partial_sums(Phase phase) {
    if (!is_forward(phase)) return {};
    return {.pass = true, .most_operands = 2, .alike = true};
  }
  bool operator==(const Add&) const = default;
};

}  // namespace foreshard::ops
