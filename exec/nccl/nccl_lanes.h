// Which communicator carries which message. The operations of one NCCL communicator follow each other on the GPU whatever their streams, so a send that
// no receive was posted for yet would block the receive that its taker waits for: messages that the plan lets pass each other need communicators of their own.
//
//   lane   what one rank sends to another under one tag: both ends issue it in one order, so it may be serial. A communicator of two
//   ring   tags under which some rank sends and receives in one step: one group call of one communicator, that of all ranks
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/base/ids.h"

namespace foreshard::gpu {

struct Lane {
  RankId from = {}, to = {};
  std::string tag = {};
  auto operator<=>(const Lane&) const = default;
  bool has(RankId rank) const { return rank == from || rank == to; }
};

struct Messages {
  std::set<Lane> lanes = {};
  std::set<std::string> rings = {};  // tags

  // Lanes of rings are none.
  std::set<Lane> apart() const;
  // One line per entry; `add` throws DeviceError for text that is none.
  std::string text() const;
  void add(const std::string& text);
};

// Splitting a communicator gives each rank one part at most: lanes of one round have no rank in common.
std::vector<std::vector<Lane>> rounds_of(const std::set<Lane>& lanes);

}  // namespace foreshard::gpu
