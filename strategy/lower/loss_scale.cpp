#include "strategy/lower/loss_scale.h"

#include <cmath>
#include <cstdio>

#include "core/base/error.h"

namespace foreshard {

static bool scales(const Compute& what) {
  switch (what.op) {
    case Op::CrossEntropy:
    case Op::SumOfSquares: return what.phase == Phase::InputGrad;
    case Op::ClipScale:
    case Op::Adam:
    case Op::Sgd: return true;
    case Op::MatMul:
    case Op::Attention:
    case Op::Softmax:
    case Op::Norm:
    case Op::Activation:
    case Op::Bias:
    case Op::Dropout:
    case Op::Add:
    case Op::Rope:
    case Op::Embedding:
    case Op::Conv2d:
    case Op::BatchNorm:
    case Op::MaxPool:
    case Op::AvgPool:
    case Op::GradNorm:
    case Op::Cast:
    case Op::Zero:
    case Op::Encode:
    case Op::Decode: return false;
  }
  return false;
}

static std::string word_of(const char* key, double number) {
  char word[64];
  std::snprintf(word, sizeof word, "%s=%.17g", key, number);
  return word;
}

// In front: a group's name, which may have spaces, ends the attributes.
static void put_in_front(std::string& attributes, const std::string& words) {
  FS_ASSERT(attributes.find("loss_scale=") == std::string::npos);
  attributes = words + (attributes.empty() ? "" : " " + attributes);
}

template <class Change>
static void change_scaling(Plan& plan, Change change) {
  for (Segment& segment : plan.segments)
    for (Instruction& instruction : segment.instructions)
      if (auto* what = std::get_if<Compute>(&instruction.what); what && scales(*what)) change(instruction, *what);
}

Plan with_loss_scale(Plan plan, double scale) {
  const std::string word = word_of("loss_scale", scale);
  if (!std::isfinite(scale) || scale <= 0) throw Error("plan", "loss scale", word_of("", scale).substr(1), "a positive number");
  if (scale == 1) return plan;
  change_scaling(plan, [&](Instruction&, Compute& what) { put_in_front(what.attributes, word); });
  return plan;
}

static constexpr const char* kGrowth = "growth";

Plan with_dynamic_loss_scale(Plan plan, const DynamicLossScale& scale) {
  const std::string words = word_of("loss_scale", scale.start) + " dynamic_scale";
  change_scaling(plan, [&](Instruction& instruction, Compute& what) {
    if (what.attributes.starts_with(kGrowth)) return;  // the judge
    put_in_front(what.attributes, words);
    instruction.reads.push_back({.buffer = scale.state});
  });
  return plan;
}

Instruction judge_overflow(BufferId norm, const DynamicLossScale& scale) {
  return {
      .name = "loss scale",
      .what = Compute{.op = Op::ClipScale,
                      .phase = Phase::Update,
                      .shapes = {{{1}, DType::F32}},
                      .flops = {1},
                      .traffic = size_of(DType::F32) * (kLossScaleState + 1),
                      .attributes = word_of(kGrowth, static_cast<double>(scale.growth)) + " " + word_of("start", scale.start)},
      .stream = {0},
      .reads = {{.buffer = norm}},
      .writes = {{.buffer = scale.state}}};
}

}  // namespace foreshard
