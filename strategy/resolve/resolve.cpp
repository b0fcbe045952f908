// Resolves the defaults of a strategy against a model and a cluster, and says why a combination is not possible.
#include <algorithm>
#include <numeric>
#include <string>

#include "core/base/count_text.h"
#include "core/strategy/strategy_options.h"
#include "strategy/cost/framework_preset.h"
#include "strategy/cost/runtime_policy.h"
#include "strategy/resolve/compression.h"
#include "strategy/resolve/layout.h"
#include "strategy/resolve/refuse_adapters.h"
#include "strategy/resolve/refuse_asynchronous.h"
#include "strategy/resolve/resolve.h"
#include "strategy/resolve/schedule_table.h"
#include "strategy/schedule/schedule.h"

namespace foreshard {

namespace {

using Refusal = std::optional<Infeasible>;

Refusal resolve_degrees(const Cluster& cluster, Strategy& s) {
  const int servers = serving_gpus(s);
  const int gpus = gpu_count(cluster) - servers;
  const std::int64_t model_ranks = std::int64_t{1} * s.tp * s.cp * s.pp;
  if (s.dp == 0) {
    if (model_ranks > gpus || gpus % model_ranks != 0)
      return Infeasible{.reason = "tp " + std::to_string(s.tp) + " x cp " + std::to_string(s.cp) + " x pp " +
                                  std::to_string(s.pp) + " = " + std::to_string(model_ranks) + " does not divide the " +
                                  std::to_string(gpus) + " GPUs of " + cluster.name,
                        .would_help = {"degrees whose product divides " + std::to_string(gpus)}};
    s.dp = static_cast<int>(gpus / model_ranks);
  }
  if (model_ranks * s.dp > gpus && servers > 0)
    return Infeasible{.reason = counted(s.dp, "worker") + " on " + counted(model_ranks, "GPU") + " each and " +
                                counted(servers, "server") + " need " + std::to_string(model_ranks * s.dp + servers) +
                                " GPUs, but " + cluster.name + " has " + std::to_string(gpus + servers),
                      .would_help = {"--dp " + std::to_string(gpus / model_ranks), "a larger cluster"}};
  if (model_ranks * s.dp > gpus) {
    const std::string fewer =
        model_ranks <= gpus ? "--dp " + std::to_string(gpus / model_ranks) : "a smaller --tp, --cp or --pp";
    return Infeasible{.reason = "tp " + std::to_string(s.tp) + " x cp " + std::to_string(s.cp) + " x pp " +
                                std::to_string(s.pp) + " x dp " + std::to_string(s.dp) + " = " +
                                std::to_string(model_ranks * s.dp) + " ranks, but " + cluster.name + " has " +
                                std::to_string(gpus) + " GPUs",
                      .would_help = {fewer, "a larger cluster"}};
  }
  if (s.zero.group == 0) s.zero.group = s.dp;
  const int shards = s.zero.group * s.cp, few = s.communication.servers;
  if (s.zero.stage > 0 && s.communication.algorithm == Algorithm::ParameterServer && few > 0 && few < shards)
    return Infeasible{.reason = "with ZeRO " + std::to_string(s.zero.stage) + " each of " + counted(shards, "rank") +
                                " serves the part of which it has the optimizer states, not " + counted(few, "server"),
                      .would_help = {"--servers 0", "--zero 0"}};
  if (s.dp % s.zero.group != 0)
    return Infeasible{.reason = "ZeRO group of " + std::to_string(s.zero.group) +
                                " ranks does not divide dp = " + std::to_string(s.dp)};
  return {};
}

Refusal resolve_batch(Strategy& s) {
  const std::int64_t together = s.batch.micro * s.dp;
  if (s.batch.global == 0) s.batch.global = together;
  if (s.batch.global % together != 0) {
    const std::int64_t below = s.batch.global / together * together;
    Infeasible refused{.reason = "global batch " + std::to_string(s.batch.global) + " is not a multiple of micro-batch " +
                                 std::to_string(s.batch.micro) + " x dp " + std::to_string(s.dp) + " = " +
                                 std::to_string(together)};
    if (below > 0) refused.would_help.push_back("--global-batch " + std::to_string(below));
    refused.would_help.push_back("--global-batch " + std::to_string(below + together));
    return refused;
  }
  if (s.batch.global / together > 1'000'000)
    return Infeasible{.reason = count_text(s.batch.global / together) + " micro-batches per step are more than 1,000,000"};
  return {};
}

// F16, F32 and F64 are always possible: a GPU without a stated rate for them still computes in them, slowly.
bool has_arithmetic(const Gpu& gpu, DType type) {
  switch (type) {
    case DType::F8: return gpu.fp8.value > 0;
    case DType::F4: return gpu.nvfp4.value > 0;
    case DType::BF16: return gpu.bf16.value > 0;
    case DType::TF32: return gpu.tf32.value > 0;
    case DType::F16:
    case DType::F32:
    case DType::F64:
    case DType::I64:
    case DType::I32:
    case DType::U8: return true;
  }
  return true;
}

std::string arithmetic_of(const Gpu& gpu) {
  std::string names;
  for (const DType type : {DType::F4, DType::F8, DType::BF16, DType::F16, DType::TF32, DType::F32, DType::F64})
    if (has_arithmetic(gpu, type)) names += (names.empty() ? "" : ", ") + std::string(name_of(type));
  return names;
}

Refusal resolve_numbers(const Model& model, const Cluster& cluster, Strategy& s) {
  const auto* transformer = std::get_if<Transformer>(&model.shape);
  if (is_code(s.precision) && !transformer)
    return Infeasible{
        .reason = model.name + " is a layer list: " + name_of(s.precision) + " is for the linear layers of transformers",
        .would_help = {"--precision bf16"}};
  for (const Gpu& gpu : cluster.gpus) {
    if (has_arithmetic(gpu, s.precision)) continue;
    const DType next = s.precision == DType::TF32 ? DType::F32 : has_arithmetic(gpu, DType::BF16) ? DType::BF16 : DType::F16;
    return Infeasible{.reason = gpu.name + " has no " + name_of(s.precision) + " arithmetic, only " + arithmetic_of(gpu),
                      .would_help = {std::string("--precision ") + name_of(next)}};
  }
  const DType values = state_types(s).compute;
  const bool sixteen = values == DType::BF16 || values == DType::F16;
  const bool kernel = std::all_of(cluster.gpus.begin(), cluster.gpus.end(), [](const Gpu& gpu) { return gpu.flash_attention; });
  // Ring attention merges partial results and windowed masks have no separate operators, so both need the fused kernel, in every format.
  const bool fused = (s.cp > 1 && s.context == ContextKind::Ring) || s.batch.packed > 0 ||
                     (transformer && needs_fused_attention(*transformer));
  if (s.attention == AttentionKernel::Auto)
    s.attention = !reads_probabilities(s) && (fused || (sixteen && kernel)) ? AttentionKernel::Flash : AttentionKernel::Unfused;
  if (transformer && s.attention == AttentionKernel::Flash && !(sixteen && kernel) && !fused)
    return Infeasible{
        .reason = std::string("no flash attention kernel for ") + name_of(s.precision) + " on " + cluster.gpus.front().name,
        .would_help = {"--attention unfused"}};
  return {};
}

Refusal resolve_shape(const Model& model, Strategy& s) {
  const auto* transformer = std::get_if<Transformer>(&model.shape);
  if (transformer) {
    if (s.batch.seq == 0) s.batch.seq = transformer->max_positions;
    return {};
  }
  s.batch.seq = 1, s.sequence_parallel = false;
  if (s.cp > 1)
    return Infeasible{.reason = model.name +
                                " is a layer list: it can be split by data, tensor and pipeline parallelism, not by cp " +
                                std::to_string(s.cp),
                      .would_help = {"--cp 1"}};
  if (s.tp > 1 && !s.communication.parts.empty())
    return Infeasible{.reason = model.name + " is a layer list: --parts cuts the attention and the MLP of transformer layers",
                      .would_help = {"--parts 1"}};
  return {};
}

// Checks --parts. The sum of one part over tensor-parallel ranks overlaps the next part's computation, so it gets a stream of its own.
Refusal resolve_parts(Strategy& s) {
  std::vector<int>& parts = s.communication.parts;
  if (widest_tp(s) == 1) parts.clear();  // no such sums
  if (parts.empty()) return {};
  const auto refuse = [&](std::string reason, std::vector<std::string> help = {}) {
    Infeasible refused{.reason = std::move(reason), .would_help = std::move(help)};
    refused.would_help.push_back("--parts 1");
    return refused;
  };
  if (!s.stages.empty()) return refuse("stages with degrees of their own run their operators whole, not in parts");
  if (s.cp > 1)
    return refuse("operators in parts run on whole sequences, which cp " + std::to_string(s.cp) + " cuts", {"--cp 1"});
  if (is_code(s.precision))
    return refuse(std::string("operators in parts would each scale their ") + name_of(s.precision) + " factors by themselves",
                  {"--precision bf16"});
  if (parts.size() > 2 && parts.size() % 2 != 0)
    return refuse("a layer has 2 operations that are cut into parts, attention and MLP: found " +
                  std::to_string(static_cast<std::int64_t>(parts.size())) + " numbers");
  if (parts.front() == 0) return {};
  int all = 1;
  for (const int n : parts) all = std::lcm(all, n);
  if (s.batch.micro % all != 0)
    return refuse(std::to_string(all) + " parts do not divide the " + counted(s.batch.micro, "sample") + " of a micro-batch",
                  {"--micro-batch " + std::to_string((s.batch.micro / all + 1) * all)});
  s.communication.overlap->tp = true;
  return {};
}

// Checks the degrees of the expert grid (core/plan/axis.h) and what experts cannot be combined with.
Refusal resolve_experts(const Model& model, const Strategy& s) {
  const auto* transformer = std::get_if<Transformer>(&model.shape);
  if (!transformer || transformer->block.experts.count == 0) {
    if (s.experts.capacity > 0)
      return Infeasible{.reason = model.name + " has no experts whose capacity could be limited",
                        .would_help = {"--expert-capacity 0"}};
    if (s.experts.ep == 1 && s.experts.etp == 1) return {};
    return Infeasible{.reason = model.name + " has no experts that ep " + std::to_string(s.experts.ep) + " x etp " +
                                std::to_string(s.experts.etp) + " could share",
                      .would_help = {"--ep 1 --etp 1"}};
  }
  const std::int64_t ranks = std::int64_t{1} * s.tp * s.cp * s.dp;
  if (ranks % (std::int64_t{1} * s.experts.ep * s.experts.etp) != 0)
    return Infeasible{.reason = "ep " + std::to_string(s.experts.ep) + " x etp " + std::to_string(s.experts.etp) +
                                " does not divide tp x cp x dp = " + std::to_string(ranks),
                      .would_help = {"degrees whose product divides " + std::to_string(ranks)}};
  if (!s.stages.empty())
    return Infeasible{.reason = "stages with degrees of their own do not share experts", .would_help = {"--dp, --tp and --pp"}};
  if (s.zero.stage > 0 && s.zero.group != s.dp)
    return Infeasible{.reason = "ZeRO groups below dp do not say which replicas of an expert they hold",
                      .would_help = {"--zero-group " + std::to_string(s.dp)}};
  if (s.communication.dispatch.codec != Codec::None && s.experts.ep > 1 && transformer->hidden % 32 != 0)
    return Infeasible{
        .reason = "codes of rows are whole 32-bit words, so that --compress-dispatch needs a hidden size that 32 divides: " +
                  std::to_string(transformer->hidden),
        .would_help = {"--compress-dispatch none"}};
  const bool away =
      s.offload.optimizer != Space::Device || s.offload.parameters != Space::Device || s.offload.gradients != Space::Device;
  if (away)
    return Infeasible{.reason = "the states of experts stay on the device", .would_help = {"--offload-optimizer device"}};
  return {};
}

// Dispatchers by node: how many ranks of an expert group are on one node. Ranks take devices in the order of the placement.
Refusal resolve_dispatcher(const Cluster& cluster, Strategy& s) {
  ExpertChoice& experts = s.experts;
  if (!row_of(experts.dispatcher).by_node) return {};
  if (experts.node_ranks > 0) {
    if (experts.ep % experts.node_ranks == 0) return {};
    return Infeasible{.reason = "--expert-node-ranks " + std::to_string(experts.node_ranks) + " does not divide ep " +
                                std::to_string(experts.ep),
                      .would_help = {"--expert-node-ranks 0"}};
  }
  std::int64_t per_node = INT64_MAX, before_role = 1;
  for (const NodeGroup& group : cluster.nodes) per_node = std::min<std::int64_t>(per_node, group.shape.gpus);
  for (const std::optional<DenseKind>& kind : s.placement) {
    if (!kind) break;
    before_role *= *kind == DenseKind::Tensor ? s.tp : *kind == DenseKind::Context ? s.cp : *kind == DenseKind::Data ? s.dp : 1;
  }
  for (experts.node_ranks = experts.ep; experts.node_ranks > 1; --experts.node_ranks) {
    const std::int64_t ranks = std::int64_t{1} * experts.etp * experts.node_ranks;
    const std::int64_t devices = ranks > before_role ? ranks * s.pp : ranks;  // from its first to its last device
    if (experts.ep % experts.node_ranks == 0 && devices <= per_node && per_node % devices == 0) break;
  }
  return {};
}

Refusal resolve_placement(Strategy& s) {
  if (s.placement.empty()) s.placement = default_rank_order();
  if (!is_complete(s.placement))
    return Infeasible{.reason = "placement has to name each of tp, cp, dp and role once, fastest first"};
  s.placement = with_outer_data(std::move(s.placement));
  return {};
}

}  // namespace

std::variant<Strategy, Infeasible> resolve(const Model& model, const Cluster& cluster, const Strategy& strategy) {
  Strategy asked = strategy;
  if (auto refused = resolve_policy(asked)) return *refused;
  Strategy s = with_preset(model, std::move(asked));
  if (!s.stages.empty())
    if (auto refused = resolve_stages(model, cluster, s)) return *refused;
  if (s.tp == 1) s.sequence_parallel = false;
  if (s.recompute.kind == RecomputeKind::Each && s.framework != Strategy{}.framework)
    return Infeasible{.reason = "framework " + s.framework + " recomputes its layers alike, not " + to_text(s.recompute),
                      .would_help = {"--recompute full"}};
  if (auto refused = resolve_shape(model, s)) return *refused;
  if (auto refused = refuse_asynchronous(cluster, s)) return *refused;
  if (auto refused = resolve_degrees(cluster, s)) return *refused;
  if (auto refused = resolve_batch(s)) return *refused;
  if (auto refused = resolve_schedule(model, s)) return *refused;
  if (auto refused = resolve_numbers(model, cluster, s)) return *refused;
  if (auto refused = resolve_offload(model, cluster, s)) return *refused;
  if (auto refused = resolve_experts(model, s)) return *refused;
  if (auto refused = refuse_adapters(model, s)) return *refused;
  if (auto refused = refuse_packing(model, s)) return *refused;
  if (auto refused = resolve_parts(s)) return *refused;
  if (auto refused = refuse_compression(model, s)) return *refused;
  if (auto refused = resolve_placement(s)) return *refused;
  if (auto refused = resolve_dispatcher(cluster, s)) return *refused;
  if (auto refused = resolve_compress_group(cluster, s)) return *refused;
  if (auto layout = rank_layout(s); auto* refused = std::get_if<Infeasible>(&layout)) return *refused;
  set_bucket_of_policy(s);
  if (s.communication.bucket.value == 0) {
    // Megatron's rule: enough elements per bucket that each of dp ranks still has a megabyte-sized part of it.
    const std::int64_t elements = std::max<std::int64_t>(40'000'000, std::int64_t{1'000'000} * s.dp);
    s.communication.bucket = size_of(state_types(s).grad) * elements;
  }
  return s;
}

Sharding sharding_of(const Strategy& s, const StateTypes& types) {
  return {.micro_batch = s.batch.micro,
          .seq = s.batch.seq,
          .tp = s.tp,
          .cp = s.cp,
          .sequence_parallel = s.sequence_parallel,
          .context = s.context.value_or(ContextKind::AllGather),
          .flash_attention = s.attention == AttentionKernel::Flash,
          .dropout = *s.dropout,
          .compute = types.compute,
          .param = types.param,
          .factors = is_code(s.precision) ? std::optional(s.precision) : std::nullopt,
          .vocab_multiple = s.vocab_multiple,
          .kept_tokens = reads_probabilities(s) ? s.communication.activations.tokens : 0,
          .ep = s.experts.ep,
          .etp = s.experts.etp,
          .expert_load = s.experts.load,
          .expert_capacity = s.experts.capacity,
          .expert_unpadded = s.experts.unpadded,
          .dispatcher = s.experts.dispatcher,
          .lora = s.optimizer.lora,
          .packed = s.batch.packed,
          .expert_nodes = s.experts.nodes()};
}

bool names_layers(const Recompute& recompute) {
  return !recompute.per_stage.empty() || !recompute.only.empty() || recompute.kind > RecomputeKind::Modules;
}

std::variant<OpGraph, Infeasible> graph_of(const Model& model, const Strategy& strategy) {
  try {
    return build_op_graph(model, sharding_of(strategy, state_types(strategy)));
  } catch (const Error& refused) {  // shapes that cannot be split so make the strategy infeasible; they are no input error
    return Infeasible{.reason = refused.what()};
  }
}

bool leaves_open(const Strategy& strategy) {
  const Recompute& recompute = strategy.recompute;
  return strategy.pipeline.layer_split == "auto" || recompute == Recompute{.kind = RecomputeKind::Each} ||
         recompute.layers < 0 || recompute.kind >= RecomputeKind::Rotor || chooses_parts(strategy) ||
         chooses_buckets(strategy) || chooses_order(strategy) || chooses_moves(strategy);
}

Strategy without_open_choices(Strategy strategy) {
  const Recompute& recompute = strategy.recompute;
  if (recompute == Recompute{.kind = RecomputeKind::Each} || recompute.layers < 0 || recompute.kind >= RecomputeKind::Rotor)
    strategy.recompute = {};
  if (strategy.pipeline.layer_split == "auto") strategy.pipeline.layer_split.clear();
  if (chooses_order(strategy)) strategy.pipeline.schedule = Schedule::OneFOneB, strategy.pipeline.order.clear();
  if (chooses_parts(strategy)) strategy.communication.parts.clear();
  if (chooses_buckets(strategy)) strategy.communication.bucket = {};
  if (chooses_moves(strategy)) strategy.offload.activations = OffloadedActivations::None;
  FS_ASSERT(!leaves_open(strategy));
  return strategy;
}

bool chooses_regions(const Strategy& strategy) {
  const RuntimePolicy* policy = find_policy(strategy.policy);
  return policy && policy->layers && std::holds_alternative<RegionRule>(policy->layers->rule);
}
bool chooses_moves(const Strategy& strategy) { return strategy.offload.activations == OffloadedActivations::FreeTime; }

bool chooses_parts(const Strategy& strategy) { return strategy.communication.parts == std::vector<int>{0}; }
bool chooses_order(const Strategy& strategy) {
  return strategy.pipeline.schedule == Schedule::Listed && strategy.pipeline.order == std::vector<std::string>{kBestOrder};
}
bool chooses_times(const Strategy& strategy) {
  const PipelineChoice& pipeline = strategy.pipeline;
  return strategy.pp > 1 && pipeline.schedule && schedule_entry(*pipeline.schedule).by_times && !pipeline.times;
}
bool chooses_buckets(const Strategy& strategy) { return strategy.communication.bucket.value < 0; }

}  // namespace foreshard
