// Operands and arguments of a compute instruction, as every device takes them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/dtype.h"

namespace foreshard {

class Samples;

struct Operand {
  std::byte* data = nullptr;
  std::int64_t elements = 0;  // of the use; may be more than the op's shapes need
  DType dtype = DType::F32;
};

struct OptimizerSettings {
  double learning_rate = 1e-3;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double weight_decay = 0;
  bool decoupled_decay = true;  // AdamW; false: the decay is added to the gradient
  double momentum = 0;          // SGD
  bool operator==(const OptimizerSettings&) const = default;
};

// What a kernel needs beside its operands: where the rank stands and which micro-batch it is.
struct OpArguments {
  std::uint64_t seed = 0;            // of dropout masks
  std::uint64_t layer = 0;           // name_key of the instruction's layer (exec/base/philox.h): part of the dropout key
  std::int64_t first_sample = 0;     // of this micro-batch, counted over all replicas and steps
  std::int64_t samples = 1;          // of this micro-batch
  std::int64_t samples_of_step = 1;  // of all micro-batches and replicas: losses and gradients are means over them
  int tp = 1, tp_rank = 0;           // heads, vocabulary rows and sequence parts of this rank
  int cp = 1, cp_rank = 0;           // which positions of a sequence: core/op/sequence_part.h
  double loss_scale = 1;             // the loss's gradient is multiplied by it, the update divides by it
  const Samples* source = nullptr;   // tokens, targets, pictures; needed by Embedding and CrossEntropy
  // Update only.
  std::int64_t step = 1;   // 1 for the first: bias correction
  int updates_of_run = 1;  // of each stage
  std::int64_t slice = 0;  // place of this rank in the group `Compute::slice`
  int threads = 1;         // of the host's processor that share the update; results do not depend on it
  OptimizerSettings optimizer = {};
};

}  // namespace foreshard
