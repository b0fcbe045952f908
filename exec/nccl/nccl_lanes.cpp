#include "exec/nccl/nccl_lanes.h"

#include <sstream>

#include "core/base/error.h"

namespace foreshard::gpu {

std::set<Lane> Messages::apart() const {
  std::set<Lane> all;
  for (const Lane& lane : lanes)
    if (!rings.contains(lane.tag)) all.insert(lane);
  return all;
}

std::string Messages::text() const {
  std::ostringstream out;
  for (const Lane& lane : lanes) out << lane.from.value << " " << lane.to.value << " " << lane.tag << "\n";
  for (const std::string& tag : rings) out << "-1 -1 " << tag << "\n";
  return out.str();
}

void Messages::add(const std::string& text) {
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    Lane lane;
    if (!(words >> lane.from.value >> lane.to.value) || words.get() != ' ')
      throw DeviceError("NCCL", "a process told messages that are none: \"" + line + "\"");
    std::getline(words, lane.tag);
    if (lane.from.valid())
      lanes.insert(lane);
    else
      rings.insert(lane.tag);
  }
}

// Greedy: each round takes, in order, every remaining lane both of whose ranks are free. It gives as many rounds as the busiest rank has
// lanes, or a few more.
std::vector<std::vector<Lane>> rounds_of(const std::set<Lane>& lanes) {
  std::vector<std::vector<Lane>> rounds;
  std::set<Lane> left = lanes;
  while (!left.empty()) {
    std::set<RankId> busy;
    std::vector<Lane>& round = rounds.emplace_back();
    for (auto lane = left.begin(); lane != left.end();) {
      const bool free = !busy.contains(lane->from) && !busy.contains(lane->to);
      if (free) busy.insert({lane->from, lane->to}), round.push_back(*lane);
      lane = free ? left.erase(lane) : std::next(lane);
    }
  }
  return rounds;
}

}  // namespace foreshard::gpu
