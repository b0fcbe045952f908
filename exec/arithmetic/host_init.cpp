#include "exec/arithmetic/host_init.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/base/error.h"
#include "exec/arithmetic/host_float16.h"
#include "exec/base/philox.h"

namespace foreshard {

namespace {

std::int64_t product(const std::vector<std::int64_t>& dims, std::size_t from, std::size_t to) {
  std::int64_t size = 1;
  for (std::size_t i = from; i < to; ++i) size *= dims[i];
  return size;
}

// Index along the cut dimension in the whole tensor, from that in the part.
std::int64_t global_row(const std::vector<std::int64_t>& shape, const ShardCut& cut, std::int64_t local) {
  if (cut.blocks.empty()) return cut.part * (shape[static_cast<std::size_t>(cut.dim)] / cut.parts) + local;
  std::int64_t begin = 0;
  for (const std::int64_t block : cut.blocks) {
    const std::int64_t own = block / cut.parts;
    if (local < own) return begin + cut.part * own + local;
    local -= own;
    begin += block;
  }
  return begin + local;  // not reached for an element of the part
}

void store(const Operand& out, std::int64_t at, double value) {
  switch (out.dtype) {
    case DType::F64: reinterpret_cast<double*>(out.data)[at] = value; return;
    case DType::F32:
    case DType::TF32: reinterpret_cast<float*>(out.data)[at] = static_cast<float>(value); return;
    case DType::BF16: reinterpret_cast<BFloat16*>(out.data)[at] = to_bfloat16(static_cast<float>(value)); return;
    case DType::F16: reinterpret_cast<Float16*>(out.data)[at] = to_float16(static_cast<float>(value)); return;
    case DType::F8:
    case DType::F4:
    case DType::I64:
    case DType::I32:
    case DType::U8: break;
  }
  throw Error("plan", "buffer dtype", name_of(out.dtype), "fp64, fp32, bf16 or fp16 for weights on the host");
}

// The standard deviation: "normal(0.02)" -> 0.02, 0 for "zeros" and "ones".
double deviation(const Tensor& tensor) {
  if (tensor.init == "zeros" || tensor.init == "ones") return 0;
  char* end = nullptr;
  const bool normal = tensor.init.starts_with("normal(");
  const double s = normal ? std::strtod(tensor.init.c_str() + 7, &end) : 0;
  if (!normal || std::string_view(end) != ")" || !std::isfinite(s))
    throw Error("plan", "tensors." + tensor.name + ".init", tensor.init, "normal(number), zeros or ones");
  return s;
}

}  // namespace

std::int64_t shard_elements(const std::vector<std::int64_t>& shape, const ShardCut& cut) {
  return product(shape, 0, shape.size()) / cut.parts;
}

std::int64_t global_element(const std::vector<std::int64_t>& shape, const ShardCut& cut, std::int64_t local) {
  if (cut.parts == 1) return local;
  const auto dim = static_cast<std::size_t>(cut.dim);
  const std::int64_t inner = product(shape, dim + 1, shape.size()), rows = shape[dim] / cut.parts;
  const std::int64_t column = local % inner, row = local / inner % rows, outer = local / inner / rows;
  return (outer * shape[dim] + global_row(shape, cut, row)) * inner + column;
}

void fill_initial(const Tensor& tensor, const ShardCut& cut, std::int64_t first, std::uint64_t seed, const Operand& out) {
  const double s = deviation(tensor), constant = tensor.init == "ones" ? 1 : 0;
  const std::uint64_t stream = name_key(tensor.name);
  const std::int64_t inside = std::clamp<std::int64_t>(shard_elements(tensor.shape, cut) - first, 0, out.elements);
  for (std::int64_t i = 0; i < inside; ++i) {
    const auto index = static_cast<std::uint64_t>(global_element(tensor.shape, cut, first + i));
    store(out, i, s == 0 ? constant : s * standard_normal(seed, stream, index));
  }
  for (std::int64_t i = inside; i < out.elements; ++i) store(out, i, 0);
}

}  // namespace foreshard
