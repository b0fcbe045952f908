// Matrix products with an epilogue that replaces the following instructions ("d" is a gradient):
//
//   forward    fc1 = x w^T + b            -> one product that writes fc1 and gelu(fc1)
//              y = gelu(fc1)
//   backward   d y = d z w                -> one product that reads fc1 and writes d fc1 (d y is never stored),
//              d fc1 = d y * gelu'(fc1)      and, if that may be written so early, the gradient of b: the sums of its columns
#include "exec/cuda_ops/gpu_kernel.h"

namespace foreshard::gpu {

namespace {

bool is_gelu(const Compute& what) {
  const auto* activation = std::get_if<ops::Activation>(&what.op);
  return activation && activation->function == ops::Activation::Function::Gelu && !what.dynamic_scale;
}
bool is_linear(const Compute& what) {
  const auto* product = std::get_if<ops::MatMul>(&what.op);
  return product && !product->first_token && !what.dynamic_scale && !is_code(what.shapes.front().dtype);
}
bool same(const Operand& a, const Operand& b) { return a.data == b.data && a.dtype == b.dtype; }
Matrix matrix(const Operand& operand, std::int64_t row, bool transposed = false) {
  return {.data = operand.data, .row = row, .transposed = transposed, .dtype = operand.dtype};
}
bool has(Runtime& library, const Multiply& product) { return !library.algorithms(product, kMultiplyWorkspace, 1).empty(); }

struct Sizes {
  std::int64_t m = 0, n = 0, k = 0;
};
Sizes sizes_of(const FusedPart& product) {
  const std::vector<std::int64_t>& dims = product.what.shapes.front().dims;
  return {dims[1], dims[2], dims[3]};
}

Multiply forward_product(const Sizes& sizes, std::span<const Operand> reads, std::span<const Operand> writes, bool bias) {
  Multiply product = {.m = sizes.m, .n = sizes.n, .k = sizes.k};
  product.a = matrix(reads[0], sizes.k), product.b = matrix(reads[1], sizes.k, true);
  product.c = matrix(writes[1], sizes.n);
  if (bias) product.bias = reads[2].data;
  product.epilogue = Epilogue::Gelu;
  product.aux = writes[0].data, product.aux_row = sizes.n;
  return product;
}

// Operands read: dy [m, n] of the product, its input, its weight; then dy of the activation, which is not stored, and the operand that the
// activation saved.
Multiply backward_product(const Sizes& sizes, const Operand& dy, const Operand& weight, const Operand& saved,
                          const Operand& to) {
  Multiply product = {.m = sizes.m, .n = sizes.k, .k = sizes.n};
  product.a = matrix(dy, sizes.n), product.b = matrix(weight, sizes.k), product.c = matrix(to, sizes.k);
  product.epilogue = Epilogue::GeluSlope;
  product.aux = saved.data, product.aux_row = sizes.k;
  return product;
}

}  // namespace

std::optional<Kernel> fuse_forward(const FusedPart& product, const FusedPart& activation, Runtime& library) {
  if (!is_linear(product.what) || !ops::is_forward(product.what.phase) || !is_gelu(activation.what) ||
      !ops::is_forward(activation.what.phase))
    return {};
  const Sizes sizes = sizes_of(product);
  if (product.writes.size() != 1 || product.writes[0].elements < sizes.m * sizes.n ||
      !same(activation.reads[0], product.writes[0]) || activation.writes[0].dtype != product.writes[0].dtype ||
      product.reads[1].dtype != product.reads[0].dtype)
    return {};
  const bool bias = product.reads.size() == 3;
  if (bias && product.reads[2].dtype != product.writes[0].dtype) return {};
  const Operand writes[] = {product.writes[0], activation.writes[0]};
  if (!has(library, forward_product(sizes, product.reads, writes, bias))) return {};
  return Kernel{.run = [sizes, bias](const Launcher& on,
                                     const Call& call) { on.multiply(forward_product(sizes, call.reads, call.writes, bias)); },
                .multiplies = true};
}

std::optional<Kernel> fuse_backward(const FusedPart& product, const FusedPart& activation, const FusedPart* bias,
                                    Runtime& library) {
  if (!is_linear(product.what) || product.what.phase != Phase::InputGrad || product.what.accumulate ||
      !is_gelu(activation.what) || activation.what.phase != Phase::InputGrad || activation.what.accumulate)
    return {};
  const Sizes sizes = sizes_of(product);
  const std::size_t weight = product.reads.size() == 2 ? 1 : 2;  // the product may have no operand for its input
  if (product.reads.size() < 2 || product.reads[0].elements < sizes.m * sizes.n ||
      !same(activation.reads[0], product.writes[0]) || activation.writes[0].dtype != product.reads[0].dtype ||
      activation.reads[1].dtype != product.reads[0].dtype || product.reads[weight].dtype != product.reads[0].dtype)
    return {};
  const std::size_t saved = product.reads.size() + 1;  // index among the operands of the kernel
  const auto made = [=](std::span<const Operand> reads, std::span<const Operand> writes) {
    return backward_product(sizes, reads[0], reads[weight], reads[saved], writes[1]);
  };
  Multiply planned =
      backward_product(sizes, product.reads[0], product.reads[weight], activation.reads[1], activation.writes[0]);
  if (!bias) {
    if (!has(library, planned)) return {};
    return Kernel{.run = [made](const Launcher& on, const Call& call) { on.multiply(made(call.reads, call.writes)); },
                  .multiplies = true};
  }
  const bool accumulate = bias->what.accumulate, straight = !accumulate && bias->writes[1].dtype == planned.c.dtype;
  alignas(256) static std::byte scratch;
  planned.sums = Sums::OfResult, planned.sums_to = straight ? bias->writes[1].data : &scratch;
  if (!has(library, planned)) return {};
  return Kernel{.run =
                    [=](const Launcher& on, const Call& call) {
                      Multiply now = made(call.reads, call.writes);
                      now.sums = Sums::OfResult, now.sums_to = straight ? call.writes[2].data : call.scratch;
                      on.multiply(now);
                      if (!straight)
                        on.add_sums(scratch_array(call.scratch, now.n, type_of(now.c.dtype)), writes(call.writes[2]),
                                    accumulate);
                    },
                .scratch = straight ? Bytes{} : size_of(planned.c.dtype) * sizes.k,
                .multiplies = true};
}

}  // namespace foreshard::gpu
