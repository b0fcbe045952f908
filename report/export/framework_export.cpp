#include "report/export/framework_export.h"

#include <charconv>

#include "core/base/count_text.h"
#include "report/export/framework_export_parts.h"

namespace foreshard {

namespace exports {

std::string text(std::int64_t n) { return std::to_string(n); }

std::string number(double value) {
  char digits[32];
  std::string words(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
  return words.find_first_of(".en") == std::string::npos ? words + ".0" : words;
}

std::int64_t microbatches(const Strategy& s) { return s.batch.global / (s.batch.micro * s.dp); }
std::string offload_note(const OffloadChoice& offload, const OffloadOptions& says) {
  std::vector<std::string> parts;
  const auto add = [&](bool said, Space home, const char* what) {
    if (!said && home != Space::Device)
      parts.push_back(std::string(what) + (home == Space::Nvme ? " on drives" : " in host memory"));
  };
  add(says.optimizer, offload.optimizer, "optimizer states");
  add(says.parameters, offload.parameters, "parameters");
  add(says.gradients, offload.gradients, "gradients");
  add(says.activations || offload.activations == OffloadedActivations::None, offload.activation_home, "activations");
  std::string all;
  for (const std::string& part : parts) all += (all.empty() ? "" : ", ") + part;
  return all.empty() ? "" : "strategy.offload (" + all + ")";
}

bool in_groups(const Strategy& s) { return s.zero.stage > 0 && s.zero.group > 0 && s.zero.group < s.dp; }
std::int64_t bucket_elements(const Strategy& s) { return s.communication.bucket.value / size_of(state_types(s).grad).value; }

std::vector<int> layers_per_stage(const Model& model, const Strategy& s) {
  if (!s.pipeline.layer_split.empty()) return parse_layer_split(s.pipeline.layer_split, "layer_split");
  const int stages = s.pp * s.virtual_stages;
  const auto* transformer = std::get_if<Transformer>(&model.shape);
  return std::vector<int>(static_cast<std::size_t>(stages), transformer ? transformer->layers / stages : 0);
}

std::string recomputed_layers(const Recompute& recompute) {
  if (!recompute.only.empty() || !recompute.per_stage.empty()) return "those of --recompute " + to_text(recompute);
  return recompute.layers > 0 ? "the first " + counted(recompute.layers, "layer") + " of each stage" : "";
}

// Notes on choices for which no framework has an option.
static void add_general_notes(const Strategy& s, FrameworkExport& out) {
  out.notes.push_back("start it on " + counted(std::int64_t{s.dp} * s.tp * s.cp * s.pp, "GPU") + ", one process each");
  if (s.communication.algorithm != Algorithm::Ring)
    out.notes.push_back(std::string("NCCL chooses how collectives are carried out; ") +
                        (s.communication.algorithm ? name_of(*s.communication.algorithm) : "the cheapest for each") +
                        " was simulated");
  if (!s.communication.parts.empty()) out.notes.emplace_back("operators in parts: simulated, but no option says so");
  if (s.batch.packed > 0) out.notes.emplace_back("packed sequences: simulated, but no option says so");
  if (s.precision == DType::TF32)
    out.notes.emplace_back("in the training script: torch.backends.cuda.matmul.allow_tf32 = True");
}

// What no export says yet, whatever the framework.
static void add_unsaid(const Strategy& s, FrameworkExport& out) {
  if (s.experts.ep > 1) out.unsaid.push_back("strategy.ep " + text(s.experts.ep));
  if (s.optimizer.lora.any()) out.unsaid.emplace_back("strategy.lora");
  if (s.batch.packed > 0) out.unsaid.emplace_back("strategy.packed_length");
}

// Where the lines also say the model: all of it that is not a plain transformer.
static void add_unsaid_of_model(const Transformer& t, FrameworkExport& out) {
  const auto differs = [&](bool is, const std::string& field) {
    if (is) out.unsaid.push_back("model." + field);
  };
  const AttentionSettings& a = t.attention;
  const BlockSettings& b = t.block;
  differs(!t.causal, "causal false");
  differs(b.experts.count > 0, "num_experts " + text(b.experts.count));
  differs(b.mtp_modules > 0, "mtp_modules " + text(b.mtp_modules));
  differs(a.latent.key_value_rank > 0, "latent attention");
  differs(a.qk_norm != QkNorm::None, "qk_norm");
  differs(a.window > 0 || a.chunk > 0, a.window > 0 ? "window " + text(a.window) : "chunk " + text(a.chunk));
  differs(a.sinks, "sinks");
  differs(a.score_cap > 0 || b.scales.logit_cap > 0, "soft caps");
  differs(a.scale != 0 || a.rope_scale != 1, "scale of the scores");
  differs(a.rotated_dim != 0 || a.full_unrotated || t.positions == PositionKind::None, "rotary positions of a part");
  differs(!b.input_norms || b.branch_norms || b.norms_around_one, "norms of the block");
  differs(t.post_norm || t.embedding_norm || !t.final_norm, "norms outside the block");
  differs(t.token_types > 0 || t.pooler || t.mlm_head || t.lm_head_bias, "heads of an encoder");
  differs(b.scales.embedding != 1 || b.scales.residual != 1 || b.scales.logits != 1, "constant factors");
  differs(t.activation == ActivationKind::GeGlu || t.activation == ActivationKind::ClampedSwiGlu, "activation");
  differs(t.projection_bias != t.mlp_bias, "projection_bias");
}

}  // namespace exports

FrameworkExport framework_export(ExportFormat format, const FrameworkFacts& facts, const Model& model,
                                 const Strategy& strategy) {
  using Write = FrameworkExport (*)(const FrameworkFacts&, const Model&, const Strategy&);
  constexpr Write kFormats[] = {exports::of_megatron, exports::of_deepspeed, exports::of_torchtitan,
                                exports::of_fsdp2};  // by ExportFormat
  FrameworkExport out = kFormats[static_cast<std::size_t>(format)](facts, model, strategy);
  out.version = facts.version;
  exports::add_general_notes(strategy, out);
  exports::add_unsaid(strategy, out);
  if (format == ExportFormat::Megatron || format == ExportFormat::TorchTitan)
    exports::add_unsaid_of_model(std::get<Transformer>(model.shape), out);
  if (!facts.policy.empty()) out.notes.push_back(facts.policy);
  return out;
}

}  // namespace foreshard
