// How one rank communicates with the others: collectives of groups and exchanges between two ranks, made ready before the first run.
//
// Ranks meet in issue order: the n-th collective that a rank makes of a group meets the n-th of every other member, the n-th
// send with a (peer, tag) meets the n-th receive there. Sums are taken in the order of the group's members, so they are the
// same bits on every rank and in every run.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/plan/plan.h"
#include "exec/device/device.h"

namespace foreshard {

// Memory that a communication touches.
struct MemoryRange {
  std::byte* data = nullptr;
  Bytes bytes = {};
  DType dtype = DType::F32;
};

// Of n members, each part is bytes / n. All-reduce, all-to-all, broadcast and reduce move `bytes`; a reduce-scatter reads
// `bytes` and writes a part, an all-gather the other way round. In place (both begin at the same address): the part is the own
// one of the full tensor, at member * bytes / n.
// Attributes: "max" (instead of the sum), "mean" (sum divided by n), "accumulate" (added to what the output holds).
struct CollectiveCall {
  Collective what = {};
  std::vector<RankId> members = {};  // in group order
  std::int64_t sequence = 0;         // of the group's collectives in a run
  MemoryRange from = {}, to = {};
  std::string where = {};  // names the instruction in errors
};

inline std::string bytes_text(Bytes bytes) { return std::to_string(bytes.value) + " bytes"; }

struct ExchangeCall {
  RankId to = {}, from = {};  // invalid: does not send, does not receive
  std::string tag = {};
  std::int64_t sent = 0, received = 0;  // sequence numbers of this (peer, tag) in a run
  MemoryRange send = {}, receive = {};
  std::string where = {};
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  // Throw Error when the sides do not agree (kind, bytes, number of members) as far as they are known.
  virtual std::unique_ptr<StreamTask> collective(const CollectiveCall& call) = 0;
  virtual std::unique_ptr<StreamTask> exchange(const ExchangeCall& call) = 0;
};

// Throws Error unless the operands are large enough and can be cut.
void check_call(const CollectiveCall& call);

}  // namespace foreshard
