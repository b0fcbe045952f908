// Makers for optimizer steps, the norm of all gradients, gradient clipping and the overflow check.
#include <climits>
#include <cmath>

#include "exec/cuda_ops/gpu_kernel.h"

namespace foreshard::gpu {

namespace {

// Indices of the arrays among the writes; -1: there is no such array.
struct States {
  int master = -1, momentum = -1, variance = -1, value = -1;
};

// Reads: gradient and states; without a master copy also the value. Writes: states and value.
States states_of(const host::Form& form, bool adam) {
  const int writes = static_cast<int>(form.writes.size()), reads = static_cast<int>(form.reads.size());
  States at;
  int next = 0;
  if (reads == writes) at.master = next++;
  if (next < writes - 1) at.momentum = next++;
  if (next < writes - 1) at.variance = next++;
  at.value = next++;
  if (next != writes || adam != (at.variance >= 0) || (at.master < 0 && reads != writes + 1))
    form.refuse(std::to_string(reads) + " reads and " + std::to_string(writes) + " writes",
                adam ? "gradient, [master], momentum, variance, [value]" : "gradient, [master], [momentum], [value]");
  return at;
}

Operand own_part(Operand operand, std::int64_t elements, bool sliced, std::int64_t slice) {
  if (!sliced || operand.elements <= elements) return operand;
  operand.data += size_of(operand.dtype).value * slice * elements;
  operand.elements = elements;
  return operand;
}

UpdateArgs adam_numbers(const ops::Adam& op, const OpArguments& a) {
  const OptimizerSettings& o = a.optimizer;
  const double steps = static_cast<double>(a.step);
  UpdateArgs args = {};
  args.gradient_scale = static_cast<float>(1 / a.loss_scale);
  args.keep = static_cast<float>(o.decoupled_decay ? 1 - o.learning_rate * o.weight_decay : 1.0);
  args.decay = static_cast<float>(o.decoupled_decay ? 0.0 : o.weight_decay);
  args.beta1 = static_cast<float>(o.beta1), args.rest1 = static_cast<float>(1 - o.beta1);
  args.beta2 = static_cast<float>(o.beta2), args.rest2 = static_cast<float>(1 - o.beta2);
  args.step = static_cast<float>(o.learning_rate / (1 - std::pow(o.beta1, steps)));
  args.moments = op.frozen_after > 0, args.frozen = args.moments && a.step > op.frozen_after;
  const double seen = args.frozen ? static_cast<double>(op.frozen_after) : steps;
  args.root = static_cast<float>(1 / std::sqrt(1 - std::pow(o.beta2, seen)));
  args.eps = static_cast<float>(o.eps);
  args.betas[0] = o.beta1, args.betas[1] = o.beta2, args.rate = o.learning_rate, args.steps = a.step;
  return args;
}

UpdateArgs sgd_numbers(const OpArguments& a) {
  UpdateArgs args = {};
  args.gradient_scale = static_cast<float>(1 / a.loss_scale);
  args.decay = static_cast<float>(a.optimizer.weight_decay);
  args.beta1 = static_cast<float>(a.optimizer.momentum);
  args.step = static_cast<float>(a.optimizer.learning_rate);
  return args;
}

}  // namespace

Kernel make_update(const host::Form& form, bool adam) {
  if (form.reads.empty() || form.writes.empty()) form.refuse("no operands", "gradient, states and value");
  const States at = states_of(form, adam);
  std::int64_t elements = form.reads[0].elements;
  for (const auto& operands : {form.reads, form.writes})
    for (const Operand& operand : operands) elements = std::min(elements, operand.elements);
  if (!form.what.shapes.empty()) {
    if (elements < form.dims(0, 1)[0])
      form.refuse(std::to_string(elements) + " elements", "at least " + std::to_string(form.dims(0, 1)[0]));
    elements = form.dims(0, 1)[0];
  }
  const bool sliced = form.what.slice.valid();
  const ops::Adam moments = adam ? form.as<ops::Adam>() : ops::Adam{};
  const auto run = [=](const Launcher& on, const Call& call) {
    UpdateArgs args = adam ? adam_numbers(moments, call.arguments) : sgd_numbers(call.arguments);
    const auto part = [&](const Operand& operand) { return own_part(operand, elements, sliced, call.arguments.slice); };
    const auto state = [&](int place) {
      return place < 0 ? View{} : writes(part(call.writes[static_cast<std::size_t>(place)]));
    };
    args.gradient = reads(part(call.reads[0]));
    args.master = state(at.master), args.momentum = state(at.momentum), args.variance = state(at.variance);
    args.value = state(at.value);
    args.count = elements, args.state = call.state;
    on.elements(adam ? KernelId::update_adam : KernelId::update_sgd, elements, args);
  };
  return {.run = run, .varies = adam};  // the bias correction differs from step to step
}

// writes[0] (+)= sum of squares of all elements read, divided by `divide=`; `slice=`, `used=`: docs/host-kernels.md.
Kernel make_grad_norm(const host::Form& form) {
  if (form.writes.size() != 1) form.refuse(std::to_string(form.writes.size()) + " writes", "1");
  const bool accumulate = form.what.accumulate, sliced = form.what.slice.valid();
  const std::int64_t elements = sliced ? form.dims(0, 1)[0] : 0;
  const auto& op = form.as<ops::GradNorm>();
  if (op.divide < 1) form.refuse("divide=" + std::to_string(op.divide), "at least 1");
  const auto divide = static_cast<double>(op.divide);
  const std::int64_t used = op.used > 0 ? op.used : INT64_MAX;
  std::int64_t largest = 0;
  for (const Operand& operand : form.reads) largest = std::max(largest, operand.elements);
  const auto count = static_cast<std::int64_t>(form.reads.size());
  return {.run =
              [=](const Launcher& on, const Call& call) {
                const View sums = scratch_array(call.scratch, count, Type::F64);
                for (std::int64_t i = 0; i < count; ++i) {
                  const Operand part =
                      own_part(call.reads[static_cast<std::size_t>(i)], elements, sliced, call.arguments.slice);
                  TermSumArgs args = {.x = reads(part), .weight = 1, .terms = Terms::Squares};
                  args.out = scratch_array(call.scratch + 8 * i, 1, Type::F64);
                  args.count = std::max<std::int64_t>(0, std::min(part.elements, used - call.arguments.slice * elements));
                  on.sum_terms(args, call.scratch + 8 * count);
                }
                TermSumArgs all = {.x = sums, .out = writes(call.writes[0]), .count = count, .weight = 1 / divide};
                all.x.writes = false;
                all.terms = Terms::Given, all.accumulate = accumulate;
                on.sum_terms(all, call.scratch + 8 * count);
              },
          .scratch = Bytes{8 * count} + term_sum_scratch(largest)};
}

Kernel make_clip_scale(const host::Form& form) {
  if (form.reads.empty()) form.refuse("no reads", "the sum of squares");
  const double limit = form.as<ops::ClipScale>().max_norm;
  const bool sliced = form.what.slice.valid();
  const std::int64_t elements = sliced ? form.dims(0, 1)[0] : 0;
  return {.run = [=](const Launcher& on, const Call& call) {
    for (const Operand& whole : call.writes) {
      const Operand part = own_part(whole, elements, sliced, call.arguments.slice);
      on.elements(KernelId::scale_clipped, 4 * part.elements,
                  ScaleArgs{.square = reads(call.reads[0]),
                            .x = writes(part),
                            .state = call.state,
                            .limit = limit,
                            .loss_scale = call.arguments.loss_scale});
    }
  }};
}

// reads[0]: the squared norm of all gradients; writes[0]: the state of the loss scale, which is updated.
Kernel make_judge_overflow(const host::Form& form) {
  const host::OverflowRule rule = host::overflow_rule(form);
  return {.run = [rule](const Launcher& on, const Call& call) {
    on.launch(KernelId::judge_overflow, 1, 1, 32,
              JudgeArgs{.square = reads(call.reads[0]),
                        .state = writes(call.writes[0]),
                        .growth = static_cast<float>(rule.growth),
                        .least = static_cast<float>(rule.least)});
  }};
}

}  // namespace foreshard::gpu
