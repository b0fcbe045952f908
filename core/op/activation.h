// Element-wise activation functions and multiplication by a constant. Shapes {rows, columns of the result}.
#pragma once

#include "core/op/op.h"

namespace foreshard::ops {

struct Activation : OperatorTraits {
  // Gelu: the tanh form (Hendrycks & Gimpel 2016). SwiGlu (Shazeer 2020): silu(gate) up, where the columns of x are [gate, up]. GeGlu:
  // gelu(gate) up. ClampedSwiGlu (gpt-oss): (u + 1) g sigmoid(1.702 g), g = min(gate, 7), u = up clamped to [-7, 7]. Cap: cap tanh(x /
  // cap).
  enum class Function : std::uint8_t { Gelu, Relu, Tanh, SwiGlu, GeGlu, ClampedSwiGlu, Cap };
  Function function = Function::Gelu;
  double cap = 0;  // of Cap

  static constexpr const char* kWord = "activation";
  static constexpr int kFirstSettings = 1;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("function", self.function), visit("cap", self.cap);
  }
  // The backward of Relu, Tanh and Cap reads the result, that of the others the input.
  bool saves_result() const { return function == Function::Relu || function == Function::Tanh || function == Function::Cap; }
  Saved saved() const { return saves_result() ? Saved{.outputs = kFirst} : Saved{.inputs = kFirst}; }
  Works works(const Sizes& sizes) const {
    const Bytes in = sizes.inputs[0], out = sizes.outputs[0];
    return {.forward = {{}, in + out}, .input_grad = {{}, (saves_result() ? out : in) + out + in}};
  }
  bool operator==(const Activation&) const = default;
};

// x times a constant (multipliers of Gemma and Granite).
struct Scale : OperatorTraits {
  double factor = 1;

  static constexpr const char* kWord = "scale";
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("factor", self.factor);
  }
  static Saved saved() { return {}; }
  static Works works(const Sizes& sizes) {
    return {.forward = {{}, 2 * sizes.inputs[0]}, .input_grad = {{}, 2 * sizes.inputs[0]}};
  }
  static PartialSums partial_sums(Phase) { return {.pass = true}; }
  bool operator==(const Scale&) const = default;
};

}  // namespace foreshard::ops
