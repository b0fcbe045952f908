// The short text forms of options: layer split, recompute, overlap.
#include <algorithm>
#include <charconv>
#include <optional>

#include "core/error.h"
#include "core/strategy.h"

namespace foreshard {

namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t to = std::min(text.find(separator, from), text.size());
    parts.push_back(text.substr(from, to - from));
    from = to + 1;
  }
  return parts;
}

std::optional<int> positive(const std::string& text) {
  int n = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (problem != std::errc() || end != text.data() + text.size() || n < 1) return {};
  return n;
}

// Layers of a stage: 0 is a word of its own.
std::optional<int> layer_count(const std::string& text) {
  if (text == "0") return 0;
  return positive(text);
}

std::string quoted(const std::string& text) { return "\"" + text + "\""; }

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ",") + word;
  return text;
}

std::string nearest_note(const std::string& word, const std::vector<std::string>& known) {
  const std::string near = nearest_name(word, known);
  return near.empty() ? "" : " (nearest: " + quoted(near) + ")";
}

}  // namespace

std::vector<int> parse_layer_split(const std::string& text, const std::string& where) {
  constexpr std::size_t most_stages = 100'000;
  const std::string expected = "layers per stage such as \"2,3x14,2\" (3x14: fourteen stages of three layers)";
  std::vector<int> layers;
  for (const std::string& part : split(text, ',')) {
    const std::vector<std::string> factors = split(part, 'x');
    const auto count = layer_count(factors[0]);
    const auto stages = factors.size() == 1 ? 1 : factors.size() == 2 ? positive(factors[1]) : std::nullopt;
    if (!count || !stages) throw Error(where, "layer_split", quoted(part) + " in " + quoted(text), expected);
    if (layers.size() + static_cast<std::size_t>(*stages) > most_stages)
      throw Error(where, "layer_split", quoted(text), "at most " + std::to_string(most_stages) + " stages");
    layers.insert(layers.end(), static_cast<std::size_t>(*stages), *count);
  }
  for (std::size_t stage = 0; stage < layers.size(); ++stage)
    if (layers[stage] == 0 && (layers.size() == 1 || (stage > 0 && stage + 1 < layers.size())))
      throw Error(where, "layer_split", quoted(text), "a layer in every stage but the first and the last");
  return layers;
}

std::string to_text(const Recompute& recompute) {
  switch (recompute.kind) {
    case RecomputeKind::None:
    case RecomputeKind::Selective: return name_of(recompute.kind);
    case RecomputeKind::Full:
      if (recompute.layers < 0) return "auto";
      return recompute.layers == 0 ? "full" : "full:" + std::to_string(recompute.layers);
    case RecomputeKind::Modules: return joined(recompute.modules);
  }
  return "?";
}

Recompute parse_recompute(const std::string& text, const std::string& where) {
  if (text == "none") return {};
  if (text == "selective") return {.kind = RecomputeKind::Selective};
  if (text == "full") return {.kind = RecomputeKind::Full};
  if (text == "auto") return {.kind = RecomputeKind::Full, .layers = -1};
  if (text.starts_with("full:")) {
    const auto layers = positive(text.substr(5));
    if (!layers) throw Error(where, "recompute", quoted(text), "\"full:N\" with N layers per stage, at least 1");
    return {.kind = RecomputeKind::Full, .layers = *layers};
  }
  const std::vector<std::string> words = split(text, ',');
  for (const std::string& word : words) {
    if (std::count(recompute_modules().begin(), recompute_modules().end(), word) > 0) continue;
    std::vector<std::string> known = {"none", "selective", "full", "auto"};
    known.insert(known.end(), recompute_modules().begin(), recompute_modules().end());
    throw Error(where, "recompute", quoted(word),
                "none, selective, full, full:N, auto or some of " + joined(recompute_modules()) + nearest_note(word, known));
  }
  Recompute recompute = {.kind = RecomputeKind::Modules};
  for (const std::string& module : recompute_modules())
    if (std::count(words.begin(), words.end(), module) > 0) recompute.modules.push_back(module);
  return recompute;
}

std::string to_text(const Overlap& overlap) {
  std::vector<std::string> words;
  for (const OverlapPart& part : kOverlapParts)
    if (overlap.*part.field) words.push_back(part.name);
  return words.empty() ? "none" : joined(words);
}

Overlap parse_overlap(const std::string& text, const std::string& where) {
  Overlap overlap;
  for (const OverlapPart& part : kOverlapParts) overlap.*part.field = false;
  if (text == "none") return overlap;
  for (const std::string& word : split(text, ',')) {
    const auto part = std::find_if(std::begin(kOverlapParts), std::end(kOverlapParts),
                                   [&](const OverlapPart& known) { return known.name == word; });
    if (part == std::end(kOverlapParts))
      throw Error(where, "overlap", quoted(word),
                  "none or some of grad,param,p2p,tp" + nearest_note(word, {"none", "grad", "param", "p2p", "tp"}));
    overlap.*part->field = true;
  }
  return overlap;
}

}  // namespace foreshard
