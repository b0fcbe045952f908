#include "validation/measured_experts.h"

#include <algorithm>
#include <cctype>

#include "core/base/count_text.h"
#include "core/base/data_path.h"
#include "core/base/error.h"
#include "validation/measured_numbers.h"
#include "validation/measured_words.h"

namespace foreshard {

namespace {

// "Qwen3_235B_a22B (tokendrop)" and "qwen3-235b-a22b" -> "qwen3235ba22b".
std::string plain_name(const std::string& name) {
  std::string plain;
  for (const char c : name.substr(0, name.find('(')))
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return plain;
}

// [layer]: whether it has experts. "([0]*3+[1]*11)" gives three times false and eleven times true; a number n gives the first of
// every n layers. Empty: all layers have experts.
std::vector<bool> layers_with_experts(const MeasuredRow& row, int layers) {
  const std::string pattern = flag_text(row, "moe-layer-freq").value_or("1");
  std::vector<bool> with;
  for (std::size_t at = pattern.find('['); at != std::string::npos; at = pattern.find('[', at + 1)) {
    const bool experts = pattern[std::min(at + 1, pattern.size() - 1)] == '1';
    const std::size_t star = pattern.find('*', at), next = pattern.find('+', at);
    const int times = star < next && star != std::string::npos ? leading_int(pattern.substr(star + 1)) : 1;
    with.insert(with.end(), static_cast<std::size_t>(std::min(times, layers + 1)), experts);
    if (with.size() > static_cast<std::size_t>(layers)) break;
  }
  if (!with.empty() && with.size() != static_cast<std::size_t>(layers))
    throw Error(row.where(), "framework_flags", "--moe-layer-freq " + pattern, "as many as the " + counted(layers, "layer"));
  const int every = leading_int(pattern);
  if (!with.empty() || every <= 1) return with;
  for (int layer = 0; layer < layers; ++layer) with.push_back(layer % every == 0);
  return with;
}

}  // namespace

std::optional<Model> shipped_model(const MeasuredRow& row) {
  const std::string wanted = plain_name(row.text("model_name"));
  for (const std::string& name : shipped("models")) {
    if (plain_name(name) != wanted) continue;
    Model model = load_model(name);
    auto* shape = std::get_if<Transformer>(&model.shape);
    if (!shape || shape->layers != row.number("layers") || static_cast<double>(shape->hidden) != row.number("hidden"))
      return {};
    if (row.mentions("model_name", "w/o mtp")) shape->block.mtp_modules = 0;
    if (const auto tokens = row.whole("seq_len")) shape->max_positions = *tokens;
    return model;
  }
  return {};
}

std::optional<SkipReason> add_stated_experts(const MeasuredRow& row, Model& dense) {
  auto& shape = std::get<Transformer>(dense.shape);
  if (row.mentions("framework_flags", "multi-latent")) return SkipReason::Mla;  // the widths of the latents are not stated
  const auto count = flag_number(row, "num-experts");
  if (!count) return SkipReason::UnknownExperts;
  Experts& experts = shape.block.experts;
  experts.count = *count;
  experts.chosen = flag_number(row, "moe-router-topk").value_or(2);
  if (experts.chosen > experts.count)
    throw Error(row.where(), "framework_flags", "--moe-router-topk " + std::to_string(experts.chosen),
                "at most the " + counted(experts.count, "expert"));
  experts.width = flag_number(row, "moe-ffn-hidden-size").value_or(static_cast<int>(shape.ffn_hidden));
  experts.shared_width = flag_number(row, "moe-shared-expert-intermediate-size").value_or(0);
  experts.layers = layers_with_experts(row, shape.layers);
  // Megatron takes the softmax over the chosen experts. With one chosen expert that would always be 1, so the softmax is over all.
  experts.score = experts.chosen == 1 ? RouterScore::Softmax : RouterScore::SoftmaxOfChosen;
  shape.head_dim = flag_number(row, "kv-channels").value_or(static_cast<int>(shape.head_dim));
  shape.block.mtp_modules = flag_number(row, "mtp-num-layers").value_or(0);
  return {};
}

std::optional<SkipReason> set_experts(const MeasuredRow& row, Strategy& s, std::vector<std::string>& assumed) {
  const auto ep = row.whole("ep");
  if (!ep) return SkipReason::UnknownDegree;
  if (row.unknown("num_gpus") && row.unknown("dp"))
    return SkipReason::UnknownDegree;  // the data-parallel size is unknown, and so are the ranks that hold the same experts
  s.experts.ep = static_cast<int>(*ep);
  const auto stated = flag_number(row, "expert-tensor-parallel-size");
  // Megatron's default is tp. All recipes of Megatron-Bridge have 1 (scripts/performance/configs/*base_configs.py, recipes/*/*.py).
  const bool bridge = row.text("framework") == "megatron-bridge";
  s.experts.etp = std::max(1, stated.value_or(bridge ? 1 : s.tp));
  const std::int64_t ranks = std::int64_t{s.tp} * s.cp * s.dp;
  if (!stated && ranks % (std::int64_t{s.experts.ep} * s.experts.etp) != 0) s.experts.etp = 1;  // too few ranks for etp = tp
  if (!stated && !bridge && s.tp > 1) assumed.emplace_back("etp");
  if (const auto capacity = flag_real(row, "moe-expert-capacity-factor")) s.experts.capacity = *capacity;
  if (row.mentions("model_name", "tokendrop")) s.experts.capacity = 1;
  return {};
}

std::optional<Recompute> recompute_of_modules(const MeasuredRow& row, bool experts) {
  const std::string& cell = row.text("recompute");
  if (!cell.starts_with("selective") || cell.find_first_of("([") == std::string::npos) return {};
  Recompute recompute = {.kind = RecomputeKind::Modules};
  // In a model with experts "mlp" means the layers without, and is ignored. Recomputing "qkv" redoes the down-projections of the latents too, which
  // are a few per cent of the up-projections.
  for (const auto& [word, module] :
       {std::pair{"core_attn", "attention"}, {"layernorm", "norm"}, {"mla_up_proj", "qkv"}, {"moe_act", "activation"}})
    if (cell.find(word) != std::string::npos) recompute.modules.emplace_back(module);
  if (!experts && cell.find("mlp") != std::string::npos) recompute.modules.emplace_back("mlp");
  return recompute.modules.empty() ? std::nullopt : std::optional(recompute);
}

std::string recipe_split(int layers, int stages) {
  if (stages < 2 || layers % stages == 0) return "";
  const int each = (layers + stages - 1) / stages, rest = layers - each * (stages - 1);
  if (rest > 0) return std::to_string(each) + "x" + std::to_string(stages - 1) + "," + std::to_string(rest);
  if (stages < 3 || layers + 1 != each * (stages - 1)) return "";
  return std::to_string(each - 1) + "," + std::to_string(each) + "x" + std::to_string(stages - 2) + ",0";
}

}  // namespace foreshard
