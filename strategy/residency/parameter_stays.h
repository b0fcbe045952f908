// Which rule says when parameters that are cut or away are on the device, and the places that their stays take.
//
//   moment   0    1    2    3    4    5
//   a        [====]              [====]     place 0
//   b             [====]    [====]          place 0, then 1: the lowest that is free
//   c             [==============]          place 1
#pragma once

#include <variant>
#include <vector>

#include "strategy/residency/block_residency.h"
#include "strategy/residency/module_residency.h"
#include "strategy/residency/offload_timing.h"

namespace foreshard {

// Chunks of whole layers that may stay on the device while they are idle (chunk_residency.h): a fixed share of them, or what a budget leaves.
struct ChunkRule {
  std::int64_t chunk = 0;   // elements; 0: the size with the least padding, as Gemini searches it
  double kept = 0;          // share of all elements that may be idle on the device
  double cap_ratio = 0;     // more than 0: not a share, but a budget. Share of the device that the whole plan may take
  std::int64_t budget = 0;  // ... which leaves so many elements to chunks; 0: not known yet, no chunk stays

  // Of a device that holds `others` beside chunks (traced_budget).
  std::int64_t budget_of(Bytes device, Bytes others, Bytes element) const;
};

// Regions of whole layers that stay from the forward to the backward, or are freed and fetched again beside the backward of a later region
// (plan_offload.h). Without choices, every layer is a region, and comes for its backward when that begins.
struct RegionRule {
  int window = 0;                          // of OffloadSearch
  std::vector<int> region_of_layer = {};   // [layer of the chunk]
  std::vector<RegionChoice> choices = {};  // [region]
  bool operator==(const RegionRule&) const = default;
};

struct ParameterStays {
  std::variant<BlockRule, ModuleRule, ChunkRule, RegionRule> rule = BlockRule{};
  // Every place has the size of the largest unit, and a transfer begins as soon as its place is free. False: a place has the size of its
  // unit, and a transfer begins with its moment, so that what is there at once is the residency's.
  bool one_size = true;

  // A unit may be on the device from its forward to its backward.
  bool keeps() const;
};

// The units of the rule: each layer by itself, regions of layers, or chunks of as many whole layers in order as fit (lay_chunks; what is
// left of a chunk takes no memory and is not moved).
struct LayerUnits {
  std::vector<ParameterUnit> units = {};
  std::vector<int> of_layer = {};
};
LayerUnits units_of_layers(const ParameterStays& stays, const std::vector<ParameterUnit>& layers);

// A budget that is known has room for the largest unit.
Residency residency_of(const ParameterStays& stays, const std::vector<ParameterUnit>& units, const std::vector<UnitUse>& uses);

// Places for intervals of moments, among those of equal size the lowest that is free (left-edge): never more than lie there at once.
struct Places {
  struct Size {
    std::int64_t elements = 0;
    int places = 0;
  };
  struct Place {
    int size = 0, place = 0;
  };
  std::vector<Size> sizes = {};     // rising
  std::vector<Place> of_stay = {};  // [stay]
};
Places places_of_stays(const std::vector<ParameterUnit>& units, const Residency& residency, bool one_size);

}  // namespace foreshard
