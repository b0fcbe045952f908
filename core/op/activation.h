// An activation function, element by element; shapes {rows, columns of the result}.
#pragma once

#include "core/op/op.h"

namespace foreshard::ops {

struct Activation : Laws {
  // Gelu in its tanh form (Hendrycks & Gimpel 2016). SwiGlu (Shazeer 2020): x = [gate, up] along the columns, silu(gate) up.
  enum class Function : std::uint8_t { Gelu, Relu, Tanh, SwiGlu };
  Function function = Function::Gelu;

  static constexpr const char* kWord = "activation";
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("function", self.function);
  }
  // Of relu and tanh the result is enough.
  bool saves_result() const { return function == Function::Relu || function == Function::Tanh; }
  Saved saved() const { return saves_result() ? Saved{.outputs = kFirst} : Saved{.inputs = kFirst}; }
  Works works(const Sizes& sizes) const {
    const Bytes in = sizes.inputs[0], out = sizes.outputs[0];
    return {.forward = {{}, in + out}, .input_grad = {{}, (saves_result() ? out : in) + out + in}};
  }
  bool operator==(const Activation&) const = default;
};

}  // namespace foreshard::ops
