// Scores of tokens, the tokens that are kept, and their rows.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "exec/host/host_kernel.h"

namespace foreshard::host {

// Sums over heads and queries of [b, heads, queries, keys].
template <class T>
Kernel<T> make_token_scores(const Form& form) {
  const auto& dims = form.dims(0, 4);
  const std::int64_t b = dims[0], maps = dims[1] * dims[2], keys = dims[3];
  form.expect({b * maps * keys}, {b * keys});
  return {.run = [b, maps, keys](const Call<T>& call) {
    std::fill_n(call.out[0], b * keys, T(0));
    for (std::int64_t sample = 0; sample < b; ++sample)
      add_column_sums(call.in[0] + sample * maps * keys, maps, keys, call.out[0] + sample * keys);
  }};
}

// Of each part of a sample, the best; of the whole sample the first token. Equal ones by their place.
template <class T>
Kernel<T> make_keep_tokens(const Form& form) {
  const auto& dims = form.dims(0, 3);
  const std::int64_t b = dims[0], parts = form.as<ops::KeepTokens>().parts, s = dims[1] / parts, k = dims[2] / parts;
  form.expect({b * dims[1]}, {b * dims[2]});
  if (k > s) form.refuse(std::to_string(k) + " tokens kept", "at most " + std::to_string(s));
  if (form.writes[0].dtype != DType::I64) form.refuse("tokens in another format", "int64");
  return {.run = [b, s, k, parts](const Call<T>& call) {
    auto* kept = reinterpret_cast<std::int64_t*>(call.writes[0].data);
    for (std::int64_t part = 0; part < b * parts; ++part, kept += k) {
      const std::int64_t first = part % parts * s, end = first + s;
      const T* scores = call.in[0] + part / parts * s * parts;
      const auto before = [&](std::int64_t one, std::int64_t other) {
        if (one == 0 || other == 0) return one == 0 && other != 0;
        return scores[one] != scores[other] ? scores[one] > scores[other] : one < other;
      };
      // A heap of the best so far, the worst of them on top: s steps of log k.
      std::iota(kept, kept + k, first);
      std::make_heap(kept, kept + k, before);
      for (std::int64_t token = first + k; token < end; ++token) {
        if (!before(token, kept[0])) continue;
        std::pop_heap(kept, kept + k, before);
        kept[k - 1] = token;
        std::push_heap(kept, kept + k, before);
      }
      std::sort(kept, kept + k);
    }
  }};
}

// Rows are ordered [position, sample]: row = position b + sample, of the kept ones as of all.
template <class T>
Kernel<T> make_kept_rows(const Form& form, bool takes, std::int64_t parts) {
  const auto& dims = form.dims(0, 4);
  const std::int64_t b = dims[0], s = dims[1], k = dims[2], h = dims[3];
  const std::int64_t from = takes ? b * s * h : b * k * h, to = takes ? b * k * h : b * s * h;
  form.expect({from, b * k * parts}, {to});
  const bool add = form.what.accumulate;
  return {.run = [=](const Call<T>& call) {
    const std::int64_t part = parts == 1 ? 0 : call.arguments.tp_rank;  // whose rows these are
    const auto* kept = reinterpret_cast<const std::int64_t*>(call.reads[1].data) + part * k;
    if (!takes && !add) std::fill_n(call.out[0], to, T(0));
    for (std::int64_t i = 0; i < k; ++i)
      for (std::int64_t sample = 0; sample < b; ++sample) {
        const std::int64_t place = kept[sample * k * parts + i] - part * s;
        if (place < 0 || place >= s)
          throw Error("plan", "kept tokens", "place " + std::to_string(place), "0 to " + std::to_string(s - 1));
        const std::int64_t all = (place * b + sample) * h, row = (i * b + sample) * h;
        const T* x = call.in[0] + (takes ? all : row);
        T* y = call.out[0] + (takes ? row : all);
        for (std::int64_t c = 0; c < h; ++c) y[c] = (add ? y[c] : T(0)) + x[c];
      }
  }};
}

template <class T>
Kernel<T> make_take_rows(const Form& form) {
  return make_kept_rows<T>(form, form.forward(), form.as<ops::TakeRows>().parts);
}
template <class T>
Kernel<T> make_put_rows(const Form& form) {
  return make_kept_rows<T>(form, !form.forward(), form.as<ops::PutRows>().parts);
}

template Kernel<float> make_token_scores(const Form&);
template Kernel<double> make_token_scores(const Form&);
template Kernel<float> make_keep_tokens(const Form&);
template Kernel<double> make_keep_tokens(const Form&);
template Kernel<float> make_take_rows(const Form&);
template Kernel<double> make_take_rows(const Form&);
template Kernel<float> make_put_rows(const Form&);
template Kernel<double> make_put_rows(const Form&);

}  // namespace foreshard::host
