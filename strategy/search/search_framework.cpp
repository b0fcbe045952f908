#include "strategy/search/search_framework.h"

#include <algorithm>
#include <string>

namespace foreshard {

namespace {

bool only_modules(const Strategy& base, const std::vector<std::string>& known) {
  return std::ranges::all_of(base.recompute.modules, [&](const std::string& module) {
    return std::find(known.begin(), known.end(), module) != known.end();
  });
}

bool is_narrow(const Strategy& base) { return size_of(state_types(base).compute) < size_of(DType::F32); }

// Whether the states are those of usual mixed precision: parameters in the format of the products, and optimizer states in fp32.
bool usual_states(const Strategy& base) {
  const StateTypes types = state_types(base);
  return types.state == DType::F32 && size_of(types.param) == size_of(types.compute);
}

const char* refused_by_megatron(const Point& p, const Strategy& base) {
  if (base.precision == DType::F64) return "megatron has no fp64";
  if (!usual_states(base)) return "megatron keeps parameters in the format of the products and fp32 states";
  const bool cells = p.schedule == Schedule::OneFOneBCells || p.schedule == Schedule::InterleavedCells;
  if (p.schedule != Schedule::OneFOneB && p.schedule != Schedule::Interleaved && !cells)
    return "megatron's schedules are 1F1B and interleaved 1F1B";
  if (cells && (p.ep == 1 || base.experts.dispatcher == Dispatcher::AllGather))
    return "megatron overlaps micro-batches only beside all-to-alls of experts";
  if (cells && p.pp > 1 && p.virtual_stages == 1)
    return "megatron overlaps micro-batches of a pipeline only when stages are interleaved";
  if (cells && p.recompute == RecomputeKind::Full)
    return "megatron does not recompute whole layers where micro-batches overlap";
  if (p.zero > 1) return "megatron's distributed optimizer is ZeRO 1";
  if (p.order > 1) return "megatron's ranks go tp first";
  if (p.overlap_parameters && !p.overlap_gradients) return "megatron overlaps parameters only with gradients";
  const bool interleaved = p.virtual_stages > 1;
  if (p.pp > 1 && p.overlap_p2p && !interleaved) return "megatron overlaps transfers only when stages are interleaved";
  if (interleaved && p.pp == 2 && !p.overlap_p2p) return "megatron interleaves two ranks only with overlapped transfers";
  if (p.recompute == RecomputeKind::Modules && !only_modules(base, {"attention", "norm", "mlp"}))
    return "megatron recomputes by module only the attention, the norms and the MLP";
  return nullptr;
}

const char* refused_by_deepspeed(const Point& p, const Strategy& base) {
  if (base.precision == DType::F64) return "deepspeed has no fp64";
  if (base.precision == DType::F8) return "deepspeed has no fp8";
  if (base.precision == DType::F4) return "deepspeed has no nvfp4";
  if (!usual_states(base)) return "deepspeed keeps parameters in the format of the products and fp32 states";
  if (p.cp > 1) return "deepspeed has no ring or all-gather context parallelism";
  if (p.pp > 1 && (p.virtual_stages > 1 || p.schedule != Schedule::OneFOneB)) return "deepspeed's pipeline is 1F1B";
  if (p.pp > 1 && p.zero > 1) return "deepspeed's pipeline refuses ZeRO 2 and 3";
  if (p.pp > 1 && p.overlap_p2p) return "deepspeed's pipeline transfers do not overlap";
  if (p.sequence_parallel) return "deepspeed's tensor parallelism has no sequence parallelism";
  if (p.recompute != RecomputeKind::None && p.recompute != RecomputeKind::Full) return "deepspeed recomputes whole layers";
  if (p.zero_group > 0 && p.zero < 3) return "deepspeed groups shards (MiCS) only with ZeRO 3";
  if (p.order > 0) return "deepspeed's ranks go tp, dp, pp";
  if ((p.zero == 1 || p.zero == 2) && p.overlap_parameters)
    return "with ZeRO 1 and 2 it gathers parameters right after the update, not beside the next forward";
  if (p.pp > 1 && p.recompute == RecomputeKind::Full && p.recompute_layers > 0)
    return "deepspeed's pipeline recomputes every layer alike";
  return nullptr;
}

const char* refused_by_fully_shard(const Point& p, const Strategy& base) {
  const StateTypes types = state_types(base);
  if (types.master || types.state != types.param) return "fully_shard's optimizer works on the parameters: one format for both";
  if (p.zero == 1) return "fully_shard has ZeRO 2 and 3, not 1";
  if (!p.overlap_gradients) return "fully_shard always overlaps its reductions";
  // Without resharding (ZeRO 2) it gathers in the first forward of a step, layer by layer and one layer ahead.
  if (p.zero >= 2 && !p.overlap_parameters) return "fully_shard always prefetches";
  return nullptr;
}

// Sources, all of v0.2.2: train.py, distributed/parallel_dims.py, models/llama3/infra/parallelize.py (apply_tp, apply_ddp),
// config/job_config.py (mixed_precision_param), distributed/activation_checkpoint.py.
const char* refused_by_torchtitan(const Point& p, const Strategy& base) {
  const bool alone = p.tp * p.pp * p.cp == 1;
  if (base.precision != DType::F8 && base.precision != DType::BF16 && base.precision != DType::F32)
    return "torchtitan trains in fp8, bf16 or fp32";
  if (base.dropout.value_or(0) > 0) return "torchtitan's models have no dropout";
  if (p.schedule == Schedule::ZeroBubbleH1 || p.schedule == Schedule::ZeroBubbleH2 || p.schedule == Schedule::ZeroBubble2p)
    return "torchtitan has no zero-bubble schedule of one stage per rank";
  if (p.tp > 1 && !p.sequence_parallel) return "torchtitan's tensor parallelism is always sequence parallel";
  if (!p.overlap_p2p) return "torch pipelining overlaps its transfers";
  if (p.order > 0) return "torchtitan's mesh goes pp, dp, cp, tp";
  if (p.recompute == RecomputeKind::Full && p.recompute_layers > 0) return "torchtitan recomputes every layer alike";
  if (p.recompute == RecomputeKind::Selective) return "torchtitan's selective recomputation keeps the attention";
  if (p.recompute == RecomputeKind::Modules && base.recompute.modules != torchtitan_selective_modules())
    return "torchtitan's selective recomputation redoes norm, qkv, rope, activation and mlp";
  if (p.zero == 0 && p.dp > 1 && !alone) return "torchtitan's DDP goes with no other parallelism";
  if (p.zero == 0 && p.cp > 1) return "torchtitan shards parameters over context-parallel ranks";
  if (p.zero == 0 && p.dp == 1 && !alone && is_narrow(base)) return "torchtitan computes in 16 bits only under FSDP or DDP";
  return refused_by_fully_shard(p, base);
}

const char* refused_by_fsdp2(const Point& p, const Strategy& base) {
  if (p.tp > 1 || p.cp > 1 || p.pp > 1) return "fsdp2 alone has only data parallelism";
  if (p.zero < 2 && p.dp > 1) return "fully_shard has ZeRO 2 and 3, not 0 and 1";
  return refused_by_fully_shard(p, base);
}

// Sources, all of huggingface/nanotron 19f88fb: config/parallelism_config.py (recompute_layer), parallel/pipeline_parallel/engine.py
// ("1f1b" and "afab"; 1F1B asserts the micro-batches) and p2p.py (send_tensors and recv_tensors wait), optim/zero.py (ZeRO 1 over all
// replicas, gathers after the step), trainer.py (_init_model: DDP unless ZeRO 1 has fp32 gradients), nn/attention.py (rings),
// parallel/context.py (rank order).
const char* refused_by_nanotron(const Point& p, const Strategy& base) {
  if (base.precision == DType::F8) return "nanotron's fp8 is not modelled";
  if (base.precision == DType::F4) return "nanotron has no nvfp4";
  if (p.zero > 1) return "nanotron has ZeRO 0 and 1";
  if (p.zero > 0 && p.zero_group > 0 && p.zero_group < p.dp) return "nanotron shards over all replicas";
  if (p.cp > 1 && base.context && base.context != ContextKind::Ring) return "nanotron's context parallelism is a ring";
  if (p.virtual_stages > 1 || (p.schedule != Schedule::OneFOneB && p.schedule != Schedule::GPipe))
    return "nanotron's pipelines are 1F1B and all forwards, then all backwards";
  if (p.pp > 1 && p.schedule == Schedule::OneFOneB && base.batch.global < (p.pp - 1) * p.micro_batch * p.dp)
    return "nanotron's 1F1B takes at least pp - 1 micro-batches";
  if (p.pp > 1 && p.overlap_p2p) return "nanotron waits for its transfers";
  if (p.dp > 1 && p.overlap_gradients != !(p.zero == 1 && state_types(base).grad == DType::F32))
    return "nanotron reduces fp32 gradients of ZeRO 1 after the backward, all others beside it";
  if (p.overlap_parameters) return "nanotron gathers parameters after the update";
  if (p.recompute != RecomputeKind::None && p.recompute != RecomputeKind::Full) return "nanotron recomputes whole layers";
  if (p.recompute == RecomputeKind::Full && p.recompute_layers > 0) return "nanotron recomputes every layer alike";
  if (p.order > 0) return "nanotron's ranks go tp, cp, dp, pp";
  return nullptr;
}

}  // namespace

const std::vector<std::string>& torchtitan_selective_modules() {
  static const std::vector<std::string> modules = {"norm", "qkv", "rope", "activation", "mlp"};
  return modules;
}

std::optional<Runner> find_runner(const std::string& framework) { return framework_preset(framework).runner; }

const char* refused_by(Runner runner, const Point& point, const Strategy& base) {
  if (point.recompute > RecomputeKind::Modules) return "it has no such schedule of recomputation";
  if (point.recompute == RecomputeKind::Full && point.recompute_layers < 0) return "its stages recompute alike";
  const bool cells = point.schedule == Schedule::OneFOneBCells || point.schedule == Schedule::InterleavedCells;
  if (cells && runner != Runner::Megatron) return "it does not overlap micro-batches";
  switch (runner) {
    case Runner::Megatron: return refused_by_megatron(point, base);
    case Runner::DeepSpeed: return refused_by_deepspeed(point, base);
    case Runner::TorchTitan: return refused_by_torchtitan(point, base);
    case Runner::Fsdp2: return refused_by_fsdp2(point, base);
    case Runner::Nanotron: return refused_by_nanotron(point, base);
  }
  return nullptr;
}

// Where a degree is 1, the overlap or rank order of that kind of parallelism makes no difference; the point gets the value that all rules
// accept.
std::string why_not_run_by(Runner runner, const Strategy& s) {
  if (!s.stages.empty()) return "its stages have degrees of their own";
  const Overlap overlap = s.communication.overlap.value_or(Overlap{});
  Point point{.tp = s.tp,
              .cp = s.cp,
              .pp = s.pp,
              .virtual_stages = s.virtual_stages,
              .dp = s.dp,
              .ep = s.experts.ep,
              .micro_batch = s.batch.micro,
              .sequence_parallel = s.sequence_parallel && s.tp > 1,
              .overlap_gradients = overlap.gradients || s.dp * s.cp == 1,
              .overlap_parameters = overlap.parameters,
              .overlap_p2p = overlap.p2p || s.pp == 1,
              .zero = static_cast<std::int8_t>(s.zero.stage),
              .zero_group = s.zero.stage > 0 && s.zero.group < s.dp ? s.zero.group : 0,
              .recompute = s.recompute.kind,
              .recompute_layers = s.recompute.layers,
              .schedule = s.pipeline.schedule.value_or(Schedule::OneFOneB)};
  const bool one_kind = (s.tp > 1) + (s.cp > 1) + (s.dp > 1) + (s.pp > 1) < 2;
  if (!one_kind && !s.placement.empty()) {
    const auto order = std::ranges::find(rank_orders(), s.placement);
    if (order == rank_orders().end()) return "its ranks are in an order that is not known of any framework";
    point.order = static_cast<std::int8_t>(order - rank_orders().begin());
  }
  const char* why = refused_by(runner, point, s);
  return why ? why : "";
}

}  // namespace foreshard
