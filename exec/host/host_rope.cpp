// Rotary positions (Su et al. 2021, section 3.2.2) in the form of the Llama weights: dimensions i and i + half of those that turn are a pair.
#include <algorithm>
#include <cmath>
#include <memory>

#include "exec/host/host_kernel.h"

namespace foreshard::host {

namespace {

struct RopeSizes {
  std::int64_t samples = 1, positions = 0, width = 0, heads = 0, dim = 0;  // heads: rotated ones, at the front of a row
  std::int64_t first = 0, rotated = 0;                                     // the dimensions of each head that turn
  SequenceSplit split = {};
};

// cos and sin of position * theta^(-2 i / rotated), times `scale`, [position, 2, rotated / 2]. Made once, read by every run.
template <class T>
std::vector<T> angles(const RopeSizes& sizes, double theta, double scale) {
  const std::int64_t half = sizes.rotated / 2;
  const std::int64_t positions = sizes.positions * sizes.split.ranks;  // of the whole sequence
  std::vector<T> table(static_cast<std::size_t>(positions * sizes.rotated));
  for (std::int64_t p = 0; p < positions; ++p)
    for (std::int64_t i = 0; i < half; ++i) {
      const double angle =
          static_cast<double>(p) * std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(sizes.rotated));
      table[static_cast<std::size_t>(p * sizes.rotated + i)] = static_cast<T>(scale * std::cos(angle));
      table[static_cast<std::size_t>(p * sizes.rotated + half + i)] = static_cast<T>(scale * std::sin(angle));
    }
  return table;
}

// The gradient is rotated back: sign = -1.
template <class T>
void rotate_row(const T* x, const T* table, const RopeSizes& sizes, T sign, bool add, T* y) {
  const std::int64_t half = sizes.rotated / 2, rest = sizes.first + sizes.rotated;
  const auto copy = [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t i = from; i < to; ++i) y[i] = (add ? y[i] : T(0)) + x[i];
  };
  for (std::int64_t head = 0; head < sizes.heads; ++head) {
    const T *a = x + head * sizes.dim + sizes.first, *b = a + half;
    T *u = y + head * sizes.dim + sizes.first, *v = u + half;
#pragma omp simd
    for (std::int64_t i = 0; i < half; ++i) {
      const T c = table[i], s = sign * table[half + i];
      const T first = a[i] * c - b[i] * s, second = b[i] * c + a[i] * s;
      u[i] = (add ? u[i] : T(0)) + first;
      v[i] = (add ? v[i] : T(0)) + second;
    }
    copy(head * sizes.dim, head * sizes.dim + sizes.first);
    copy(head * sizes.dim + rest, (head + 1) * sizes.dim);
  }
  copy(sizes.heads * sizes.dim, sizes.width);
}

}  // namespace

template <class T>
Kernel<T> make_rope(const Form& form) {
  const auto& dims = form.dims(0, 3);
  const auto& op = form.as<ops::Rope>();
  const RopeSizes sizes{.samples = dims[0],
                        .positions = dims[1],
                        .width = dims[2],
                        .heads = op.heads + op.kv_heads,
                        .dim = op.dim,
                        .first = op.last ? op.dim - op.rotated_dim() : 0,
                        .rotated = op.rotated_dim(),
                        .split = op.split};
  if (sizes.rotated < 2 || sizes.rotated % 2 != 0 || sizes.rotated > sizes.dim || sizes.heads * sizes.dim > sizes.width)
    form.refuse("\"" + settings_text(form.what.op) + "\"", "heads of even size that fit the row");
  const std::int64_t size = size_of_dims(dims);
  form.expect({size}, {size});
  // Copies of the kernel share the table; nobody changes it.
  const auto table = std::make_shared<const std::vector<T>>(angles<T>(sizes, op.theta, op.scale));
  const T sign = form.forward() ? T(1) : T(-1);
  const bool add = form.what.accumulate;
  return {.run = [sizes, table, sign, add](const Call<T>& call) {
    const RowPositions held = sizes.split.rows_of(call.arguments.cp_rank, sizes.positions);
    for (std::int64_t row = 0; row < sizes.positions * sizes.samples; ++row)
      rotate_row(call.in[0] + row * sizes.width, table->data() + held.position(row / sizes.samples) * sizes.rotated, sizes,
                 sign, add, call.out[0] + row * sizes.width);
  }};
}

template Kernel<float> make_rope(const Form&);
template Kernel<double> make_rope(const Form&);

}  // namespace foreshard::host
