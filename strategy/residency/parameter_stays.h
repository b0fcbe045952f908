// The rule that says when sharded or offloaded parameters are on the device as a whole, and the buffer slots (here: places) that their
// stays take. The units a, b, c:
//
//   moment   0    1    2    3    4    5
//   a        [====]              [====]     moment 0: place 0,  moment 4: place 0
//   b             [====]    [====]          moment 1: place 0,  moment 3: place 0
//   c             [==============]          moments 1 to 3: place 1
#pragma once

#include <variant>
#include <vector>

#include "strategy/residency/block_residency.h"
#include "strategy/residency/module_residency.h"
#include "strategy/residency/offload_timing.h"

namespace foreshard {

// Chunks of whole layers, some of which stay on the device while they are idle (chunk_residency.h): a fixed share, or as many as a budget
// has room for.
struct ChunkRule {
  std::int64_t chunk = 0;  // elements of a chunk; 0: the size with the least padding, by Gemini's search (least_padding_chunk)
  double kept = 0;         // fixed share: the part of all elements that may stay while idle
  // More than 0: a budget instead of a share. The share of the device's memory that the whole plan may take, and the elements of chunks
  // that this leaves room for (0: not known yet, then no idle chunk stays).
  double cap_ratio = 0;
  std::int64_t budget = 0;

  // The budget of a device with `others` bytes beside the chunks, for elements of `element` bytes (traced_budget).
  std::int64_t budget_of(Bytes device, Bytes others, Bytes element) const;
};

// Regions of whole layers that stay from the forward to the backward, or are freed and fetched again beside the backward of a later region
// (plan_offload.h). Without choices, every layer is a region, and is fetched when its backward begins.
struct RegionRule {
  int window = 0;                          // of OffloadSearch
  std::vector<int> region_of_layer = {};   // [layer of the chunk]
  std::vector<RegionChoice> choices = {};  // [region]
  bool operator==(const RegionRule&) const = default;
};

struct ParameterStays {
  std::variant<BlockRule, ModuleRule, ChunkRule, RegionRule> rule = BlockRule{};
  // True: every place has the size of the largest unit, and a transfer begins as soon as its place is free. False: a place has the size of
  // its unit, and a transfer begins with its moment, so the units on the device at any moment are those of the residency.
  bool one_size = true;

  // Whether a unit may stay on the device from its forward to its backward.
  bool keeps() const;
};

// The units of the rule: single layers; regions of consecutive layers; for a ChunkRule, chunks of consecutive whole layers (lay_chunks, but
// padding takes no memory and is not transferred).
struct LayerUnits {
  std::vector<ParameterUnit> units = {};
  std::vector<int> of_layer = {};  // [layer]: its unit
};
LayerUnits units_of_layers(const ParameterStays& stays, const std::vector<ParameterUnit>& layers);

// The residency under the rule. A budget that is known must have room for the largest unit (asserted).
Residency residency_of(const ParameterStays& stays, const std::vector<ParameterUnit>& units, const std::vector<UnitUse>& uses);

// Assigns each stay a place: the lowest place of its size that is free from `brought` to `released_after` (left-edge algorithm), so there are as
// many places of a size as stays of that size overlap.
struct Places {
  struct Size {
    std::int64_t elements = 0;  // of a place of this size
    int places = 0;             // number of places of this size
  };
  struct Place {
    int size = 0, place = 0;  // index into sizes, number among the places of that size
  };
  std::vector<Size> sizes = {};     // ascending
  std::vector<Place> of_stay = {};  // [stay]
};
// `one_size`: all places have the size of the largest unit.
Places places_of_stays(const std::vector<ParameterUnit>& units, const Residency& residency, bool one_size);

}  // namespace foreshard
