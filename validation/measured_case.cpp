#include "validation/measured_case.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "core/base/error.h"
#include "strategy/cost/framework_preset.h"
#include "strategy/cost/framework_split.h"
#include "strategy/search/search_framework.h"
#include "validation/catalogue_gpu.h"
#include "validation/measured_cluster.h"
#include "validation/measured_experts.h"
#include "validation/measured_limits.h"
#include "validation/measured_preset.h"
#include "validation/measured_recipe.h"
#include "validation/measured_words.h"

namespace foreshard {

const char* name_of(SkipReason reason) {
  switch (reason) {
    case SkipReason::UnknownExperts: return "unknown_experts";
    case SkipReason::MixtureAlone: return "mixture_alone";
    case SkipReason::Mla: return "mla";
    case SkipReason::Lora: return "lora";
    case SkipReason::Fp4: return "fp4";
    case SkipReason::Precision: return "precision";
    case SkipReason::UnknownShape: return "unknown_shape";
    case SkipReason::UnknownDegree: return "unknown_degree";
    case SkipReason::UnknownBatch: return "unknown_batch";
    case SkipReason::UnknownGpu: return "unknown_gpu";
    case SkipReason::Schedule: return "schedule";
    case SkipReason::EmptyStage: return "empty_stage";
    case SkipReason::Offload: return "offload";
    case SkipReason::Quantity: return "quantity";
    case SkipReason::Infeasible: return "infeasible";
    case SkipReason::BadCell: return "bad_cell";
    case SkipReason::Bug: return "bug";
  }
  return "?";
}

bool is_memory(Quantity quantity) { return quantity >= Quantity::PeakMemory && quantity <= Quantity::ActivationShare; }
bool is_rate(Quantity quantity) { return quantity >= Quantity::TokensPerGpu && quantity <= Quantity::Mfu; }

namespace {

struct QuantityWord {
  const char* word;
  Quantity quantity;
};
constexpr QuantityWord kQuantities[] = {{"iter_time_s", Quantity::IterationTime},
                                        {"tokens_per_s_per_gpu", Quantity::TokensPerGpu},
                                        {"samples_per_s", Quantity::Samples},
                                        {"samples_per_s_per_gpu", Quantity::SamplesPerGpu},
                                        {"tflops_per_gpu", Quantity::TflopsPerGpu},
                                        {"mfu", Quantity::Mfu},
                                        {"peak_mem_gib", Quantity::PeakMemory},
                                        {"static_mem_gib", Quantity::StaticMemory},
                                        {"act_mem_gib", Quantity::ActivationMemory},
                                        {"act_mem_pct_of_baseline", Quantity::ActivationShare},
                                        {"layer_forward_ms", Quantity::LayerForward},
                                        {"layer_backward_ms", Quantity::LayerBackward},
                                        {"layer_fwd_bwd_ms", Quantity::LayerBoth},
                                        {"forward_ms", Quantity::LayerForward},
                                        {"stage_forward_ms", Quantity::StageForward},
                                        {"stage_backward_input_ms", Quantity::StageBackwardInput},
                                        {"stage_backward_weight_ms", Quantity::StageBackwardWeight},
                                        {"stage_p2p_ms", Quantity::StageTransfer}};

// Llama-like, GPT-like, BERT-like and squared-ReLU models differ in biases, positions and tied embeddings.
std::optional<Model> model_of(const MeasuredRow& row, const FrameworkPreset& preset, std::vector<std::string>& assumed) {
  Transformer t;
  const auto layers = row.whole("layers"), hidden = row.whole("hidden"), heads = row.whole("heads"), seq = row.whole("seq_len");
  if (!layers || !hidden || !heads || !seq) return {};
  const bool geglu = row.mentions("activation", "geglu"), llama = geglu || row.mentions("activation", "swiglu"),
             squared = row.mentions("activation", "squared relu");
  const bool bert = row.mentions("model_name", "bert");
  t.layers = static_cast<int>(*layers);
  t.hidden = *hidden;
  t.heads = static_cast<int>(*heads);
  t.kv_heads = static_cast<int>(row.whole("kv_heads").value_or(*heads));
  t.head_dim = row.whole("head_dim").value_or(t.hidden / t.heads);
  t.ffn_hidden = row.whole("ffn_hidden").value_or(4 * t.hidden);
  expect_heads(row, t);
  t.max_positions = *seq;
  if (const auto vocab = row.whole("vocab")) {
    t.vocab = *vocab;
  } else if (preset.defaults.vocabulary > 0) {
    t.vocab = preset.defaults.vocabulary;
    assumed.emplace_back("vocab");
  } else {
    return {};
  }
  t.activation = geglu     ? ActivationKind::GeGlu
                 : llama   ? ActivationKind::SwiGlu
                 : squared ? ActivationKind::Relu
                           : ActivationKind::Gelu;
  t.norm = row.mentions("norm", "rmsnorm") ? NormKind::RmsNorm : NormKind::LayerNorm;
  // Where the source states the framework's flags, positions, biases and tied embeddings follow from them, not from the activation.
  const bool flagged = row.mentions("framework_flags", "--transformer-impl");
  const bool rope = ((llama || squared) && !flagged) || row.mentions("framework_flags", "position-embedding-type rope");
  t.positions = rope ? PositionKind::Rope : PositionKind::Learned;
  const bool biases = (flagged || (!llama && !squared)) && !row.mentions("framework_flags", "disable-bias-linear");
  t.qkv_bias = t.projection_bias = t.mlp_bias = biases;
  t.tied_embeddings = (flagged || (!llama && !squared)) && !row.mentions("framework_flags", "untie-embeddings");
  if (bert) {
    t.causal = false;
    t.post_norm = t.embedding_norm = t.pooler = t.mlm_head = t.lm_head_bias = true;
    t.final_norm = false;
    t.token_types = 2;
  }
  Model model = {.name = row.text("model_name"), .source = row.where(), .shape = t};
  // The stated parameter count shows whether the output layer has weights of its own.
  const std::optional<double> billions = row.number("params_b");
  if (billions && !bert) {
    Model other = model;
    std::get<Transformer>(other.shape).tied_embeddings = !t.tied_embeddings;
    const auto miss = [&](const Model& m) { return std::abs(static_cast<double>(parameter_count(m)) * 1e-9 - *billions); };
    if (miss(other) < 0.25 * miss(model) && !row.mentions("framework_flags", "untie-embeddings")) model = other;
  }
  return model;
}

std::variant<Model, SkipReason> any_model_of(const MeasuredRow& row, const FrameworkPreset& preset,
                                             std::vector<std::string>& assumed) {
  const bool experts = has_experts(row);
  if (experts)
    if (auto known = shipped_model(row)) return std::move(*known);
  auto model = model_of(row, preset, assumed);
  if (!model) return SkipReason::UnknownShape;
  if (experts)
    if (const auto missing = add_stated_experts(row, *model)) return *missing;
  return std::move(*model);
}

Recompute recompute_of(const MeasuredRow& row) {
  const std::string& cell = row.text("recompute");
  if (cell.starts_with("full") || cell.find("recompute-block") != std::string::npos) return {.kind = RecomputeKind::Full};
  // Selective activation checkpointing keeps the results of the attention, of tensor-parallel collectives and of some of the matrix
  // products; the preset states which part of the products is redone (redone_products). The backward does not need products whose
  // result is summed over tensor-parallel ranks.
  if (cell.find("per op") != std::string::npos)
    return {.kind = RecomputeKind::Modules, .modules = torchtitan_selective_modules()};
  if (cell.starts_with("selective")) return {.kind = RecomputeKind::Selective};
  // MaxText layers/models.py, get_remat_policy, and layers/attentions.py, which names queries and keys behind the rotary embedding: save_qkv_proj
  // keeps these and values only, save_dot_except_mlp also the result of the output projection. save_dot_except_mlpwi also names that of the
  // feed-forward's second product, which no backward reads.
  if (cell.find("save_qkv_proj") != std::string::npos)
    return {.kind = RecomputeKind::Modules, .modules = {"attention", "norm", "projection", "activation", "mlp", "dropout"}};
  if (cell.find("save_dot_except_mlp") != std::string::npos)
    return {.kind = RecomputeKind::Modules, .modules = {"attention", "norm", "activation", "mlp", "dropout"}};
  Recompute recompute = {.kind = RecomputeKind::Modules};
  const auto add = [&](const char* word, const char* module) {
    if (cell.find(word) != std::string::npos) recompute.modules.emplace_back(module);
  };
  // LLM.Q's README: --recompute-att implies --recompute-qkv; queries and keys are rotated in place.
  add("recompute-att", "attention");
  add("recompute-norm", "norm");
  if (cell.find("recompute-att") != std::string::npos || cell.find("recompute-qkv") != std::string::npos)
    for (const char* module : {"qkv", "rope"}) recompute.modules.emplace_back(module);
  if (cell.find("recompute-swiglu") != std::string::npos || cell.find("recompute-ffn") != std::string::npos)
    recompute.modules.emplace_back("activation");
  add("recompute-ffn", "mlp");
  return recompute.modules.empty() ? Recompute{} : recompute;
}

// The options of the run's command line. `notes` may mention a flag of the preset with '_' for '-', as names of tests do.
std::string flags_of(const MeasuredRow& row, const FrameworkPreset& preset) {
  std::string flags = row.unknown("framework_flags") ? "" : row.text("framework_flags");
  for (const MemoryFlag& known : preset.memory.flags) {
    std::string words = known.flag;
    std::replace(words.begin(), words.end(), '-', '_');
    if (words.find('_') == std::string::npos || !row.mentions("notes", words)) continue;
    if (flags.find("--" + known.flag) == std::string::npos) flags += " --" + known.flag;
  }
  return flags;
}

// Instances of Megatron's distributed optimizer, each with a full copy of the states. Megatron's tests of this feature use two.
int optimizer_copies(const MeasuredRow& row) {
  if (const auto stated = flag_number(row, "num-distributed-optimizer-instances")) return *stated;
  return row.mentions("notes", "multi_dist_optimizer_instances") ? 2 : 1;
}

// The split that the flags state, whole or its ends; in the second case the stages between have equally many layers. "": none stated.
std::string flagged_split(const MeasuredRow& row, int layers, int stages) {
  if (const auto split = flag_text(row, "layer-split")) return *split;
  const auto first = flag_number(row, "decoder-first-pipeline-num-layers"),
             last = flag_number(row, "decoder-last-pipeline-num-layers");
  if (!first || !last || stages < 3 || (layers - *first - *last) % (stages - 2) != 0) return "";
  return std::to_string(*first) + "," + std::to_string((layers - *first - *last) / (stages - 2)) + "x" +
         std::to_string(stages - 2) + "," + std::to_string(*last);
}

// Megatron and the zero-bubble paper give the first and the last stage one layer less (for embedding and head) when all other
// stages are then equal.
std::string split_of(int layers, int stages) {
  if (stages < 3 || layers % stages == 0 || (layers + 2) % stages != 0) return "";
  const int each = (layers + 2) / stages;
  return std::to_string(each - 1) + "," + std::to_string(each) + "x" + std::to_string(stages - 2) + "," +
         std::to_string(each - 1);
}

std::string layer_split_of(const MeasuredRow& row, const FrameworkPreset& preset, const Transformer& shape, int stages,
                           bool experts) {
  const int layers = shape.layers;
  std::string split = flagged_split(row, layers, stages);
  if (split.empty()) split = framework_split(preset, shape, stages);
  if (split.empty()) split = split_of(layers, stages);
  return split.empty() && experts ? recipe_split(layers, stages) : split;
}

void set_zero(const MeasuredRow& row, const FrameworkPreset& preset, Strategy& s) {
  s.zero.stage = preset.defaults.zero;
  if (!row.unknown("zero_stage_or_fsdp")) {
    const auto per_node = static_cast<int>(row.whole("gpus_per_node").value_or(8));
    const ZeroWords zero = zero_of(row, s.dp, per_node / (s.tp * s.cp));
    s.zero.stage = zero.stage, s.zero.group = zero.group;
  }
  if (const int copies = optimizer_copies(row); s.zero.stage == 1 && copies > 1 && s.dp % copies == 0)
    s.zero.group = s.dp / copies;
}

void set_numbers(const MeasuredRow& row, const FrameworkPreset& preset, const Transformer& t, Strategy& s) {
  s.precision = *precision_of(row);
  if (s.precision == DType::F8 && row.mentions("precision", "bf16 adam moments")) s.state_dtypes.state = DType::BF16;
  if (row.mentions("zero_stage_or_fsdp", "pure bf16"))
    s.state_dtypes.param = s.state_dtypes.grad = s.state_dtypes.state = DType::BF16;
  if (row.mentions("precision", "autocast") && !preset.defaults.grad_dtype)
    s.state_dtypes.grad = DType::F32;  // gradients of fp32 parameters
  s.attention = row.mentions("flash_attention", "yes")                                     ? AttentionKernel::Flash
                : row.mentions("flash_attention", "no") && !row.unknown("flash_attention") ? AttentionKernel::Unfused
                                                                                           : AttentionKernel::Auto;
  if (size_of(s.precision) >= size_of(DType::F32) || row.mentions("framework_flags", "transformer-impl local"))
    s.attention = AttentionKernel::Unfused;
  if (row.mentions("framework_flags", "hidden-dropout 0.0")) s.dropout = 0;
  if (t.vocab % s.tp == 0 && t.vocab % 128 == 0) s.vocab_multiple = 1;  // the stated vocabulary is padded already
  Overlap overlap = overlap_of(preset, s.virtual_stages, s.zero.stage > 0);
  if (row.mentions("framework_flags", "overlap-grad-reduce")) overlap.gradients = true;
  if (row.mentions("framework_flags", "overlap-param-gather")) overlap.parameters = true;
  if (row.mentions("framework_flags", "tp-comm-overlap") || row.mentions("notes", "async tp")) overlap.tp = true;
  if (row.mentions("notes", "not asynchronous")) overlap.tp = false;
  s.communication.overlap = overlap;
}

// Sets degrees and batch; returns a skip reason when one that matters is not stated.
std::optional<SkipReason> set_degrees(const MeasuredRow& row, const MeasuredCase& question, Strategy& s, std::int64_t& gpus,
                                      std::vector<std::string>& assumed) {
  const auto degree = [&](const char* column) { return static_cast<int>(row.whole(column).value_or(0)); };
  s.tp = degree("tp"), s.pp = degree("pp"), s.cp = std::max(1, degree("cp"));
  if (s.tp < 1 || s.pp < 1) return SkipReason::UnknownDegree;
  s.virtual_stages = std::max(1, degree("vpp"));
  if (row.unknown("vpp") && s.pp > 1) assumed.emplace_back("vpp");
  if (s.pp == 1) s.virtual_stages = 1;
  s.dp = degree("dp");
  gpus = row.whole("num_gpus").value_or(std::int64_t{0});
  const std::int64_t replica = std::int64_t{s.tp} * s.pp * s.cp;
  // The size of ZeRO's shards depends on the number of ranks, which follows neither from the GPUs nor from the batch.
  if (gpus == 0 && s.dp == 0 && zero_of(row, 0, 0).stage > 0 && row.unknown("global_batch")) return SkipReason::UnknownDegree;
  if (gpus == 0 && s.dp > 0) gpus = replica * s.dp;
  if (gpus == 0) gpus = replica * std::max<std::int64_t>(1, 8 / replica), assumed.emplace_back("num_gpus");
  if (s.dp == 0) s.dp = static_cast<int>(gpus / replica);
  if (s.dp < 1 || replica * s.dp > gpus) return SkipReason::UnknownDegree;
  gpus = replica * s.dp;
  const bool memory = is_memory(question.quantity);
  const auto micro = row.whole("micro_batch"), global = row.whole("global_batch");
  const bool alone = question.quantity >= Quantity::LayerForward;
  s.batch.micro = micro.value_or(1);
  if (!micro) assumed.emplace_back("micro_batch");
  if (!micro && !global) return SkipReason::UnknownBatch;
  if (!global && !memory && !alone && (s.pp > 1 || gpus > 1)) {
    if (question.quantity != Quantity::TokensPerGpu || s.pp > 1) return SkipReason::UnknownBatch;
  }
  const std::int64_t together = s.batch.micro * s.dp;
  s.batch.global = global.value_or(together * s.pp * 2);
  if (!global) assumed.emplace_back("global_batch");
  return {};
}

// Chunks per rank of an interleaved run that does not state them: from the preset's layers per chunk, where the first and the last
// chunk may have one layer less.
int chunks_of(const MeasuredRow& row, const FrameworkPreset& preset, int layers, const Strategy& s) {
  const bool interleaved = row.mentions("pp_schedule", "1f1b-i") || row.mentions("pp_schedule", "interleav");
  if (!interleaved || !row.unknown("vpp") || s.pp == 1 || preset.defaults.chunk_layers == 0) return s.virtual_stages;
  const int slots = layers % s.pp == 0 ? layers : layers + 2, each = s.pp * preset.defaults.chunk_layers;
  return slots % each == 0 ? slots / each : s.virtual_stages;
}

// Megatron interleaves groups of pp micro-batches. Where pp does not divide the number of micro-batches, assumes the next larger
// group that does. 0: the default group.
int group_of(const Strategy& s) {
  const std::int64_t m = s.batch.global / std::max<std::int64_t>(1, s.batch.micro * s.dp);
  if (s.virtual_stages == 1 || m % s.pp == 0 || s.pipeline.schedule == Schedule::ZeroBubbleV) return 0;
  for (std::int64_t group = s.pp; group <= m; ++group)
    if (m % group == 0) return static_cast<int>(group);
  return 0;
}

void set_convention(const MeasuredRow& row, MeasuredCase& question) {
  question.flops = row.mentions("flop_convention", "causal")     ? FlopConvention::ModelCausal
                   : row.mentions("flop_convention", "hardware") ? FlopConvention::Hardware
                                                                 : FlopConvention::Model;
  question.memory = row.mentions("memory_definition", "device")     ? MemoryKind::Device
                    : row.mentions("memory_definition", "reserved") ? MemoryKind::Reserved
                    : row.mentions("memory_definition", "unknown")  ? MemoryKind::Unknown
                    : row.mentions("memory_definition", "analytic") ? MemoryKind::Analytic
                                                                    : MemoryKind::Allocated;
  question.printed = row.mentions("memory_definition", "printed") && row.mentions("memory_definition", "gb");
  question.rank = row.mentions("memory_definition", "last") ? MemoryRank::Last
                  : row.mentions("memory_definition", "first") || row.mentions("memory_definition", "rank 0")
                      ? MemoryRank::First
                      : MemoryRank::Largest;
}

void vary(std::vector<Strategy>& candidates, const std::vector<Recompute>& ways) {
  std::vector<Strategy> more;
  for (const Strategy& s : candidates)
    for (const Recompute& way : ways) more.push_back(s), more.back().recompute = way;
  candidates = more;
}

}  // namespace

std::variant<MeasuredCase, SkipReason> measured_case(const MeasuredRow& stated) {
  const MeasuredRow row = with_host_memory(stated);
  expect_words(row);
  MeasuredCase question;
  const bool experts = has_experts(row);
  if (experts && row.mentions("model_name", "one moe layer")) return SkipReason::MixtureAlone;
  if (!experts && (row.mentions("framework_flags", "multi-latent") || row.mentions("model_name", "deepseek")))
    return SkipReason::Mla;
  const int adapters = adapter_rank(row);
  if (adapters == 0 && (row.mentions("model_name", "lora") || row.mentions("zero_stage_or_fsdp", "lora")))
    return SkipReason::Lora;
  if (row.mentions("precision", "fp4") && !row.mentions("precision", "nvfp4")) return SkipReason::Fp4;
  if (!precision_of(row)) return SkipReason::Precision;
  const auto* word = std::find_if(std::begin(kQuantities), std::end(kQuantities),
                                  [&](const QuantityWord& q) { return row.text("measured_quantity") == q.word; });
  if (word == std::end(kQuantities)) return SkipReason::Quantity;
  question.quantity = word->quantity;
  auto gpu = catalogue_gpu(row.text("gpu"));
  // Until November 2020 every A100 had 40 GB (NVIDIA's announcement of the one with 80).
  if (gpu == "a100-80" && row.mentions("source", "2020") && !row.mentions("gpu", "80")) gpu = "a100-40";
  if (!gpu) return SkipReason::UnknownGpu;
  RowPreset named = preset_of(row, question.assumed);
  question.framework = std::move(named.preset), question.stack = std::move(named.stack);
  const FrameworkPreset& preset = framework_preset(question.framework);
  question.flags = flags_of(row, preset);
  auto model = any_model_of(row, preset, question.assumed);
  if (const auto* missing = std::get_if<SkipReason>(&model)) return *missing;
  question.model = std::get<Model>(std::move(model));
  const auto& shape = std::get<Transformer>(question.model.shape);
  Strategy s;
  s.framework = question.framework;
  if (auto missing = set_degrees(row, question, s, question.gpus, question.assumed)) return *missing;
  s.optimizer.lora.rank = adapters;
  if (adapters > 0) question.assumed.emplace_back("lora_targets");  // no column states them: those of the attention
  if (experts)
    if (auto missing = set_experts(row, s, question.assumed)) return *missing;
  if (!row.unknown("offload") && !row.text("offload").starts_with("none")) {
    const auto offload = offload_of(preset.offload, row.text("offload") + "; " + row.text("zero_stage_or_fsdp"));
    if (!offload || s.pp > 1) return SkipReason::Offload;
    question.offload = *offload;
    s.offload = choice_of(*offload);
  }
  const auto schedule = schedule_of(row);
  if (!schedule) return SkipReason::Schedule;
  if (row.unknown("pp_schedule") && s.pp > 1) question.assumed.emplace_back("pp_schedule");
  if (*schedule != Schedule::OneFOneB) s.pipeline.schedule = *schedule;
  question.barrier = row.mentions("notes", "instead of post-validation");
  s.batch.seq = shape.max_positions;
  s.sequence_parallel = row.text("sequence_parallel") == "yes" && s.tp > 1;
  set_zero(row, preset, s);
  s.virtual_stages = chunks_of(row, preset, shape.layers, s);
  s.pipeline.layer_split = layer_split_of(row, preset, shape, s.pp * s.virtual_stages, experts);
  expect_short_pipeline(row, s);
  if (s.pipeline.layer_split.find(",0,") != std::string::npos) return SkipReason::EmptyStage;
  s.pipeline.microbatch_group = group_of(s);
  set_numbers(row, preset, shape, s);
  set_convention(row, question);
  if (question.memory == MemoryKind::Analytic) s.state_dtypes.grad = DType::F32;  // formulas of papers: 2 + 4 + 12 bytes
  s.recompute = recompute_of_modules(row, experts).value_or(recompute_of(row));
  question.candidates = {with_preset(question.model, s)};
  if (row.unknown("recompute") && !recipe_of(row)) {
    question.assumed.emplace_back("recompute");
    vary(question.candidates, {{}, {.kind = RecomputeKind::Selective}, {.kind = RecomputeKind::Full}});
  }
  question.cluster = measured_cluster(row, *gpu, question.gpus, question.assumed);
  if (experts || recipe_of(row)) follow_recipe(row, question);
  return question;
}

}  // namespace foreshard
