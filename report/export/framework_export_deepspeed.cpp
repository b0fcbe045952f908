// DeepSpeed's configuration file: deepspeed/runtime/constants.py, config.py, precision_config.py, zero/config.py, tensor_parallel/config.py.
#include <sstream>

#include "core/base/count_text.h"
#include "core/json/json.h"
#include "report/export/framework_export_parts.h"

namespace foreshard::exports {

namespace {

// offload_config.py; gradients go with the optimizer. ZeRO 1 to 3 for the optimizer, 3 for parameters.
OffloadOptions says_offload(const Strategy& s) {
  const bool optimizer = s.zero.stage > 0 && s.offload.updated_on == UpdatedOn::Host;
  return {.optimizer = optimizer, .parameters = s.zero.stage == 3, .gradients = optimizer};
}

void write_offload(const Strategy& s, JsonWriter& json) {
  const auto device = [&](const char* key, Space home) {
    json.key(key).begin_object().field("device", home == Space::Nvme ? "nvme" : "cpu").field("pin_memory", true);
  };
  const OffloadOptions says = says_offload(s);
  if (says.optimizer && s.offload.optimizer != Space::Device) {
    device("offload_optimizer", s.offload.optimizer);
    if (s.offload.optimizer_kept > 0) json.field("ratio", 1 - s.offload.optimizer_kept);
    json.end_object();
  }
  if (says.parameters && s.offload.parameters != Space::Device) {
    device("offload_param", s.offload.parameters);
    json.end_object();
  }
}

void write_zero(const FrameworkFacts& facts, const Strategy& s, JsonWriter& json) {
  json.key("zero_optimization").begin_object();
  json.field("stage", s.zero.stage).field("overlap_comm", s.communication.overlap->gradients).field("reduce_scatter", true);
  json.field("contiguous_gradients", true).field("reduce_bucket_size", bucket_elements(s));
  if (s.zero.stage == 1 || s.zero.stage == 2)
    json.field("allgather_partitions", true).field("allgather_bucket_size", bucket_elements(s));
  if (s.zero.stage == 3) {
    const std::int64_t usual = s.communication.overlap->parameters ? 50'000'000 : 0;
    json.field("stage3_prefetch_bucket_size", facts.prefetch.value_or(usual));
    json.field("stage3_param_persistence_threshold", facts.least_sharded);
    json.field("stage3_max_live_parameters", facts.live_elements).field("stage3_max_reuse_distance", facts.reuse_distance);
    if (in_groups(s)) json.field("mics_shard_size", s.zero.group);
  }
  write_offload(s, json);
  json.end_object();
}

void write_numbers(const Strategy& s, JsonWriter& json, FrameworkExport& out) {
  const StateTypes types = state_types(s);
  if (types.compute == DType::BF16) json.key("bf16").begin_object().field("enabled", true).end_object();
  if (is_code(s.precision)) out.notes.emplace_back(std::string("no option says products in ") + name_of(s.precision));
  if (s.precision == DType::F16)
    json.key("fp16").begin_object().field("enabled", true).field("loss_scale", s.optimizer.loss_scale).end_object();
  if (s.precision != DType::F16 && s.optimizer.loss_scale != 1)
    out.notes.emplace_back("it scales the loss only in fp16; a loss scale was simulated");
  json.field("communication_data_type", name_of(types.grad));
  json.key("data_types").begin_object().field("grad_accum_dtype", name_of(types.grad)).end_object();
  if (types.state != DType::F32 || size_of(types.param) != size_of(types.compute))
    out.notes.push_back(std::string("no option says parameters in ") + name_of(types.param) + " with states in " +
                        name_of(types.state));
}

void add_notes(const Strategy& s, FrameworkExport& out) {
  const bool full = s.recompute.kind == RecomputeKind::Full;
  const std::string some = recomputed_layers(s.recompute);
  if (s.pp > 1) {
    out.notes.push_back("in the training script: PipelineModule(layers, num_stages=" + text(s.pp) +
                        ", partition_method=\"uniform\", activation_checkpoint_interval=" + (full && some.empty() ? "1" : "0") +
                        ")");
    if (!s.pipeline.layer_split.empty()) out.notes.push_back("no option says the layers per stage " + s.pipeline.layer_split);
    if (s.communication.overlap->p2p)
      out.notes.emplace_back("transfers beside computes were simulated; its pipeline waits for them");
    if (s.tp > 1 && s.communication.transfers != Transfers::Split)
      out.notes.emplace_back(
          "whole transfers were simulated: \"pipeline\": {\"pipe_partitioned\": false, \"grad_partitioned\": false}");
  }
  if (full && (s.pp == 1 || !some.empty()))
    out.notes.push_back("in the model: checkpoint " + (some.empty() ? "every layer" : some));
  else if (s.recompute.kind != RecomputeKind::None && !full)
    out.notes.push_back("in the model: checkpoint " + to_text(s.recompute));
  if (*s.dropout > 0) out.notes.push_back("in the model: dropout " + number(*s.dropout));
  if (s.vocab_multiple > 1)
    out.notes.push_back("in the model: a vocabulary padded to a multiple of " + text(s.vocab_multiple * s.tp));
  out.notes.push_back("in the model: " + counted(s.batch.seq, "token") + " per sequence, " +
                      (s.attention == AttentionKernel::Flash ? "flash attention" : "attention that is not fused"));
  out.notes.push_back(std::string("in the training script: ") +
                      (s.optimizer.kind == OptimizerKind::Adam ? "Adam" : "SGD, momentum " + number(s.optimizer.momentum)));
  if (const std::string note = offload_note(s.offload, says_offload(s)); !note.empty()) out.unsaid.push_back(note);
  if (s.offload.optimizer_kept > 0 && s.zero.stage < 3) out.notes.emplace_back("its ratio of offload is for ZeRO 3");
  if (s.cp > 1) out.notes.emplace_back("no option says context parallelism");
  if (s.sequence_parallel) out.notes.emplace_back("no option says sequence parallelism beside tensor parallelism");
}

}  // namespace

FrameworkExport of_deepspeed(const FrameworkFacts& facts, const Model&, const Strategy& s) {
  FrameworkExport out{.goes_to = "ds_config.json"};
  JsonWriter json;
  json.begin_object();
  json.field("train_batch_size", s.batch.global).field("train_micro_batch_size_per_gpu", s.batch.micro);
  json.field("gradient_accumulation_steps", microbatches(s)).field("gradient_clipping", *s.optimizer.clip_norm);
  write_zero(facts, s, json);
  write_numbers(s, json, out);
  if (s.tp > 1) json.key("tensor_parallel").begin_object().field("autotp_size", s.tp).end_object();
  std::istringstream file(json.end_object().text());
  for (std::string line; std::getline(file, line);) out.lines.push_back(line);
  add_notes(s, out);
  return out;
}

}  // namespace foreshard::exports
