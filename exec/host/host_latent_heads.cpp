// Keys and values of latent attention put side by side for each head; the rotated part of the keys is the same in all heads.
#include <algorithm>

#include "exec/host/host_kernel.h"

namespace foreshard::host {

template <class T>
Kernel<T> make_latent_heads(const Form& form) {
  const auto op = form.as<ops::LatentHeads>();
  const auto& dims = form.dims(0, 3);
  const std::int64_t rows = dims[0] * dims[1], in = dims[2], key = op.plain + op.rotated;
  if (op.heads < 1 || op.plain < 1 || op.rotated < 1 || op.value < 1 || op.heads * (op.plain + op.value) != in)
    form.refuse("\"" + settings_text(form.what.op) + "\" for rows of " + std::to_string(in), "heads that fill the row");
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
