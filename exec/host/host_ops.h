// The arithmetic of the host device: a compute instruction is prepared once and run many times.
//
//   Operands come in the order in which `lower` writes them (docs/host-kernels.md):
//     Forward, Recompute   reads: inputs, weights                              writes: outputs
//     InputGrad            reads: gradients of the outputs, saved, weights     writes: gradients of the inputs
//     WeightGrad           reads: gradients of the outputs, saved              writes: gradients of the weights
//     Backward             reads: like InputGrad                               writes: gradients of the inputs, of the weights
//     Update               reads: gradient, [master], [momentum], [variance], value without a master; writes: states, value
//
// Activations are row-major with rows ordered [position, sample]: row = position * samples + sample. With this order, a gather or scatter
// of the sequence over ranks moves contiguous bytes. Attention maps are [sample, head, query, key], images [n, c, h, w]. Arithmetic is in
// double if an operand is fp64, else in float; 16-bit operands are rounded to nearest even when stored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/plan/plan.h"
#include "exec/arithmetic/host_samples.h"
#include "exec/device/operand.h"

namespace foreshard {

// A prepared compute instruction: its settings are parsed, its sizes checked and its kernel chosen. Immutable: ranks may share it.
class HostOp {
 public:
  // Uses `elements` and `dtype` of the operands, not their data. Throws Error for an instruction that the host cannot run.
  HostOp(const Compute& what, std::span<const Operand> reads, std::span<const Operand> writes);
  HostOp(HostOp&&) noexcept;
  HostOp& operator=(HostOp&&) noexcept;
  ~HostOp();

  // Bytes of scratch memory that `run` needs; the memory must be 64-byte aligned. A run allocates nothing.
  Bytes workspace() const;
  // A loss operator writes its micro-batch's share of the mean over the training step: the sum of the shares of all micro-batches and
  // replicas is the loss.
  void run(std::span<const Operand> reads, std::span<const Operand> writes, std::span<std::byte> workspace,
           const OpArguments& arguments) const;

  struct Prepared;

 private:
  std::unique_ptr<const Prepared> prepared_;
};

// Prepares the instruction, allocates its workspace and runs it once.
void run_compute(const Compute& what, std::span<const Operand> reads, std::span<const Operand> writes,
                 const OpArguments& arguments);

}  // namespace foreshard
