#include "core/plan/joined_products.h"

#include <optional>

namespace foreshard {

namespace {

const Compute* compute_of(const Instruction& instruction) { return std::get_if<Compute>(&instruction.what); }

bool is_product(const Instruction& instruction) {
  const Compute* what = compute_of(instruction);
  const auto* product = what ? std::get_if<ops::MatMul>(&what->op) : nullptr;
  if (!product || product->first_token || what->dynamic_scale || what->shapes.empty() || instruction.writes.size() != 1)
    return false;
  const DType dtype = what->shapes.front().dtype;
  const bool half = dtype == DType::BF16 || dtype == DType::F16;
  return half && (ops::is_forward(what->phase) || (what->phase == Phase::InputGrad && !what->accumulate));
}

bool is_weight_grad(const Instruction& instruction) {
  const Compute* what = compute_of(instruction);
  return what && is<ops::MatMul>(what->op) && what->phase == Phase::WeightGrad;
}

// Whether it is the GELU of this product, or its gradient.
bool is_gelu_of(const Instruction& instruction, const Instruction& product) {
  const Compute* what = compute_of(instruction);
  const auto* activation = what ? std::get_if<ops::Activation>(&what->op) : nullptr;
  if (!activation || activation->function != ops::Activation::Function::Gelu || what->dynamic_scale || what->accumulate)
    return false;
  const Phase phase = compute_of(product)->phase;
  return (ops::is_forward(phase) ? ops::is_forward(what->phase) : what->phase == phase) && !instruction.reads.empty() &&
         instruction.reads.front() == product.writes.front();
}

}  // namespace

std::vector<JoinedProduct> joined_products(const Segment& segment) {
  std::vector<JoinedProduct> all;
  const std::vector<Instruction>& run = segment.instructions;
  const auto next_of_stream = [&](std::size_t from) -> std::optional<std::size_t> {
    for (std::size_t i = from + 1; i < run.size(); ++i)
      if (run[i].stream == run[from].stream) return i;
    return {};
  };
  for (std::size_t i = 0; i < run.size(); ++i) {
    if (!is_product(run[i])) continue;
    std::optional<std::size_t> behind = next_of_stream(i);
    if (behind && compute_of(run[i])->phase == Phase::InputGrad && is_weight_grad(run[*behind]))
      behind = next_of_stream(*behind);
    if (behind && is_gelu_of(run[*behind], run[i])) all.push_back({i, *behind});
  }
  return all;
}

}  // namespace foreshard
