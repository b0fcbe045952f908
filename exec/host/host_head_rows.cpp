// Heads of queries, keys and values before attention: RMSNorm of query and key heads, whose values pass by them: rows of [heads | kv_heads] and of values -> rows of all three.
#include <algorithm>
#include <array>
#include <cmath>

#include "exec/host/host_kernel.h"

namespace foreshard::host {

namespace {

// Equal groups of a row, each over which a mean goes; `weighted`: by a weight of the group's width.
struct Part {
  std::int64_t at = 0, groups = 0, width = 0;
  bool weighted = true;
};

struct HeadNormSizes {
  std::int64_t rows = 0, width = 0, values = 0;  // of x; of the values behind it
  double eps = 0, one = 0;
  std::array<Part, 2> parts = {};  // queries, keys
  std::size_t count = 0;

  std::int64_t out() const { return width + values; }
  std::size_t weights() const { return parts[0].weighted ? count : 0; }
};

HeadNormSizes sizes_of(const Form& form) {
  const auto& op = form.as<ops::HeadNorm>();
  const auto& dims = form.dims(0, 3);
  HeadNormSizes n{.rows = dims[0] * dims[1],
                  .width = dims[2],
                  .values = op.kv_heads * op.dim,
                  .eps = op.eps,
                  .one = op.around_one ? 1.0 : 0.0};
  if (op.over == QkNorm::None || op.dim < 1 || op.heads + op.kv_heads < 1 || (op.heads + op.kv_heads) * op.dim != n.width)
    form.refuse('"' + settings_text(form.what.op) + "\" for rows of " + std::to_string(n.width), "heads that fill the row");
  const bool all = op.over == QkNorm::AllHeads, weighted = op.over != QkNorm::Unweighted;
  std::int64_t at = 0;
  for (const std::int64_t heads : {op.heads, op.kv_heads}) {
    if (heads > 0)
      n.parts[n.count++] = {.at = at, .groups = all ? 1 : heads, .width = all ? heads * op.dim : op.dim, .weighted = weighted};
    at += heads * op.dim;
  }
  return n;
}

template <class T>
T inverse_root(const T* x, std::int64_t width, double eps) {
  T squares = 0;
#pragma omp simd reduction(+ : squares)
  for (std::int64_t c = 0; c < width; ++c) squares += x[c] * x[c];
  return T(1) / std::sqrt(squares / static_cast<T>(width) + static_cast<T>(eps));
}

template <class T>
void group_forward(const T* x, const T* w, std::int64_t width, double eps, T one, T* y) {
  const T inverse = inverse_root(x, width, eps);
  for (std::int64_t c = 0; c < width; ++c) y[c] = x[c] * inverse * (w ? one + w[c] : T(1));
}

// With u = x inverse and g = dy w:  dx = inverse (g - u mean(g u)), dw += dy u.
template <class T>
void group_backward(const T* dy, const T* x, const T* w, std::int64_t width, double eps, T one, bool add, T* dx, T* dw) {
  const T inverse = inverse_root(x, width, eps);
  const auto factor = [&](std::int64_t c) { return w ? one + w[c] : T(1); };
  T projection = 0;
  for (std::int64_t c = 0; c < width; ++c) projection += dy[c] * factor(c) * x[c] * inverse;
  projection /= static_cast<T>(width);
  for (std::int64_t c = 0; c < width; ++c) {
    const T u = x[c] * inverse;
    dx[c] = (add ? dx[c] : T(0)) + inverse * (dy[c] * factor(c) - u * projection);
    if (dw) dw[c] += dy[c] * u;
  }
}

template <class T>
void copy_or_add(const T* from, std::int64_t count, bool add, T* to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = (add ? to[i] : T(0)) + from[i];
}

// Calls body(part, x at, y at, weight index) for each group of each row.
template <class F>
void for_each_group(const HeadNormSizes& n, F&& body) {
  for (std::int64_t row = 0; row < n.rows; ++row)
    for (std::size_t p = 0; p < n.count; ++p)
      for (std::int64_t g = 0; g < n.parts[p].groups; ++g) {
        const std::int64_t at = n.parts[p].at + g * n.parts[p].width;
        body(n.parts[p], row * n.width + at, row * n.out() + at, p);
      }
}

template <class T>
Kernel<T> head_norm_backward(const Form& form, const HeadNormSizes& n) {
  const std::size_t values = n.values > 0 ? 1 : 0;
  std::vector<std::int64_t> reads = {n.rows * n.out(), n.rows * n.width}, writes = {n.rows * n.width};
  if (values > 0) writes.push_back(n.rows * n.values);
  const std::size_t trained = form.what.phase == Phase::Backward ? n.weights() : 0;  // the weights that want gradients
  for (std::size_t p = 0; p < n.weights(); ++p) reads.push_back(n.parts[p].width);
  for (std::size_t p = 0; p < trained; ++p) writes.push_back(n.parts[p].width);
  form.expect(reads, writes);
  const bool add = form.what.accumulate, add_weights = form.what.accumulate_weights;
  return {.run = [n, values, trained, add, add_weights](const Call<T>& call) {
    for (std::size_t p = 0; p < trained; ++p)
      if (!add_weights) std::fill_n(call.out[1 + values + p], n.parts[p].width, T(0));
    for_each_group(n, [&](const Part& part, std::int64_t x, std::int64_t y, std::size_t p) {
      const T* w = part.weighted ? call.in[2 + p] : nullptr;
      T* dw = part.weighted && trained > 0 ? call.out[1 + values + p] : nullptr;
      group_backward(call.in[0] + y, call.in[1] + x, w, part.width, n.eps, static_cast<T>(n.one), add, call.out[0] + x, dw);
    });
    for (std::int64_t row = 0; row < n.rows && values > 0; ++row)
      copy_or_add(call.in[0] + row * n.out() + n.width, n.values, add, call.out[1] + row * n.values);
  }};
}

}  // namespace

template <class T>
Kernel<T> make_head_norm(const Form& form) {
  const HeadNormSizes n = sizes_of(form);
  const bool both = form.what.phase == Phase::Backward && n.weights() > 0;
  if (both || form.what.phase == Phase::InputGrad) return head_norm_backward<T>(form, n);
  if (!form.forward()) form.refuse("this phase", "forward, recompute, backward or input gradient");
  std::vector<std::int64_t> reads = {n.rows * n.width};
  const std::size_t values = n.values > 0 ? 1 : 0;
  if (values > 0) reads.push_back(n.rows * n.values);
  for (std::size_t p = 0; p < n.weights(); ++p) reads.push_back(n.parts[p].width);
  form.expect(reads, {n.rows * n.out()});
  return {.run = [n, values](const Call<T>& call) {
    for_each_group(n, [&](const Part& part, std::int64_t x, std::int64_t y, std::size_t p) {
      const T* w = part.weighted ? call.in[1 + values + p] : nullptr;
      group_forward(call.in[0] + x, w, part.width, n.eps, static_cast<T>(n.one), call.out[0] + y);
    });
    for (std::int64_t row = 0; row < n.rows && values > 0; ++row)
      std::copy_n(call.in[1] + row * n.values, n.values, call.out[0] + row * n.out() + n.width);
  }};
}

template Kernel<float> make_head_norm(const Form&);
template Kernel<double> make_head_norm(const Form&);

// Keys and values of latent attention put side by side for each head; the rotated part of the keys is the same in all heads.
template <class T>
Kernel<T> make_latent_heads(const Form& form) {
  const auto op = form.as<ops::LatentHeads>();
  const auto& dims = form.dims(0, 3);
  const std::int64_t rows = dims[0] * dims[1], in = dims[2], key = op.plain + op.rotated;
  if (op.heads < 1 || op.plain < 1 || op.rotated < 1 || op.value < 1 || op.heads * (op.plain + op.value) != in)
    form.refuse('"' + settings_text(form.what.op) + "\" for rows of " + std::to_string(in), "heads that fill the row");
  const std::int64_t out = op.heads * (key + op.value);
  if (form.forward()) {
    form.expect({rows * in, rows * op.rotated}, {rows * out});
    return {.run = [=](const Call<T>& call) {
      for (std::int64_t row = 0; row < rows; ++row) {
        const T *x = call.in[0] + row * in, *shared = call.in[1] + row * op.rotated;
        T* y = call.out[0] + row * out;
        for (std::int64_t head = 0; head < op.heads; ++head) {
          std::copy_n(x + head * op.plain, op.plain, y + head * key);
          std::copy_n(shared, op.rotated, y + head * key + op.plain);
        }
        std::copy_n(x + op.heads * op.plain, op.heads * op.value, y + op.heads * key);
      }
    }};
  }
  form.expect({rows * out}, {rows * in, rows * op.rotated});
  const T keep = form.what.accumulate ? T(1) : T(0);
  return {.run = [=](const Call<T>& call) {
    const auto put = [keep](const T* from, std::int64_t count, T* to) {
      for (std::int64_t i = 0; i < count; ++i) to[i] = (keep == 0 ? T(0) : to[i]) + from[i];
    };
    for (std::int64_t row = 0; row < rows; ++row) {
      const T* dy = call.in[0] + row * out;
      T *dx = call.out[0] + row * in, *shared = call.out[1] + row * op.rotated;
      if (keep == 0) std::fill_n(shared, op.rotated, T(0));
      for (std::int64_t head = 0; head < op.heads; ++head) {
        put(dy + head * key, op.plain, dx + head * op.plain);
        for (std::int64_t i = 0; i < op.rotated; ++i) shared[i] += dy[head * key + op.plain + i];
      }
      put(dy + op.heads * key, op.heads * op.value, dx + op.heads * op.plain);
    }
  }};
}

template Kernel<float> make_latent_heads(const Form&);
template Kernel<double> make_latent_heads(const Form&);

}  // namespace foreshard::host
