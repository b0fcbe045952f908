// AttentionSettings and BlockSettings in "foreshard-transformer" files: the objects "attention", "experts" and "scales", and
// flags of the block. A field is read and written by the same line.
#include <array>
#include <type_traits>

#include "core/base/error.h"
#include "core/model/model_files.h"

namespace foreshard {

namespace {

constexpr std::array kQkNorms = {"none", "per_head", "all_heads", "unweighted"};   // in the order of QkNorm
constexpr std::array kRouterScores = {"softmax", "softmax_of_chosen", "sigmoid"};  // and of RouterScore
constexpr double kLargest = 1e15;

template <class Self, class Visit>
void fields_of(Self& a, Visit&& visit) requires std::is_same_v<std::remove_const_t<Self>, LatentAttention> {
  visit("query_rank", a.query_rank), visit("key_value_rank", a.key_value_rank), visit("plain_dim", a.plain_dim);
  visit("rotated_dim", a.rotated_dim), visit("value_dim", a.value_dim);
}

template <class Self, class Visit>
void fields_of(Self& a, Visit&& visit) requires std::is_same_v<std::remove_const_t<Self>, AttentionSettings> {
  visit("local_rope_theta", a.local_rope_theta), visit("rope_scale", a.rope_scale), visit("rotated_dim", a.rotated_dim);
  visit("full_unrotated", a.full_unrotated), visit("latent", a.latent), visit("qk_norm", a.qk_norm);
  visit("scale", a.scale), visit("score_cap", a.score_cap), visit("sinks", a.sinks), visit("window", a.window);
  visit("chunk", a.chunk), visit("local", a.local);
}

template <class Self, class Visit>
void fields_of(Self& e, Visit&& visit) requires std::is_same_v<std::remove_const_t<Self>, Experts> {
  visit("count", e.count), visit("chosen", e.chosen), visit("width", e.width), visit("shared_width", e.shared_width);
  visit("layers", e.layers), visit("score", e.score), visit("renormalised", e.renormalised), visit("scale", e.scale);
  visit("groups", e.groups), visit("chosen_groups", e.chosen_groups), visit("best_of_group", e.best_of_group);
  visit("correction_bias", e.correction_bias), visit("bias_speed", e.bias_speed), visit("router_bias", e.router_bias),
      visit("biases", e.biases);
  visit("scaled_inputs", e.scaled_inputs), visit("auxiliary_loss", e.auxiliary_loss);
  visit("z_loss", e.z_loss);
}

template <class Self, class Visit>
void fields_of(Self& s, Visit&& visit) requires std::is_same_v<std::remove_const_t<Self>, ValueScales> {
  visit("embedding", s.embedding), visit("residual", s.residual), visit("logits", s.logits), visit("logit_cap", s.logit_cap);
}

// The keys of foreshard-transformer that this file reads.
template <class Self, class Visit>
void fields_of(Self& t, Visit&& visit) requires std::is_same_v<std::remove_const_t<Self>, Transformer> {
  visit("attention", t.attention), visit("input_norms", t.block.input_norms), visit("branch_norms", t.block.branch_norms);
  visit("norms_around_one", t.block.norms_around_one), visit("experts", t.block.experts), visit("scales", t.block.scales);
  visit("mtp_modules", t.block.mtp_modules);
}

struct Read {
  const JsonReader& json;

  void operator()(const char* name, bool& value) const {
    if (const auto found = json.find(name)) value = found->as_bool();
  }
  void operator()(const char* name, std::int64_t& value) const {
    if (const auto found = json.find(name)) value = found->as_int(0, largest_size);
  }
  void operator()(const char* name, int& value) const {
    if (const auto found = json.find(name)) value = static_cast<int>(found->as_int(0, 100));
  }
  void operator()(const char* name, double& value) const {
    if (const auto found = json.find(name)) value = found->as_double(0, kLargest);
  }
  void operator()(const char* name, QkNorm& value) const { choice(name, kQkNorms, value); }
  void operator()(const char* name, RouterScore& value) const { choice(name, kRouterScores, value); }
  void operator()(const char* name, std::vector<bool>& value) const {
    const auto found = json.find(name);
    if (!found) return;
    value.clear();
    for (const JsonReader& one : found->elements()) value.push_back(one.as_bool());
  }
  template <class Struct>
  void operator()(const char* name, Struct& value) const {
    const auto found = json.find(name);
    if (!found) return;
    if (!found->is_object()) found->fail("an object");
    std::vector<std::string> known;
    fields_of(value, [&](const char* key, const auto&) { known.emplace_back(key); });
    found->only(known);
    fields_of(value, Read{*found});
  }

 private:
  template <class Words, class Kind>
  void choice(const char* name, const Words& words, Kind& value) const {
    const auto found = json.find(name);
    if (!found) return;
    const std::string word = found->as_choice({words.begin(), words.end()});
    for (std::size_t i = 0; i < words.size(); ++i)
      if (word == words[i]) value = static_cast<Kind>(i);
  }
};

struct Write {
  JsonWriter& json;

  void operator()(const char* name, QkNorm value) const { json.field(name, kQkNorms[static_cast<std::size_t>(value)]); }
  void operator()(const char* name, RouterScore value) const {
    json.field(name, kRouterScores[static_cast<std::size_t>(value)]);
  }
  void operator()(const char* name, const std::vector<bool>& value) const {
    json.key(name).begin_line_array();
    for (const bool one : value) json.value(one);
    json.end_array();
  }
  template <class T>
  void operator()(const char* name, const T& value) const {
    if constexpr (std::is_arithmetic_v<T>) {
      json.field(name, value);
    } else {
      json.key(name).begin_object();
      write_others(value, T{});
      json.end_object();
    }
  }
  // The fields that are not as in `usual`.
  template <class T>
  void write_others(const T& value, const T& usual) const {
    std::vector<const void*> defaults;
    fields_of(usual, [&](const char*, const auto& field) { defaults.push_back(&field); });
    std::size_t next = 0;
    fields_of(value, [&]<class Field>(const char* name, const Field& field) {
      if (!(field == *static_cast<const Field*>(defaults[next++]))) (*this)(name, field);
    });
  }
};

ModelFault fault(std::string field, std::int64_t found, std::string expected) {
  return {std::move(field), std::to_string(found), std::move(expected)};
}

std::optional<ModelFault> fault_of_experts(const Transformer& t) {
  const Experts& e = t.block.experts;
  const std::string experts = std::to_string(e.count) + " experts";
  if (e.count == 0) {
    if (e != Experts{}) return fault("experts.count", 0, "at least 1, as other settings of experts are given");
    return {};
  }
  if (e.width < 1) return fault("experts.width", e.width, "at least 1");
  if (e.chosen < 1 || e.chosen > e.count) return fault("experts.chosen", e.chosen, "from 1 to the " + experts);
  if (e.groups < 1 || e.count % e.groups != 0) return fault("experts.groups", e.groups, "a divisor of the " + experts);
  const std::int64_t in_group = e.count / e.groups;
  if (e.chosen_groups < 1 || e.chosen_groups > e.groups)
    return fault("experts.chosen_groups", e.chosen_groups, "from 1 to the " + std::to_string(e.groups) + " groups of experts");
  if (e.chosen > e.chosen_groups * in_group)
    return fault("experts.chosen", e.chosen,
                 "at most " + std::to_string(e.chosen_groups * in_group) + ", the experts of the chosen groups");
  if (e.best_of_group < 1 || e.best_of_group > in_group)
    return fault("experts.best_of_group", e.best_of_group, "from 1 to the " + std::to_string(in_group) + " experts of a group");
  if (!is_gated(t.activation)) return ModelFault{"activation", "one without a gate", "a gated activation, as experts have"};
  bool any = e.layers.empty();
  for (const bool one : e.layers) any = any || one;
  if (!any) return ModelFault{"experts.layers", "experts, but no layer that has them", "at least one layer with experts"};
  return {};
}

}  // namespace

std::vector<std::string> transformer_settings_keys() {
  std::vector<std::string> keys;
  const Transformer usual;
  fields_of(usual, [&](const char* name, const auto&) { keys.emplace_back(name); });
  return keys;
}

void parse_transformer_settings(const JsonReader& json, Transformer& t) { fields_of(t, Read{json}); }

void write_transformer_settings(JsonWriter& json, const Transformer& t) {
  Transformer usual;  // what write_transformer writes by itself
  usual.attention.rope_theta = t.attention.rope_theta, usual.block.norm_eps = t.block.norm_eps;
  Write{json}.write_others(t, usual);
}

std::optional<ModelFault> fault_of(const Transformer& t) {
  const AttentionSettings& a = t.attention;
  const auto layers = static_cast<std::size_t>(t.layers);
  const std::string each = "one for each of the " + std::to_string(t.layers) + " layers";
  for (const auto& [name, list] : {std::pair{"attention.local", &a.local}, {"experts.layers", &t.block.experts.layers}})
    if (!list->empty() && list->size() != layers) return fault(name, static_cast<std::int64_t>(list->size()), each);
  if (a.window > 0 && a.chunk > 0) return fault("attention.chunk", a.chunk, "0 beside a window of " + std::to_string(a.window));
  if (!a.local.empty() && a.window == 0 && a.chunk == 0)
    return ModelFault{"attention.local", "layers that attend locally", "a window or a chunk of at least 1"};
  const LatentAttention& l = a.latent;
  if (l.key_value_rank == 0 && l != LatentAttention{})
    return fault("attention.latent.key_value_rank", 0, "at least 1, as other settings of latent attention are given");
  if (l.key_value_rank > 0) {
    if (l.plain_dim < 1) return fault("attention.latent.plain_dim", l.plain_dim, "at least 1");
    if (l.value_dim < 1) return fault("attention.latent.value_dim", l.value_dim, "at least 1");
    if (l.rotated_dim < 1 || l.rotated_dim % 2 != 0)
      return fault("attention.latent.rotated_dim", l.rotated_dim, "an even number of at least 2: rotary embeddings turn pairs");
  }
  if (a.rotated_dim % 2 != 0 || a.rotated_dim > t.head_dim)
    return fault("attention.rotated_dim", a.rotated_dim,
                 "an even number of at most the head size " + std::to_string(t.head_dim) + ": rotary embeddings turn pairs");
  return fault_of_experts(t);
}

}  // namespace foreshard
