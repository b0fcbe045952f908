// Used links: the links that some flow crosses, numbered from 0, and which of them can limit a flow.
#pragma once

#include <cstdint>
#include <vector>

#include "core/network/network.h"
#include "replay/flows.h"

namespace foreshard::player {

struct UsedLinks {
  std::vector<LinkId> ids = {};
  std::vector<double> capacity = {};       // bytes per second
  std::vector<char> limits = {};           // it can be the first link of its flows to be full
  std::vector<std::int32_t> crossed = {};  // Flows::all_links, with these numbers
  int count() const { return static_cast<int>(ids.size()); }
};

// Throws Error when a bandwidth is not above zero.
//
// A link L does not limit when all its traffic comes directly from (or goes directly on to) other links P whose capacities together are at
// most L's: then these are full before L is. So the uplinks of a leaf switch without oversubscription never limit, and ranks at the border
// of a leaf group are no different from others. Of links in a row only the narrowest limits.
//   Proof: every entry of L in the route of a flow is matched with the entry just before it, which has the same rate, and no entry
//   twice. Hence load(L) <= sum of load(P) <= sum of capacity(P), over the distinct links P found before entries of L.
// The P are narrower than L (of equally wide links, the one with the lower number counts as narrower), so the argument is not circular.
UsedLinks used_links(const Network& network, const Flows& flows);

}  // namespace foreshard::player
