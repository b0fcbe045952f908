// Softmax cross-entropy, in one piece or in the three stages of a split vocabulary; and the sum of squares.
//
//   loss of a row = log(sum over classes of e^(logit - max)) + max - logit of the target
//   gradient      = (e^(logit - max) / sum - [column is the target]) * weight, with weight = loss_scale / rows of the step
#include "exec/host/host_cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "exec/arithmetic/host_math.h"

namespace foreshard::host {

namespace {

template <class T>
T row_maximum(const T* x, std::int64_t used) {
  T largest = -std::numeric_limits<T>::infinity();
#pragma omp simd reduction(max : largest)
  for (std::int64_t c = 0; c < used; ++c) largest = x[c] > largest ? x[c] : largest;
  return largest;
}

// e^(x - largest), 0 in padding columns; returns their sum.
template <class T>
T exponentials(const T* x, T largest, std::int64_t used, std::int64_t columns, T* out) {
  T sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t c = 0; c < used; ++c) {
    const T e = fast_exp(x[c] - largest);
    out[c] = e;
    sum += e;
  }
  std::fill(out + used, out + columns, T(0));
  return sum;
}

template <class T>
Kernel<T> whole_forward(const Form& form, LossSizes sizes) {
  form.expect({sizes.size()}, {sizes.size(), sizes.rows, 1});
  return {.run = [sizes](const Call<T>& call) {
    auto* targets = reinterpret_cast<std::int64_t*>(call.writes[1].data);
    read_tokens(call.arguments, sizes.targets, targets);
    const std::int64_t used = sizes.used(0);
    double loss = 0;
    for (std::int64_t r = 0; r < sizes.rows; ++r) {
      const T* x = call.in[0] + r * sizes.columns;
      T* softmax = call.out[0] + r * sizes.columns;
      const T largest = row_maximum(x, used);
      const T sum = exponentials(x, largest, used, sizes.columns, softmax);
      const T inverse = T(1) / sum;
#pragma omp simd
      for (std::int64_t c = 0; c < used; ++c) softmax[c] *= inverse;
      loss += static_cast<double>(std::log(sum) + (largest - x[targets[r]]));
    }
    call.out[2][0] = static_cast<T>(loss * sizes.weight_of_row(call.arguments));
  }};
}

// reads: softmax, targets
template <class T>
Kernel<T> whole_backward(const Form& form, LossSizes sizes) {
  form.expect({sizes.size(), sizes.rows}, {sizes.size()});
  const bool add = form.what.accumulate;
  return {.run = [sizes, add](const Call<T>& call) {
    const auto* targets = reinterpret_cast<const std::int64_t*>(call.reads[1].data);
    const T weight = static_cast<T>(sizes.weight_of_row(call.arguments) * call.arguments.loss_scale);
    for (std::int64_t r = 0; r < sizes.rows; ++r) {
      const T* softmax = call.in[0] + r * sizes.columns;
      T* dx = call.out[0] + r * sizes.columns;
#pragma omp simd
      for (std::int64_t c = 0; c < sizes.columns; ++c) dx[c] = (add ? dx[c] : T(0)) + weight * softmax[c];
      dx[targets[r]] -= weight;
    }
  }};
}

template <class T>
Kernel<T> stage_max(const Form& form, LossSizes sizes) {
  form.expect({sizes.size()}, {sizes.rows});
  return {.run = [sizes](const Call<T>& call) {
    const std::int64_t used = sizes.used(sizes.first(call.arguments, true));
    for (std::int64_t r = 0; r < sizes.rows; ++r) call.out[0][r] = row_maximum(call.in[0] + r * sizes.columns, used);
  }};
}

// writes: exponentials, {their sum, logit of the target where this rank has its column}, targets
template <class T>
Kernel<T> stage_exp(const Form& form, LossSizes sizes) {
  form.expect({sizes.size(), sizes.rows}, {sizes.size(), 2 * sizes.rows, sizes.rows});
  return {.run = [sizes](const Call<T>& call) {
    auto* targets = reinterpret_cast<std::int64_t*>(call.writes[2].data);
    read_tokens(call.arguments, sizes.targets, targets);
    const std::int64_t first = sizes.first(call.arguments, true), used = sizes.used(first);
    for (std::int64_t r = 0; r < sizes.rows; ++r) {
      const T* x = call.in[0] + r * sizes.columns;
      T* sums = call.out[1] + 2 * r;
      sums[0] = exponentials(x, call.in[1][r], used, sizes.columns, call.out[0] + r * sizes.columns);
      const std::int64_t target = targets[r] - first;
      sums[1] = target >= 0 && target < used ? x[target] : T(0);
    }
  }};
}

// reads: exponentials, sums over all ranks, targets
template <class T>
Kernel<T> stage_exp_backward(const Form& form, LossSizes sizes) {
  form.expect({sizes.size(), 2 * sizes.rows, sizes.rows}, {sizes.size()});
  const bool add = form.what.accumulate;
  return {.run = [sizes, add](const Call<T>& call) {
    const auto* targets = reinterpret_cast<const std::int64_t*>(call.reads[2].data);
    const T weight = static_cast<T>(sizes.weight_of_row(call.arguments) * call.arguments.loss_scale);
    const std::int64_t first = sizes.first(call.arguments, true), used = sizes.used(first);
    for (std::int64_t r = 0; r < sizes.rows; ++r) {
      const T* e = call.in[0] + r * sizes.columns;
      T* dx = call.out[0] + r * sizes.columns;
      const T inverse = T(1) / call.in[1][2 * r];
#pragma omp simd
      for (std::int64_t c = 0; c < sizes.columns; ++c) dx[c] = (add ? dx[c] : T(0)) + weight * (e[c] * inverse);
      const std::int64_t target = targets[r] - first;
      if (target >= 0 && target < used) dx[target] -= weight;
    }
  }};
}

// reads: sums, row maxima
template <class T>
Kernel<T> stage_loss(const Form& form, LossSizes sizes) {
  form.expect({2 * sizes.rows, sizes.rows}, {1});
  return {.run = [sizes](const Call<T>& call) {
    double loss = 0;
    for (std::int64_t r = 0; r < sizes.rows; ++r) {
      const T* sums = call.in[0] + 2 * r;
      loss += static_cast<double>(std::log(sums[0]) + (call.in[1][r] - sums[1]));
    }
    call.out[0][0] = static_cast<T>(loss * sizes.weight_of_row(call.arguments));
  }};
}

}  // namespace

LossSizes loss_sizes(const Form& form) {
  using Piece = ops::CrossEntropy::Piece;
  const auto& dims = form.dims(0, 2);
  const auto& op = form.as<ops::CrossEntropy>();
  if (form.what.phase == Phase::InputGrad) {
    if (op.piece == Piece::Max || op.piece == Piece::Loss) form.refuse("this phase", "forward or recompute");
  } else if (!form.forward()) {
    form.refuse("this phase", "forward, recompute or input gradient");
  }
  if (op.piece == Piece::Whole && (op.classes < 1 || op.classes > dims[1]))
    form.refuse(std::to_string(op.classes) + " classes", "at least 1 and at most the columns");
  const bool label = op.target != ops::CrossEntropy::Target::NextToken;
  return {.rows = dims[0],
          .columns = dims[1],
          .classes = op.classes,
          .targets = {.rows = dims[0], .vocab = op.classes, .split = op.split, .ahead = 1 + op.ahead, .label = label},
          .weight = op.weight};
}

template <class T>
Kernel<T> make_cross_entropy(const Form& form) {
  using Piece = ops::CrossEntropy::Piece;
  const LossSizes sizes = loss_sizes(form);
  const bool gradient = form.what.phase == Phase::InputGrad;
  switch (form.as<ops::CrossEntropy>().piece) {
    case Piece::Whole: return gradient ? whole_backward<T>(form, sizes) : whole_forward<T>(form, sizes);
    case Piece::Max: return stage_max<T>(form, sizes);
    case Piece::Exp: return gradient ? stage_exp_backward<T>(form, sizes) : stage_exp<T>(form, sizes);
    case Piece::Loss: return stage_loss<T>(form, sizes);
  }
  return {};
}

// loss = sum of y^2 over the samples of the step, divided by their number.
template <class T>
Kernel<T> make_sum_of_squares(const Form& form) {
  const std::int64_t size = size_of_dims(form.dims(0));
  if (form.forward()) {
    form.expect({size}, {1});
    return {.run = [size](const Call<T>& call) {
      double sum = 0;
      for (std::int64_t i = 0; i < size; ++i) sum += static_cast<double>(call.in[0][i]) * static_cast<double>(call.in[0][i]);
      call.out[0][0] = static_cast<T>(sum / static_cast<double>(call.arguments.samples_of_step));
    }};
  }
  form.expect({size}, {size});
  const bool add = form.what.accumulate;
  return {.run = [size, add](const Call<T>& call) {
    const T weight = static_cast<T>(2 * call.arguments.loss_scale / static_cast<double>(call.arguments.samples_of_step));
    scale_into(call.in[0], weight, size, add, call.out[0]);
  }};
}

template Kernel<float> make_cross_entropy(const Form&);
template Kernel<double> make_cross_entropy(const Form&);
template Kernel<float> make_sum_of_squares(const Form&);
template Kernel<double> make_sum_of_squares(const Form&);

}  // namespace foreshard::host
