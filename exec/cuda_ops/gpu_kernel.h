// From an instruction to launches: the makers of docs/host-kernels.md once more, for the GPU. Used only by exec/cuda/.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

#include "exec/cuda/runtime.h"
#include "exec/host/host_kernel.h"

namespace foreshard::gpu {

class ProductChoice;

// Puts work on one stream.
class Launcher {
 public:
  // `choice`: the algorithms of products, for a GPU; null: those of the library.
  Launcher(Runtime& runtime, Stream* stream, std::byte* workspace, const ProductChoice* choice = nullptr, int gpu = 0)
      : runtime_(&runtime), stream_(stream), workspace_(workspace), choice_(choice), gpu_(gpu) {}
  // Puts nothing anywhere: notes the products.
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
  // A warp per row; four elements per thread, over and over.
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
  // As many warps per row, of blocks of eight; 0: one.
  template <class Args>
  void held_rows(KernelId kernel, std::int64_t rows, int warps_of_row, const Args& args) const {
    launch(kernel, ceil_div(rows * std::max(1, warps_of_row), 8), 1, 256, args);
  }
  void fill(const Operand& operand, std::byte with) const;
  void copy(std::byte* to, const std::byte* from, Bytes bytes) const {
    if (runtime_) runtime_->copy(to, from, bytes, stream_);
  }
  void sum_columns(ColumnSumArgs args, std::byte* scratch) const;  // in one launch or two; see column_sum_scratch
  void sum_terms(TermSumArgs args, std::byte* scratch) const;
  void add_sums(View sums, const View& to, bool accumulate) const;        // in their order; to what is there
  void sum_chunks(const ColumnSumArgs& args, std::int64_t chunks) const;  // chunk c of the rows into out[c, column]

 private:
  Runtime* runtime_ = nullptr;
  Stream* stream_ = nullptr;
  std::byte* workspace_ = nullptr;
  const ProductChoice* choice_ = nullptr;
  int gpu_ = 0;
  std::vector<Multiply>* products_ = nullptr;
};

// Scratch bytes of the two above.
Bytes column_sum_scratch(std::int64_t rows, std::int64_t columns);
Bytes term_sum_scratch(std::int64_t terms);

struct Call {
  std::span<const Operand> reads, writes;
  std::byte* scratch;       // of the stream
  const std::byte* staged;  // pinned memory of the host: what `prepare` made for this run
  const std::byte* table;   // on the device
  const OpArguments& arguments;
  View state = {};               // of a dynamic loss scale; no data: it is constant
  std::byte* factors = nullptr;  // Form::factors
};

struct Kernel {
  std::function<void(const Launcher&, const Call&)> run = {};
  Bytes scratch = {};
  // Bytes that the host makes before every run: tokens, targets, pictures.
  Bytes staged = {};
  std::function<void(std::byte* to, const OpArguments&)> prepare = {};
  std::vector<std::byte> table = {};  // bytes that never change, on the device from the start
  bool multiplies = false;            // needs the workspace of products
  bool varies = false;                // the launches of one run are not those of the next, staged bytes aside
};

struct Libraries {
  Runtime* runtime = nullptr;  // is asked for what its libraries can do; null: our kernels do what they can
  bool any_order = false;      // the library may add up the gradients of attention in any order (AttentionCall)
};

// Throws Error for what the GPU cannot run.
Kernel make_kernel(const Compute& what, std::span<const Operand> reads, std::span<const Operand> writes,
                   const Libraries& libraries);

// Instructions that are one product with an epilogue. The operands of the kernel are those of the product, then those of the activation, then the
// gradient of the bias. None: the library does not have it.
struct FusedPart {
  const Compute& what;
  std::span<const Operand> reads, writes;
};
std::optional<Kernel> fuse_forward(const FusedPart& product, const FusedPart& activation, Runtime& library);
// `bias`: the gradient of the weights in front of the activation, whose bias gradient is made here, and no longer there; null: is not.
std::optional<Kernel> fuse_backward(const FusedPart& product, const FusedPart& activation, const FusedPart* bias,
                                    Runtime& library);

Type type_of(DType dtype);
std::int64_t bytes_of(Type type);                                                 // of an element
void expect_factors(const host::Form& form, const Operand& a, const Operand& b);  // of a product: one number format
View reads(const Operand& operand);                                               // a kernel may only read it
View writes(const Operand& operand);                                              // read and write
Positions positions_of(const RowPositions& rows);
GatheredOrder gathered_order(const SequenceSplit& split, std::int64_t rows);  // rows of a rank
View scratch_array(std::byte* at, std::int64_t elements, Type type);

// Whether rows of `elements` elements are whole packs of 16 bytes (kernels/packs.h) in all these arrays: of one type, from a border on, and
// with indices of 32 bits.
bool in_packs(std::initializer_list<View> arrays, std::int64_t rows, std::int64_t columns);
// Warps that share a row so that each thread has at most kHeldPacks of it; 0: the arrays are not in packs, or the row is too long.
int warps_of_row(std::initializer_list<View> arrays, std::int64_t rows, std::int64_t columns);

}  // namespace foreshard::gpu
