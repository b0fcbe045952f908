#include "strategy/cost/expert_issue.h"
#include "strategy/cost/operator_style.h"

namespace foreshard {

template <class Op>
static bool computes(const Segment& segment) {
  return std::ranges::any_of(segment.instructions, [](const Instruction& run) {
    const auto* what = std::get_if<Compute>(&run.what);
    return what && is<Op>(what->op);
  });
}

bool has_experts(const Segment& segment) { return computes<ops::GroupedMatMul>(segment); }
bool sends_once(const Segment& segment) { return computes<ops::SendOnce>(segment); }

// A loss whose vocabulary is shared among tensor-parallel ranks is cut into pieces: the maxima and the loss itself take a kernel each, the
// exponentials the others.
static double kernels_of(const OpStyle& style, const Compute& what) {
  const bool backward = what.phase == Phase::InputGrad || what.phase == Phase::WeightGrad || what.phase == Phase::Backward;
  if (backward) return style.backward_kernels > 0 ? style.backward_kernels : style.kernels;
  using Piece = ops::CrossEntropy::Piece;
  const auto* loss = std::get_if<ops::CrossEntropy>(&what.op);
  if (!loss || loss->piece == Piece::Whole) return style.kernels;
  return loss->piece == Piece::Exp ? std::max(1.0, style.kernels - 2) : 1;
}

double issued_kernels(const FrameworkPreset& preset, const Compute& what) {
  const double kernels = kernels_of(style_of(preset, what), what);
  if (!preset.experts.each_expert || !is<ops::GroupedMatMul>(what.op)) return kernels;
  const Shape& shape = what.shapes.front();
  return kernels * static_cast<double>(shape.dims[0]) * (is_code(shape.dtype) ? preset.experts.eight_bit_kernels : 1.0);
}

BesideRows beside_rows(const Compute& send_once) {
  const std::vector<std::int64_t>&dims = send_once.shapes[0].dims, &rows = send_once.shapes[1].dims;
  const std::int64_t tokens = dims[0], chosen = dims[2], experts = dims[3], parts = rows[0], sent = parts * rows[1] * chosen;
  const bool by_node = parts < std::get<ops::SendOnce>(send_once.op).ranks;
  BesideRows beside = {.scores = size_of(DType::F32) * sent, .choices = size_of(DType::I64) * sent};
  beside.more_scores = static_cast<double>(by_node ? experts / parts : experts) / static_cast<double>(chosen);
  beside.more_choices = static_cast<double>(tokens * experts * parts) / static_cast<double>(beside.choices.value);
  return beside;
}

std::optional<BesideRows> beside_rows_of(const Segment& segment) {
  for (const Instruction& run : segment.instructions)
    if (const auto* what = std::get_if<Compute>(&run.what); what && is<ops::SendOnce>(what->op)) return beside_rows(*what);
  return {};
}

Cost cost_beside(const BesideRows& beside, const Collective& what, Cost cost) {
  if (what.kind != CollectiveKind::AllToAll) return cost;
  if (what.bytes == beside.scores) cost.busy = {}, cost.wire_factor *= beside.more_scores;
  if (what.bytes == beside.choices) cost.wire_factor *= beside.more_choices;
  return cost;
}

static bool updates_narrow(const FrameworkPreset& preset, const Compute& what) {
  return preset.styles.narrow_optimizer && &style_of(preset, what) == &*preset.styles.narrow_optimizer;
}

// Weights of the experts of a rank over the tensors that hold them: one tensor for all experts of a rank, and two for gate and up.
static double weights_per_tensor(const Plan& plan, const Role& role) {
  for (const Action& action : role.actions)
    for (const Instruction& run : plan.segments[action.segment.index()].instructions) {
      const auto* what = std::get_if<Compute>(&run.what);
      const auto* first = what ? std::get_if<ops::GroupedMatMul>(&what->op) : nullptr;
      if (first && !first->transposed)
        return static_cast<double>(what->shapes.front().dims[0]) * 2 / static_cast<double>(first->parts + 1);
    }
  return 1;
}

double updated_tensors(const Plan& plan, const Role& role, const FrameworkPreset& preset, const Compute& what,
                       const Instruction& run) {
  if (!updates_narrow(preset, what) || run.reads.empty()) return 1;
  double count = 0, ranks = 1;
  for (const Shard& shard : role.buffers[run.reads.front().buffer.index()].holds)
    count += plan.tensors[shard.tensor.index()].grid == Grid::Expert ? weights_per_tensor(plan, role) : 1;
  if (what.slice.valid())
    for (const AxisId axis : plan.groups[what.slice.index()].over) ranks *= plan.axes[axis.index()].size;
  return std::max(1.0, count / ranks);
}

Seconds issue_time(const FrameworkPreset& preset, const Compute& what, bool experts) {
  const bool of_experts = is<ops::Route, ops::Dispatch, ops::Combine, ops::SendOnce, ops::GroupedMatMul>(what.op);
  const double kernels = issued_kernels(preset, what);
  const bool plain =
      of_experts || (&style_of(preset, what) == &preset.styles.rope && kernels > 1);  // PyTorch's operators, a dispatch each
  if (updates_narrow(preset, what)) return preset.experts.per_kernel * kernels;
  const bool forward = what.phase == Phase::Forward || what.phase == Phase::Recompute;
  const bool linear = is<ops::MatMul>(what.op) && forward && preset.experts.per_linear.value > 0;
  const Seconds other = linear ? preset.experts.per_linear : preset.experts.per_operator;
  const Seconds each = !experts ? preset.host.per_kernel : plain ? preset.experts.per_kernel : other;
  return each * (kernels + calls_for_weights(preset, what));
}

double calls_for_weights(const FrameworkPreset& preset, const Compute& what) {
  if (!preset.experts.each_expert || !is<ops::GroupedMatMul>(what.op) || what.phase == Phase::InputGrad) return 0;
  return preset.experts.calls_per_weight * static_cast<double>(what.shapes.front().dims[0]);
}

// Of a grouped product, a forward or the gradient of its input: the rows of all experts that go in before the first product or come out
// behind the second, read and written in 16 bits.
static Bytes copied_rows(const Compute& what) {
  const auto* product = std::get_if<ops::GroupedMatMul>(&what.op);
  if (!product || what.phase == Phase::WeightGrad) return {};
  const Shape& shape = what.shapes.front();
  const std::int64_t hidden = shape.dims[product->transposed ? 2 : 3];
  return shape.dims[0] * shape.dims[1] * hidden * size_of(DType::BF16) * 2;
}

Seconds sorting_time(const Gpu& gpu, const FrameworkPreset& preset, const Compute& what, bool capacity) {
  const Bytes rows = preset.experts.sorts_rows ? copied_rows(what) : Bytes{};
  if (rows.value == 0) return {};
  const std::int64_t experts = what.shapes[0].dims[0], sources = what.shapes[1].dims[0];
  if (experts == 1 || sources == 1) return {};
  const double slowdown = capacity                      ? unvectorized_slowdown(gpu, 4)
                          : preset.experts.joins_chunks ? joining_slowdown(gpu, preset.styles.joins)
                                                        : 1;
  return streamed_time(gpu, rows) * slowdown;
}

Bytes padded_bytes(const FrameworkPreset& preset, const Compute& what) {
  const bool pads = preset.experts.pads_rows && is<ops::GroupedMatMul>(what.op);
  return pads && is_code(what.shapes.front().dtype) ? copied_rows(what) : Bytes{};
}

Bytes joined_bytes(const FrameworkPreset& preset, const Compute& what) {
  const auto* product = std::get_if<ops::GroupedMatMul>(&what.op);
  if (!preset.experts.joins_results || !product || what.shapes.front().dims[0] == 1) return {};
  const bool forward = what.phase == Phase::Forward || what.phase == Phase::Recompute;
  return forward == product->transposed ? copied_rows(what) : Bytes{};
}

Bytes scored_bytes(const FrameworkPreset& preset, const Compute& what) {
  const auto* product = std::get_if<ops::GroupedMatMul>(&what.op);
  if (!preset.experts.weighs_activation || !product || !product->transposed || what.phase != Phase::InputGrad) return {};
  const std::vector<std::int64_t>& dims = what.shapes.front().dims;
  return dims[0] * dims[1] * dims[3] * size_of(DType::BF16) * 3;
}

Bytes unscored_bytes(const FrameworkPreset& preset, const Compute& what) {
  const auto* combine = std::get_if<ops::Combine>(&what.op);
  if (!preset.experts.weighs_activation || !combine || combine->plain || what.phase != Phase::InputGrad) return {};
  const Shape& rows = what.shapes[1];
  return rows.dims[0] * rows.dims[1] * what.shapes[0].dims[1] * size_of(rows.dtype);
}

std::optional<Compute> bias_kernels(const Gpu& gpu, const FrameworkPreset& preset, const Compute& what, bool biased) {
  const auto* product = std::get_if<ops::GroupedMatMul>(&what.op);
  if (!biased || !preset.experts.biases || !product || !product->transposed || what.phase == Phase::InputGrad) return {};
  const OpStyle& style = *preset.experts.biases;
  const bool forward = what.phase == Phase::Forward || what.phase == Phase::Recompute;
  const std::vector<std::int64_t>& dims = what.shapes.front().dims;
  const auto results = static_cast<double>(dims[0] * dims[1] * dims[2] * size_of(DType::BF16).value);
  const double speed = style.elementwise > 0 ? style.elementwise : preset.elementwise;
  const double moved = results * slowdown_of(gpu, style, !forward, speed, preset.styles.joins);
  return Compute{.op = ops::Add{}, .phase = what.phase, .traffic = {static_cast<std::int64_t>(moved)}};
}

double kernels_of_biases(const FrameworkPreset& preset, const Compute& what) {
  const OpStyle style = preset.experts.biases.value_or(OpStyle{.kernels = 0});
  return kernels_of(style, what) * static_cast<double>(what.shapes.front().dims[0]);
}

double further_kernels(const FrameworkPreset& preset, const Compute& what) {
  const double own = kernels_of(style_of(preset, what), what) - 1;
  if (!preset.experts.each_expert || !is<ops::GroupedMatMul>(what.op)) return own;
  const Shape& shape = what.shapes.front();
  return is_code(shape.dtype) ? own + static_cast<double>(shape.dims[0]) * (preset.experts.eight_bit_kernels - 1) : own;
}

std::optional<PartOfExperts> part_of_experts(const FrameworkPreset& preset, const Compute& what) {
  if (!preset.experts.each_expert || !is<ops::GroupedMatMul>(what.op)) return {};
  const std::int64_t experts = what.shapes.front().dims[0];
  if (experts <= kStreams) return {};
  const double times = static_cast<double>(experts) / static_cast<double>(kStreams);
  PartOfExperts part = {.what = what, .times = times};
  part.what.shapes.front().dims[0] = kStreams;
  part.what.flops = {what.flops.value / times};
  part.what.traffic = {static_cast<std::int64_t>(static_cast<double>(what.traffic.value) / times)};
  return part;
}

bool waits_for_device(const FrameworkPreset& preset, const Compute& what) {
  if (what.phase != Phase::Forward && what.phase != Phase::Recompute) return false;
  if (const auto* dispatch = std::get_if<ops::Dispatch>(&what.op))
    return preset.experts.waits_for_counts && dispatch->capacity == 0;
  const auto* activation = std::get_if<ops::Activation>(&what.op);
  return preset.experts.clamp_waits && activation && activation->function == ops::Activation::Function::ClampedSwiGlu;
}

std::optional<bool> has_capacity(const Segment& segment) {
  for (const Instruction& run : segment.instructions) {
    const auto* what = std::get_if<Compute>(&run.what);
    if (const auto* dispatch = what ? std::get_if<ops::Dispatch>(&what->op) : nullptr) return dispatch->capacity > 0;
  }
  return {};
}

}  // namespace foreshard
