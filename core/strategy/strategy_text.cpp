// The short text forms of options: layer split, recompute, overlap.
#include <algorithm>
#include <charconv>
#include <optional>
#include <sstream>

#include "core/base/error.h"
#include "core/json/json.h"
#include "core/strategy/strategy.h"
#include "core/strategy/strategy_options.h"

namespace foreshard {

namespace {

constexpr std::size_t kMostStages = 100'000;
constexpr int kMostCheckpoints = 1000;
constexpr int kMostDegree = 1'000'000;  // of one degree of a stage

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

// The number of layers of a stage, at least 0; empty if the text is not one.
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
  return near.empty() || near == word ? "" : " (nearest: " + quoted(near) + ")";
}

}  // namespace

std::vector<int> parse_layer_split(const std::string& text, const std::string& where) {
  const std::string expected = "layers per stage such as \"2,3x14,2\" (3x14: fourteen stages of three layers)";
  std::vector<int> layers;
  for (const std::string& part : split(text, ',')) {
    const std::vector<std::string> factors = split(part, 'x');
    const auto count = layer_count(factors[0]);
    const auto stages = factors.size() == 1 ? 1 : factors.size() == 2 ? positive(factors[1]) : std::nullopt;
    if (!count || !stages) throw Error(where, "layer_split", quoted(part) + " in " + quoted(text), expected);
    if (layers.size() + static_cast<std::size_t>(*stages) > kMostStages)
      throw Error(where, "layer_split", quoted(text), "at most " + std::to_string(kMostStages) + " stages");
    layers.insert(layers.end(), static_cast<std::size_t>(*stages), *count);
  }
  for (std::size_t stage = 0; stage < layers.size(); ++stage)
    if (layers[stage] == 0 && (layers.size() == 1 || (stage > 0 && stage + 1 < layers.size())))
      throw Error(where, "layer_split", quoted(text), "a layer in every stage but the first and the last");
  return layers;
}

// "10x3:2x1": three stages of ten layers, on two replicas of one rank each.
static std::optional<std::pair<StageDegrees, int>> equal_stages(const std::string& text) {
  const std::vector<std::string> parts = split(text, ':');
  const std::vector<std::string> degrees = parts.size() == 2 ? split(parts[1], 'x') : std::vector<std::string>();
  const std::vector<std::string> factors = split(parts[0], 'x');
  if (degrees.size() != 2 || factors.size() > 2) return {};
  const auto layers = layer_count(factors[0]), dp = positive(degrees[0]), tp = positive(degrees[1]);
  const auto stages = factors.size() == 1 ? 1 : positive(factors[1]);
  if (!layers || !stages || !dp || !tp || *dp > kMostDegree || *tp > kMostDegree) return {};
  return std::pair(StageDegrees{*layers, *dp, *tp}, *stages);
}

std::vector<StageDegrees> parse_stages(const std::string& text, const std::string& where) {
  std::vector<StageDegrees> stages;
  const std::vector<std::string> parts = split(text, ',');
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto equal = equal_stages(parts[i]);
    if (!equal)
      throw Error(where, "stages", quoted(parts[i]) + " (part " + std::to_string(i + 1) + ") in " + quoted(text),
                  "LAYERS:DPxTP of each stage such as \"10:2x1,4x3:1x2\" (ten layers on two replicas of one GPU, then three "
                  "stages of four layers on one replica of two)");
    if (stages.size() + static_cast<std::size_t>(equal->second) > kMostStages)
      throw Error(where, "stages", std::to_string(stages.size()) + " and " + std::to_string(equal->second) + " more",
                  "at most " + std::to_string(kMostStages) + " stages");
    stages.insert(stages.end(), static_cast<std::size_t>(equal->second), equal->first);
  }
  for (std::size_t stage = 0; stage < stages.size(); ++stage)
    if (stages[stage].layers == 0 && (stages.size() == 1 || (stage > 0 && stage + 1 < stages.size())))
      throw Error(where, "stages", quoted(text), "a layer in every stage but the first and the last");
  return stages;
}

// Joins consecutive equal stages.
std::string to_text(const std::vector<StageDegrees>& stages) {
  std::vector<std::string> words;
  for (std::size_t from = 0, to = 0; from < stages.size(); from = to) {
    while (to < stages.size() && stages[to] == stages[from]) ++to;
    words.push_back(std::to_string(stages[from].layers) + (to - from > 1 ? "x" + std::to_string(to - from) : "") + ":" +
                    std::to_string(stages[from].dp) + "x" + std::to_string(stages[from].tp));
  }
  return joined(words);
}

// "8,6x2": joins consecutive stages with equal numbers.
static std::string repeated(const std::vector<int>& counts) {
  std::vector<std::string> words;
  for (std::size_t from = 0, to = 0; from < counts.size(); from = to) {
    while (to < counts.size() && counts[to] == counts[from]) ++to;
    words.push_back(std::to_string(counts[from]) + (to - from > 1 ? "x" + std::to_string(to - from) : ""));
  }
  return words.size() == 1 && counts.size() == 1 ? words[0] + "x1" : joined(words);  // "full:8" means 8 layers of every stage
}

std::string to_text(const LayerRecompute& layer) {
  if (layer.kind != RecomputeKind::Modules) return name_of(layer.kind);
  std::string text;
  for (const std::string& module : layer.modules) text += (text.empty() ? "" : "+") + module;
  return text;
}

// "8xfull,attention+norm": joins consecutive layers with equal recomputation.
static std::string repeated(const std::vector<LayerRecompute>& layers) {
  std::vector<std::string> words;
  for (std::size_t from = 0, to = 0; from < layers.size(); from = to) {
    while (to < layers.size() && layers[to] == layers[from]) ++to;
    words.push_back((to - from > 1 ? std::to_string(to - from) + "x" : "") + to_text(layers[from]));
  }
  return joined(words);
}

// "0-7,12"
static std::string ranges(const std::vector<int>& layers) {
  std::vector<std::string> words;
  for (std::size_t from = 0, to = 0; from < layers.size(); from = to) {
    for (to = from + 1; to < layers.size() && layers[to] == layers[to - 1] + 1;) ++to;
    words.push_back(std::to_string(layers[from]) + (to - from > 1 ? "-" + std::to_string(layers[to - 1]) : ""));
  }
  return joined(words);
}

static std::string short_text(Bytes bytes) {
  const char* unit = "B";
  for (const char* larger : {"KiB", "MiB", "GiB", "TiB"}) {
    if (bytes.value % 1024 != 0) break;
    bytes.value /= 1024, unit = larger;
  }
  return std::to_string(bytes.value) + unit;
}

std::string to_text(const Recompute& recompute) {
  std::string name = name_of(recompute.kind);
  switch (recompute.kind) {
    case RecomputeKind::None:
    case RecomputeKind::Selective: return name;
    case RecomputeKind::Full:
      if (!recompute.per_stage.empty()) return "full:" + repeated(recompute.per_stage);
      if (!recompute.only.empty()) return "layers:" + ranges(recompute.only);
      if (recompute.layers < 0) return "auto";
      return recompute.layers == 0 ? "full" : "full:" + std::to_string(recompute.layers);
    case RecomputeKind::Modules: return joined(recompute.modules);
    case RecomputeKind::Each: return recompute.each.empty() ? "best" : "each:" + repeated(recompute.each);
    case RecomputeKind::Rotor:
    case RecomputeKind::Graph: return recompute.budget == Bytes{} ? name : name + ":" + short_text(recompute.budget);
    case RecomputeKind::Revolve: return name + ":" + std::to_string(recompute.checkpoints);
  }
  return "?";
}

static std::vector<int> parse_per_stage(const std::string& text, const std::string& where) {
  std::vector<int> counts;
  for (const std::string& part : split(text.substr(5), ',')) {
    const std::vector<std::string> factors = split(part, 'x');
    const auto count = layer_count(factors[0]);
    const auto stages = factors.size() == 1 ? 1 : factors.size() == 2 ? positive(factors[1]) : std::nullopt;
    if (!count || !stages || counts.size() + static_cast<std::size_t>(*stages) > kMostStages)
      throw Error(where, "recompute", quoted(part) + " in " + quoted(text),
                  "\"full:N\" with N layers of every stage, at least 1, or of each stage such as \"full:8,6,4x2\"");
    counts.insert(counts.end(), static_cast<std::size_t>(*stages), *count);
  }
  return counts;
}

static std::vector<int> parse_layer_numbers(const std::string& text, const std::string& where) {
  std::vector<int> layers;
  for (const std::string& part : split(text.substr(7), ',')) {
    const std::vector<std::string> ends = split(part, '-');
    const auto first = layer_count(ends[0]), last = ends.size() == 2 ? layer_count(ends[1]) : first;
    const bool rising = first && last && ends.size() <= 2 && *first <= *last && (layers.empty() || layers.back() < *first);
    if (!rising || *last >= static_cast<int>(kMostStages))
      throw Error(where, "recompute", quoted(part) + " in " + quoted(text),
                  "layers of the model from 0, rising, such as \"layers:0-7,12\"");
    for (int layer = *first; layer <= *last; ++layer) layers.push_back(layer);
  }
  return layers;
}

static std::vector<std::string> ordered_modules(const std::vector<std::string>& words) {
  std::vector<std::string> modules;
  for (const std::string& module : recompute_modules())
    if (std::count(words.begin(), words.end(), module) > 0) modules.push_back(module);
  return modules;
}

static std::optional<LayerRecompute> parse_layer_recompute(const std::string& text) {
  for (const RecomputeKind kind : {RecomputeKind::None, RecomputeKind::Selective, RecomputeKind::Full})
    if (text == name_of(kind)) return LayerRecompute{kind};
  const std::vector<std::string> words = split(text, '+');
  for (const std::string& word : words)
    if (std::count(recompute_modules().begin(), recompute_modules().end(), word) == 0) return {};
  return LayerRecompute{RecomputeKind::Modules, ordered_modules(words)};
}

// "8xfull,attention+norm"
static std::vector<LayerRecompute> parse_each(const std::string& text, const std::string& where) {
  std::vector<LayerRecompute> layers;
  for (const std::string& part : split(text, ',')) {
    const std::size_t x = part.find('x');
    const auto times = x == std::string::npos ? std::nullopt : positive(part.substr(0, x));
    const auto layer = parse_layer_recompute(times ? part.substr(x + 1) : part);
    if (!layer || layers.size() + static_cast<std::size_t>(times.value_or(1)) > kMostStages)
      throw Error(
          where, "recompute", quoted(part) + " in " + quoted("each:" + text),
          "none, selective, full or modules of every layer, such as \"each:8xfull,4xattention+norm,none\", with some of " +
              joined(recompute_modules()));
    layers.insert(layers.end(), static_cast<std::size_t>(times.value_or(1)), *layer);
  }
  return layers;
}

// The forms with a colon; empty: not one of them.
static std::optional<Recompute> parse_measured_out(const std::string& text, const std::string& where) {
  const auto rest = [&](const char* name) { return text.substr(std::string(name).size() + 1); };
  const auto starts = [&](const char* name) { return text.starts_with(std::string(name) + ":"); };
  if (starts("full")) {
    const std::vector<int> counts = parse_per_stage(text, where);
    const bool alike = counts.size() == 1 && text.find('x') == std::string::npos;
    if (alike && counts[0] == 0)
      throw Error(where, "recompute", quoted(text), "\"full:N\" with N layers per stage, at least 1");
    if (alike) return Recompute{.kind = RecomputeKind::Full, .layers = counts[0]};
    return Recompute{.kind = RecomputeKind::Full, .per_stage = counts};
  }
  if (starts("each")) return Recompute{.kind = RecomputeKind::Each, .each = parse_each(rest("each"), where)};
  if (starts("layers")) return Recompute{.kind = RecomputeKind::Full, .only = parse_layer_numbers(text, where)};
  for (const RecomputeKind kind : {RecomputeKind::Rotor, RecomputeKind::Graph}) {
    if (!starts(name_of(kind))) continue;
    const Bytes budget = parse_bytes(rest(name_of(kind)), where, "recompute");
    if (budget.value <= 0 || budget.value > std::int64_t{1} << 50)
      throw Error(where, "recompute", quoted(text), "a budget above 0 and up to 1024 TiB, such as \"rotor:20GiB\"");
    return Recompute{.kind = kind, .budget = budget};
  }
  if (!starts("revolve")) return {};
  const auto checkpoints = layer_count(rest("revolve"));
  if (!checkpoints || *checkpoints > kMostCheckpoints)
    throw Error(where, "recompute", quoted(text),
                "\"revolve:N\" with N layer inputs kept at once, 0 to " + std::to_string(kMostCheckpoints));
  return Recompute{.kind = RecomputeKind::Revolve, .checkpoints = *checkpoints};
}

Recompute parse_recompute(const std::string& text, const std::string& where) {
  if (text == "none") return {};
  if (text == "selective") return {.kind = RecomputeKind::Selective};
  if (text == "full") return {.kind = RecomputeKind::Full};
  if (text == "auto") return {.kind = RecomputeKind::Full, .layers = -1};
  if (text == "best") return {.kind = RecomputeKind::Each};
  if (text == "rotor") return {.kind = RecomputeKind::Rotor};
  if (text == "graph") return {.kind = RecomputeKind::Graph};
  if (const auto measured_out = parse_measured_out(text, where)) return *measured_out;
  const std::vector<std::string> words = split(text, ',');
  for (const std::string& word : words) {
    if (std::count(recompute_modules().begin(), recompute_modules().end(), word) > 0) continue;
    std::vector<std::string> known = {"none",  "selective", "full",  "auto",   "best",
                                      "rotor", "revolve",   "graph", "layers", "each"};
    known.insert(known.end(), recompute_modules().begin(), recompute_modules().end());
    throw Error(
        where, "recompute", quoted(word),
        "none, selective, full, full:N, full:N,N,.., layers:A-B, each:.., auto, best, rotor, revolve:N, graph or some of " +
            joined(recompute_modules()) + nearest_note(word, known));
  }
  return {.kind = RecomputeKind::Modules, .modules = ordered_modules(words)};
}

std::string to_text(const Overlap& overlap) {
  std::vector<std::string> words;
  for (const OverlapPart& part : kOverlapParts)
    if (overlap.*part.field) words.emplace_back(part.name);
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
                  "none alone, or some of grad,param,p2p,tp" + nearest_note(word, {"none", "grad", "param", "p2p", "tp"}));
    overlap.*part->field = true;
  }
  return overlap;
}

std::vector<std::string> read_schedule_lists(const std::string& path) {
  std::vector<std::string> ranks;
  if (path.ends_with(".json")) {
    const JsonReader root = JsonReader::load(path);
    root.only({"ranks"});
    for (const JsonReader& rank : root.at("ranks").elements()) ranks.push_back(rank.as_string());
  } else {
    std::istringstream lines(read_file(path));
    for (std::string line; std::getline(lines, line);)
      if (line.find_first_not_of(" \t\r,") != std::string::npos && line.front() != '#') ranks.push_back(line);
  }
  if (ranks.empty()) throw Error(path, "", "no action", "one line of actions per pipeline rank");
  for (std::string& rank : ranks) std::ranges::replace(rank, ';', '&');  // of a cell, "(0F1;3B0)OVERLAP_F_B"
  return ranks;
}

}  // namespace foreshard
