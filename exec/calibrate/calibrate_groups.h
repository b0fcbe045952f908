// Which groups of ranks `calibrate --collectives` measures, and over which class of links each of them communicates.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/profile/profile_collectives.h"

namespace foreshard {

// Where a rank is. Of GPUs also the bus address, those that its process sees, and those of them that it reaches by NVLink.
struct RankSeat {
  std::string node = {}, gpu = {};  // no gpu: the host
  std::vector<std::string> sees = {}, nvlinks = {};
  bool operator==(const RankSeat&) const = default;
};

// One line; to send it to other processes. Reading throws DeviceError for what is none.
std::string to_line(const RankSeat& seat);
RankSeat seat_of_line(const std::string& line);

struct MeasuredGroup {
  MeasuredLink link = MeasuredLink::Process;
  int nodes = 1;
  std::vector<RankId> members = {};
  bool operator==(const MeasuredGroup&) const = default;
};

// [rank] -> groups, the first rank being in each but for those of a class of links that it has no part in:
//   inside a node   the first 2, 4, 8, ... ranks of the first node, and all of them; two ranks of each class of links that these leave out
//   between nodes   2, 4, ... and all nodes with one rank each, and with as many ranks as the smallest node has
// `threads`: ranks of the host are threads of one process. `inside`: the class of links inside a node, where the seats need not or cannot tell.
// Throws Error for GPUs that do not see each other, when `inside` is not given.
std::vector<MeasuredGroup> groups_to_measure(const std::vector<RankSeat>& seats, bool threads,
                                             std::optional<MeasuredLink> inside = {});

// Boot of the system that this process runs on: the same in all containers of a machine. `variable`: FORESHARD_NODE goes before it.
std::string this_node(const char* variable);

}  // namespace foreshard
