// Attention in separate operators: scores = q k^T, softmax, context = probabilities v. Maps are [sample, head, query, key].
#include <algorithm>
#include <cmath>

#include "exec/arithmetic/host_blas.h"
#include "exec/arithmetic/host_math.h"
#include "exec/host/host_heads.h"

namespace foreshard::host {

static HeadLayout heads_of(const Form& form) {
  return std::visit(
      [&](const auto& op) -> HeadLayout {
        if constexpr (requires { op.heads + op.kv_heads + op.value_dim; })
          return {.heads = op.heads, .kv_heads = op.kv_heads, .dim = op.dim, .value_dim = op.value_dim};
        else if constexpr (requires { op.heads + op.kv_heads + op.dim; })
          return {.heads = op.heads, .kv_heads = op.kv_heads, .dim = op.dim};
        else
          form.refuse("no heads", "attention");
      },
      form.what.op);
}

HeadLayout head_layout(const Form& form, std::int64_t samples, std::int64_t queries, std::int64_t keys, bool apart) {
  HeadLayout layout = heads_of(form);
  layout.samples = samples, layout.queries = queries, layout.keys = keys, layout.apart = apart;
  if (layout.heads < 1 || layout.kv_heads < 1 || layout.heads % layout.kv_heads != 0 || layout.dim < 1)
    form.refuse("\"" + settings_text(form.what.op) + "\"", "kv_heads a divisor of heads, and a dim");
  return layout;
}

// Shape {b heads, queries, n, k}; the operands hold the sample count.
std::int64_t samples_of(const Form& form) {
  const std::int64_t maps = form.dims(0, 4)[0], heads = heads_of(form).heads;
  if (heads < 1 || maps % heads != 0) form.refuse(std::to_string(maps) + " maps", "a multiple of the heads");
  return maps / heads;
}

namespace {

template <class F>
void for_each_head(const HeadLayout& at, F&& body) {
  for (std::int64_t sample = 0; sample < at.samples; ++sample)
    for (std::int64_t head = 0; head < at.heads; ++head) body(sample, head, (sample * at.heads + head) * at.queries * at.keys);
}

template <class T>
Kernel<T> scores_grad(const Form& form, const HeadLayout& at, std::int64_t maps) {
  const bool apart = at.apart, accumulate = form.what.accumulate;
  form.expect(apart ? std::vector{maps, at.query_size(), at.key_size()} : std::vector{maps, at.query_size()},
              apart ? std::vector{at.query_size(), at.key_size()} : std::vector{at.query_size()});
  return {.run = [at, apart, accumulate](const Call<T>& call) {
    const T *q = call.in[1], *k = call.in[apart ? 2 : 1];
    T *dq = call.out[0], *dk = call.out[apart ? 1 : 0];
    if (!accumulate) {
      std::fill_n(dq, at.query_size(), T(0));
      if (apart) std::fill_n(dk, at.key_size(), T(0));
    }
    for_each_head(at, [&](std::int64_t sample, std::int64_t head, std::int64_t map) {
      const T* ds = call.in[0] + map;
      multiply({.m = at.queries,
                .n = at.dim,
                .k = at.keys,
                .a = ds,
                .lda = at.keys,
                .b = k + at.key_at(sample, head),
                .ldb = at.key_stride(),
                .c = dq + at.query_at(sample, head),
                .ldc = at.query_stride(),
                .beta = T(1)});
      multiply({.m = at.keys,
                .n = at.dim,
                .k = at.queries,
                .a = ds,
                .lda = at.keys,
                .transpose_a = true,
                .b = q + at.query_at(sample, head),
                .ldb = at.query_stride(),
                .c = dk + at.key_at(sample, head),
                .ldc = at.key_stride(),
                .beta = T(1)});
    });
  }};
}

template <class T>
Kernel<T> weighted_values_grad(const Form& form, const HeadLayout& at, std::int64_t maps) {
  const std::int64_t context = at.samples * at.queries * at.heads * at.dim;
  form.expect({context, maps, at.key_size()}, {maps, at.key_size()});
  const bool accumulate = form.what.accumulate;
  return {.run = [at, accumulate](const Call<T>& call) {
    const T *dy = call.in[0], *p = call.in[1], *v = call.in[2];
    if (!accumulate) std::fill_n(call.out[1], at.key_size(), T(0));
    for_each_head(at, [&](std::int64_t sample, std::int64_t head, std::int64_t map) {
      const T* dcontext = dy + at.context_at(sample, head);
      multiply({.m = at.queries,
                .n = at.keys,
                .k = at.dim,
                .a = dcontext,
                .lda = at.context_stride(),
                .b = v + at.value_at(sample, head),
                .ldb = at.key_stride(),
                .transpose_b = true,
                .c = call.out[0] + map,
                .ldc = at.keys,
                .beta = T(accumulate ? 1 : 0)});
      multiply({.m = at.keys,
                .n = at.dim,
                .k = at.queries,
                .a = p + map,
                .lda = at.keys,
                .transpose_a = true,
                .b = dcontext,
                .ldb = at.context_stride(),
                .c = call.out[1] + at.value_at(sample, head),
                .ldc = at.key_stride(),
                .beta = T(1)});
    });
  }};
}

}  // namespace

template <class T>
Kernel<T> make_scores(const Form& form) {
  const auto& dims = form.dims(0, 4);
  const std::size_t operands = form.forward() ? form.reads.size() : form.writes.size();
  const HeadLayout at = head_layout(form, samples_of(form), dims[1], dims[2], operands == 2);
  const std::int64_t maps = dims[0] * dims[1] * dims[2];
  if (form.what.phase == Phase::InputGrad) return scores_grad<T>(form, at, maps);
  if (!form.forward()) form.refuse("this phase", "forward, recompute or input gradient");
  form.expect(at.apart ? std::vector{at.query_size(), at.key_size()} : std::vector{at.query_size()}, {maps});
  return {.run = [at](const Call<T>& call) {
    const T *q = call.in[0], *k = call.in[at.apart ? 1 : 0];
    for_each_head(at, [&](std::int64_t sample, std::int64_t head, std::int64_t map) {
      multiply({.m = at.queries,
                .n = at.keys,
                .k = at.dim,
                .a = q + at.query_at(sample, head),
                .lda = at.query_stride(),
                .b = k + at.key_at(sample, head),
                .ldb = at.key_stride(),
                .transpose_b = true,
                .c = call.out[0] + map,
                .ldc = at.keys});
    });
  }};
}

template <class T>
Kernel<T> make_weighted_values(const Form& form) {
  const auto& dims = form.dims(0, 4);
  HeadLayout at = head_layout(form, samples_of(form), dims[1], dims[3], false);
  const std::int64_t maps = dims[0] * dims[1] * dims[3];
  const std::size_t key = form.forward() ? 1 : 2;
  at.apart = form.reads.size() > key && form.reads[key].elements < at.key_size();
  if (form.what.phase == Phase::InputGrad) return weighted_values_grad<T>(form, at, maps);
  if (!form.forward()) form.refuse("this phase", "forward, recompute or input gradient");
  form.expect({maps, at.key_size()}, {at.samples * at.queries * at.heads * at.dim});
  return {.run = [at](const Call<T>& call) {
    for_each_head(at, [&](std::int64_t sample, std::int64_t head, std::int64_t map) {
      multiply({.m = at.queries,
                .n = at.dim,
                .k = at.keys,
                .a = call.in[0] + map,
                .lda = at.keys,
                .b = call.in[1] + at.value_at(sample, head),
                .ldb = at.key_stride(),
                .c = call.out[0] + at.context_at(sample, head),
                .ldc = at.context_stride()});
    });
  }};
}

namespace {

// softmax of scale x over the first `visible` columns; the others get 0.
template <class T>
void softmax_row(const T* x, std::int64_t visible, std::int64_t columns, T scale, T* y) {
  T largest = x[0];
#pragma omp simd reduction(max : largest)
  for (std::int64_t c = 0; c < visible; ++c) largest = x[c] > largest ? x[c] : largest;
  T sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t c = 0; c < visible; ++c) {
    const T e = fast_exp(scale * (x[c] - largest));
    y[c] = e;
    sum += e;
  }
  const T inverse = T(1) / sum;
#pragma omp simd
  for (std::int64_t c = 0; c < visible; ++c) y[c] *= inverse;
  std::fill(y + visible, y + columns, T(0));
}

// dx = scale p (dp - sum(p dp)); p is 0 where the mask hides a column.
template <class T>
void softmax_row_grad(const T* dp, const T* p, std::int64_t columns, T scale, bool add, T* dx) {
  T sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t c = 0; c < columns; ++c) sum += p[c] * dp[c];
#pragma omp simd
  for (std::int64_t c = 0; c < columns; ++c) dx[c] = (add ? dx[c] : T(0)) + scale * p[c] * (dp[c] - sum);
}

// Rows are [sample, head, query]. Columns are the keys of all context-parallel ranks, one rank after the other: those that a query may
// see are in stretches. They are put side by side in `scratch`.
struct CausalColumns {
  SequenceSplit split = {};
  std::int64_t queries = 0;  // of this rank; columns / split.parts()

  // Calls body(column, count) for the stretches that the query of a row sees.
  template <class F>
  void for_each(std::int64_t row, int cp_rank, F&& body) const {
    const std::int64_t query = split.rows_of(cp_rank, queries).position(row % queries);
    for (int rank = 0; rank < split.parts(); ++rank)
      for_each_stretch(split.rows_of(rank, queries), queries, queries,
                       [&](std::int64_t key, std::int64_t position, std::int64_t count) {
                         const std::int64_t seen = std::clamp<std::int64_t>(query + 1 - position, 0, count);
                         if (seen > 0) body(rank * queries + key, seen);
                       });
  }
};

template <class T>
void causal_softmax_row(const CausalColumns& at, std::int64_t row, int cp_rank, const T* x, std::int64_t columns, T scale,
                        T* beside, T* y) {
  std::int64_t seen = 0;
  at.for_each(row, cp_rank, [&](std::int64_t column, std::int64_t count) {
    std::copy_n(x + column, count, beside + seen);
    seen += count;
  });
  softmax_row(static_cast<const T*>(beside), seen, seen, scale, beside);
  std::fill_n(y, columns, T(0));
  seen = 0;
  at.for_each(row, cp_rank, [&](std::int64_t column, std::int64_t count) {
    std::copy_n(beside + seen, count, y + column);
    seen += count;
  });
}

}  // namespace

template <class T>
Kernel<T> make_softmax(const Form& form) {
  const auto& dims = form.dims(0, 2);
  const std::int64_t rows = dims[0], columns = dims[1], size = rows * columns;
  const auto& op = form.as<ops::Softmax>();
  const bool causal = op.causal;
  const CausalColumns at{.split = op.split, .queries = columns / op.split.parts()};
  if (causal && (at.queries * op.split.parts() != columns || rows % at.queries != 0))
    form.refuse("a causal map that is not square", "as many queries as keys");
  const T scale = static_cast<T>(op.scale);
  if (!(scale > 0)) form.refuse("scale " + std::to_string(op.scale), "a positive number");
  if (form.forward()) {
    form.expect({size}, {size});
    if (causal && op.split.parts() > 1)
      return {.run =
                  [rows, columns, at, scale](const Call<T>& call) {
                    for (std::int64_t row = 0; row < rows; ++row)
                      causal_softmax_row(at, row, call.arguments.cp_rank, call.in[0] + row * columns, columns, scale,
                                         call.scratch, call.out[0] + row * columns);
                  },
              .scratch = columns};
    return {.run = [rows, columns, causal, scale](const Call<T>& call) {
      for (std::int64_t row = 0; row < rows; ++row)
        softmax_row(call.in[0] + row * columns, causal ? row % columns + 1 : columns, columns, scale,
                    call.out[0] + row * columns);
    }};
  }
  form.expect({size, size}, {size});
  const bool add = form.what.accumulate;
  return {.run = [rows, columns, scale, add](const Call<T>& call) {
    for (std::int64_t row = 0; row < rows; ++row)
      softmax_row_grad(call.in[0] + row * columns, call.in[1] + row * columns, columns, scale, add,
                       call.out[0] + row * columns);
  }};
}

template Kernel<float> make_scores(const Form&);
template Kernel<double> make_scores(const Form&);
template Kernel<float> make_weighted_values(const Form&);
template Kernel<double> make_weighted_values(const Form&);
template Kernel<float> make_softmax(const Form&);
template Kernel<double> make_softmax(const Form&);

}  // namespace foreshard::host
