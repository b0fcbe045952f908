#include "strategy/search_framework.h"

#include <algorithm>
#include <string>

namespace foreshard {

namespace {

std::string text(std::int64_t n) { return std::to_string(n); }

const char* refused_by_megatron(const Point& p) {
  if (p.schedule == Schedule::GPipe) return "megatron has no GPipe schedule";
  if (p.zero > 1) return "megatron's distributed optimizer is ZeRO 1";
  if (p.order > 1) return "megatron's ranks go tp first";
  if (p.overlap_parameters && !p.overlap_gradients) return "megatron overlaps parameters only with gradients";
  const bool interleaved = p.virtual_stages > 1;
  if (p.pp > 1 && p.overlap_p2p && !interleaved) return "megatron overlaps transfers only when stages are interleaved";
  if (interleaved && p.pp == 2 && !p.overlap_p2p) return "megatron interleaves two ranks only with overlapped transfers";
  return nullptr;
}

const char* refused_by_deepspeed(const Point& p) {
  if (p.pp > 1 && (p.virtual_stages > 1 || p.schedule != Schedule::OneFOneB)) return "deepspeed's pipeline is 1F1B";
  if (p.pp > 1 && p.zero > 1) return "deepspeed's pipeline refuses ZeRO 2 and 3";
  if (p.pp > 1 && p.overlap_p2p) return "deepspeed's pipeline transfers do not overlap";
  if (p.cp > 1) return "deepspeed has no ring or all-gather context parallelism";
  if (p.sequence_parallel) return "deepspeed's tensor parallelism has no sequence parallelism";
  if (p.recompute != RecomputeKind::None && p.recompute != RecomputeKind::Full) return "deepspeed recomputes whole layers";
  if (p.zero_group > 0 && p.zero < 3) return "deepspeed groups shards (MiCS) only with ZeRO 3";
  if (p.order > 0) return "deepspeed's ranks go tp, dp, pp";
  if ((p.zero == 1 || p.zero == 2) && p.overlap_parameters)
    return "deepspeed gathers parameters of ZeRO 1 and 2 after the update";
  return nullptr;
}

const char* refused_by_fully_shard(const Point& p) {
  if (p.zero == 1) return "fully_shard has no ZeRO 1";
  if (!p.overlap_gradients) return "fully_shard always overlaps its reductions";
  if (p.zero == 2 && p.overlap_parameters) return "fully_shard gathers in the forward that uses the parameters";
  if (p.zero == 3 && !p.overlap_parameters) return "fully_shard always prefetches";
  return nullptr;
}

const char* refused_by_torchtitan(const Point& p) {
  if (!p.overlap_p2p) return "torch pipelining overlaps its transfers";
  if (p.order > 0) return "torchtitan's mesh goes pp, dp, cp, tp";
  if (p.recompute == RecomputeKind::Full && p.recompute_layers > 0) return "torchtitan recomputes every layer alike";
  return refused_by_fully_shard(p);
}

const char* refused_by_fsdp2(const Point& p) {
  if (p.tp > 1 || p.cp > 1 || p.pp > 1) return "fsdp2 alone has only data parallelism";
  if (p.zero < 2 && p.dp > 1) return "fsdp2 shards parameters or gradients";
  return refused_by_fully_shard(p);
}

// "Ett|ttt|tL": embedding, decoder layers, loss; stages between bars.
std::string megatron_layout(const std::string& split) {
  const std::vector<int> stages = parse_layer_split(split, "layer_split");
  std::string layout = "E";
  for (std::size_t i = 0; i < stages.size(); ++i)
    layout += (i > 0 ? "|" : "") + std::string(static_cast<std::size_t>(stages[i]), 't');
  return layout + "L";
}

std::vector<std::string> megatron_flags(const Strategy& s) {
  std::vector<std::string> flags = {
      "--tensor-model-parallel-size " + text(s.tp),  "--pipeline-model-parallel-size " + text(s.pp),
      "--context-parallel-size " + text(s.cp),       "--micro-batch-size " + text(s.micro_batch),
      "--global-batch-size " + text(s.global_batch), "--seq-length " + text(s.seq)};
  if (s.sequence_parallel) flags.emplace_back("--sequence-parallel");
  if (!s.layer_split.empty())
    flags.push_back("--pipeline-model-parallel-layout \"" + megatron_layout(s.layer_split) + "\"");
  else if (s.virtual_stages > 1)
    flags.push_back("--num-virtual-stages-per-pipeline-rank " + text(s.virtual_stages));
  if (s.virtual_stages > 1 && !s.overlap.p2p) flags.emplace_back("--no-overlap-p2p-communication");
  if (s.zero == 1) flags.emplace_back("--use-distributed-optimizer");
  if (s.zero == 1 && s.zero_group < s.dp) flags.push_back("--num-distributed-optimizer-instances " + text(s.dp / s.zero_group));
  if (s.overlap.gradients) flags.emplace_back("--overlap-grad-reduce");
  if (s.overlap.parameters) flags.emplace_back("--overlap-param-gather");
  flags.push_back("--ddp-bucket-size " + text(s.bucket.value / size_of(state_types(s).grad).value));
  if (s.recompute.kind == RecomputeKind::Selective) flags.emplace_back("--recompute-granularity selective");
  if (s.recompute.kind == RecomputeKind::Full) {
    const bool some = s.recompute.layers > 0;
    flags.emplace_back("--recompute-granularity full");
    flags.emplace_back(some ? "--recompute-method block" : "--recompute-method uniform");
    flags.push_back("--recompute-num-layers " + text(some ? s.recompute.layers : 1));
  }
  if (s.precision == DType::BF16) flags.emplace_back("--bf16");
  if (s.precision == DType::F16) flags.emplace_back("--fp16");
  if (s.placement.size() > 2 && s.placement[2] == "role") flags.emplace_back("--use-tp-pp-dp-mapping");
  return flags;
}

std::vector<std::string> deepspeed_flags(const Strategy& s) {
  std::string zero = "\"zero_optimization\": {\"stage\": " + text(s.zero) +
                     ", \"overlap_comm\": " + (s.overlap.gradients ? "true" : "false") +
                     ", \"reduce_bucket_size\": " + text(s.bucket.value / size_of(state_types(s).grad).value);
  if (s.zero == 3) zero += std::string(", \"stage3_prefetch_bucket_size\": ") + (s.overlap.parameters ? "50000000" : "0");
  if (s.zero == 3 && s.zero_group < s.dp) zero += ", \"mics_shard_size\": " + text(s.zero_group);
  std::vector<std::string> lines = {
      "\"train_batch_size\": " + text(s.global_batch), "\"train_micro_batch_size_per_gpu\": " + text(s.micro_batch),
      "\"gradient_accumulation_steps\": " + text(s.global_batch / s.micro_batch / s.dp), zero + "}"};
  if (s.precision == DType::BF16) lines.emplace_back("\"bf16\": {\"enabled\": true}");
  if (s.precision == DType::F16) lines.emplace_back("\"fp16\": {\"enabled\": true}");
  if (s.tp > 1) lines.push_back("\"tensor_parallel\": {\"autotp_size\": " + text(s.tp) + "}");
  const bool full = s.recompute.kind == RecomputeKind::Full;
  if (s.pp > 1)
    lines.push_back("in Python: PipelineModule(layers, num_stages=" + text(s.pp) +
                    ", partition_method=\"uniform\", activation_checkpoint_interval=" + (full ? "1" : "0") + ")");
  else if (full)
    lines.push_back("in the model: checkpoint " + (s.recompute.layers > 0 ? "the first " + text(s.recompute.layers) + " layers"
                                                                          : std::string("every layer")));
  return lines;
}

std::vector<std::string> torchtitan_flags(const Strategy& s) {
  const std::int64_t microbatches = s.global_batch / s.micro_batch / s.dp;
  const bool sharded = s.zero > 0;
  std::vector<std::string> flags = {
      "--parallelism.data_parallel_replicate_degree " + text(sharded ? s.dp / s.zero_group : s.dp),
      "--parallelism.data_parallel_shard_degree " + text(sharded ? s.zero_group : 1),
      "--parallelism.tensor_parallel_degree " + text(s.tp),
      "--parallelism.context_parallel_degree " + text(s.cp),
      "--parallelism.pipeline_parallel_degree " + text(s.pp),
      "--training.seq_len " + text(s.seq),
      "--training.global_batch_size " + text(s.global_batch),
      "--training.local_batch_size " + text(s.pp > 1 ? s.micro_batch * microbatches : s.micro_batch)};
  if (sharded) flags.push_back(std::string("--parallelism.fsdp_reshard_after_forward ") + (s.zero == 3 ? "always" : "never"));
  if (s.tp > 1 && s.sequence_parallel) flags.emplace_back("--parallelism.enable_sequence_parallel");
  if (s.pp > 1) {
    const char* schedule = s.schedule == Schedule::GPipe ? "GPipe" : s.virtual_stages > 1 ? "Interleaved1F1B" : "1F1B";
    flags.push_back(std::string("--parallelism.pipeline_parallel_schedule ") + schedule);
    flags.push_back("--parallelism.pipeline_parallel_microbatch_size " + text(s.micro_batch));
    if (!s.layer_split.empty()) flags.push_back("module_fqns_per_model_part: layers per stage " + s.layer_split);
  }
  const RecomputeKind kind = s.recompute.kind;
  flags.push_back(std::string("--activation_checkpoint.mode ") + (kind == RecomputeKind::None   ? "none"
                                                                  : kind == RecomputeKind::Full ? "full"
                                                                                                : "selective"));
  return flags;
}

std::vector<std::string> fsdp2_flags(const Strategy& s) {
  const bool groups = s.zero_group > 0 && s.zero_group < s.dp;
  const std::string mesh = groups ? "(" + text(s.dp / s.zero_group) + ", " + text(s.zero_group) + ")" : "(" + text(s.dp) + ",)";
  std::vector<std::string> lines = {"mesh = init_device_mesh(\"cuda\", " + mesh + ")",
                                    std::string("for layer in layers: fully_shard(layer, mesh=mesh, reshard_after_forward=") +
                                        (s.zero == 3 ? "True" : "False") +
                                        ", mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16))",
                                    "fully_shard(model, mesh=mesh)",
                                    "per rank and step: " + text(s.global_batch / s.micro_batch / s.dp) + " micro-batches of " +
                                        text(s.micro_batch) + " sequences"};
  if (s.recompute.kind == RecomputeKind::Full)
    lines.push_back("checkpoint_wrapper around " + (s.recompute.layers > 0 ? "the first " + text(s.recompute.layers) + " layers"
                                                                           : std::string("every layer")));
  if (s.recompute.kind == RecomputeKind::Selective) lines.emplace_back("checkpoint the attention core of every layer");
  return lines;
}

}  // namespace

std::optional<Runner> find_runner(const std::string& framework) {
  if (framework == "megatron") return Runner::Megatron;
  if (framework == "deepspeed") return Runner::DeepSpeed;
  if (framework == "torchtitan") return Runner::TorchTitan;
  if (framework == "fsdp2") return Runner::Fsdp2;
  return {};
}

const char* refused_by(Runner runner, const Point& point) {
  if (point.recompute > RecomputeKind::Modules) return "it has no such schedule of recomputation";
  if (point.recompute == RecomputeKind::Full && point.recompute_layers < 0) return "its stages recompute alike";
  switch (runner) {
    case Runner::Megatron: return refused_by_megatron(point);
    case Runner::DeepSpeed: return refused_by_deepspeed(point);
    case Runner::TorchTitan: return refused_by_torchtitan(point);
    case Runner::Fsdp2: return refused_by_fsdp2(point);
  }
  return nullptr;
}

std::vector<std::string> runner_flags(Runner runner, const Strategy& strategy) {
  switch (runner) {
    case Runner::Megatron: return megatron_flags(strategy);
    case Runner::DeepSpeed: return deepspeed_flags(strategy);
    case Runner::TorchTitan: return torchtitan_flags(strategy);
    case Runner::Fsdp2: return fsdp2_flags(strategy);
  }
  return {};
}

}  // namespace foreshard
