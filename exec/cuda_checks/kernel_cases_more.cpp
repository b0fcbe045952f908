// Cases of dynamic loss scales and of images.
#include <array>

#include "exec/arithmetic/loss_scale_state.h"
#include "exec/cuda_checks/case_list.h"

namespace foreshard::gpu {

// The state of a dynamic loss scale: 2^3 for the next backward, 2^2 in the gradients of this step, three good steps, two skipped ones.
void add_loss_scales(Cases& all) {
  const auto state = [](double skips) {
    return filled(kLossScaleFloats, DType::F32, [=](std::int64_t i) {
      return i == 4 ? skips : std::array{3.0, 2.0, 3.0, 2.0}[static_cast<std::size_t>(i)];
    });
  };
  KernelCase& grad = all.add(
      "loss_grad_scaled",
      {.op = ops::CrossEntropy{.classes = 290}, .phase = Phase::InputGrad, .shapes = {{{12, 300}}}, .dynamic_scale = true},
      {3600}, {3600});
  grad.reads.push_back(filled(12, DType::I64, [](std::int64_t i) { return static_cast<double>(i * 23 % 290); }));
  grad.reads.push_back(state(0));
  all.add("squares_grad_scaled",
          {.op = ops::SumOfSquares{}, .phase = Phase::InputGrad, .shapes = {{{333}}}, .dynamic_scale = true}, {333}, {333})
      .reads.push_back(state(0));
  for (const bool skips : {false, true}) {
    const std::string name = skips ? "_skipped" : "_scaled";
    const auto update = [&](KernelCase& tried, std::size_t states) {
      tried.reads.push_back(state(skips ? 1 : 0));
      for (std::size_t i = 0; i < states; ++i) tried.writes.push_back(random_magnitudes(203, 100 + i, DType::F32));
      tried.arguments.step = 5, tried.arguments.loss_scale = 8;
      tried.arguments.optimizer = {.weight_decay = 0.1, .momentum = 0.9};
      if (skips) tried.tolerance = kExact;
    };
    update(all.add("adam" + name, {.op = ops::Adam{}, .phase = Phase::Update, .shapes = {{{203}}}, .dynamic_scale = true},
                   {203, 203, 203, 203}, {}),
           3);
    update(all.add("sgd" + name, {.op = ops::Sgd{}, .phase = Phase::Update, .shapes = {{{203}}}, .dynamic_scale = true},
                   {203, 203, 203}, {}),
           2);
    KernelCase& clip = all.add(
        "clip" + name, {.op = ops::ClipScale{.max_norm = 0.1}, .phase = Phase::Update, .dynamic_scale = true}, {}, {55});
    clip.reads = {filled(1, DType::F32, [](std::int64_t) { return 9.0; }), state(skips ? 1 : 0)};
    if (skips) clip.tolerance = kExact;
  }
  for (const auto& [name, square, growth] :
       {std::tuple{"judge", 4.0, 10}, {"judge_grows", 4.0, 4}, {"judge_overflow", HUGE_VAL, 4}}) {
    KernelCase& judge =
        all.add(name, {.op = ops::JudgeOverflow{.growth = growth, .start = 65536}, .phase = Phase::Update}, {}, {});
    judge.reads.push_back(filled(1, DType::F32, [square = square](std::int64_t) { return square; }));
    judge.writes.push_back(state(0));
    if (!std::isfinite(square)) judge.tolerance = kExact;  // the new state consists of whole numbers
  }
}

void add_pictures(Cases& all) {
  using enum Phase;
  struct Form {
    const char* name;
    std::int64_t samples, in, height, width, out, kernel, stride, padding;
  };
  // Odd sizes; a stride that skips rows; a 1x1 convolution, whose columns are its input.
  const Form forms[] = {{"3x3", 3, 5, 9, 7, 6, 3, 1, 1},
                        {"7x7_apart", 2, 3, 16, 14, 4, 7, 2, 3},
                        {"1x1", 2, 6, 5, 7, 3, 1, 1, 0},
                        {"1x1_apart", 2, 4, 8, 8, 5, 1, 2, 0}};
  for (const Form& f : forms)
    for (const bool half : {false, true}) {
      const std::int64_t height = (f.height + 2 * f.padding - f.kernel) / f.stride + 1,
                         width = (f.width + 2 * f.padding - f.kernel) / f.stride + 1;
      Compute what{.op = ops::Conv2d{},
                   .shapes = {{{f.samples, f.in, f.height, f.width}},
                              {{f.out, f.kernel, f.stride, f.padding}},
                              {{f.samples, f.out, height, width}}}};
      const std::int64_t x = f.samples * f.in * f.height * f.width, w = f.out * f.in * f.kernel * f.kernel,
                         y = f.samples * f.out * height * width;
      const std::string name = std::string("conv_") + f.name + (half ? "_bf16" : "");
      const DType dtype = half ? DType::BF16 : DType::F32;
      const double tolerance = half ? kHalf : kSingle;
      all.add(name, what, half ? std::vector{x, w, f.out} : std::vector{x, w}, {y}, dtype, tolerance);
      what.accumulate = half;
      what.phase = InputGrad;
      all.add(name + "_input_grad", what, {y, x, w}, {x}, dtype, half ? 2 * kHalf : kSingle);
      what.phase = WeightGrad;
      all.add(name + "_weight_grad", what, {y, x}, half ? std::vector{w, f.out} : std::vector{w}, dtype,
              half ? 2 * kHalf : kSingle);
    }
  const auto norm = [&](const char* name, Phase phase, const std::vector<std::int64_t>& in,
                        const std::vector<std::int64_t>& out, bool add, DType dtype) {
    all.add(name,
            {.op = ops::BatchNorm{}, .phase = phase, .shapes = {{{4, 3, 11, 9}}}, .accumulate = add, .accumulate_weights = add},
            in, out, dtype, dtype == DType::F32 ? kSingle : kHalf);
  };
  const std::int64_t size = 4 * 3 * 11 * 9;
  norm("batch_norm", Forward, {size, 3, 3}, {size}, false, DType::F32);
  norm("batch_norm_bf16", Forward, {size, 3, 3}, {size}, false, DType::BF16);
  norm("batch_norm_grad", Backward, {size, size, 3, 3}, {size, 3, 3}, false, DType::F32);
  norm("batch_norm_grad_added", Backward, {size, size, 3, 3}, {size, 3, 3}, true, DType::F32);
  norm("batch_norm_grad_weights", Backward, {size, size, 3, 3}, {3, 3}, false, DType::F32);
  for (const bool maximum : {true, false}) {
    const std::string name = maximum ? "max_pool" : "mean_pool";
    Compute what{.op = ops::MaxPool{.kernel = 3, .stride = 2, .padding = 1}, .shapes = {{{2, 3, 9, 8}}, {{2, 3, 5, 4}}}};
    if (!maximum) what.op = ops::AvgPool{.kernel = 3, .stride = 2, .padding = 1};
    const std::int64_t x = 2 * 3 * 9 * 8, y = 2 * 3 * 5 * 4;
    all.add(name, what, {x}, {y});
    what.phase = InputGrad;
    all.add(name + "_grad", what, maximum ? std::vector{y, x} : std::vector{y}, {x});
    what.accumulate = true;
    all.add(name + "_grad_added", what, maximum ? std::vector{y, x} : std::vector{y}, {x});
  }
}

}  // namespace foreshard::gpu
