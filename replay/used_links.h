// Used links: those that some flow crosses, in dense numbers, and which of them can limit anybody.
#pragma once

#include <cstdint>
#include <vector>

#include "core/network/network.h"
#include "replay/flows.h"

namespace foreshard::player {

struct UsedLinks {
  std::vector<LinkId> ids = {};
  std::vector<double> capacity = {};       // bytes per second
  std::vector<char> limits = {};           // it can be full while no others that imply it are
  std::vector<std::int32_t> crossed = {};  // Flows::all_links in dense numbers
  int count() const { return static_cast<int>(ids.size()); }
};

// Throws Error when a bandwidth is not above zero.
//
// A link does not limit when everything on it comes straight from (or goes straight on to) other links that together are no
// wider: then those are full before it is. So the trunk of a leaf switch without oversubscription falls away, and with it the
// difference between ranks at and away from the border of a leaf group; of links in a row the narrowest stays.
//   Every entry of L in the route of a flow is matched with the entry just before it, which has the same rate, and no entry
//   twice. Hence load(L) <= sum of load(P) <= sum of capacity(P), over the distinct links P found before entries of L.
// The P are narrower than L (or come first, when there is one equally wide), so no link is its own reason.
UsedLinks used_links(const Network& network, const Flows& flows);

}  // namespace foreshard::player
