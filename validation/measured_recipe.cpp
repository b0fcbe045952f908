#include "validation/measured_recipe.h"

#include <algorithm>

#include "validation/measured_numbers.h"

namespace foreshard {

namespace {

// What a recipe does beside computing layer by layer. kIteration, kGraphs: graphs of the whole iteration, of whole layers; kRouter,
// kAttention: of parts of them. kNarrow: moments in bf16. kUnfused: neither router nor rotation are fused.
enum Trait : unsigned {
  kOnce = 1,
  kOverlaps = 2,
  kGraphs = 4,
  kRouter = 8,
  kAttention = 16,
  kNarrow = 32,
  kUnfused = 64,
  kIteration = 128
};

struct RecipeRow {
  const char* release;    // in table_or_url
  const char* model;      // in model_name
  const char* gpu;        // "": any other
  const char* precision;  // "": any other
  unsigned traits;
  const char* recompute;  // modules by Megatron's names, or how many layers
  int host_layers = 0;
};

// NVIDIA-NeMo/Megatron-Bridge scripts/performance: configs/*, *workload_base_configs.py and *_llm_pretrain.py, at tags v0.2.0 (25.11), v0.3.0
// (26.02), v0.3.1 (26.02.01), v0.4.0 (26.04), v0.4.2 (26.04.01), v0.5.0 (26.06) and v0.5.1 (26.06.01); src/megatron/bridge/perf_recipes at v0.6.0
// (26.08); run_script.py and configs/*.yaml at v0.1.0rc4 (25.09). kNarrow, kUnfused: src/megatron/bridge/recipes, deepseek_v3.py at these tags,
// h100/moonlight_16b.py at 600d069b, which a page of measurements names. The first row that holds decides; kNewest holds for all releases from
// 2026 on. "mlp" runs DeepSeek's three dense layers again, which is not counted.
constexpr const char* kNewest = "";
constexpr RecipeRow kRecipes[] = {
    {"perf-activation-recompute", "moonlight", "", "", kNarrow | kUnfused, ""},
    {"(25.09 ", "deepseek", "h100", "", kOnce | kOverlaps | kNarrow, "mla_up_proj"},
    {"(25.09 ", "deepseek", "", "", kNarrow, "mla_up_proj"},
    {"(25.09 ", "qwen3", "gb200", "", kGraphs, ""},
    {"(25.09 ", "qwen3_30b", "b200", "", kGraphs, ""},
    {"(25.09 ", "qwen3", "", "", 0, ""},
    {"(25.11 ", "deepseek", "gb300", "", kOnce | kAttention | kNarrow, "moe_act"},
    {"(25.11 ", "deepseek", "gb200", "", kOnce | kRouter | kNarrow, "mla_up_proj"},
    {"(25.11 ", "deepseek", "b200", "", kNarrow, "mla_up_proj"},
    {"(25.11 ", "deepseek", "h100", "", kOnce | kOverlaps | kNarrow, "mla_up_proj"},
    {"(26.02", "deepseek", "gb300", "bf16", kOnce | kAttention | kNarrow, "moe_act"},
    {"(26.02", "deepseek", "gb200", "", kOnce | kAttention | kNarrow, "mla_up_proj"},
    {"(26.02", "deepseek", "", "", kOnce | kNarrow, "mla_up_proj"},
    {"(26.04", "deepseek", "gb300", "mx", kOnce | kNarrow, "mla_up_proj"},
    {"(26.04", "deepseek", "gb200", "mx", kOnce | kAttention | kNarrow, "mlp"},
    {"(26.04 ", "deepseek", "b300", "mx", kOnce | kNarrow, "mla_up_proj"},
    {"(26.04 ", "deepseek", "b200", "mx", kOnce | kNarrow, "mla_up_proj"},
    {"(26.04.01", "deepseek", "b300", "mx", kOnce | kAttention | kNarrow, "mla_up_proj"},
    {"(26.06 ", "deepseek", "gb300", "mx", kOnce | kOverlaps | kIteration | kNarrow, ""},
    {"(26.06 ", "deepseek", "b300", "mx", kOnce | kAttention | kNarrow, "mla_up_proj"},
    {kNewest, "deepseek", "gb300", "mx", kOnce | kOverlaps | kIteration | kNarrow, ""},
    {kNewest, "deepseek", "gb300", "bf16", kOnce | kAttention | kNarrow, "moe_act"},
    {kNewest, "deepseek", "gb300", "", kOnce | kNarrow, "mla_up_proj"},
    {kNewest, "deepseek", "gb200", "mx", kOnce | kOverlaps | kIteration | kNarrow, "mla_up_proj"},
    {kNewest, "deepseek", "gb200", "bf16", kOnce | kAttention | kNarrow, "mla_up_proj"},
    {kNewest, "deepseek", "gb200", "", kOnce | kAttention | kNarrow, "mlp"},
    {kNewest, "deepseek", "b300", "mx", kOnce | kOverlaps | kIteration | kNarrow, "mla_up_proj"},
    {kNewest, "deepseek", "b300", "", kOnce | kAttention | kNarrow, "mla_up_proj"},
    {kNewest, "deepseek", "b200", "mx", kOnce | kOverlaps | kAttention | kNarrow, "mla_up_proj"},
    {kNewest, "deepseek", "", "", kOnce | kNarrow, "mla_up_proj"},
    {kNewest, "kimi", "gb300", "", kOnce, "mla_up_proj"},
    {kNewest, "kimi", "gb200", "", kOnce | kRouter, "mla_up_proj"},
    {kNewest, "kimi", "", "", 0, "mla_up_proj"},
    {"(26.04", "gpt oss", "gb300", "", kAttention, ""},
    {"(26.04", "gpt oss", "b300", "", kOnce | kAttention, ""},
    {"(26.04 ", "gpt oss", "gb200", "", kOnce | kOverlaps, "layernorm moe_act"},
    {"(26.04 ", "gpt oss", "b200", "", kOnce, "layernorm moe_act"},
    {"(26.04.01", "gpt oss", "gb200", "", kOverlaps, "layernorm moe_act"},
    {"(25.11 ", "gpt oss", "b300", "", kAttention, ""},
    {"(26.02", "gpt oss", "b300", "", kAttention, ""},
    {kNewest, "gpt oss", "gb", "mx", kOnce | kOverlaps | kIteration, ""},
    {kNewest, "gpt oss", "gb300", "", kAttention, ""},
    {kNewest, "gpt oss", "b300", "", kOnce | kAttention, ""},
    {"(25.11 ", "gpt oss", "", "", 0, ""},  // v0.2.0 names modules, but leaves recompute_granularity unset
    {kNewest, "gpt oss", "", "", 0, "layernorm moe_act"},
    {"(25.11 ", "qwen3_235b", "gb300", "", kOnce | kRouter, ""},
    {"(25.11 ", "qwen3_235b", "gb200", "", kOnce | kAttention, ""},
    {"(25.11 ", "qwen3_30b", "gb200", "mx", kOnce | kRouter, ""},
    {"(25.11 ", "qwen3_30b", "gb200", "", kOnce | kAttention, ""},
    {"(25.11 ", "qwen3_30b", "gb300", "", kOnce | kRouter, ""},
    {"(25.11 ", "qwen3_30b", "b200", "", kRouter, ""},
    {"(25.11 ", "qwen3_30b", "h100", "bf16", kOverlaps | kRouter, ""},
    {"(25.11 ", "qwen3", "", "", kOverlaps, ""},
    {"(26.02 ", "qwen3_235b", "gb300", "bf16", kOnce | kRouter, ""},
    {"(26.02", "qwen3_235b", "gb", "", kOnce | kAttention, ""},
    {"(26.02", "qwen3_235b", "b300", "", kOverlaps, ""},  // 26.02.01 too: its row has the chunks of v0.3.0, v0.3.1 none
    {"(26.02", "qwen3_235b", "h100", "", kOverlaps, ""},
    {"(26.02", "qwen3_235b", "", "", 0, ""},
    {"(26.04", "qwen3_235b", "gb", "", kOnce | kAttention, ""},
    {"(26.04 ", "qwen3_235b", "b300", "", 0, ""},
    {kNewest, "qwen3_235b", "gb", "mx", kOnce | kOverlaps | kIteration, ""},
    {kNewest, "qwen3_235b", "gb", "", kOnce | kAttention, ""},
    {"(26.04.01", "qwen3_235b", "b300", "", kOnce, ""},
    {"(26.06 ", "qwen3_235b", "b300", "", kOnce, ""},
    {"(26.04", "qwen3_235b", "b200", "", 0, ""},
    {"(26.06 ", "qwen3_235b", "b200", "", 0, ""},
    {kNewest, "qwen3_235b", "b300", "mx", kOnce | kOverlaps | kIteration, ""},
    {kNewest, "qwen3_235b", "b200", "mx", kOnce | kOverlaps | kIteration, ""},
    {kNewest, "qwen3_235b", "b300", "", kOnce, ""},
    {kNewest, "qwen3_235b", "h100", "", kOverlaps, ""},
    {kNewest, "qwen3_235b", "", "", 0, ""},
    {"(26.02", "qwen3_30b", "b300", "", kOnce | kRouter, ""},
    {"(26.02", "qwen3_30b", "gb200", "mx", kOnce | kRouter, ""},
    {"(26.02", "qwen3_30b", "gb200", "", kOnce | kAttention, ""},
    {"(26.02 ", "qwen3_30b", "h100", "bf16", kOnce | kOverlaps | kRouter, ""},
    {"(26.02 ", "qwen3_30b", "h100", "", kOnce | kOverlaps, ""},
    {"(26.02 ", "qwen3_30b", "b200", "", kRouter, ""},
    {"(26.02", "qwen3_30b", "h100", "bf16", kOnce | kRouter, ""},
    {"(26.02", "qwen3_30b", "h100", "", kOnce, ""},
    {"(26.02", "qwen3_30b", "b200", "", kOnce | kAttention, ""},
    {"(26.06", "qwen3_30b", "gb", "mx", kOnce | kOverlaps | kIteration, ""},
    {"(26.06", "qwen3_30b", "b300", "mx", kOnce | kOverlaps | kIteration, ""},
    {"(26.04", "qwen3_30b", "gb200", "mx", kOnce | kRouter, ""},
    {"(26.04", "qwen3_30b", "b300", "", kOnce | kRouter, ""},
    {"(26.04", "qwen3_30b", "b200", "", kOnce | kAttention, ""},
    {"(26.06 ", "qwen3_30b", "b200", "", kOnce | kAttention, ""},
    {kNewest, "qwen3_30b", "gb", "mx", kOnce | kOverlaps | kIteration, ""},
    {kNewest, "qwen3_30b", "b300", "mx", kOnce | kOverlaps | kIteration, ""},
    {kNewest, "qwen3_30b", "b200", "mx", kOnce | kOverlaps | kIteration, ""},
    {kNewest, "qwen3_30b", "b300", "", kOnce | kRouter, ""},
    {kNewest, "qwen3_30b", "b200", "", kOnce | kAttention, ""},
    {kNewest, "qwen3_30b", "h100", "bf16", kOnce | kRouter, ""},
    {kNewest, "qwen3_30b", "h100", "", kOnce, ""},
    {"(25.09 ", "llama3_70b", "gb200", "fp8-cs", 0, "", 40},
    {"(25.09 ", "llama3.1_405b", "gb200", "fp8-cs", 0, "", 95},
    {"(25.09 ", "llama3", "", "", 0, ""},
    {"(25.11 ", "llama3_70b", "gb300", "fp8-cs", 0, "", 20},
    {"(25.11 ", "llama3_70b", "gb200", "fp8-cs", 0, "", 40},
    {"(25.11 ", "llama3_8b", "h100", "fp8-cs", 0, "5 layers"},
    {"(25.11 ", "llama3", "", "", 0, ""},
};

// "(26.02.01 container)" is of 2026.
bool is_from_2026(const MeasuredRow& row) {
  const std::string& text = row.text("table_or_url");
  const std::size_t end = text.rfind(" container)"), begin = text.rfind('(', end);
  return end != std::string::npos && begin != std::string::npos && leading_int(text.substr(begin + 1)) >= 26;
}

const char* variant_of(unsigned traits) {
  if (traits & kUnfused) return "-unfused";
  if (traits & kIteration) return "-iteration-graphs";
  if (traits & kGraphs) return "-graphs";
  if (traits & kAttention) return "-attention-graphs";
  return traits & kRouter ? "-router-graphs" : "";
}

// As variant_of, for the options of a command line.
const char* stated_variant(const MeasuredRow& row) {
  const std::string flag = "cuda-graph-scope";
  if (!row.mentions("framework_flags", flag)) return "";
  return row.mentions("framework_flags", flag + " attn") ? "-attention-graphs" : "-router-graphs";
}

Recompute modules_of(const std::string& words) {
  if (words.find("layers") != std::string::npos) return {.kind = RecomputeKind::Full, .layers = leading_int(words)};
  Recompute recompute = {.kind = RecomputeKind::Modules};
  for (const auto& [word, module] : {std::pair{"layernorm", "norm"}, {"mla_up_proj", "qkv"}, {"moe_act", "activation"}})
    if (words.find(word) != std::string::npos) recompute.modules.emplace_back(module);
  return recompute.modules.empty() ? Recompute{} : recompute;
}

}  // namespace

std::optional<Recipe> recipe_of(const MeasuredRow& row) {
  if (row.text("framework") != "megatron-bridge") return {};
  for (const RecipeRow& recipe : kRecipes) {
    const bool release = *recipe.release != '\0' ? row.mentions("table_or_url", recipe.release) : is_from_2026(row);
    const bool holds = release && row.mentions("model_name", recipe.model) && row.mentions("gpu", recipe.gpu) &&
                       row.mentions("precision", recipe.precision);
    if (holds)
      return Recipe{.once = (recipe.traits & kOnce) != 0,
                    .overlaps = (recipe.traits & kOverlaps) != 0,
                    .narrow_moments = (recipe.traits & kNarrow) != 0,
                    .variant = variant_of(recipe.traits),
                    .recompute = modules_of(recipe.recompute),
                    .host_layers = recipe.host_layers};
  }
  return {};
}

Dispatcher once_dispatcher(int ranks, int gpus) { return ranks <= gpus ? Dispatcher::OncePerRank : Dispatcher::OncePerNode; }

MeasuredRow with_host_memory(MeasuredRow row) {
  const std::optional<Recipe> recipe = recipe_of(row);
  if (recipe && recipe->host_layers > 0 && row.unknown("offload"))
    row.cells["offload"] = "activations of " + std::to_string(recipe->host_layers) + " layers to CPU";
  return row;
}

void follow_recipe(const MeasuredRow& row, MeasuredCase& question) {
  const Recipe recipe = recipe_of(row).value_or(Recipe{});
  const bool once = recipe.once || row.mentions("framework_flags", "moe-token-dispatcher-type flex"),
             overlaps = recipe.overlaps || row.mentions("framework_flags", "overlap-moe-expert-parallel-comm");
  if (recipe_of(row)) question.assumed.emplace_back("recipe");
  const std::string variant = recipe_of(row) ? recipe.variant : stated_variant(row);
  if (question.stack == "megatron-bridge" && !variant.empty()) question.framework = "megatron-bridge" + variant;
  for (Strategy& s : question.candidates) {
    s.framework = question.framework;
    if (once) s.experts.dispatcher = once_dispatcher(s.experts.ep * s.experts.etp, question.cluster.nodes.front().shape.gpus);
    if (recipe_of(row) && row.unknown("recompute")) s.recompute = recipe.recompute;
    if (recipe.narrow_moments) s.state_dtypes.state = DType::BF16;
    // A cell frees in its backward, layer by layer, what its forward fills: its memory is that without cells.
    if (!overlaps || is_memory(question.quantity)) continue;
    s.pipeline.schedule = s.virtual_stages > 1 ? Schedule::InterleavedCells : Schedule::OneFOneBCells;
    // Megatron-Bridge's scripts set delay_wgrad_compute wherever they overlap (set_moe_a2a_overlap_overrides; run_script.py of 25.09).
    s.pipeline.delay_wgrad = recipe.overlaps || row.mentions("framework_flags", "delay-wgrad-compute");
  }
}

}  // namespace foreshard
