// The arithmetic of the host backend: one compute instruction, made ready once and run many times.
//
//   Operands come in the order in which `lower` writes them (docs/host-kernels.md):
//     Forward, Recompute   reads: inputs, weights                              writes: outputs
//     InputGrad            reads: gradients of the outputs, saved, weights     writes: gradients of the inputs
//     WeightGrad           reads: gradients of the outputs, saved              writes: gradients of the weights
//     Backward             reads: like InputGrad                               writes: gradients of the inputs, of the weights
//     Update               reads: gradient, [master], [momentum], [variance], value without a master; writes: states, value
//
// Activations are row-major with rows ordered [position, sample]: row = position * samples + sample. So a gather or scatter
// of the sequence over ranks moves contiguous bytes. Attention maps are [sample, head, query, key], pictures [n, c, h, w].
// Arithmetic is in double when an operand is fp64, else in float; 16-bit operands are rounded to nearest even when stored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/base/dtype.h"
#include "core/plan/plan.h"
#include "exec/host/host_samples.h"

namespace foreshard {

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
  OptimizerSettings optimizer = {};
};

// A compute instruction with its settings read, its sizes known and its function chosen. Immutable: ranks may share it.
class HostOp {
 public:
  // Looks at elements and dtype of the operands, not at data. Throws Error for what the host cannot run.
  HostOp(const Compute& what, std::span<const Operand> reads, std::span<const Operand> writes);
  HostOp(HostOp&&) noexcept;
  HostOp& operator=(HostOp&&) noexcept;
  ~HostOp();

  // Scratch memory that `run` needs, 64-byte aligned. Nothing is allocated during a run.
  Bytes workspace() const;
  // Loss ops write this micro-batch's share of the mean over the step: the sum over micro-batches and replicas is the loss.
  void run(std::span<const Operand> reads, std::span<const Operand> writes, std::span<std::byte> workspace,
           const OpArguments& arguments) const;

  struct Prepared;

 private:
  std::unique_ptr<const Prepared> prepared_;
};

// Makes ready, allocates the workspace and runs.
void run_compute(const Compute& what, std::span<const Operand> reads, std::span<const Operand> writes,
                 const OpArguments& arguments);

}  // namespace foreshard
