#include "strategy/residency/parameter_stays.h"

#include <algorithm>

namespace foreshard {

bool ParameterStays::keeps() const {
  if (const auto* blocks = std::get_if<BlockRule>(&rule)) return blocks->keep_after_forward;
  const auto& modules = std::get<ModuleRule>(rule);
  return modules.reuse_distance > 0 || modules.prefetch > 0;
}

Residency residency_of(const ParameterStays& stays, const std::vector<ParameterUnit>& units, const std::vector<UnitUse>& uses) {
  if (const auto* blocks = std::get_if<BlockRule>(&stays.rule)) return block_residency(units, uses, *blocks);
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
  std::vector<std::vector<int>> left(sizes.size());  // [size][place]: when its last stay leaves
  for (const Stay& stay : residency.stays) {
    const auto size = static_cast<std::size_t>(std::lower_bound(sizes.begin(), sizes.end(), elements(stay)) - sizes.begin());
    const auto free = std::find_if(left[size].begin(), left[size].end(), [&](int moment) { return moment < stay.brought; });
    result.of_stay.push_back({static_cast<int>(size), static_cast<int>(free - left[size].begin())});
    if (free == left[size].end())
      left[size].push_back(stay.left);
    else
      *free = stay.left;
    result.sizes[size].places = static_cast<int>(left[size].size());
  }
  return result;
}

}  // namespace foreshard
