// What an operator has to say about itself. Each operator is a struct with its settings and its laws (core/op/matmul.h,
// core/op/attention.h, ...); `Operation` (core/op/operation.h) is any one of them. Readers visit it; no reader parses text.
//
// A struct of an operator has
//   kWord                 its name in files and messages
//   fields(self, visit)   calls visit(name, member) for each setting, in the order in which files list them
//   saved()               the operands that its backward reads             } of operators that layers are made of
//   works(sizes)          FLOPs and traffic of each phase                  }
// and what differs from the defaults in `Laws`. Shapes are those of docs/operators.md.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/units.h"

namespace foreshard {

enum class Phase : std::uint8_t { Forward, InputGrad, WeightGrad, Backward, Recompute, Update, Other };

struct Shape {
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

// What the laws of work read: sizes of the operands on this rank.
struct Sizes {
  std::vector<Shape> shapes = {};
  std::vector<Bytes> inputs = {}, outputs = {};
  DType input = DType::BF16;  // of the first input; without inputs, of the first output
  DType param = DType::BF16;  // of the weights
  bool inputs_need_grad = true;
  bool weights = false;

  double dim(std::size_t shape, std::size_t at) const { return static_cast<double>(shapes[shape].dims[at]); }
  std::int64_t count(std::size_t shape, std::size_t at) const { return shapes[shape].dims[at]; }
};

// Of the forward, and of the two halves of the backward. `input_grad` empty: no kernel; the output's gradient is that of every
// input, or there is none. `weight_grad` empty, with weights: one kernel makes both gradients.
struct Works {
  OpWork forward = {}, input_grad = {}, weight_grad = {};
};

// Operands that the backward reads, a bit each.
inline constexpr unsigned kNone = 0, kFirst = 1, kSecond = 2, kThird = 4, kAll = ~0U;
struct Saved {
  unsigned inputs = kNone, outputs = kNone;
};

// How a part of a sum arises in an operator and passes through it (tensor parallelism).
struct PartialSums {
  bool pass = false;  // a part of a sum stays one: the operator is linear in what it reads
  // The result is a sum over this dimension of the weight: a weight cut along it leaves a part of a sum in the outputs `summed`.
  int summed_dim = -1;
  unsigned summed = kAll;
  int summed_columns = -1;      // this output is a sum over the columns of the input
  bool new_columns = false;     // the columns of the result are rows of the weight, not columns of the input
  bool shared_weights = false;  // the weights serve all columns alike: of some of the columns, a part of their gradient comes
};

struct Laws {
  static constexpr int kFirstSettings =
      64;  // settings after these came later: a plan's hash knows them only where they are set
  static constexpr bool depends_on_microbatch = false;  // reads tokens, targets or dropout keys of the micro-batch
  static constexpr bool matrix_product = false;         // of shapes {batch, m, n, k}
  static constexpr bool loss = false;                   // the backward begins at it
  static constexpr bool steps = false;                  // an optimizer step: writes parameters
  static constexpr bool of_update = false;              // belongs to the update at the end of a run
  static constexpr bool reads_sums = false;             // may only read gradients that are reduced
  static constexpr bool encodes = false;                // its first output stands for its first input in fewer bytes ...
  static constexpr bool decodes = false;                // ... and this makes numbers of such bytes again
  PartialSums partial_sums(Phase) const { return {}; }
  int gradients() const { return 1; }                   // of inputs, which a Backward writes before those of the weights
  bool takes_loss_scale(Phase) const { return false; }  // multiplies or divides by the loss scale
  bool writes_loss() const { return false; }            // its last output is a share of the loss
  bool adds_parts() const { return false; }             // adds up what a collective brought from the ranks
  bool operator==(const Laws&) const = default;
};

inline bool is_forward(Phase phase) { return phase == Phase::Forward || phase == Phase::Recompute; }
inline bool is_input_grad(Phase phase) { return phase == Phase::InputGrad || phase == Phase::Backward; }

}  // namespace ops
}  // namespace foreshard
