#include "strategy/residency/parameter_stays.h"

#include <algorithm>
#include <numeric>

#include "core/base/error.h"
#include "strategy/residency/chunk_residency.h"
#include "strategy/residency/chunks.h"

namespace foreshard {

std::int64_t ChunkRule::budget_of(Bytes device, Bytes others, Bytes element) const {
  return traced_budget(device, cap_ratio, {others}, element.value).front();
}

bool ParameterStays::keeps() const {
  if (const auto* blocks = std::get_if<BlockRule>(&rule)) return blocks->keep_after_forward;
  if (std::holds_alternative<ChunkRule>(rule)) return true;  // at least the last chunk, whose backward follows its forward
  if (std::holds_alternative<RegionRule>(rule)) return true;
  const auto& modules = std::get<ModuleRule>(rule);
  return modules.reuse_distance > 0 || modules.prefetch > 0;
}

LayerUnits units_of_layers(const ParameterStays& stays, const std::vector<ParameterUnit>& layers) {
  LayerUnits found{.units = layers, .of_layer = std::vector<int>(layers.size())};
  std::iota(found.of_layer.begin(), found.of_layer.end(), 0);
  const auto* chunks = std::get_if<ChunkRule>(&stays.rule);
  const auto* regions = std::get_if<RegionRule>(&stays.rule);
  if (layers.empty() || (!chunks && (!regions || regions->region_of_layer.empty()))) return found;
  if (chunks) {
    const std::int64_t size = chunks->chunk > 0 ? chunks->chunk : std::max<std::int64_t>(1, least_padding_chunk(layers));
    found.of_layer = lay_chunks(layers, size).chunk_of;
  } else {
    FS_ASSERT(regions->region_of_layer.size() == layers.size());
    found.of_layer = regions->region_of_layer;
  }
  found.units.assign(static_cast<std::size_t>(found.of_layer.back()) + 1, {});
  for (std::size_t layer = 0; layer < layers.size(); ++layer)
    found.units[static_cast<std::size_t>(found.of_layer[layer])].elements += layers[layer].elements;
  for (std::size_t unit = 0; unit < found.units.size(); ++unit)
    found.units[unit].name = (chunks ? "chunk " : "region ") + std::to_string(unit);
  return found;
}

static Residency residency_of(const ChunkRule& rule, const std::vector<ParameterUnit>& units,
                              const std::vector<UnitUse>& uses) {
  if (rule.budget > 0) {
    auto planned = budget_residency(units, uses, {.budget = ElementCurve(uses.size(), rule.budget)});
    FS_ASSERT(std::holds_alternative<Residency>(planned));
    return std::get<Residency>(std::move(planned));
  }
  std::int64_t total = 0;
  for (const ParameterUnit& unit : units) total += unit.elements;
  return fixed_share_residency(units, uses, static_cast<std::int64_t>(rule.kept * static_cast<double>(total)));
}

// Without choices every region is fetched synchronously, but the last one, whose backward follows its forward.
static Residency residency_of(const RegionRule& rule, std::size_t units, const std::vector<UnitUse>& uses) {
  std::vector<RegionChoice> choices = rule.choices;
  if (choices.empty())
    for (int region = 0; region < static_cast<int>(units); ++region)
      choices.push_back({region + 1 < static_cast<int>(units) ? region : RegionChoice::kKept});
  return region_residency(choices, uses);
}

Residency residency_of(const ParameterStays& stays, const std::vector<ParameterUnit>& units, const std::vector<UnitUse>& uses) {
  if (const auto* blocks = std::get_if<BlockRule>(&stays.rule)) return block_residency(units, uses, *blocks);
  if (const auto* chunks = std::get_if<ChunkRule>(&stays.rule)) return residency_of(*chunks, units, uses);
  if (const auto* regions = std::get_if<RegionRule>(&stays.rule)) return residency_of(*regions, units.size(), uses);
  return module_residency(units, uses, std::get<ModuleRule>(stays.rule));
}

Places places_of_stays(const std::vector<ParameterUnit>& units, const Residency& residency, bool one_size) {
  const auto elements = [&](const Stay& stay) { return units[static_cast<std::size_t>(stay.unit)].elements; };
  std::vector<std::int64_t> sizes;
  for (const Stay& stay : residency.stays) sizes.push_back(elements(stay));
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  if (one_size && !sizes.empty()) sizes.erase(sizes.begin(), sizes.end() - 1);
  Places result;
  for (const std::int64_t size : sizes) result.sizes.push_back({size, 0});
  std::vector<std::vector<int>> left(sizes.size());  // [size][place]: the moment at whose end its last stay is released
  for (const Stay& stay : residency.stays) {
    const auto size = static_cast<std::size_t>(std::lower_bound(sizes.begin(), sizes.end(), elements(stay)) - sizes.begin());
    const auto free = std::find_if(left[size].begin(), left[size].end(), [&](int moment) { return moment < stay.brought; });
    result.of_stay.push_back({static_cast<int>(size), static_cast<int>(free - left[size].begin())});
    if (free == left[size].end())
      left[size].push_back(stay.released_after);
    else
      *free = stay.released_after;
    result.sizes[size].places = static_cast<int>(left[size].size());
  }
  return result;
}

}  // namespace foreshard
