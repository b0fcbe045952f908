// Which NCCL communicator carries which message. The operations of a communicator run one after the other on the GPU, whatever their
// streams. So a send whose receive is not posted yet would block a later receive on the same communicator, which the other rank may be
// waiting for. Messages that the plan allows to overtake each other therefore need separate communicators.
//
//   lane   all messages from one rank to another with one tag. Both ranks issue them in the same order, so they may be serial.
//          A lane has a communicator of these two ranks.
//   ring   all messages with a tag under which some rank sends and receives in one step (an exchange around a ring).
//          Each exchange is a group call on the communicator of all ranks.
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
  std::set<std::string> rings = {};  // the tags of rings

  std::set<Lane> apart() const;  // the lanes whose tags are not those of rings: these need a communicator
  // As text, one line per entry; `add` adds the entries of a text. It throws DeviceError for invalid text.
  std::string text() const;
  void add(const std::string& text);
};

// Distributes the lanes over rounds. Each round is one split of the world communicator, in which a rank gets at most one new communicator;
// so the lanes of a round have no rank in common.
std::vector<std::vector<Lane>> rounds_of(const std::set<Lane>& lanes);

}  // namespace foreshard::gpu
