// From an instruction to kernel launches. As on the host (docs/host-kernels.md), a maker (a function per operator) builds a Kernel from the
// form of an instruction once; the kernel is then run with a Call many times, and enqueues its work through a Launcher.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "exec/cuda/runtime.h"
#include "exec/host/host_kernel.h"

namespace foreshard::gpu {

class ProductChoice;

// Enqueues work on one stream. All functions return at once.
class Launcher {
 public:
  // `workspace`: kMultiplyWorkspace bytes of GPU memory for matrix products; null: none. `choice`: chooses the algorithms of products on
  // GPU `gpu`; null: the library chooses.
  Launcher(Runtime& runtime, Stream* stream, std::byte* workspace, const ProductChoice* choice = nullptr, int gpu = 0)
      : runtime_(&runtime), stream_(stream), workspace_(workspace), choice_(choice), gpu_(gpu) {}
  // Enqueues nothing, but appends all matrix products to `products`.
  explicit Launcher(std::vector<Multiply>& products) : products_(&products) {}

  template <class Args>
  void launch(KernelId kernel, std::int64_t blocks_x, std::int64_t blocks_y, int threads, const Args& args) const {
    if (!runtime_ || blocks_x == 0 || blocks_y == 0) return;
    runtime_->launch({.kernel = kernel,
                      .blocks_x = static_cast<unsigned>(blocks_x),
                      .blocks_y = static_cast<unsigned>(blocks_y),
                      .threads = threads,
                      .args = &args,
                      .bytes = sizeof args},
                     stream_);
  }
  // Launch a kernel with blocks of 256 threads: `rows` with one warp per row; `elements` with one thread per four elements of `count`, at
  // most 4096 blocks (the kernel has a grid-stride loop).
  template <class Args>
  void rows(KernelId kernel, std::int64_t rows, const Args& args) const {
    launch(kernel, ceil_div(rows, 8), 1, 256, args);
  }
  template <class Args>
  void elements(KernelId kernel, std::int64_t count, const Args& args) const {
    launch(kernel, std::min<std::int64_t>(ceil_div(count, 1024), 4096), 1, 256, args);
  }
  void attention(const AttentionCall& call, std::byte* workspace) const {
    if (runtime_) runtime_->attention(call, workspace, stream_);
  }
  void multiply(const Multiply& product) const;
  // Launches a kernel with `warps_of_row` warps per row (0: one) and eight warps per block.
  template <class Args>
  void held_rows(KernelId kernel, std::int64_t rows, int warps_of_row, const Args& args) const {
    launch(kernel, ceil_div(rows * std::max(1, warps_of_row), 8), 1, 256, args);
  }
  void fill(const Operand& operand, std::byte with) const;
  void copy(std::byte* to, const std::byte* from, Bytes bytes) const {
    if (runtime_) runtime_->copy(to, from, bytes, stream_);
  }
  // Sums of columns and of terms, in one launch or two. `scratch`: column_sum_scratch or term_sum_scratch bytes.
  void sum_columns(ColumnSumArgs args, std::byte* scratch) const;
  void sum_terms(TermSumArgs args, std::byte* scratch) const;
  void add_sums(View sums, const View& to, bool accumulate) const;  // to = sums, or to += sums
  // Sums the rows in `chunks` chunks: out[c, column] = sum over chunk c.
  void sum_chunks(const ColumnSumArgs& args, std::int64_t chunks) const;

 private:
  Runtime* runtime_ = nullptr;
  Stream* stream_ = nullptr;
  std::byte* workspace_ = nullptr;
  const ProductChoice* choice_ = nullptr;
  int gpu_ = 0;
  std::vector<Multiply>* products_ = nullptr;
};

// Bytes of scratch memory for Launcher::sum_columns and Launcher::sum_terms.
Bytes column_sum_scratch(std::int64_t rows, std::int64_t columns);
Bytes term_sum_scratch(std::int64_t terms);

// The arguments of one run of a kernel.
struct Call {
  std::span<const Operand> reads, writes;
  std::byte* scratch;       // Kernel::scratch bytes of GPU memory, shared by the kernels of a stream
  const std::byte* staged;  // pinned host memory that Kernel::prepare has filled for this run
  const std::byte* table;   // Kernel::table in GPU memory
  const OpArguments& arguments;
  View state = {};               // of a dynamic loss scale; no data: the loss scale is constant
  std::byte* factors = nullptr;  // Form::factors
};

struct Kernel {
  std::function<void(const Launcher&, const Call&)> run = {};
  Bytes scratch = {};  // scratch memory that it needs
  // Data that the host computes before every run with `prepare`: tokens, targets, images.
  Bytes staged = {};
  std::function<void(std::byte* to, const OpArguments&)> prepare = {};
  std::vector<std::byte> table = {};  // constant data, copied to the GPU once
  bool multiplies = false;            // it needs a workspace for matrix products
  // its launches differ from run to run (apart from staged data), so a CUDA graph cannot replay them
  bool varies = false;
  // Of a fused attention by our own kernels: why the library does not compute it, in words. Empty: it does, or this is another operator.
  std::string own_attention = {};
};

// The libraries that a kernel may use.
struct Libraries {
  // The runtime whose libraries (cuBLASLt for FP8 and bias gradients, cuDNN) are used where they support the instruction; null: only our
  // own kernels and plain matrix products
  Runtime* runtime = nullptr;
  bool any_order = false;  // the library may add up the gradients of attention in any order (AttentionCall)
  // Attention that would need a larger workspace is computed by our own kernels; empty: no limit
  std::optional<Bytes> attention_limit = {};
};

// Makes the kernel of an instruction. Throws Error for an instruction that the GPU cannot run.
Kernel make_kernel(const Compute& what, std::span<const Operand> reads, std::span<const Operand> writes,
                   const Libraries& libraries);

// Fusion of a matrix product with an activation as its epilogue. The operands of the fused kernel are those of the product, then those of
// the activation, then the gradient of the bias. Return nothing if the library has no such product.
struct FusedPart {
  const Compute& what;
  std::span<const Operand> reads, writes;
};
// y = activation(product).
std::optional<Kernel> fuse_forward(const FusedPart& product, const FusedPart& activation, Runtime& library);
// The gradient of the product's input, then the backward of the activation. `bias`: the weight gradient of the layer before the activation;
// the fused kernel then also computes the gradient of that layer's bias, and that instruction no longer does. Null: it does not.
std::optional<Kernel> fuse_backward(const FusedPart& product, const FusedPart& activation, const FusedPart* bias,
                                    Runtime& library);

Type type_of(DType dtype);
std::int64_t bytes_of(Type type);  // of an element
// Throws Error unless both factors of a matrix product have the same number format.
void expect_factors(const host::Form& form, const Operand& a, const Operand& b);
View reads(const Operand& operand);   // a view that a kernel may only read
View writes(const Operand& operand);  // a view that a kernel may read and write
Positions positions_of(const RowPositions& rows);
GatheredOrder gathered_order(const SequenceSplit& split, std::int64_t rows);  // `rows`: of one rank
View scratch_array(std::byte* at, std::int64_t elements, Type type);          // a view that a kernel may read and write

// Whether a kernel can use packs of 16 bytes (kernels/packs.h) on matrices of `rows` rows: all arrays have the same type and are aligned, a
// row is a whole number of packs, and indices fit into 32 bits.
bool in_packs(std::initializer_list<View> arrays, std::int64_t rows, std::int64_t columns);
// The number of warps that have to share a row so that each thread holds at most kHeldPacks packs of it; 0: packs cannot be used, or the
// row is too long.
int warps_of_row(std::initializer_list<View> arrays, std::int64_t rows, std::int64_t columns);

}  // namespace foreshard::gpu
