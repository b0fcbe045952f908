// Options of Megatron-LM's pretrain_gpt.py and pretrain_bert.py: megatron/training/arguments.py, and for those that it makes of fields
// megatron/core/model_parallel_config.py and transformer_config.py.
#include <algorithm>

#include "report/export/framework_export_parts.h"

namespace foreshard::exports {

namespace {

// "Ett|ttt|tL": embedding, decoder layers, loss; stages between bars, stage i on rank i mod pp.
std::string layout(const std::vector<int>& stages) {
  std::string words = "E";
  for (std::size_t i = 0; i < stages.size(); ++i)
    words += (i > 0 ? "|" : "") + std::string(static_cast<std::size_t>(stages[i]), 't');
  return words + "L";
}

class MegatronOptions {
 public:
  MegatronOptions(const FrameworkFacts& facts, const Model& model, const Strategy& strategy)
      : t_(std::get<Transformer>(model.shape)), model_(model), facts_(facts), s_(strategy) {}

  FrameworkExport all() {
    out_.goes_to = t_.causal ? "options of pretrain_gpt.py" : "options of pretrain_bert.py";
    shape();
    degrees();
    communication();
    numbers();
    recomputation();
    return std::move(out_);
  }

 private:
  static const char* communication_of(ContextKind kind) {
    switch (kind) {
      case ContextKind::AllGather: return "all_gather";
      case ContextKind::Ring: return "p2p";
      case ContextKind::AllToAll: return "a2a";
    }
    return "";
  }
  void add(const std::string& option) { out_.lines.push_back("--" + option); }
  void add(const char* option, std::int64_t value) { add(std::string(option) + " " + text(value)); }
  void add_if(bool given, const char* option) {
    if (given) add(option);
  }
  void note(const std::string& words) { out_.notes.push_back(words); }

  void shape() {
    add("num-layers", t_.layers), add("hidden-size", t_.hidden), add("ffn-hidden-size", t_.ffn_hidden);
    add("num-attention-heads", t_.heads), add("kv-channels", t_.head_dim);
    if (t_.kv_heads != t_.heads) add("group-query-attention"), add("num-query-groups", t_.kv_heads);
    add("seq-length", s_.batch.seq), add("max-position-embeddings", std::max(s_.batch.seq, t_.max_positions));
    add(std::string("position-embedding-type ") + (t_.positions == PositionKind::Rope ? "rope" : "learned_absolute"));
    if (t_.positions == PositionKind::Rope) add("rotary-base", static_cast<std::int64_t>(t_.attention.rope_theta));
    add(std::string("normalization ") + (t_.norm == NormKind::RmsNorm ? "RMSNorm" : "LayerNorm"));
    if (t_.activation == ActivationKind::SwiGlu) add("swiglu");
    if (t_.activation == ActivationKind::Relu) note("no option says ReLU: it is activation_func of its TransformerConfig");
    if (!t_.mlp_bias) add("disable-bias-linear");
    if (t_.qkv_bias && !t_.mlp_bias) add("add-qkv-bias");
    add_if(!t_.tied_embeddings, "untie-embeddings-and-output-weights");
    add("make-vocab-size-divisible-by", s_.vocab_multiple);
    note("the tokenizer has " + text(t_.vocab) + " entries");
  }

  void degrees() {
    add("tensor-model-parallel-size", s_.tp), add("pipeline-model-parallel-size", s_.pp), add("context-parallel-size", s_.cp);
    add("micro-batch-size", s_.batch.micro), add("global-batch-size", s_.batch.global);
    add_if(s_.sequence_parallel, "sequence-parallel");
    if (s_.cp > 1) add(std::string("cp-comm-type ") + communication_of(*s_.context));
    if (!s_.pipeline.layer_split.empty() && s_.pp > 1)
      add("pipeline-model-parallel-layout \"" + layout(layers_per_stage(model_, s_)) + "\"");
    else if (s_.virtual_stages > 1)
      add("num-virtual-stages-per-pipeline-rank", s_.virtual_stages);
    if (s_.virtual_stages > 1)
      add("microbatch-group-size-per-virtual-pipeline-stage",
          s_.pipeline.microbatch_group > 0 ? s_.pipeline.microbatch_group : s_.pp);
    add_if(s_.placement.size() > 2 && !s_.placement[2] && s_.pp > 1, "use-tp-pp-dp-mapping");
    if (s_.tp > 1 || s_.cp > 1) note("environment: CUDA_DEVICE_MAX_CONNECTIONS=1, which it demands before Blackwell");
    order_of_actions();
    if (s_.pp > 1 && s_.virtual_stages == 1 && s_.communication.overlap->p2p)
      note("transfers beside computes were simulated; 1F1B waits for them");
    if (s_.pp > 1 && s_.tp > 1 && !s_.sequence_parallel && s_.communication.transfers == Transfers::Split)
      note("split transfers were simulated; it sends whole values without sequence parallelism");
  }

  // Cells hide all-to-alls of experts, without a pipeline or in interleaved stages.
  void order_of_actions() {
    const Schedule schedule = *s_.pipeline.schedule;
    const bool cells = schedule == Schedule::OneFOneBCells || schedule == Schedule::InterleavedCells;
    const bool said = cells && s_.experts.ep > 1 && s_.communication.overlap->tp && (s_.pp == 1 || s_.virtual_stages > 1);
    if (said) add("overlap-moe-expert-parallel-comm");
    add_if(said && s_.pipeline.delay_wgrad, "delay-wgrad-compute");
    if (s_.pipeline.delay_wgrad && !said) note("delayed weight gradients were simulated");
    if (said) return;
    if (cells || (s_.pp > 1 && schedule != Schedule::OneFOneB && schedule != Schedule::Interleaved))
      note(std::string("no option says the schedule ") + name_of(schedule));
  }

  void communication() {
    add_if(s_.virtual_stages > 1 && !s_.communication.overlap->p2p, "no-overlap-p2p-communication");
    add_if(s_.zero.stage == 1, "use-distributed-optimizer");
    if (s_.zero.stage > 1) note("ZeRO " + text(s_.zero.stage) + " was simulated; its distributed optimizer is ZeRO 1");
    if (s_.zero.stage == 1 && in_groups(s_)) add("num-distributed-optimizer-instances", s_.dp / s_.zero.group);
    const bool away =
        s_.offload.optimizer == Space::PinnedHost && s_.offload.updated_on == UpdatedOn::Host && s_.zero.stage > 0;
    if (away) {  // HybridDeviceOptimizer: holds the states of this fraction of the elements on the host
      add("optimizer-cpu-offload"), add("use-precision-aware-optimizer");
      add("optimizer-offload-fraction " + number(1 - s_.offload.optimizer_kept));
    }
    if (const std::string left = offload_note(s_.offload, {.optimizer = away}); !left.empty()) out_.unsaid.push_back(left);
    add_if(s_.communication.overlap->gradients, "overlap-grad-reduce");
    if (s_.communication.overlap->gradients) add("ddp-bucket-size", bucket_elements(s_));  // one bucket otherwise
    add_if(s_.communication.overlap->parameters && s_.zero.stage == 1, "overlap-param-gather");
  }

  void numbers() {
    const StateTypes types = state_types(s_);
    add_if(types.compute == DType::BF16, "bf16");
    if (s_.precision == DType::F8) add("fp8-format hybrid"), add("fp8-recipe tensorwise");  // the head stays in bf16 there, too
    if (s_.precision == DType::F4) add("fp4-format e2m1"), add("fp4-recipe nvfp4");
    add_if(s_.precision == DType::F16, "fp16");
    if (types.compute == DType::BF16 || types.compute == DType::F16) {
      const bool wide = types.grad == DType::F32;
      add_if(wide, "accumulate-allreduce-grads-in-fp32");
      add_if(!wide && types.compute == DType::BF16, "grad-reduce-in-bf16");
    }
    if (s_.precision == DType::F16 && s_.optimizer.loss_scale > 0) add("loss-scale " + number(s_.optimizer.loss_scale));
    if (s_.precision != DType::F16 && s_.optimizer.loss_scale != 1)
      note("it scales the loss only with --fp16; a loss scale was simulated");
    if (types.state != DType::F32 || size_of(types.param) != size_of(types.compute))
      note(std::string("no option says parameters in ") + name_of(types.param) + " with states in " + name_of(types.state));
    add(std::string("attention-backend ") + (s_.attention == AttentionKernel::Flash ? "flash" : "unfused"));
    add("attention-dropout " + number(*s_.dropout)), add("hidden-dropout " + number(*s_.dropout));
    add("clip-grad " + number(*s_.optimizer.clip_norm));
    add(std::string("optimizer ") + (s_.optimizer.kind == OptimizerKind::Adam ? "adam" : "sgd"));
    if (s_.optimizer.kind == OptimizerKind::Sgd) add("sgd-momentum " + number(s_.optimizer.momentum));
    add_if(facts_.deterministic_attention, "deterministic-mode");
  }

  void recomputation() {
    const Recompute& r = s_.recompute;
    if (r.kind == RecomputeKind::None) return;
    if (r.kind == RecomputeKind::Selective) {
      add("recompute-granularity selective"), add("recompute-modules core_attn");
    } else if (r.kind == RecomputeKind::Modules) {
      std::string modules;
      for (const std::string& module : r.modules)
        if (const char* word = module == "attention" ? "core_attn"
                               : module == "norm"    ? "layernorm"
                               : module == "mlp"     ? "mlp"
                                                     : nullptr)
          modules += std::string(" ") + word;
        else
          note("no option recomputes " + module + " alone");
      if (!modules.empty()) add("recompute-granularity selective"), add("recompute-modules" + modules);
    } else if (r.kind == RecomputeKind::Full && r.per_stage.empty() && r.only.empty()) {
      add("recompute-granularity full");
      add(r.layers > 0 ? "recompute-method block" : "recompute-method uniform");
      add("recompute-num-layers", r.layers > 0 ? r.layers : 1);
    } else {
      note("no option says --recompute " + to_text(r));
    }
  }

  const Transformer& t_;
  const Model& model_;
  const FrameworkFacts& facts_;
  const Strategy& s_;
  FrameworkExport out_ = {};
};

}  // namespace

FrameworkExport of_megatron(const FrameworkFacts& facts, const Model& model, const Strategy& strategy) {
  return MegatronOptions(facts, model, strategy).all();
}

}  // namespace foreshard::exports
