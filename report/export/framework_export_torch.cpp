// torchtitan's configuration file (torchtitan/config/job_config.py), and the calls of a script that uses fully_shard alone
// (torch/distributed/fsdp/_fully_shard).
#include "core/base/count_text.h"
#include "report/export/framework_export_parts.h"

namespace foreshard::exports {

namespace {

// "llama3" models by their shape (torchtitan/models/llama3/__init__.py).
const char* flavor_of(const Transformer& t) {
  const bool llama3 = t.vocab == 128256 && t.kv_heads == 8 && t.activation == ActivationKind::SwiGlu;
  if (llama3 && t.layers == 32 && t.hidden == 4096) return "8B";
  if (llama3 && t.layers == 80 && t.hidden == 8192) return "70B";
  if (llama3 && t.layers == 126 && t.hidden == 16384) return "405B";
  return nullptr;
}

// FSDP2's CPUOffloadPolicy moves parameters, gradients and states together.
constexpr OffloadOptions kWithStates = {.optimizer = true, .parameters = true, .gradients = true};
bool all_away(const OffloadChoice& offload) {
  return offload.optimizer == Space::PinnedHost && offload.parameters == Space::PinnedHost &&
         offload.gradients == Space::PinnedHost;
}

// Whether parameters are released after each forward and gathered again for the backward.
bool reshards(const FrameworkFacts& facts, const Strategy& s) { return s.zero.stage == 3 && !facts.keeps_after_forward; }

class TorchTitanFile {
 public:
  TorchTitanFile(const FrameworkFacts& facts, const Model& model, const Strategy& strategy)
      : facts_(facts), model_(model), t_(std::get<Transformer>(model.shape)), s_(strategy) {}

  FrameworkExport all() {
    out_.goes_to = "train.toml";
    section("model");
    if (const char* flavor = flavor_of(t_))
      add("name", "\"llama3\""), add("flavor", quoted(flavor));
    else
      out_.unsaid.push_back("the model: it has no flavor of the size of " + model_.name);
    if (s_.precision == DType::F8) add("converters", "[\"quantize.linear.float8\"]");
    training();
    parallelism();
    pipeline();
    recomputation();
    if (s_.precision == DType::F8)  // one scale per tensor, computed at each use; the head stays in higher precision
      section("quantize.linear.float8"), add("recipe_name", quoted("tensorwise")), add("filter_fqns", "[\"output\"]");
    section("compile"), add("enable", "true");
    notes();
    return std::move(out_);
  }

 private:
  static std::string quoted(const std::string& words) { return "\"" + words + "\""; }
  static const char* word(DType type) { return type == DType::BF16 ? "\"bfloat16\"" : "\"float32\""; }
  void section(const char* name) { out_.lines.push_back(std::string("[") + name + "]"); }
  void add(const std::string& key, const std::string& value) { out_.lines.push_back(key + " = " + value); }
  void add(const std::string& key, std::int64_t value) { add(key, text(value)); }
  void note(const std::string& words) { out_.notes.push_back(words); }

  void training() {
    section("training");
    add("seq_len", s_.batch.seq), add("global_batch_size", s_.batch.global);
    add("local_batch_size", s_.pp > 1 ? s_.batch.micro * microbatches(s_) : s_.batch.micro);
    add("max_norm", *s_.optimizer.clip_norm > 0 ? number(*s_.optimizer.clip_norm) : "inf");
    if (*s_.optimizer.clip_norm == 0) note("it computes the norm of the gradients also without clipping");
    const StateTypes types = state_types(s_);
    add("dtype", word(types.param)), add("mixed_precision_param", word(types.compute));
    add("mixed_precision_reduce", "\"float32\"");
  }

  void parallelism() {
    section("parallelism");
    const bool sharded = s_.zero.stage > 0, groups = in_groups(s_);
    add("data_parallel_replicate_degree", !sharded ? s_.dp : groups ? s_.dp / s_.zero.group : 1);
    add("data_parallel_shard_degree", !sharded ? 1 : groups ? s_.zero.group : s_.dp);
    if (sharded) add("fsdp_reshard_after_forward", reshards(facts_, s_) ? "\"always\"" : "\"never\"");
    add("tensor_parallel_degree", s_.tp);
    if (s_.tp > 1) add("enable_async_tensor_parallel", s_.communication.overlap->tp ? "true" : "false");
    add("context_parallel_degree", s_.cp);
    if (s_.cp > 1) {
      add("context_parallel_load_balancer", t_.causal ? "\"headtail\"" : "\"\"");
      add("context_parallel_rotate_method", s_.context == ContextKind::Ring ? "\"alltoall\"" : "\"allgather\"");
      if (s_.context == ContextKind::AllToAll) note("no option deals out the heads: keys and values are gathered");
    }
    add("pipeline_parallel_degree", s_.pp);
    if (all_away(s_.offload)) section("training"), add("enable_cpu_offload", "true");
  }

  // torch/distributed/pipelining/schedules.py, get_schedule_class; null: torchtitan has no such schedule.
  static const char* class_of(Schedule schedule) {
    switch (schedule) {
      case Schedule::GPipe: return "GPipe";
      case Schedule::OneFOneB: return "1F1B";
      case Schedule::Interleaved: return "Interleaved1F1B";
      case Schedule::LoopedBfs: return "LoopedBFS";
      case Schedule::InterleavedZeroBubble: return "InterleavedZeroBubble";
      case Schedule::ZeroBubbleV: return "ZBVZeroBubble";
      case Schedule::DualPipeV: return "DualPipeV";
      default: return nullptr;
    }
  }

  // The split is always written: by default torchtitan gives the first and the last stage one layer less, and each rank two stages.
  void pipeline() {
    if (s_.pp == 1) return;
    const char* schedule = class_of(*s_.pipeline.schedule);
    add("pipeline_parallel_schedule", quoted(schedule ? schedule : s_.virtual_stages > 1 ? "Interleaved1F1B" : "1F1B"));
    add("pipeline_parallel_microbatch_size", s_.batch.micro);
    out_.lines.emplace_back("module_fqns_per_model_part = [");
    const std::vector<int> stages = layers_per_stage(model_, s_);
    int layer = 0;
    for (std::size_t i = 0; i < stages.size(); ++i) {
      std::string modules = i == 0 ? "\"tok_embeddings\", " : "";
      for (int end = layer + stages[i]; layer < end; ++layer) modules += "\"layers." + text(layer) + "\", ";
      if (i + 1 == stages.size()) modules += "\"norm\", \"output\", ";
      out_.lines.push_back("  [" + modules.substr(0, modules.empty() ? 0 : modules.size() - 2) + "],");
    }
    out_.lines.emplace_back("]");
    if (!schedule) note(std::string("no option says the schedule ") + name_of(*s_.pipeline.schedule));
    if (s_.virtual_stages > 1 && s_.pipeline.microbatch_group > 0 && s_.pipeline.microbatch_group != s_.pp)
      note("no option says --microbatch-group " + text(s_.pipeline.microbatch_group));
  }

  void recomputation() {
    section("activation_checkpoint");
    const Recompute& r = s_.recompute;
    const bool none = r.kind == RecomputeKind::None, full = r.kind == RecomputeKind::Full;
    add("mode", none ? "\"none\"" : full ? "\"full\"" : "\"selective\"");
    if (!none && !full) add("selective_ac_option", "\"op\"");
    if (!none) add("early_stop", facts_.recomputation_stops_early ? "true" : "false");
    if (full && !recomputed_layers(r).empty()) note("no option recomputes only " + recomputed_layers(r));
    if (r.kind == RecomputeKind::Selective) note("its selective recomputation keeps the attention, which was simulated again");
  }

  void notes() {
    if (s_.tp > 1 && !s_.sequence_parallel) note("its tensor parallelism is sequence parallel; simulated was one that is not");
    if (s_.zero.stage == 1) note("ZeRO 1 was simulated; it has none");
    if (const std::string left = offload_note(s_.offload, all_away(s_.offload) ? kWithStates : OffloadOptions{}); !left.empty())
      out_.unsaid.push_back(left);
    if (*s_.dropout > 0) note("its models have no dropout");
    if (s_.optimizer.kind != OptimizerKind::Adam) note("its optimizers are Adam and AdamW");
    if (s_.attention != AttentionKernel::Flash) note("its attention is fused");
    if (s_.optimizer.loss_scale != 1) note("no option scales the loss");
    if (s_.precision != DType::F8 && s_.precision != DType::BF16 && s_.precision != DType::F32)
      note(std::string("no option says products in ") + name_of(s_.precision));
  }

  const FrameworkFacts& facts_;
  const Model& model_;
  const Transformer& t_;
  const Strategy& s_;
  FrameworkExport out_ = {};
};

const char* torch_type(DType type) {
  return type == DType::BF16  ? "torch.bfloat16"
         : type == DType::F16 ? "torch.float16"
         : type == DType::F64 ? "torch.float64"
                              : "torch.float32";
}

}  // namespace

FrameworkExport of_torchtitan(const FrameworkFacts& facts, const Model& model, const Strategy& strategy) {
  return TorchTitanFile(facts, model, strategy).all();
}

FrameworkExport of_fsdp2(const FrameworkFacts& facts, const Model&, const Strategy& s) {
  const StateTypes types = state_types(s);
  const std::string compute = torch_type(types.compute), reduced = torch_type(types.grad);
  const std::string mesh = in_groups(s) ? "(" + text(s.dp / s.zero.group) + ", " + text(s.zero.group) +
                                              "), mesh_dim_names=(\"replicate\", \"shard\")"
                                        : "(" + text(s.dp) + ",)";
  const std::string how = std::string("mesh=mesh, reshard_after_forward=") + (reshards(facts, s) ? "True" : "False") +
                          ", mp_policy=policy" + (all_away(s.offload) ? ", offload_policy=CPUOffloadPolicy()" : "") + ")";
  FrameworkExport out{.goes_to = "calls of the training script"};
  out.lines = {std::string("model = model.to(") + torch_type(types.param) + ")",
               "mesh = init_device_mesh(\"cuda\", " + mesh + ")",
               "policy = MixedPrecisionPolicy(param_dtype=" + compute + ", reduce_dtype=" + reduced + ")",
               "for layer in layers: fully_shard(layer, " + how, "fully_shard(model, " + how};
  if (s.precision == DType::F8)
    out.lines.insert(
        out.lines.begin() + 1,
        "torchao.float8.convert_to_float8_training(model, module_filter_fn=lambda layer, name: layer is not head)");
  if (s.precision == DType::F4) out.notes.emplace_back("no option says products in nvfp4");
  if (*s.optimizer.clip_norm > 0)
    out.lines.push_back("torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=" + number(*s.optimizer.clip_norm) +
                        ")  # before each step");
  out.notes.push_back("per rank and step: " + counted(microbatches(s), "micro-batch", "micro-batches") + " of " +
                      text(s.batch.micro) + " x " + counted(s.batch.seq, "token"));
  const std::string some = recomputed_layers(s.recompute);
  if (s.recompute.kind == RecomputeKind::Full)
    out.notes.push_back("checkpoint_wrapper around " + (some.empty() ? "every layer" : some));
  if (s.recompute.kind == RecomputeKind::Selective) out.notes.emplace_back("checkpoint the attention core of every layer");
  if (s.recompute.kind == RecomputeKind::Modules) out.notes.push_back("checkpoint " + to_text(s.recompute) + " of every layer");
  if (const std::string left = offload_note(s.offload, all_away(s.offload) ? kWithStates : OffloadOptions{}); !left.empty())
    out.unsaid.push_back(left);
  if (*s.dropout > 0) out.notes.push_back("in the model: dropout " + number(*s.dropout));
  if (s.optimizer.loss_scale != 1) out.notes.emplace_back("in the training script: torch.amp.GradScaler");
  return out;
}

}  // namespace foreshard::exports
