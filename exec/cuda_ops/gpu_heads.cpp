// Makers for what prepares the heads of attention: norms of query and key heads, and the heads of latent attention.
#include <algorithm>
#include <array>
#include <bit>

#include "exec/cuda_ops/gpu_kernel.h"

namespace foreshard::gpu {

namespace {

constexpr std::int64_t kMostWeightChunks = 64;  // chunks of rows of which weight gradients are summed

struct HeadNormForm {
  HeadNormArgs args = {};
  bool weighted = true;

  std::int64_t rows() const { return args.rows; }
  std::int64_t out() const { return args.width + args.values; }
  int groups() const { return args.groups[0] + args.groups[1]; }
  // The parts that have heads, in the order of their weights: 0 queries, 1 keys.
  std::vector<std::size_t> parts() const {
    std::vector<std::size_t> all;
    for (const std::size_t part : {0, 1})
      if (args.groups[part] > 0) all.push_back(part);
    return all;
  }
  std::size_t weights() const { return weighted ? parts().size() : 0; }
  std::int64_t begin(std::size_t part) const { return part == 0 ? 0 : std::int64_t{args.groups[0]} * args.widths[0]; }
  std::int64_t rows_of_chunk() const { return std::max<std::int64_t>(16, ceil_div(args.rows, kMostWeightChunks)); }
  std::int64_t chunks() const { return ceil_div(args.rows, rows_of_chunk()); }
  std::int64_t widest() const { return std::max(args.widths[0], args.widths[1]); }
  Bytes stats() const { return {round_up(4 * rows() * groups(), 256)}; }
};

HeadNormForm head_norm_form(const host::Form& form) {
  const auto& op = form.as<ops::HeadNorm>();
  const auto& dims = form.dims(0, 3);
  if (op.over == QkNorm::None || op.dim < 1 || op.heads + op.kv_heads < 1 || (op.heads + op.kv_heads) * op.dim != dims[2])
    form.refuse("\"" + settings_text(form.what.op) + "\" for rows of " + std::to_string(dims[2]), "heads that fill the row");
  HeadNormForm norm = {.weighted = op.over != QkNorm::Unweighted};
  HeadNormArgs& args = norm.args;
  args.rows = dims[0] * dims[1], args.width = dims[2], args.values = op.kv_heads * op.dim;
  const std::array heads = {op.heads, op.kv_heads};
  for (std::size_t part = 0; part < heads.size(); ++part) {
    const bool all = op.over == QkNorm::AllHeads && heads[part] > 0;
    args.groups[part] = static_cast<int>(all ? 1 : heads[part]);
    args.widths[part] = static_cast<int>(all ? heads[part] * op.dim : op.dim);
  }
  args.eps = static_cast<float>(op.eps), args.one = op.around_one ? 1 : 0;
  // so many lanes that each has a pack of 8 elements of a group
  args.lanes =
      static_cast<int>(std::min<std::uint64_t>(32, std::bit_ceil(static_cast<std::uint64_t>(ceil_div(norm.widest(), 8)))));
  return norm;
}

void launch_norm(const Launcher& on, KernelId kernel, const HeadNormForm& norm, const HeadNormArgs& args) {
  const std::int64_t teams = norm.rows() * (norm.groups() + (args.values > 0 ? 1 : 0));
  on.launch(kernel, ceil_div(teams * args.lanes, 256), 1, 256, args);
}

Kernel head_norm_forward(const host::Form& form, const HeadNormForm& norm) {
  std::vector<std::int64_t> in = {norm.rows() * norm.args.width};
  const std::size_t values = norm.args.values > 0 ? 1 : 0;
  if (values > 0) in.push_back(norm.rows() * norm.args.values);
  const std::vector<std::size_t> parts = norm.parts();
  for (std::size_t i = 0; i < norm.weights(); ++i) in.push_back(norm.args.widths[parts[i]]);
  form.expect(in, {norm.rows() * norm.out()});
  return {.run = [=](const Launcher& on, const Call& call) {
    HeadNormArgs args = norm.args;
    args.x = reads(call.reads[0]), args.y = writes(call.writes[0]);
    if (values > 0) args.value = reads(call.reads[1]);
    for (std::size_t i = 0; i < norm.weights(); ++i) args.weights[parts[i]] = reads(call.reads[1 + values + i]);
    launch_norm(on, KernelId::head_norm_forward, norm, args);
  }};
}

// The gradient of the weight of a part, from the statistics of the rows.
void sum_weight(const Launcher& on, const HeadNormForm& norm, std::size_t part, HeadWeightArgs args, const View& out, bool add,
                std::byte* scratch) {
  const std::int64_t columns = norm.args.widths[part], chunks = norm.chunks();
  args.rows = norm.rows(), args.rows_of_chunk = norm.rows_of_chunk();
  args.dy_width = norm.out(), args.x_width = norm.args.width, args.begin = norm.begin(part);
  args.groups = norm.args.groups[part], args.columns = static_cast<int>(columns);
  args.first = part == 0 ? 0 : norm.args.groups[0], args.all = norm.groups();
  args.sums = scratch_array(scratch, chunks * columns, Type::F32);
  const int n = pack_of(args.x.type);
  args.packed = in_packs({args.x, args.dy}, norm.rows(), norm.out()) && norm.args.width % n == 0 && columns % n == 0;
  on.launch(KernelId::head_norm_weights, ceil_div(columns, args.packed ? 32 * n : 32), chunks, 256, args);
  ColumnSumArgs rest = {.x = args.sums, .out = out, .rows = chunks, .columns = columns, .rows_of_chunk = chunks};
  rest.x.writes = false, rest.accumulate = add;
  on.sum_chunks(rest, 1);
}

// reads: gradient of y, x, weights; writes: gradients of x, values, weights
Kernel head_norm_backward(const host::Form& form, const HeadNormForm& norm) {
  const std::size_t values = norm.args.values > 0 ? 1 : 0;
  std::vector<std::int64_t> in = {norm.rows() * norm.out(), norm.rows() * norm.args.width},
                            out = {norm.rows() * norm.args.width};
  if (values > 0) out.push_back(norm.rows() * norm.args.values);
  const std::vector<std::size_t> parts = norm.parts();
  for (std::size_t i = 0; i < norm.weights(); ++i)
    in.push_back(norm.args.widths[parts[i]]), out.push_back(norm.args.widths[parts[i]]);
  form.expect(in, out);
  const bool add = form.what.accumulate, add_weights = form.what.accumulate_weights;
  const auto run = [=](const Launcher& on, const Call& call) {
    HeadNormArgs args = norm.args, only_stats = args;
    args.x = reads(call.reads[1]), args.dy = reads(call.reads[0]), args.dx = writes(call.writes[0]), args.accumulate = add;
    if (values > 0) args.value = writes(call.writes[1]);
    for (std::size_t i = 0; i < norm.weights(); ++i) args.weights[parts[i]] = reads(call.reads[2 + i]);
    if (norm.weights() > 0) args.stats = scratch_array(call.scratch, norm.rows() * norm.groups(), Type::F32);
    only_stats.x = args.x, only_stats.stats = args.stats, only_stats.values = 0;
    // The sums of the weights read what a gradient in place overwrites.
    const bool in_place = norm.weights() > 0 && (args.dx.data == args.dy.data || args.dx.data == args.x.data);
    const HeadNormArgs& first = in_place ? only_stats : args;
    launch_norm(on, KernelId::head_norm_backward, norm, first);
    HeadWeightArgs weight = {.dy = args.dy, .x = args.x, .stats = args.stats};
    weight.stats.writes = false;
    for (std::size_t i = 0; i < norm.weights(); ++i)
      sum_weight(on, norm, parts[i], weight, writes(call.writes[1 + values + i]), add_weights,
                 call.scratch + norm.stats().value);
    if (in_place) launch_norm(on, KernelId::head_norm_backward, norm, args);
  };
  return {.run = run, .scratch = norm.stats() + Bytes{4 * norm.chunks() * norm.widest()}};
}

}  // namespace

Kernel make_head_norm(const host::Form& form) {
  const HeadNormForm norm = head_norm_form(form);
  if (form.what.phase == (norm.weighted ? Phase::Backward : Phase::InputGrad)) return head_norm_backward(form, norm);
  if (!form.forward()) form.refuse("this phase", "forward, recompute or backward");
  return head_norm_forward(form, norm);
}

Kernel make_latent_heads(const host::Form& form) {
  const auto& op = form.as<ops::LatentHeads>();
  const auto& dims = form.dims(0, 3);
  const std::int64_t rows = dims[0] * dims[1], in = dims[2], width = op.heads * (op.plain + op.rotated + op.value);
  if (op.heads < 1 || op.plain < 1 || op.rotated < 1 || op.value < 1 || op.heads * (op.plain + op.value) != in)
    form.refuse("\"" + settings_text(form.what.op) + "\" for rows of " + std::to_string(in), "heads that fill the row");
  const bool back = !form.forward();
  const std::vector<std::int64_t> parts = {rows * in, rows * op.rotated}, whole = {rows * width};
  form.expect(back ? whole : parts, back ? parts : whole);
  LatentHeadsArgs args = {.rows = rows, .heads = static_cast<int>(op.heads), .plain = static_cast<int>(op.plain)};
  args.rotated = static_cast<int>(op.rotated), args.value = static_cast<int>(op.value);
  args.back = back, args.accumulate = form.what.accumulate;
  return {.run = [args](const Launcher& on, const Call& call) {
    LatentHeadsArgs now = args;
    now.y = now.back ? reads(call.reads[0]) : writes(call.writes[0]);
    now.x = now.back ? writes(call.writes[0]) : reads(call.reads[0]);
    now.shared = now.back ? writes(call.writes[1]) : reads(call.reads[1]);
    on.launch(KernelId::latent_heads, now.rows, 1, 256, now);
  }};
}

}  // namespace foreshard::gpu
