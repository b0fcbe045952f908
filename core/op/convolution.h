// Convolution and pooling of images [n, c, h, w]: samples, channels, height, width.
#pragma once

#include "core/op/op.h"

namespace foreshard::ops {

// x [n, ci, h, w], weight [co, ci, k, k], bias [co] or none; shapes {n, ci, h, w}, {co, k, stride, padding}, {n, co, h', w'}.
struct Conv2d : OperatorTraits {
  static constexpr const char* kWord = "conv2d";
  template <class Self, class Visit>
  static void fields(Self&, Visit&&) {}
  static Saved saved() { return {.inputs = kFirst}; }
  static Works works(const Sizes& sizes) {
    const double pixels = static_cast<double>(sizes.count(2, 0) * sizes.count(2, 2)) * sizes.dim(2, 3);
    const std::int64_t fan_in = sizes.count(0, 1) * sizes.count(1, 1) * sizes.count(1, 1);
    const Flops flops = {2.0 * pixels * sizes.dim(1, 0) * static_cast<double>(fan_in)};
    const OpWork each = {flops, sizes.inputs[0] + sizes.outputs[0] + sizes.count(1, 0) * fan_in * size_of(sizes.param)};
    return {.forward = each, .input_grad = sizes.inputs_need_grad ? each : OpWork{}, .weight_grad = each};
  }
  bool operator==(const Conv2d&) const = default;
};

// Shapes: dimensions of x, dimensions of y. The backward of the maximum finds its position again from x; that of the average reads no
// operand.
template <bool maximum>
struct Pool : OperatorTraits {
  std::int64_t kernel = 1, stride = 1, padding = 0;

  static constexpr const char* kWord = maximum ? "max_pool" : "avg_pool";
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("kernel", self.kernel), visit("stride", self.stride), visit("padding", self.padding);
  }
  static Saved saved() { return {.inputs = maximum ? kFirst : kNone}; }
  static Works works(const Sizes& sizes) {
    return {.forward = {{}, sizes.inputs[0] + sizes.outputs[0]},
            .input_grad = {{}, (maximum ? 2 : 1) * sizes.inputs[0] + sizes.outputs[0]}};
  }
  bool operator==(const Pool&) const = default;
};
using MaxPool = Pool<true>;
using AvgPool = Pool<false>;

}  // namespace foreshard::ops
