// Isolated time of one compute instruction on a GPU: a roofline with an efficiency that depends on shapes. docs/cost-model.md has
// the formulas with their sources, strategy/kernels/machine_constants.h the numbers.
#pragma once

#include <cstdint>

#include "core/base/units.h"
#include "core/cluster/cluster.h"
#include "core/plan/plan.h"

namespace foreshard {

// One: FlashAttention 1 and Triton's kernels of its time. Two: FlashAttention 2. Newest: FlashAttention 3, cuDNN. Deterministic: the
// newest, with a backward that adds in a fixed order.
enum class FlashKernel : std::uint8_t { One, Two, Newest, Deterministic };
inline constexpr int kFlashKernels = 4;

// A kernel takes the longer of its arithmetic and its memory traffic, plus its launch. Of the shorter, the share
// ProductConstants::exposed * arithmetic / (arithmetic + memory) is added: the first tiles load and the last ones store with nothing to
// overlap.
struct OpTime {
  Seconds arithmetic = {};
  Seconds memory = {};
  Seconds overhead = {};  // launch, and coding the operands of products in 8 or 4 bits
  Seconds total() const;
  bool operator==(const OpTime&) const = default;
};

// The parts of the instruction's time. Shapes as in docs/operators.md; `flash`: the kernel of its attention. An instruction with neither
// FLOPs nor traffic launches nothing: all zero.
OpTime op_pieces(const Gpu& gpu, const Compute& compute, FlashKernel flash = FlashKernel::Newest);
Seconds op_time(const Gpu& gpu, const Compute& compute, FlashKernel flash = FlashKernel::Newest);  // their total()

// Bytes per element for coding an operand along its rows and along its columns. 8 bits: read and written, then transposed. NVFP4, whose
// columns go through Hadamard transforms: the largest number is found, the rows are coded, the columns are, each from the 16-bit values,
// and the scales are copied into the layout of the products (Transformer Engine v2.12 pytorch/csrc/quantizer.cpp,
// NVFP4Quantizer::quantize_impl; extensions/gemm.cpp, swizzle_scales_for_gemm).
double coding_bytes(DType code);

// Time of `traffic` at the bandwidth of a large streaming kernel (MachineConstants::memory_efficiency); negative bytes: time saved.
Seconds streamed_time(const Gpu& gpu, Bytes traffic);
// Times as long as streaming their bytes that PyTorch's kernels without vector loads take, of which each result moves `result_bytes`: an
// SM makes a number of results per clock, whatever their size (docs/cost-model.md, "Unvectorized kernels"). At least 1.
double unvectorized_slowdown(const Gpu& gpu, double result_bytes);

}  // namespace foreshard
