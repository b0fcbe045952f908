// Operands and arguments of a compute instruction, as every device takes them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/dtype.h"

namespace foreshard {

class Samples;

// Memory that an instruction reads or writes, row-major.
struct Operand {
  std::byte* data = nullptr;
  std::int64_t elements = 0;  // elements of `dtype` from `data` on; may be more than the op's shapes need
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

// What a kernel needs besides its operands: the position of the rank in its groups, and the samples of the micro-batch.
struct OpArguments {
  std::uint64_t seed = 0;            // of the run; dropout masks are made from it
  std::uint64_t layer = 0;           // name_key of the instruction's layer (exec/base/philox.h): part of the dropout key
  std::int64_t first_sample = 0;     // global number of the micro-batch's first sample, counted over all replicas and steps
  std::int64_t samples = 1;          // of this micro-batch
  std::int64_t samples_of_step = 1;  // of all micro-batches and replicas: losses and gradients are means over them
  int tp = 1, tp_rank = 0;  // tensor-parallel degree and position: select the rank's heads, vocabulary rows and sequence parts
  int cp = 1, cp_rank = 0;  // context-parallel degree and position: select its part of the sequence, core/op/sequence_part.h
  int expert_rank = 0;      // position in the expert group: selects the rank's experts, if it dispatches gathered tokens
  double loss_scale = 1;    // the gradient of the loss is multiplied by it, and the update divides by it
  const Samples* source = nullptr;  // tokens, targets, images; needed by Embedding and CrossEntropy
  // Used by updates only.
  std::int64_t step = 1;   // number of the optimizer step, from 1; for Adam's bias correction
  int updates_of_run = 1;  // optimizer steps of each stage in one run
  std::int64_t slice = 0;  // position of this rank in the group `Compute::slice`
  int threads = 1;         // CPU threads that share the update; results do not depend on it
  OptimizerSettings optimizer = {};
};

}  // namespace foreshard
