// Makers for activations, dropout, sums, softmax, rotary position embedding and casts.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "exec/base/philox.h"
#include "exec/cuda_ops/gpu_kernel.h"
#include "exec/host/host_dropout.h"

namespace foreshard::gpu {

static Curve curve_of(const host::Form& form) {
  switch (form.as<ops::Activation>().function) {
    case ops::Activation::Function::Gelu: return Curve::Gelu;
    case ops::Activation::Function::Relu: return Curve::Relu;
    case ops::Activation::Function::Tanh: return Curve::Tanh;
    case ops::Activation::Function::SwiGlu: return Curve::SwiGlu;
    case ops::Activation::Function::GeGlu: return Curve::GeGlu;
    case ops::Activation::Function::ClampedSwiGlu: return Curve::ClampedSwiGlu;
    case ops::Activation::Function::Cap: return Curve::Cap;
  }
  return Curve::Gelu;
}

Kernel make_activation(const host::Form& form) {
  const auto& dims = form.dims(0, 2);
  const std::int64_t rows = dims[0], columns = dims[1], size = rows * columns;
  const Curve curve = curve_of(form);
  const std::int64_t saved = is_gated(curve) ? 2 * size : size;
  const auto cap = static_cast<float>(form.as<ops::Activation>().cap);
  if (curve == Curve::Cap && !(cap > 0)) form.refuse("cap " + std::to_string(cap), "a positive number");
  if (form.forward()) {
    form.expect({saved}, {size});
    return {.run = [=](const Launcher& on, const Call& call) {
      ActivationArgs args = {.x = reads(call.reads[0]), .y = writes(call.writes[0]), .rows = rows, .columns = columns};
      args.curve = curve, args.cap = cap;
      on.elements(KernelId::activation_forward, size, args);
    }};
  }
  form.expect({size, saved}, {saved});
  const bool accumulate = form.what.accumulate;
  return {.run = [=](const Launcher& on, const Call& call) {
    ActivationArgs args = {.x = reads(call.reads[1]), .dy = reads(call.reads[0]), .y = writes(call.writes[0]), .rows = rows};
    args.columns = columns, args.curve = curve, args.accumulate = accumulate, args.cap = cap;
    on.elements(KernelId::activation_backward, size, args);
  }};
}

namespace {

Kernel dropout_forward(const host::Form& form, const DropoutArgs& args, const ops::Dropout& op) {
  const SequenceSplit split = op.split;
  const auto site = static_cast<std::uint64_t>(op.site);
  const bool sequence_parallel = args.heads == 0 && op.sequence_parallel;
  const host::DropOperands operands = host::drop_operands(form, args.runs, args.length);
  const auto run = [=](const Launcher& on, const Call& call) {
    DropoutArgs drop = args;
    const OpArguments& given = call.arguments;
    drop.x = reads(call.reads[0]), drop.y = writes(call.writes[0]), drop.mask = writes(call.writes[1]);
    if (operands.skip) drop.skip = reads(call.reads[1]);
    if (operands.bias) drop.bias = reads(call.reads[2]);
    drop.seed = given.seed;
    drop.key = mix_keys(mix_keys(name_key("dropout"), given.layer), site);
    drop.first_sample = given.first_sample;
    if (drop.heads > 0)
      drop.first_place = host::first_head(split, drop.heads, given);
    else
      drop.positions = positions_of(host::held_rows(split, drop.runs / drop.samples, sequence_parallel, given));
    if (drop.keys > 0) {
      const std::int64_t rows = drop.keys / split.ranks;
      drop.positions = positions_of(split.rows_of(given.cp_rank, rows)), drop.order = gathered_order(split, rows);
    }
    const std::int64_t threads = std::min<std::int64_t>(256, round_up(ceil_div(drop.length, 4), 32));
    drop.blocks_of_run = static_cast<int>(std::min<std::int64_t>(64, ceil_div(drop.length, 8 * threads)));
    on.launch(KernelId::dropout_forward, drop.runs * drop.blocks_of_run, 1, static_cast<int>(threads), drop);
  };
  return {.run = run, .varies = true};
}

// dx = dy mask scale; the gradient of a bias is the column sum of dx.
Kernel dropout_backward(const host::Form& form, const DropoutArgs& args) {
  const std::int64_t size = args.runs * args.length;
  const auto [skip, bias, input] = host::drop_operands(form, args.runs, args.length);
  const bool add = form.what.accumulate, add_weights = form.what.accumulate_weights;
  return {.run =
              [=, bias = bias, input = input](const Launcher& on, const Call& call) {
                DropoutArgs drop = args;
                drop.x = reads(call.reads[0]), drop.mask = reads(call.reads[1]), drop.accumulate = add;
                if (bias) {
                  ColumnSumArgs sum = {
                      .x = drop.x, .mask = drop.mask, .out = writes(call.writes[input ? 1 : 0]), .rows = drop.runs};
                  sum.columns = drop.length, sum.factor = Factor::Mask, sum.scale = drop.scale, sum.accumulate = add_weights;
                  on.sum_columns(sum, call.scratch);
                }
                if (!input) return;
                drop.y = writes(call.writes[0]);
                on.elements(KernelId::dropout_backward, size, drop);
              },
          .scratch = bias ? column_sum_scratch(args.runs, args.length) : Bytes{}};
}

}  // namespace

Kernel make_dropout(const host::Form& form) {
  const auto& dims = form.dims(0);
  if (dims.size() != 3 && dims.size() != 4)
    form.refuse(std::to_string(dims.size()) + " dimensions", "3 (rows) or 4 (attention maps)");
  const bool maps = dims.size() == 4;
  const host::DropRule rule = host::drop_rule(form);
  DropoutArgs args = {.runs = dims[0] * dims[1], .length = maps ? dims[2] * dims[3] : dims[2], .samples = dims[0]};
  args.heads = maps ? dims[1] : 0;
  args.threshold = rule.threshold, args.scale = static_cast<float>(rule.scale);
  const std::span<const Operand> side = form.forward() ? form.writes : form.reads;
  if (side.size() < 2 || side[1].dtype != DType::U8) form.refuse("no uint8 mask", "a mask as second operand");
  const auto& op = form.as<ops::Dropout>();
  if (maps && op.split.parts() > 1) args.queries = dims[2] * op.split.ranks, args.keys = dims[3];
  if (form.forward()) return dropout_forward(form, args, op);
  return dropout_backward(form, args);
}

// InputGrad is the sum of two gradients: writes[0] += reads[0]. WeightGrad is that of the bias: column sums.
Kernel make_add(const host::Form& form) {
  const auto& dims = form.dims(0);
  const std::int64_t columns = dims.back(), size = host::size_of_dims(dims), rows = size / columns;
  const bool accumulate = form.what.accumulate;
  if (form.reads.empty()) form.refuse("no reads", "at least one");
  if (form.what.phase == Phase::WeightGrad) {
    form.expect({size}, {columns});
    return {.run =
                [=](const Launcher& on, const Call& call) {
                  on.sum_columns({.x = reads(call.reads[0]),
                                  .out = writes(call.writes[0]),
                                  .rows = rows,
                                  .columns = columns,
                                  .accumulate = accumulate},
                                 call.scratch);
                },
            .scratch = column_sum_scratch(rows, columns)};
  }
  const bool forward = form.forward(), bias = forward && form.reads.size() > 1 && form.reads.back().elements < size;
  const std::size_t inputs = form.reads.size() - (bias ? 1 : 0);
  if (inputs > kMostInputs) form.refuse(std::to_string(inputs) + " inputs", "at most " + std::to_string(kMostInputs));
  std::vector<std::int64_t> sizes(inputs, size);
  if (bias) sizes.push_back(columns);
  form.expect(sizes, {size});
  return {.run = [=](const Launcher& on, const Call& call) {
    AddArgs args = {.y = writes(call.writes[0]), .rows = rows, .columns = columns, .count = static_cast<int>(inputs)};
    for (std::size_t i = 0; i < inputs; ++i) args.inputs[i] = reads(call.reads[i]);
    if (bias) args.bias = reads(call.reads[inputs]);
    args.accumulate = accumulate && !forward;
    on.elements(KernelId::add_arrays, size, args);
  }};
}

// Forward: y = factor x. The gradient is multiplied by the same factor.
Kernel make_scale(const host::Form& form) {
  const auto& dims = form.dims(0);
  const std::int64_t columns = dims.back(), size = host::size_of_dims(dims);
  form.expect({size}, {size});
  const auto factor = static_cast<float>(form.as<ops::Scale>().factor);
  const bool accumulate = form.what.accumulate;
  return {.run = [=](const Launcher& on, const Call& call) {
    AddArgs args = {.y = writes(call.writes[0]), .rows = size / columns, .columns = columns, .count = 1};
    args.inputs[0] = reads(call.reads[0]), args.accumulate = accumulate, args.scale = factor;
    on.elements(KernelId::add_arrays, size, args);
  }};
}

Kernel make_softmax(const host::Form& form) {
  const auto& dims = form.dims(0, 2);
  const std::int64_t rows = dims[0], columns = dims[1], size = rows * columns;
  const auto& op = form.as<ops::Softmax>();
  const bool causal = op.causal, accumulate = form.what.accumulate;
  const SequenceSplit split = op.split;
  const std::int64_t queries = columns / split.parts();
  if (causal && (queries * split.parts() != columns || rows % queries != 0))
    form.refuse("a causal map that is not square", "as many queries as keys");
  const auto scale = static_cast<float>(op.scale);
  if (!(scale > 0)) form.refuse("scale " + std::to_string(op.scale), "a positive number");
  const bool forward = form.forward();
  form.expect(forward ? std::vector{size} : std::vector{size, size}, {size});
  return {.run = [=](const Launcher& on, const Call& call) {
    SoftmaxArgs args = {.x = reads(call.reads[forward ? 0 : 1]), .y = writes(call.writes[0]), .rows = rows, .columns = columns};
    args.scale = scale, args.causal = causal, args.accumulate = accumulate;
    if (!forward) args.dp = reads(call.reads[0]);
    args.warps_of_row = warps_of_row({args.x, args.dp, args.y}, rows, columns);
    args.queries = queries, args.positions = positions_of(split.rows_of(call.arguments.cp_rank, queries));
    args.order = gathered_order(split, queries);
    if (forward && causal && split.parts() > 1)
      args.warps_of_row = 0;  // without packs: the columns that a row may use are not contiguous
    on.held_rows(forward ? KernelId::softmax_forward : KernelId::softmax_backward, rows, args.warps_of_row, args);
  }};
}

Kernel make_rope(const host::Form& form) {
  const auto& dims = form.dims(0, 3);
  const auto& op = form.as<ops::Rope>();
  const std::int64_t samples = dims[0], positions = dims[1], width = dims[2], dim = op.dim, rotated = op.rotated_dim();
  const std::int64_t heads = op.heads + op.kv_heads, half = rotated / 2, first = op.last ? dim - rotated : 0;
  if (rotated < 2 || rotated % 2 != 0 || rotated > dim || heads * dim > width)
    form.refuse("\"" + settings_text(form.what.op) + "\"", "heads of even size that fit the row");
  const std::int64_t size = host::size_of_dims(dims);
  form.expect({size}, {size});
  const SequenceSplit split = op.split;
  const std::int64_t all = positions * split.ranks;                   // positions of the whole sequence
  std::vector<float> table(static_cast<std::size_t>(all * rotated));  // computed in double and rounded once, as on the host
  for (std::int64_t p = 0; p < all; ++p)
    for (std::int64_t i = 0; i < half; ++i) {
      const double angle =
          static_cast<double>(p) * std::pow(op.theta, -2.0 * static_cast<double>(i) / static_cast<double>(rotated));
      table[static_cast<std::size_t>(p * rotated + i)] = static_cast<float>(op.scale * std::cos(angle));
      table[static_cast<std::size_t>(p * rotated + half + i)] = static_cast<float>(op.scale * std::sin(angle));
    }
  const float sign = form.forward() ? 1.0F : -1.0F;
  const bool accumulate = form.what.accumulate;
  Kernel kernel{.run = [=](const Launcher& on, const Call& call) {
    RopeArgs args = {.x = reads(call.reads[0]), .y = writes(call.writes[0]), .rows = positions * samples, .samples = samples};
    args.table = scratch_array(const_cast<std::byte*>(call.table), all * rotated, Type::F32);
    args.table.writes = false;
    args.positions = positions_of(split.rows_of(call.arguments.cp_rank, positions));
    args.width = width, args.heads = heads, args.dim = dim, args.first = first, args.rotated = rotated;
    args.sign = sign, args.accumulate = accumulate;
    on.launch(KernelId::rotate, args.rows, 1, 256, args);
  }};
  kernel.table.resize(table.size() * sizeof(float));
  std::memcpy(kernel.table.data(), table.data(), kernel.table.size());
  return kernel;
}

Kernel make_cast(const host::Form& form) {
  form.expect({1}, {form.reads.empty() ? 1 : form.reads[0].elements});
  return {.run = [](const Launcher& on, const Call& call) {
    const std::int64_t count = call.reads[0].elements;
    on.elements(KernelId::cast_array, count, CastArgs{.x = reads(call.reads[0]), .y = writes(call.writes[0]), .count = count});
  }};
}

Kernel make_zero(const host::Form&) {
  return {.run = [](const Launcher& on, const Call& call) {
    for (const Operand& operand : call.writes) on.fill(operand, std::byte{0});
  }};
}

}  // namespace foreshard::gpu
