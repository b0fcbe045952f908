#include "strategy/cost/framework_preset.h"

#include <algorithm>
#include <map>

#include "core/base/data_path.h"
#include "core/base/error.h"
#include "core/base/once.h"
#include "core/json/json.h"
#include "strategy/cost/style_json.h"
#include "strategy/kernels/fitted_constants.h"

namespace foreshard {

namespace {

std::optional<DType> read_dtype(const JsonReader& json, const std::string& key, std::optional<DType> otherwise) {
  static const std::vector<std::string> words = {"fp32", "bf16", "fp16"};
  static const DType types[] = {DType::F32, DType::BF16, DType::F16};
  const auto value = json.find(key);
  if (!value) return otherwise;
  const std::string word = value->as_choice(words);
  for (std::size_t i = 0; i < words.size(); ++i)
    if (words[i] == word) return types[i];
  return {};
}

void read_seconds(const JsonReader& json, const std::string& key, Seconds& time) {
  const auto value = json.find(key);
  if (!value) return;
  const auto fit = value->is_string() ? find_fitted(value->as_string()) : std::nullopt;
  time = fit ? Seconds{*fit} : value->as_seconds();
  if (!(time >= Seconds{} && time <= Seconds{1})) value->fail("a time of 0 to 1 s");
}

FlashKernel read_flash(const JsonReader& json) {
  const std::string word = json.as_choice({"1", "2", "newest", "deterministic"});
  return word == "1"        ? FlashKernel::One
         : word == "2"      ? FlashKernel::Two
         : word == "newest" ? FlashKernel::Newest
                            : FlashKernel::Deterministic;
}

ShardCommunication read_shard_communication(const JsonReader& json) {
  static const std::vector<std::string> words = {"unit", "tensor", "owner", "slices",
                                                 "wide sums"};  // in the order of the enumeration
  const std::string word = json.as_choice(words);
  return static_cast<ShardCommunication>(std::find(words.begin(), words.end(), word) - words.begin());
}

void read_runner(const JsonReader& json, FrameworkPreset& preset) {
  static const std::vector<std::string> words = {"megatron", "deepspeed", "torchtitan", "fsdp2",
                                                 "nanotron"};  // in the order of Runner
  if (const auto options = json.find("options")) preset.options = options->as_string();
  const auto runner = json.find("runs");
  if (!runner) return;
  const std::string word = runner->as_choice(words);
  preset.runner = static_cast<Runner>(std::find(words.begin(), words.end(), word) - words.begin());
}

void read_implied(const JsonReader& json, FrameworkPreset& preset) {
  const auto implies = json.find("implies");
  if (!implies) return;
  preset.implies.clear();
  std::vector<std::string> names = policy_names();
  std::erase_if(names, [](const std::string& name) { return name == "auto" || name == "none"; });
  for (const JsonReader& policy : implies->elements()) preset.implies.push_back(policy.as_choice(names));
}

void read_defaults(const JsonReader& json, const std::string& file, FrameworkPreset& preset) {
  preset.defaults.param_dtype = read_dtype(json, "param_dtype", preset.defaults.param_dtype);
  preset.defaults.grad_dtype = read_dtype(json, "grad_dtype", preset.defaults.grad_dtype);
  preset.defaults.state_dtype = read_dtype(json, "state_dtype", preset.defaults.state_dtype);
  if (const auto overlap = json.find("overlap_whole"))
    preset.defaults.overlap_whole = parse_overlap(overlap->as_string(), file);
  if (const auto overlap = json.find("overlap")) preset.defaults.overlap = parse_overlap(overlap->as_string(), file);
  if (const auto attention = json.find("attention")) {
    const std::string word = attention->as_choice({"auto", "flash", "unfused"});
    preset.defaults.attention = word == "flash"     ? AttentionKernel::Flash
                                : word == "unfused" ? AttentionKernel::Unfused
                                                    : AttentionKernel::Auto;
  }
  if (const auto context = json.find("context"))
    for (const ContextKind kind : {ContextKind::AllGather, ContextKind::Ring, ContextKind::AllToAll})
      if (context->as_choice({"all-gather", "ring", "all-to-all"}) == name_of(kind)) preset.defaults.context = kind;
  if (const auto transfers = json.find("transfers"))
    preset.defaults.transfers = transfers->as_choice({"whole", "split"}) == "split" ? Transfers::Split : Transfers::Whole;
  if (const auto flash = json.find("flash")) preset.flash = read_flash(*flash);
  if (const auto dropout = json.find("dropout")) preset.defaults.dropout = dropout->as_double(0, 0.99);
  if (const auto clip = json.find("clip_norm")) preset.defaults.clip_norm = clip->as_double(0, 999'999'999);  // as the option
  if (const auto layers = json.find("chunk_layers")) preset.defaults.chunk_layers = static_cast<int>(layers->as_int(0, 1000));
  if (const auto split = json.find("stage_split")) {
    const std::vector<std::string> words = {"even", "remainder last", "remainder second", "cost", "ends"};  // as StageSplit
    const auto word = std::ranges::find(words, split->as_choice(words));
    preset.defaults.split = static_cast<StageSplit>(word - words.begin());
  }
  if (const auto validates = json.find("post_validation")) preset.post_validation = validates->as_bool();
  if (const auto stops = json.find("recompute_stops")) preset.recompute_stops = stops->as_bool();
  if (const auto zero = json.find("zero")) preset.defaults.zero = static_cast<int>(zero->as_int(0, 3));
  if (const auto multiple = json.find("vocab_multiple")) preset.defaults.vocab_multiple = multiple->as_int(1, 1'000'000);
  if (const auto vocabulary = json.find("vocabulary")) preset.defaults.vocabulary = vocabulary->as_int(1, 10'000'000);
  if (const auto count = json.find("flop_count"))
    preset.flop_count = count->as_choice({"model", "palm"}) == "palm" ? FlopCount::Palm : FlopCount::Model;
}

void read_expert_issue(const JsonReader& json, ExpertIssue& experts) {
  json.only({"host_per_kernel", "host_per_operator", "host_per_linear", "each_expert", "eight_bit_kernels", "calls_per_weight",
             "calls_per_recompute", "waits_for_counts", "clamp_waits", "sorts_rows", "joins_chunks", "pads_rows",
             "joins_results", "weighs_activation", "biases"});
  read_seconds(json, "host_per_kernel", experts.per_kernel);
  read_seconds(json, "host_per_operator", experts.per_operator);
  read_seconds(json, "host_per_linear", experts.per_linear);
  read_number(json, "eight_bit_kernels", 1, 100, experts.eight_bit_kernels);
  read_number(json, "calls_per_weight", 0, 100, experts.calls_per_weight);
  read_number(json, "calls_per_recompute", 0, 100, experts.calls_per_recompute);
  for (const auto& [word, is] : {std::pair{"each_expert", &experts.each_expert},
                                 {"waits_for_counts", &experts.waits_for_counts},
                                 {"clamp_waits", &experts.clamp_waits},
                                 {"sorts_rows", &experts.sorts_rows},
                                 {"joins_chunks", &experts.joins_chunks},
                                 {"pads_rows", &experts.pads_rows},
                                 {"joins_results", &experts.joins_results},
                                 {"weighs_activation", &experts.weighs_activation}})
    if (const auto found = json.find(word)) *is = found->as_bool();
  if (json.has("biases")) read_style(json, "biases", experts.biases.emplace());
}

void read_adapters(const JsonReader& json, AdapterPasses& passes) {
  json.only({"input", "input_backward", "result", "result_backward", "transposes_weights"});
  read_number(json, "input", 0, 100, passes.input);
  read_number(json, "input_backward", 0, 100, passes.input_backward);
  read_number(json, "result", 0, 100, passes.result);
  read_number(json, "result_backward", 0, 100, passes.result_backward);
  if (const auto transposes = json.find("transposes_weights")) passes.transposes_weights = transposes->as_bool();
}

void read_costs(const JsonReader& json, FrameworkPreset& preset) {
  read_number(json, "elementwise", 0.05, 1, preset.elementwise);
  if (const auto each = json.find("sums_each_product")) preset.messages.sums_each_product = each->as_bool();
  if (const auto gathers = json.find("gathers_logits")) preset.messages.gathers_logits = gathers->as_bool();
  if (const auto rows = json.find("fp8_rows")) {
    rows->only({"input", "gradient", "weight"});
    RowScales& scales = preset.eight_bits.rows;
    for (const auto& [key, bytes] :
         {std::pair{"input", &scales.input}, {"gradient", &scales.gradient}, {"weight", &scales.weight}})
      *bytes = rows->at(key).as_double(7, 100);  // scales, casts and what is scaled behind products move this at least
  }
  if (const auto kept = json.find("fp8_parameters")) preset.eight_bits.parameters = kept->as_bool();
  if (const auto maxima = json.find("fp8_maxima")) preset.eight_bits.maxima = maxima->as_bool();
  if (const auto narrow = json.find("fp8_gathers")) preset.eight_bits.gathers = narrow->as_bool();
  if (const auto fused = json.find("fp8_fused_copies")) preset.eight_bits.fused_copies = fused->as_bool();
  if (const auto norms = json.find("fp8_norms")) preset.eight_bits.norms = norms->as_bool();
  read_number(json, "joins", 0.1, 10, preset.styles.joins);
  if (const auto copies = json.find("copies_heads")) preset.styles.copies_heads = copies->as_bool();
  if (const auto copies = json.find("copies_samples")) preset.styles.copies_samples = copies->as_bool();
  if (const auto blocks = json.find("fp8_blocks")) preset.eight_bits.blocks = blocks->as_bool();
  if (const auto casts = json.find("autocast")) preset.autocast = casts->as_bool();
  if (const auto adds = json.find("adds_gradients")) preset.adds_gradients = adds->as_bool();
  if (const auto sums = json.find("sums_gradients")) preset.styles.sums_gradients = sums->as_bool();
  if (const auto fills = json.find("fills_results")) preset.styles.fills_results = fills->as_bool();
  if (const auto copies = json.find("shard_copies")) preset.shards.copies = copies->as_bool();
  if (const auto clips = json.find("clips_whole")) preset.shards.clips_whole = clips->as_bool();
  if (const auto narrow = json.find("gathers_narrow")) preset.shards.gathers_narrow = narrow->as_bool();
  read_number(json, "redone_products", 0, 1, preset.redone_products);
  read_number(json, "tensor_copies", 0, 100, preset.messages.tensor_copies);
  if (const auto how = json.find("shard_communication")) preset.shards.communication = read_shard_communication(*how);
  if (const auto bucket = json.find("gradient_bucket")) preset.shards.bucket = bucket->as_int(0, 1'000'000'000'000);
  if (const auto least = json.find("least_shard")) preset.shards.least = least->as_int(0, 1'000'000'000);
  if (const auto distance = json.find("reuse_distance")) preset.shards.reuse_distance = distance->as_int(0, 1'000'000'000'000);
  if (const auto chooses = json.find("nccl_chooses")) preset.messages.nccl_chooses = chooses->as_bool();
  if (const auto turns = json.find("exchanges_in_turn")) preset.messages.exchanges_in_turn = turns->as_bool();
  if (const auto blocking = json.find("blocking_launches")) preset.host.blocking_launches = blocking->as_bool();
  if (const auto splits = json.find("splits_products")) preset.host.splits_products = splits->as_bool();
  read_seconds(json, "host_per_kernel", preset.host.per_kernel);
  if (json.has("host_per_part")) read_seconds(json, "host_per_part", preset.host.per_part.emplace());
  if (const auto loop = json.find("gradient_loop")) {
    loop->only({"whole", "shard"});
    read_number(*loop, "whole", 0, 100, preset.host.gradient_loop.whole);
    read_number(*loop, "shard", 0, 100, preset.host.gradient_loop.shard);
  }
  read_seconds(json, "host_per_collective", preset.host.per_collective);
  read_seconds(json, "host_per_exchange", preset.host.per_exchange);
  read_seconds(json, "host_per_microbatch", preset.host.per_microbatch);
  read_seconds(json, "host_per_step", preset.host.per_step);
  read_style(json, "norm", preset.styles.norm);
  read_style(json, "rope", preset.styles.rope);
  read_style(json, "activation", preset.styles.activation);
  if (json.has("clamped_activation")) read_style(json, "clamped_activation", preset.styles.clamped_activation.emplace());
  if (json.has("scaled_rope")) read_style(json, "scaled_rope", preset.styles.scaled_rope.emplace());
  read_softmax(json, preset.styles);
  if (const auto maps = json.find("softmax_maps")) {
    maps->only({"multiple", "otherwise"});
    preset.styles.softmax_maps.multiple = maps->at("multiple").as_int(1, 1'000'000);
    read_style(*maps, "otherwise", preset.styles.softmax_maps.otherwise);
  }
  read_style(json, "residual", preset.styles.residual);
  read_style(json, "route", preset.styles.route);
  read_style(json, "dispatch", preset.styles.dispatch);
  read_style(json, "combine", preset.styles.combine);
  if (const auto experts = json.find("experts")) read_expert_issue(*experts, preset.experts);
  if (const auto adapters = json.find("adapters")) read_adapters(*adapters, preset.styles.adapters);
  read_style(json, "cross_entropy", preset.styles.cross_entropy);
  read_style(json, "optimizer", preset.styles.optimizer);
  if (json.has("narrow_optimizer")) read_style(json, "narrow_optimizer", preset.styles.narrow_optimizer.emplace());
}

// The preset named by "like". It may not have a "like" itself, so there are no cycles.
FrameworkPreset base_of(const JsonReader& like) {
  const std::string name = like.as_choice(framework_names());
  const std::string path = data_directory() + "/frameworks/" + name + ".json";
  const std::string text = read_file(path);
  if (JsonReader::parse(text, path).has("like")) like.fail("a preset that is not like another one");
  return parse_framework_preset(text, name, path);
}

constexpr const char* kFields[] = {"summary",
                                   "source",
                                   "like",
                                   "runs",
                                   "options",
                                   "param_dtype",
                                   "grad_dtype",
                                   "state_dtype",
                                   "overlap",
                                   "overlap_whole",
                                   "attention",
                                   "context",
                                   "transfers",
                                   "flash",
                                   "dropout",
                                   "clip_norm",
                                   "recompute_stops",
                                   "redone_products",
                                   "autocast",
                                   "gathers_narrow",
                                   "adds_gradients",
                                   "sums_gradients",
                                   "fills_results",
                                   "shard_copies",
                                   "clips_whole",
                                   "post_validation",
                                   "zero",
                                   "chunk_layers",
                                   "stage_split",
                                   "vocab_multiple",
                                   "vocabulary",
                                   "flop_count",
                                   "elementwise",
                                   "shard_communication",
                                   "least_shard",
                                   "gradient_bucket",
                                   "reuse_distance",
                                   "nccl_chooses",
                                   "exchanges_in_turn",
                                   "sums_each_product",
                                   "gathers_logits",
                                   "tensor_copies",
                                   "splits_products",
                                   "fp8_rows",
                                   "fp8_gathers",
                                   "fp8_parameters",
                                   "fp8_maxima",
                                   "fp8_fused_copies",
                                   "fp8_norms",
                                   "fp8_blocks",
                                   "copies_heads",
                                   "copies_samples",
                                   "joins",
                                   "blocking_launches",
                                   "host_per_kernel",
                                   "host_per_part",
                                   "gradient_loop",
                                   "host_per_collective",
                                   "host_per_exchange",
                                   "host_per_microbatch",
                                   "host_per_step",
                                   "experts",
                                   "adapters",
                                   "norm",
                                   "rope",
                                   "activation",
                                   "clamped_activation",
                                   "scaled_rope",
                                   "softmax",
                                   "softmax_maps",
                                   "residual",
                                   "route",
                                   "dispatch",
                                   "combine",
                                   "cross_entropy",
                                   "optimizer",
                                   "narrow_optimizer",
                                   "memory",
                                   "offload",
                                   "implies",
                                   "policies"};

}  // namespace

FrameworkPreset parse_framework_preset(const std::string& text, const std::string& name, const std::string& file_name) {
  const JsonReader json = JsonReader::parse(text, file_name);
  json.only({std::begin(kFields), std::end(kFields)});
  FrameworkPreset preset;
  if (const auto like = json.find("like")) preset = base_of(*like), preset.like = like->as_string();
  preset.name = name, preset.summary = json.at("summary").as_string(), preset.source = json.at("source").as_string();
  read_runner(json, preset);
  read_defaults(json, file_name, preset);
  read_costs(json, preset);
  if (const auto memory = json.find("memory")) preset.memory = read_memory_traits(*memory);
  if (const auto offload = json.find("offload")) preset.offload = read_offload_rules(*offload);
  read_implied(json, preset);
  return preset;
}

// A preset is read when it is first asked for: all of them together take several milliseconds.
struct PresetOnDemand {
  Once read = {};
  FrameworkPreset preset = {};
};

static std::map<std::string, PresetOnDemand> unread_presets() {
  std::map<std::string, PresetOnDemand> presets;
  for (const std::string& name : framework_names()) presets.try_emplace(name);
  return presets;
}

const FrameworkPreset& framework_preset(const std::string& name) {
  static std::map<std::string, PresetOnDemand> presets = unread_presets();
  const auto found = presets.find(name);
  FS_ASSERT(found != presets.end());
  found->second.read.call([&preset = found->second.preset, &name] {
    const std::string path = data_directory() + "/frameworks/" + name + ".json";
    preset = parse_framework_preset(read_file(path), name, path);
  });
  return found->second.preset;
}

Overlap overlap_of(const FrameworkPreset& preset, int virtual_stages, bool cuts, Overlap otherwise) {
  Overlap overlap = preset.defaults.overlap.value_or(otherwise);
  if (!cuts && preset.defaults.overlap_whole) overlap = *preset.defaults.overlap_whole;
  if (preset.runner == Runner::Megatron && virtual_stages <= 1) overlap.p2p = false;
  return overlap;
}

Strategy with_preset(const Model& model, Strategy strategy) {
  const FrameworkPreset& preset = framework_preset(strategy.framework);
  if (strategy.vocab_multiple == 0) strategy.vocab_multiple = preset.defaults.vocab_multiple;
  if (!strategy.context) strategy.context = preset.defaults.context;
  if (!strategy.communication.transfers) strategy.communication.transfers = preset.defaults.transfers;
  if (!strategy.optimizer.clip_norm) strategy.optimizer.clip_norm = preset.defaults.clip_norm;
  // Offloaded parameters: the copies of the next layer overlap the computes of this one.
  const Overlap ours = {.parameters = strategy.offload.parameters != Space::Device};
  if (!strategy.communication.overlap) {
    Overlap& overlap =
        strategy.communication.overlap.emplace(overlap_of(preset, strategy.virtual_stages, strategy.zero.stage > 0, ours));
    // What the framework runs no other way (strategy/search/search_framework.h).
    if (preset.runner == Runner::Megatron && strategy.virtual_stages > 1 && strategy.pp == 2) overlap.p2p = true;
    if (preset.runner == Runner::DeepSpeed && strategy.pp > 1) overlap.p2p = false;
  }
  if (!strategy.dropout) {  // GPT and BERT train with it, the models that came after do not
    const auto* transformer = std::get_if<Transformer>(&model.shape);
    strategy.dropout = transformer && transformer->positions == PositionKind::Learned ? preset.defaults.dropout : 0;
  }
  if (size_of(strategy.precision) >= size_of(DType::F32)) return strategy;
  if (strategy.attention == AttentionKernel::Auto) strategy.attention = preset.defaults.attention;
  if (!strategy.state_dtypes.param) strategy.state_dtypes.param = preset.defaults.param_dtype;
  if (!strategy.state_dtypes.grad) strategy.state_dtypes.grad = preset.defaults.grad_dtype;
  if (!strategy.state_dtypes.state) strategy.state_dtypes.state = preset.defaults.state_dtype;
  if (strategy.framework == Strategy{}.framework) return strategy;
  const StateTypes types = state_types(strategy);  // written out, so that a saved strategy shows the formats it ran with
  strategy.state_dtypes.param = types.param, strategy.state_dtypes.grad = types.grad, strategy.state_dtypes.state = types.state;
  return strategy;
}

}  // namespace foreshard
