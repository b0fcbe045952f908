// What context parallelism adds to attention: merging parts that saw different keys, and dealing out heads.
#include <algorithm>
#include <cmath>
#include <vector>

#include "exec/host/host_heads.h"
#include "exec/host/host_kernel.h"

namespace foreshard::host {

// context = sum of parts e^(lse of the part - lse), lse = log of the sum of e^lse. A part that saw no key has lse -inf and weighs nothing.
template <class T>
Kernel<T> make_merge_attention(const Form& form) {
  if (!form.forward()) form.refuse("this phase", "forward or recompute");
  const auto& dims = form.dims(0, 4);
  const HeadLayout at{.samples = dims[0], .queries = dims[1], .heads = dims[2], .dim = dims[3]};
  const std::int64_t rows = at.samples * at.queries * at.heads, size = rows * at.dim;
  form.expect({size, rows, size, rows}, {size, rows});
  return {.run = [at](const Call<T>& call) {
    for (std::int64_t sample = 0; sample < at.samples; ++sample)
      for (std::int64_t head = 0; head < at.heads; ++head)
        for (std::int64_t query = 0; query < at.queries; ++query) {
          const std::int64_t n = (sample * at.heads + head) * at.queries + query;
          const T first = call.in[1][n], second = call.in[3][n], most = std::max(first, second);
          const T lse = most + std::log(std::exp(first - most) + std::exp(second - most));
          const T a = std::exp(first - lse), b = std::exp(second - lse);
          const std::int64_t from = at.context_at(sample, head) + query * at.context_stride();
          const T *x = call.in[0] + from, *y = call.in[2] + from;
          T* out = call.out[0] + from;
#pragma omp simd
          for (std::int64_t i = 0; i < at.dim; ++i) out[i] = a * x[i] + b * y[i];
          call.out[1][n] = lse;
        }
  }};
}

// One after the other [part][row][heads of the part], or rows with all heads: the same runs of numbers, in another order.
template <class T>
Kernel<T> make_head_parts(const Form& form) {
  const auto& op = form.as<ops::HeadParts>();
  const std::int64_t size = size_of_dims(form.dims(0)), width = (op.heads + 2 * op.kv_heads) * op.dim;
  if (op.parts < 1 || width < 1 || op.heads % op.parts != 0 || op.kv_heads % op.parts != 0 || size % width != 0)
    form.refuse("\"" + settings_text(form.what.op) + "\"", "rows of heads that the parts divide");
  if (form.what.phase != Phase::InputGrad && !form.forward()) form.refuse("this phase", "forward, recompute or input gradient");
  form.expect({size}, {size});
  const bool join = op.join != (form.what.phase == Phase::InputGrad), add = form.what.accumulate;
  return {.run = [op, rows = size / width, width, join, add](const Call<T>& call) {
    const std::int64_t of_part = width / op.parts;
    for (std::int64_t part = 0; part < op.parts; ++part)
      for (std::int64_t row = 0; row < rows; ++row) {
        std::int64_t whole = row * width, apart = (part * rows + row) * of_part;
        for (const std::int64_t heads : {op.heads, op.kv_heads, op.kv_heads}) {
          const std::int64_t count = heads / op.parts * op.dim, beside = whole + part * count;
          const T* from = call.in[0] + (join ? apart : beside);
          T* to = call.out[0] + (join ? beside : apart);
          for (std::int64_t i = 0; i < count; ++i) to[i] = (add ? to[i] : T(0)) + from[i];
          whole += heads * op.dim, apart += count;
        }
      }
  }};
}

template Kernel<float> make_merge_attention(const Form&);
template Kernel<double> make_merge_attention(const Form&);
template Kernel<float> make_head_parts(const Form&);
template Kernel<double> make_head_parts(const Form&);

}  // namespace foreshard::host
