#include "strategy/cost/offload.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace foreshard {

namespace {

constexpr std::pair<const char*, bool Offload::*> kParts[] = {
    {"master", &Offload::master},       {"momentum", &Offload::momentum},      {"variance", &Offload::variance},
    {"gradients", &Offload::gradients}, {"weights", &Offload::weights},        {"narrow_weights", &Offload::narrow_weights},
    {"inputs", &Offload::inputs},       {"activations", &Offload::activations}};

std::vector<std::string> part_names() {
  std::vector<std::string> names;
  for (const auto& part : kParts) names.emplace_back(part.first);
  return names;
}

bool has(const std::string& text, const std::string& word) { return text.find(word) != std::string::npos; }

bool knows(const std::vector<OffloadRule>& rules, const std::string& word) {
  return std::ranges::any_of(rules,
                             [&](const OffloadRule& rule) { return std::ranges::find(rule.words, word) != rule.words.end(); });
}

// "activations of 20 layers" -> 20.
int layers_in(const std::string& text) {
  const std::size_t at = text.find(" of ");
  return at == std::string::npos ? 0 : std::max(0, std::atoi(text.c_str() + at + 4));
}

}  // namespace

std::vector<OffloadRule> read_offload_rules(const JsonReader& json) {
  std::vector<OffloadRule> rules;
  for (const JsonReader& entry : json.elements()) {
    entry.only({"words", "in_host", "host_update"});
    OffloadRule rule;
    for (const JsonReader& word : entry.at("words").elements()) rule.words.push_back(word.as_string());
    if (rule.words.empty()) entry.at("words").fail("at least one word");
    for (const JsonReader& part : entry.at("in_host").elements()) {
      const std::string name = part.as_choice(part_names());
      for (const auto& [known, field] : kParts)
        if (name == known) rule.means.*field = true;
    }
    if (const auto host = entry.find("host_update")) rule.means.host_update = host->as_bool();
    rules.push_back(std::move(rule));
  }
  return rules;
}

std::optional<Offload> offload_of(const std::vector<OffloadRule>& rules, const std::string& text) {
  Offload all;
  bool any = false;
  for (const OffloadRule& rule : rules) {
    if (!std::ranges::all_of(rule.words, [&](const std::string& word) { return has(text, word); })) continue;
    any = true;
    for (const auto& [name, field] : kParts) all.*field = all.*field || rule.means.*field;
    all.host_update = all.host_update || rule.means.host_update;
  }
  if (!any) return {};
  const std::string separators = " ,;";
  for (std::size_t at = 0; (at = text.find_first_not_of(separators, at)) != std::string::npos;) {
    const std::size_t end = std::min(text.size(), text.find_first_of(separators, at));
    const std::string word = text.substr(at, end - at);
    if (word.starts_with("offload-") && !knows(rules, word)) return {};
    at = end;
  }
  if (all.activations) all.activation_layers = layers_in(text);
  return all;
}

OffloadChoice choice_of(const Offload& offload) {
  const auto home = [](bool away) { return away ? Space::PinnedHost : Space::Device; };
  OffloadChoice choice = {.optimizer = home(offload.momentum || offload.variance),
                          .parameters = home(offload.weights),
                          .gradients = home(offload.gradients)};
  choice.updated_on = offload.host_update ? UpdatedOn::Host : UpdatedOn::Device;
  if (offload.inputs) choice.activations = OffloadedActivations::Inputs;
  if (offload.activations) choice.activations = OffloadedActivations::All, choice.activation_layers = offload.activation_layers;
  return choice;
}

Offload offload_of(const OffloadChoice& choice) {
  const bool states = choice.optimizer != Space::Device;
  return {.master = states,
          .momentum = states,
          .variance = states,
          .gradients = choice.gradients != Space::Device,
          .weights = choice.parameters != Space::Device,
          .inputs = choice.activations == OffloadedActivations::Inputs,
          .activations = choice.activations > OffloadedActivations::Inputs,
          .activation_layers = choice.activation_layers,
          .host_update = choice.updated_on == UpdatedOn::Host};
}

}  // namespace foreshard
