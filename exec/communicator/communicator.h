// How one rank communicates with the others: collectives of groups and exchanges between two ranks. Their tasks are made before the first
// run.
//
// Calls are matched in issue order: the n-th collective that a rank issues on a group with the n-th of every other member, the n-th send
// with a (peer, tag) with the n-th receive of the peer with this tag. Sums are taken in the order of the group's members, so they have the
// same bits on every rank and in every run.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/plan/plan.h"
#include "exec/device/device.h"

namespace foreshard {

// Memory that a communication reads or writes.
struct MemoryRange {
  std::byte* data = nullptr;
  Bytes bytes = {};
  DType dtype = DType::F32;
};

// A collective as one rank calls it. what.bytes is the size of the full tensor; a part of n members has bytes / n.
//   all-reduce, all-to-all, broadcast, reduce   every member reads and writes the full tensor; the root is member 0
//   reduce-scatter                              reads the full tensor, writes a part
//   all-gather                                  reads a part, writes the full tensor
// In place (`from` and `to` begin at the same address), the part of member m is at m * bytes / n of the full tensor. An all-to-all cannot
// be in place.
struct CollectiveCall {
  Collective what = {};
  std::vector<RankId> members = {};  // in group order
  std::int64_t sequence = 0;         // number of this collective among those of its group in a run, from 0
  MemoryRange from = {}, to = {};
  std::string where = {};  // names the instruction in errors
};

inline std::string bytes_text(Bytes bytes) { return std::to_string(bytes.value) + " bytes"; }

// A point-to-point exchange as one rank calls it: it sends `send` to rank `to` and receives `receive` from rank `from` at the same time
// (MPI_Sendrecv).
struct ExchangeCall {
  RankId to = {}, from = {};            // an invalid rank: it does not send, or does not receive
  std::string tag = {};                 // matches a send with its receive, as an MPI tag
  std::int64_t sent = 0, received = 0;  // number of this message among those with the same peer and tag in a run
  MemoryRange send = {}, receive = {};
  std::string where = {};  // names the instruction in errors
};

// Communication of one rank with the others.
class Communicator {
 public:
  virtual ~Communicator() = default;
  // Each makes a task that performs the communication each time it is run. They throw Error for operands that do not fit, or if a matching
  // call of another rank of this process, where it is already known, differs in kind, size or number of members.
  virtual std::unique_ptr<StreamTask> collective(const CollectiveCall& call) = 0;
  virtual std::unique_ptr<StreamTask> exchange(const ExchangeCall& call) = 0;
};

// Throws Error unless the operands are large enough, have the same number format, which can be reduced if the collective reduces, and the
// bytes divide into parts of whole elements.
void check_call(const CollectiveCall& call);

}  // namespace foreshard
