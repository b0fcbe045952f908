// Makers for convolutions, batch norm and pooling. A convolution is im2col and a matrix product (Chellapilla et al. 2006), for some samples
// at a time.
#include "exec/cuda_ops/gpu_kernel.h"
#include "exec/host/host_window.h"

namespace foreshard::gpu {

namespace {

constexpr Bytes kMostColumns = {std::int64_t{256} << 20U};  // scratch of a convolution, unless one sample needs more

WindowArgs window_args(const host::Window& w, std::int64_t samples) {
  return {.planes = samples * w.channels,
          .height = w.height,
          .width = w.width,
          .out_height = w.out_height,
          .out_width = w.out_width,
          .kernel = w.kernel,
          .stride = w.stride,
          .padding = w.padding};
}

struct Convolution : host::Convolution {
  std::int64_t pixels() const { return window.out_picture(); }
  // Number of samples whose columns are in scratch memory at the same time.
  std::int64_t at_once(DType dtype) const {
    return std::clamp<std::int64_t>(kMostColumns.value / (columns_size() * size_of(dtype).value), 1, window.samples);
  }
  Bytes scratch(DType dtype) const { return plain() ? Bytes{} : Bytes{at_once(dtype) * columns_size() * size_of(dtype).value}; }
};

// `count` matrices of `rows` x `row` elements, one per sample, from sample `first` on.
Matrix of_samples(const Operand& operand, std::int64_t first, std::int64_t step, std::int64_t row, bool transposed = false) {
  return {.data = operand.data + first * step * size_of(operand.dtype).value,
          .row = row,
          .step = step,
          .transposed = transposed,
          .dtype = operand.dtype};
}

Operand part_of(const Operand& operand, std::int64_t first, std::int64_t elements) {
  return {operand.data + first * size_of(operand.dtype).value, elements, operand.dtype};
}

// Calls body(first sample, number of samples, their columns) piece by piece. A 1x1 convolution with stride 1 needs no im2col: its columns
// are its input.
template <class F>
void for_each_piece(const Launcher& on, const Convolution& conv, const Operand& x, std::byte* scratch, F body) {
  const std::int64_t piece = conv.plain() ? conv.window.samples : conv.at_once(x.dtype);
  for (std::int64_t first = 0; first < conv.window.samples; first += piece) {
    const std::int64_t samples = std::min(piece, conv.window.samples - first);
    if (conv.plain()) {
      body(first, samples, of_samples(x, first, conv.in_size(), conv.pixels()));
      continue;
    }
    const Operand columns = {scratch, samples * conv.columns_size(), x.dtype};
    WindowArgs args = window_args(conv.window, samples);
    args.x = reads(part_of(x, first * conv.in_size(), samples * conv.in_size()));
    args.y = writes(columns);
    on.elements(KernelId::window_columns, columns.elements, args);
    body(first, samples, of_samples(columns, 0, conv.columns_size(), conv.pixels()));
  }
}

ChannelArgs channels_of_output(const Convolution& conv) {
  return {.samples = conv.window.samples, .channels = conv.filters, .pixels = conv.pixels()};
}

Kernel convolution_forward(const host::Form& form, const Convolution& conv) {
  const std::int64_t samples = conv.window.samples;
  const bool bias = form.reads.size() == 3;
  std::vector<std::int64_t> in = {samples * conv.in_size(), conv.filters * conv.taps()};
  if (bias) in.push_back(conv.filters);
  form.expect(in, {samples * conv.out_size()});
  expect_factors(form, form.reads[0], form.reads[1]);
  return {.run =
              [=](const Launcher& on, const Call& call) {
                const Operand& y = call.writes[0];
                if (bias) {
                  ChannelArgs fill = channels_of_output(conv);
                  fill.bias = reads(call.reads[2]), fill.y = writes(y);
                  on.elements(KernelId::channel_fill, y.elements, fill);
                }
                for_each_piece(on, conv, call.reads[0], call.scratch,
                               [&](std::int64_t first, std::int64_t count, const Matrix& columns) {
                                 on.multiply({.m = conv.filters,
                                              .n = conv.pixels(),
                                              .k = conv.taps(),
                                              .count = count,
                                              .a = of_samples(call.reads[1], 0, 0, conv.taps()),
                                              .b = columns,
                                              .c = of_samples(y, first, conv.out_size(), conv.pixels()),
                                              .beta = bias ? 1.0F : 0.0F});
                               });
              },
          .scratch = conv.scratch(form.reads[0].dtype),
          .multiplies = true};
}

// The gradient of the columns is in fp32; col2im sums it per pixel of the input.
Kernel convolution_input_grad(const host::Form& form, const Convolution& conv) {
  const std::int64_t samples = conv.window.samples;
  std::vector<std::int64_t> in = {samples * conv.out_size(), 0, conv.filters * conv.taps()};
  if (form.reads.size() == 4) in.push_back(conv.filters);
  form.expect(in, {samples * conv.in_size()});
  expect_factors(form, form.reads[0], form.reads[2]);
  const bool accumulate = form.what.accumulate;
  return {.run =
              [=](const Launcher& on, const Call& call) {
                const std::int64_t piece = conv.plain() ? samples : conv.at_once(DType::F32);
                for (std::int64_t first = 0; first < samples; first += piece) {
                  const std::int64_t count = std::min(piece, samples - first);
                  const Operand columns = {call.scratch, count * conv.columns_size(), DType::F32};
                  on.multiply({.m = conv.taps(),
                               .n = conv.pixels(),
                               .k = conv.filters,
                               .count = count,
                               .a = of_samples(call.reads[2], 0, 0, conv.taps(), true),
                               .b = of_samples(call.reads[0], first, conv.out_size(), conv.pixels()),
                               .c = conv.plain() ? of_samples(call.writes[0], first, conv.in_size(), conv.pixels())
                                                 : of_samples(columns, 0, conv.columns_size(), conv.pixels()),
                               .beta = conv.plain() && accumulate ? 1.0F : 0.0F});
                  if (conv.plain()) continue;
                  WindowArgs sum = window_args(conv.window, count);
                  sum.x = reads(columns), sum.accumulate = accumulate;
                  sum.y = writes(part_of(call.writes[0], first * conv.in_size(), count * conv.in_size()));
                  on.elements(KernelId::window_pixels, sum.y.elements, sum);
                }
              },
          .scratch = conv.scratch(DType::F32),
          .multiplies = true};
}

Kernel convolution_weight_grad(const host::Form& form, const Convolution& conv) {
  const std::int64_t samples = conv.window.samples;
  const bool bias = form.writes.size() == 2, accumulate = form.what.accumulate;
  std::vector<std::int64_t> out = {conv.filters * conv.taps()};
  if (bias) out.push_back(conv.filters);
  form.expect({samples * conv.out_size(), samples * conv.in_size()}, out);
  expect_factors(form, form.reads[0], form.reads[1]);
  return {.run =
              [=](const Launcher& on, const Call& call) {
                const Operand &dy = call.reads[0], &dw = call.writes[0];
                for_each_piece(
                    on, conv, call.reads[1], call.scratch, [&](std::int64_t first, std::int64_t count, const Matrix& columns) {
                      // one product after the other, because all are added to the same weights
                      for (std::int64_t n = 0; n < count; ++n) {
                        Matrix transposed = columns;
                        transposed.data += n * columns.step * size_of(columns.dtype).value, transposed.transposed = true;
                        on.multiply({.m = conv.filters,
                                     .n = conv.taps(),
                                     .k = conv.pixels(),
                                     .a = of_samples(dy, first + n, conv.out_size(), conv.pixels()),
                                     .b = transposed,
                                     .c = of_samples(dw, 0, 0, conv.taps()),
                                     .beta = accumulate || first + n > 0 ? 1.0F : 0.0F});
                      }
                    });
                if (!bias) return;
                ChannelArgs sum = channels_of_output(conv);
                sum.x = reads(dy), sum.bias_grad = writes(call.writes[1]), sum.accumulate_weights = accumulate;
                on.launch(KernelId::channel_sums, conv.filters, 1, 256, sum);
              },
          .scratch = conv.scratch(form.reads[1].dtype),
          .multiplies = true};
}

}  // namespace

Kernel make_conv2d(const host::Form& form) {
  const Convolution conv{host::convolution_of(form)};
  if (form.forward()) return convolution_forward(form, conv);
  if (form.what.phase == Phase::InputGrad) return convolution_input_grad(form, conv);
  if (form.what.phase == Phase::WeightGrad) return convolution_weight_grad(form, conv);
  form.refuse("this phase", "forward, recompute, input gradient or weight gradient");
}

Kernel make_batch_norm(const host::Form& form) {
  const auto& dims = form.dims(0);
  if (dims.size() < 2) form.refuse("1 dimension", "[n, c, ...]");
  ChannelArgs sizes = {.samples = dims[0], .channels = dims[1]};
  sizes.pixels = host::size_of_dims(dims) / (dims[0] * dims[1]);
  sizes.eps = static_cast<float>(form.as<ops::BatchNorm>().eps);
  const std::int64_t size = host::size_of_dims(dims), channels = dims[1];
  if (form.what.phase == Phase::Backward) {
    const bool input = form.writes.size() == 3;
    std::vector<std::int64_t> out = {channels, channels};
    if (input) out.insert(out.begin(), size);
    form.expect({size, size, channels, channels}, out);
    sizes.accumulate = form.what.accumulate, sizes.accumulate_weights = form.what.accumulate_weights;
    return {.run = [=](const Launcher& on, const Call& call) {
      ChannelArgs args = sizes;
      args.dy = reads(call.reads[0]), args.x = reads(call.reads[1]);
      if (input) args.weight = reads(call.reads[2]), args.y = writes(call.writes[0]);
      args.weight_grad = writes(call.writes[input ? 1 : 0]), args.bias_grad = writes(call.writes[input ? 2 : 1]);
      on.launch(KernelId::batch_norm_backward, channels, 1, 256, args);
    }};
  }
  if (!form.forward()) form.refuse("this phase", "forward, recompute or backward");
  form.expect({size, channels, channels}, {size});
  return {.run = [=](const Launcher& on, const Call& call) {
    ChannelArgs args = sizes;
    args.x = reads(call.reads[0]), args.weight = reads(call.reads[1]), args.bias = reads(call.reads[2]);
    args.y = writes(call.writes[0]);
    on.launch(KernelId::batch_norm_forward, channels, 1, 256, args);
  }};
}

Kernel make_pool(const host::Form& form) {
  const std::vector<std::int64_t>&in = form.dims(0, 4), &out = form.dims(1, 4);
  const host::Window w = host::pool_window_of(form);
  const std::int64_t in_size = host::size_of_dims(in), out_size = host::size_of_dims(out);
  WindowArgs sizes = window_args(w, w.samples);
  sizes.maximum = is<ops::MaxPool>(form.what.op), sizes.accumulate = form.what.accumulate;
  if (form.what.phase == Phase::InputGrad) {
    form.expect(sizes.maximum ? std::vector{out_size, in_size} : std::vector{out_size}, {in_size});
    return {.run = [=](const Launcher& on, const Call& call) {
      WindowArgs args = sizes;
      args.x = reads(call.reads[0]), args.y = writes(call.writes[0]);
      if (args.maximum) args.picture = reads(call.reads[1]);
      on.elements(KernelId::pool_backward, in_size, args);
    }};
  }
  if (!form.forward()) form.refuse("this phase", "forward, recompute or input gradient");
  form.expect({in_size}, {out_size});
  return {.run = [=](const Launcher& on, const Call& call) {
    WindowArgs args = sizes;
    args.x = reads(call.reads[0]), args.y = writes(call.writes[0]);
    on.elements(KernelId::pool_forward, out_size, args);
  }};
}

}  // namespace foreshard::gpu
