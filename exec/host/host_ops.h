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

#include "core/plan/plan.h"
#include "exec/arithmetic/host_samples.h"
#include "exec/device/operand.h"

namespace foreshard {

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
