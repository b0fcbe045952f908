// Which groups of ranks `calibrate --collectives` measures, and over which class of links each of them communicates.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/profile/profile_collectives.h"

namespace foreshard {

// Where a rank runs. GPUs are named by their PCI bus addresses.
struct RankLocation {
  std::string node = {}, gpu = {};                   // node: this_node() of its process; gpu: "" if it runs on the CPU
  std::vector<std::string> sees = {}, nvlinks = {};  // GPUs visible to its process; those of them that its GPU has an NVLink to
  bool operator==(const RankLocation&) const = default;
};

// A location as one line of text, to send it to other processes, and back. location_of_line throws DeviceError for any other text.
std::string to_line(const RankLocation& location);
RankLocation location_of_line(const std::string& line);

// A group of ranks that is measured, with the slowest class of links that its collectives use.
struct MeasuredGroup {
  MeasuredLink link = MeasuredLink::Process;
  int nodes = 1;  // number of nodes that the members are on
  std::vector<RankId> members = {};
  bool operator==(const MeasuredGroup&) const = default;
};

// Chooses the groups to measure among ranks at these locations (`locations`: [rank]):
//   inside a node   the first 2, 4, 8, ... ranks of the first node, and all ranks of it;
//                   for each class of links that is not yet among these, one pair of ranks
//   between nodes   the first 2, 4, 8, ... nodes, and all nodes: once with one rank of each node,
//                   once with as many ranks of each node as the smallest node has
// `threads`: ranks on the CPU are threads of one process, else processes. `inside`: the class of links inside a node, if the caller knows
// it; else it is derived from the locations. Throws Error if that is impossible, because a process does not see the GPU of another.
std::vector<MeasuredGroup> groups_to_measure(const std::vector<RankLocation>& locations, bool threads,
                                             std::optional<MeasuredLink> inside = {});

// Identifies the machine of this process: `variable` (the value of FORESHARD_NODE) if it is set, else the boot id of the Linux kernel,
// which is the same in all containers of a machine, else the host name.
std::string this_node(const char* variable);

}  // namespace foreshard
