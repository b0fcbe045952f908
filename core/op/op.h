// What every operator declares about itself. Each operator is a struct with its settings and its laws: its properties, such as its cost or
// how partial sums pass (core/op/matmul.h, ...). `Operation` (core/op/operation.h) is a variant of them. Code visits the variant; no code
// parses text.
//
// The struct of an operator has
//   kWord                 its name in files and messages
//   fields(self, visit)   calls visit(name, member) for each setting, in the order in which files list them
//   saved()               the operands that its backward reads             } only operators that layers consist of,
//   works(sizes)          FLOPs and memory traffic of each phase           } not those of the update or of codecs
// and overrides members of `OperatorTraits` whose default is wrong for it. docs/operators.md defines the shapes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/units.h"

namespace foreshard {

// Backward: one kernel computes InputGrad and WeightGrad. Recompute: the forward again. Other: outside layers and update (codecs).
enum class Phase : std::uint8_t { Forward, InputGrad, WeightGrad, Backward, Recompute, Update, Other };

struct Shape {  // of an operand or of a kernel, as the operator defines it
  std::vector<std::int64_t> dims = {};
  DType dtype = DType::BF16;
  bool operator==(const Shape&) const = default;
};

struct OpWork {  // one phase of an operator
  Flops flops = {};
  Bytes traffic = {};  // bytes read and written in device memory, each operand once
  bool operator==(const OpWork&) const = default;
};

namespace ops {

// What works() reads: the sizes of an operator's operands on one rank.
struct Sizes {
  std::vector<Shape> shapes = {};
  std::vector<Bytes> inputs = {}, outputs = {};
  DType input = DType::BF16;     // of the first input; without inputs, of the first output
  DType param = DType::BF16;     // of the weights
  bool inputs_need_grad = true;  // false: no input has a gradient
  bool weights = false;          // the operator has weights

  // Dimension `at` of shapes[shape], as a double and as an integer.
  double dim(std::size_t shape, std::size_t at) const { return static_cast<double>(shapes[shape].dims[at]); }
  std::int64_t count(std::size_t shape, std::size_t at) const { return shapes[shape].dims[at]; }
};

// Work of the forward and of the two halves of the backward. No `input_grad`: no kernel runs, because the gradient of every input is that
// of the output, or there is no gradient. No `weight_grad` although there are weights: one kernel computes both gradients.
struct Works {
  OpWork forward = {}, input_grad = {}, weight_grad = {};
};

// The operands that the backward reads: bit i for input or output i.
inline constexpr unsigned kNone = 0, kFirst = 1, kSecond = 2, kThird = 4, kFourth = 8, kAll = ~0U;
struct Saved {
  unsigned inputs = kNone, outputs = kNone;
};

// How partial sums over tensor-parallel ranks arise in an operator and pass through it.
struct PartialSums {
  // The operator is linear: from a partial sum it makes a partial sum of the result. false: it may not read partial sums.
  bool pass = false;
  std::size_t most_operands = 0;  // with `pass`: with more operands one is a bias, which each rank would add; 0: any number
  bool alike = false;             // with `pass`: only if all inputs are partial sums over the same ranks
  unsigned passed = kAll;         // with `pass`: these outputs (bits as in Saved) are partial sums; the others are whole
  // The result is a sum over this dimension of the weight; -1: no. If the weight is cut along it, the outputs in `summed` (bits as in
  // Saved) are partial sums.
  int summed_dim = -1;
  unsigned summed = kAll;
  int summed_columns = -1;   // the output of this index is a sum over the columns of the input; -1: none
  bool new_columns = false;  // the columns of the result are rows of the weight, not columns of the input
  // All columns use the same weights: if a rank has some of the columns, its weight gradient is a partial sum.
  bool shared_weights = false;
  bool over_experts = false;  // the outputs in `passed` are partial sums over the ranks of the expert group
};

// The defaults of an operator's laws.
struct OperatorTraits {
  static constexpr int kFirstSettings =
      64;  // program_hash leaves out later settings at their default, so that a new setting does not change old hashes
  static constexpr bool depends_on_microbatch = false;  // reads tokens, targets or dropout keys of the micro-batch
  static constexpr bool matrix_product = false;         // a matrix product of shapes {batch, m, n, k}
  static constexpr bool loss = false;                   // the backward begins at it
  static constexpr bool steps = false;                  // an optimizer step: writes parameters
  static constexpr bool of_update = false;              // belongs to the update at the end of a run
  static constexpr bool reads_sums = false;             // may read only gradients that have been reduced
  static constexpr bool encodes = false;                // its first output is its first input, compressed
  static constexpr bool decodes = false;                // decompresses such an output
  PartialSums partial_sums(Phase) const { return {}; }
  // Number of input gradients, which Phase::Backward writes before those of the weights.
  int gradients() const { return 1; }
  bool takes_loss_scale(Phase) const { return false; }  // multiplies or divides by the loss scale
  bool writes_loss() const { return false; }            // its last output is this rank's share of the loss
  bool adds_parts() const { return false; }             // adds up the parts that a collective brought from the ranks
  bool operator==(const OperatorTraits&) const = default;
};

inline bool is_forward(Phase phase) { return phase == Phase::Forward || phase == Phase::Recompute; }
inline bool is_input_grad(Phase phase) { return phase == Phase::InputGrad || phase == Phase::Backward; }

}  // namespace ops
}  // namespace foreshard
