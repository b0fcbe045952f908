// Small models trained for real, and their comparison with one device.
#pragma once

#include <span>
#include <string>

#include "core/model/model.h"
#include "core/strategy/strategy.h"
#include "exec/interpreter/execute.h"
#include "tests/how_many.h"

namespace foreshard {

Model tiny_gpt(bool tied = true);  // vocabulary 128, 16 positions, hidden size 32, 4 heads, 4 layers
Model tiny_llama();                // grouped queries, SwiGLU, RMSNorm, rotary positions, untied
Model tiny_bert();                 // post-norm, both heads
Model tiny_cnn();  // 8 x 8 pictures; a residual block as in ResNet-50, with a stride and a projection; 5 classes
Model twice_as_large(Model transformer);  // twice the hidden, feed-forward, head and vocabulary size and positions
Model tiny_mlp();                         // 12 features, three hidden layers, 7 classes

// Global batch 8 in fp64; the caller sets the rest.
Strategy in_double(Strategy strategy = {});
Plan lowered(const Model& model, const Strategy& strategy);  // fails the test when it is infeasible

ExecuteOptions training(int steps = how_many(2, 3));
Execution run(const Plan& plan, const ExecuteOptions& options);  // fails the test when it is refused

// A plan without defects, run with poisoned memory.
Execution trained(const Model& model, const Strategy& strategy, int steps = 3);

// How far two runs are apart: per tensor the largest difference of an element over the largest element.
struct Difference {
  double loss = 0, gradients = 0, values = 0;
  std::string worst = {};  // name of the tensor that differs most
  double largest() const;
};
Difference difference(const Execution& a, const Execution& b);
// Lowered with a dynamic loss scale that begins at 2^exponent.
Plan with_dynamic_scale(const Model& model, Strategy strategy, int exponent, int growth = 2000);
void divide_gradients(Execution& execution, double loss_scale);  // they carry it

// Every sample counts up, the same eight in every step: there is something to learn.
class CountingSamples : public Samples {
 public:
  void tokens(std::int64_t sample, std::int64_t position, std::int64_t vocab, std::span<std::int64_t> out) const override {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = (sample % 8 + position + static_cast<std::int64_t>(i)) % vocab;
  }
  std::int64_t label(std::int64_t, std::int64_t) const override { return 0; }
  void features(std::int64_t, std::int64_t, std::span<double>) const override {}
};

// Six steps on CountingSamples lower the loss by more than a twentieth.
void expect_the_loss_falls(const Model& model, const Strategy& strategy);

std::string name_of(const Strategy& strategy);  // for messages

}  // namespace foreshard
