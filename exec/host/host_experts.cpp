// A mixture of experts: the rows that go to experts and come back, and a product for each expert (core/op/experts.h).
#include <algorithm>

#include "exec/arithmetic/host_blas.h"
#include "exec/host/host_experts.h"

namespace foreshard::host {

ChoiceRows choice_rows(const Form& form) {
  const auto &of = form.dims(0, 4), &to = form.dims(1, 2);
  ChoiceRows rows = {of[0], of[1], of[2], of[3], to[0], to[1]};
  if (const auto* op = std::get_if<ops::Dispatch>(&form.what.op)) {
    rows.dealt = op->dealt, rows.sources = op->sources;
    if (rows.ranks < 1 || rows.experts % rows.ranks != 0)
      form.refuse(std::to_string(rows.experts) + " experts", "a multiple of the " + std::to_string(rows.ranks) + " ranks");
  }
  return rows;
}

CombineGradient combine_gradient(const Form& form, const ChoiceRows& rows) {
  const CombineGradient gradient{.plain = form.as<ops::Combine>().plain};
  const std::int64_t all = rows.tokens * rows.hidden;
  if (gradient.plain)
    form.expect({all, rows.choices()}, {rows.size()});
  else
    form.expect({all, rows.size(), rows.choices(), rows.choices()}, {rows.size(), rows.choices()});
  return gradient;
}

DispatchGradient dispatch_gradient(const Form& form, const ChoiceRows& rows) {
  const DispatchGradient at = {.scaled = form.as<ops::Dispatch>().scaled,
                               .all = rows.sources * rows.tokens * rows.hidden,
                               .choices = rows.sources * rows.choices()};
  if (at.scaled)
    form.expect({rows.size(), at.all, at.choices, at.choices}, {at.all, at.choices});
  else
    form.expect({rows.size(), at.choices}, {at.all});
  return at;
}

GroupedProduct grouped_product(const Form& form) {
  const auto op = form.as<ops::GroupedMatMul>();
  const auto &of = form.dims(0, 4), &from = form.dims(1, 2);
  if (is_code(form.what.shapes[0].dtype))
    form.refuse(std::string("grouped products in ") + name_of(form.what.shapes[0].dtype), "another format");
  if (op.parts < 1 || of[2] % op.parts != 0 || (op.transposed && op.parts != 1))
    form.refuse("\"" + settings_text(form.what.op) + "\" for " + std::to_string(of[2]) + " columns", "parts that divide them");
  return {of[0], of[2], of[3], op.parts, from[0], from[1], op.transposed};
}

namespace {

template <class T>
constexpr std::int64_t elements_for(std::int64_t count) {  // of T, that have room for so many 64-bit integers
  return count * static_cast<std::int64_t>((sizeof(std::int64_t) + sizeof(T) - 1) / sizeof(T));
}

// ---- rows to the experts and back -----------------------------------------------------------------------------------------------

// Counts, by place, what each expert gets, at most `capacity`, and of the experts of a rank together at most its room: the last ones go short.
void count_rows(const ChoiceRows& rows, std::int64_t capacity, const std::int64_t* chosen, std::int64_t* counts) {
  std::fill_n(counts, rows.experts, 0);
  for (std::int64_t i = 0; i < rows.choices(); ++i)
    if (chosen[i] >= 0) ++counts[rows.place(chosen[i])];
  const std::int64_t each = rows.experts / rows.ranks;
  for (std::int64_t e = 0, left = 0; e < rows.experts; ++e) {
    if (e % each == 0) left = rows.room;
    if (capacity > 0) counts[e] = std::min(counts[e], capacity);
    counts[e] = std::min(counts[e], left), left -= counts[e];
  }
}

template <class T>
void add_scaled(const T* x, T factor, std::int64_t count, T* y) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] += factor * x[i];
}

template <class T>
T dot_of(const T* x, const T* y, std::int64_t count) {
  T sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < count; ++i) sum += x[i] * y[i];
  return sum;
}

// The choices of one source. With several sources, only rows of the experts of rank `own` are made, from row 0 on; else those of all ranks.
template <class T>
void dispatch_source(const ChoiceRows& rows, std::int64_t capacity, std::int64_t own, const T* x, const T* weights,
                     const std::int64_t* chosen, std::int64_t* counts, std::int64_t* next, T* out, std::int64_t* places) {
  std::int64_t* end = next + rows.experts;
  count_rows(rows, capacity, chosen, counts);
  const std::int64_t each = rows.experts / rows.ranks;
  for (std::int64_t e = 0; e < rows.experts; ++e) {
    const std::int64_t rank = e / each;
    next[e] = e % each != 0 ? end[e - 1] : own >= 0 ? 0 : rank * rows.room;
    end[e] = next[e] + (own < 0 || rank == own ? counts[e] : 0);
  }
  for (std::int64_t i = 0; i < rows.choices(); ++i) {
    const std::int64_t e = chosen[i] < 0 ? -1 : rows.place(chosen[i]);
    places[i] = e >= 0 && next[e] < end[e] ? next[e]++ : -1;
    if (places[i] >= 0)
      add_scaled(x + i / rows.chosen * rows.hidden, weights ? weights[i] : T(1), rows.hidden, out + places[i] * rows.hidden);
  }
}

template <class T>
Kernel<T> dispatch_forward(const Form& form, const ChoiceRows& rows) {
  const auto op = form.as<ops::Dispatch>();
  const std::int64_t sources = rows.sources, each = rows.experts / rows.ranks;
  std::vector<std::int64_t> reads = {sources * rows.tokens * rows.hidden};
  if (op.scaled) reads.push_back(sources * rows.choices());
  reads.push_back(sources * rows.choices());
  form.expect(reads, {rows.size(), sources * rows.choices(), sources > 1 ? sources * each : rows.experts});
  const std::size_t experts = reads.size() - 1;
  const auto run = [=](const Call<T>& call) {
    const std::int64_t* chosen = integers(call.reads[experts]);
    std::int64_t *places = integers_of(call.writes[1]), *counts = integers_of(call.writes[2]);
    auto* next =
        reinterpret_cast<std::int64_t*>(call.scratch);  // the row of the next token of each expert, then where its rows end
    auto* all = next + 2 * rows.experts;                // counts of the experts of all ranks
    std::fill_n(call.out[0], rows.size(), T(0));
    const std::int64_t own = sources > 1 ? call.arguments.expert_rank : -1;
    for (std::int64_t s = 0; s < sources; ++s) {
      const std::int64_t from = s * rows.choices(), first = s * rows.room;
      dispatch_source(rows, op.capacity, own, call.in[0] + s * rows.tokens * rows.hidden,
                      op.scaled ? call.in[1] + from : nullptr, chosen + from, all, next, call.out[0] + first * rows.hidden,
                      places + from);
      for (std::int64_t i = 0; s > 0 && i < rows.choices(); ++i)
        if (places[from + i] >= 0) places[from + i] += first;
      std::copy_n(all + std::max<std::int64_t>(0, own) * each, own >= 0 ? each : rows.experts, counts + s * each);
    }
  };
  return {.run = run, .scratch = elements_for<T>(3 * rows.experts)};
}

template <class T>
Kernel<T> dispatch_backward(const Form& form, const ChoiceRows& rows) {
  const DispatchGradient at = dispatch_gradient(form, rows);
  const bool add = form.what.accumulate;
  return {.run = [=](const Call<T>& call) {
    const std::int64_t* places = integers(call.reads[at.places()]);
    if (!add) std::fill_n(call.out[0], at.all, T(0));
    for (std::int64_t i = 0; i < at.choices; ++i) {
      if (at.scaled) call.out[1][i] = T(0);
      if (places[i] < 0) continue;
      const T* dy = call.in[0] + places[i] * rows.hidden;
      const std::int64_t token = i / rows.chosen * rows.hidden;
      add_scaled(dy, at.scaled ? call.in[2][i] : T(1), rows.hidden, call.out[0] + token);
      if (at.scaled) call.out[1][i] = dot_of(dy, call.in[1] + token, rows.hidden);
    }
  }};
}

template <class T>
Kernel<T> combine_forward(const Form& form, const ChoiceRows& rows) {
  const bool plain = form.as<ops::Combine>().plain;
  std::vector<std::int64_t> reads = {rows.size(), rows.choices()};
  if (!plain) reads.push_back(rows.choices());
  form.expect(reads, {rows.tokens * rows.hidden});
  return {.run = [=](const Call<T>& call) {
    const std::int64_t* places = integers(call.reads[1]);
    std::fill_n(call.out[0], rows.tokens * rows.hidden, T(0));
    for (std::int64_t i = 0; i < rows.choices(); ++i)
      if (places[i] >= 0)
        add_scaled(call.in[0] + places[i] * rows.hidden, plain ? T(1) : call.in[2][i], rows.hidden,
                   call.out[0] + i / rows.chosen * rows.hidden);
  }};
}

template <class T>
Kernel<T> combine_backward(const Form& form, const ChoiceRows& rows) {
  const bool plain = combine_gradient(form, rows).plain, add = form.what.accumulate;
  return {.run = [=](const Call<T>& call) {
    const std::int64_t* places = integers(call.reads[plain ? 1 : 2]);
    if (!add) std::fill_n(call.out[0], rows.size(), T(0));
    for (std::int64_t i = 0; i < rows.choices(); ++i) {
      if (!plain) call.out[1][i] = T(0);
      if (places[i] < 0) continue;
      const T* dy = call.in[0] + i / rows.chosen * rows.hidden;
      const std::int64_t row = places[i] * rows.hidden;
      add_scaled(dy, plain ? T(1) : call.in[3][i], rows.hidden, call.out[0] + row);
      if (!plain) call.out[1][i] = dot_of(dy, call.in[1] + row, rows.hidden);
    }
  }};
}

// ---- a product for each expert --------------------------------------------------------------------------------------------------

// Calls body(expert, first row, rows) for each expert of each source that has rows, then rest(first row, rows) for what is left of a source.
template <class Body, class Rest>
void for_each_expert(const GroupedProduct& g, const std::int64_t* counts, Body&& body, Rest&& rest) {
  for (std::int64_t s = 0; s < g.sources; ++s) {
    std::int64_t row = s * g.room;
    for (std::int64_t e = 0; e < g.experts; ++e) {
      const std::int64_t count = counts[s * g.experts + e];
      if (count > 0) body(e, row, count);
      row += count;
    }
    if (row < (s + 1) * g.room) rest(row, (s + 1) * g.room - row);
  }
}

template <class T>
Kernel<T> grouped_forward(const Form& form, const GroupedProduct& g) {
  const bool bias = form.reads.size() > static_cast<std::size_t>(2 + g.parts);
  std::vector<std::int64_t> reads = {g.rows() * g.k, g.sources * g.experts};
  reads.insert(reads.end(), static_cast<std::size_t>(g.parts), g.weight());
  if (bias) reads.insert(reads.end(), static_cast<std::size_t>(g.parts), g.experts * g.columns());
  form.expect(reads, {g.rows() * g.n});
  return {.run = [g, bias](const Call<T>& call) {
    const std::int64_t columns = g.columns();
    for_each_expert(
        g, integers(call.reads[1]),
        [&](std::int64_t e, std::int64_t row, std::int64_t count) {
          for (std::int64_t part = 0; part < g.parts; ++part) {
            T* y = call.out[0] + row * g.n + part * columns;
            if (bias)
              for (std::int64_t r = 0; r < count; ++r)
                std::copy_n(call.in[static_cast<std::size_t>(2 + g.parts + part)] + e * columns, columns, y + r * g.n);
            multiply({.m = count,
                      .n = columns,
                      .k = g.k,
                      .a = call.in[0] + row * g.k,
                      .lda = g.k,
                      .b = call.in[static_cast<std::size_t>(2 + part)] + e * columns * g.k,
                      .ldb = g.transposed ? columns : g.k,
                      .transpose_b = !g.transposed,
                      .c = y,
                      .ldc = g.n,
                      .beta = T(bias ? 1 : 0)});
          }
        },
        [&](std::int64_t row, std::int64_t count) { std::fill_n(call.out[0] + row * g.n, count * g.n, T(0)); });
  }};
}

// reads: gradient of y, x, counts, weights, biases
template <class T>
Kernel<T> grouped_input_grad(const Form& form, const GroupedProduct& g) {
  std::vector<std::int64_t> reads = {g.rows() * g.n, g.rows() * g.k, g.sources * g.experts};
  reads.insert(reads.end(), static_cast<std::size_t>(g.parts), g.weight());
  if (form.reads.size() > reads.size()) reads.insert(reads.end(), static_cast<std::size_t>(g.parts), g.experts * g.columns());
  form.expect(reads, {g.rows() * g.k});
  const bool add = form.what.accumulate;
  return {.run = [g, add](const Call<T>& call) {
    const std::int64_t columns = g.columns();
    for_each_expert(
        g, integers(call.reads[2]),
        [&](std::int64_t e, std::int64_t row, std::int64_t count) {
          for (std::int64_t part = 0; part < g.parts; ++part)
            multiply({.m = count,
                      .n = g.k,
                      .k = columns,
                      .a = call.in[0] + row * g.n + part * columns,
                      .lda = g.n,
                      .b = call.in[static_cast<std::size_t>(3 + part)] + e * columns * g.k,
                      .ldb = g.transposed ? columns : g.k,
                      .transpose_b = g.transposed,
                      .c = call.out[0] + row * g.k,
                      .ldc = g.k,
                      .beta = T(add || part > 0 ? 1 : 0)});
        },
        [&](std::int64_t row, std::int64_t count) {
          if (!add) std::fill_n(call.out[0] + row * g.k, count * g.k, T(0));
        });
  }};
}

// reads: gradient of y, x, counts
template <class T>
Kernel<T> grouped_weight_grad(const Form& form, const GroupedProduct& g) {
  const auto parts = static_cast<std::size_t>(g.parts);
  const bool bias = form.writes.size() > parts, add = form.what.accumulate;
  std::vector<std::int64_t> writes(parts, g.weight());
  if (bias) writes.insert(writes.end(), parts, g.experts * g.columns());
  form.expect({g.rows() * g.n, g.rows() * g.k, g.sources * g.experts}, writes);
  return {.run = [=](const Call<T>& call) {
    const std::int64_t columns = g.columns();
    for (std::size_t w = 0; w < call.out.size() && !add; ++w)
      std::fill_n(call.out[w], w < parts ? g.weight() : g.experts * columns, T(0));
    for_each_expert(
        g, integers(call.reads[2]),
        [&](std::int64_t e, std::int64_t row, std::int64_t count) {
          for (std::size_t part = 0; part < parts; ++part) {
            const T *dy = call.in[0] + row * g.n + static_cast<std::int64_t>(part) * columns, *x = call.in[1] + row * g.k;
            T* dw = call.out[part] + e * columns * g.k;
            multiply({.m = g.transposed ? g.k : columns,
                      .n = g.transposed ? columns : g.k,
                      .k = count,
                      .a = g.transposed ? x : dy,
                      .lda = g.transposed ? g.k : g.n,
                      .transpose_a = true,
                      .b = g.transposed ? dy : x,
                      .ldb = g.transposed ? g.n : g.k,
                      .c = dw,
                      .ldc = g.transposed ? columns : g.k,
                      .beta = T(1)});
            if (!bias) continue;
            T* sums = call.out[parts + part] + e * columns;
            for (std::int64_t r = 0; r < count; ++r) add_scaled(dy + r * g.n, T(1), columns, sums);
          }
        },
        [](std::int64_t, std::int64_t) {});
  }};
}

}  // namespace

template <class T>
Kernel<T> make_dispatch(const Form& form) {
  return form.forward() ? dispatch_forward<T>(form, choice_rows(form)) : dispatch_backward<T>(form, choice_rows(form));
}
template <class T>
Kernel<T> make_combine(const Form& form) {
  return form.forward() ? combine_forward<T>(form, choice_rows(form)) : combine_backward<T>(form, choice_rows(form));
}

template <class T>
Kernel<T> make_grouped_matmul(const Form& form) {
  const GroupedProduct g = grouped_product(form);
  if (form.forward()) return grouped_forward<T>(form, g);
  if (form.what.phase == Phase::InputGrad) return grouped_input_grad<T>(form, g);
  if (form.what.phase == Phase::WeightGrad) return grouped_weight_grad<T>(form, g);
  form.refuse("this phase", "forward, recompute, input gradient or weight gradient");
}

template Kernel<float> make_dispatch(const Form&);
template Kernel<double> make_dispatch(const Form&);
template Kernel<float> make_combine(const Form&);
template Kernel<double> make_combine(const Form&);
template Kernel<float> make_grouped_matmul(const Form&);
template Kernel<double> make_grouped_matmul(const Form&);

}  // namespace foreshard::host
