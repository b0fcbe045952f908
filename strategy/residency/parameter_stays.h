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

namespace foreshard {

struct ParameterStays {
  std::variant<BlockRule, ModuleRule> rule = BlockRule{};
  // Every place has the size of the largest unit, and a transfer begins as soon as its place is free. False: a place has the size of its
  // unit, and a transfer begins with its moment, so that what is there at once is the residency's.
  bool one_size = true;

  // A unit may be on the device from its forward to its backward.
  bool keeps() const;
};

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
