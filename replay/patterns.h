// Patterns: the distinct uses of the network by the instructions of a plan: peers, collectives and kinds of copies. A pattern is a small
// number that means the same for every rank of a role. There are a handful of them however many instructions and ranks a plan has, and
// both folding and the player work on them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/network/network.h"
#include "core/plan/plan.h"

namespace foreshard::player {

struct CopyPattern {
  Endpoint end = Endpoint::HostMemory;  // the end that is not the device
  bool to_device = false;               // else from it; if host_only: from the drives to host memory
  bool host_only = false;               // between host memory and NVMe drives: crosses only their links
  bool operator==(const CopyPattern&) const = default;
};

// The patterns that one instruction uses, as indices into Patterns; -1: none.
struct InstructionUse {
  std::int32_t to = -1, from = -1;  // peers
  std::int32_t collective = -1;
  bool copy = false;  // it copies; copy_pattern() gives the pattern, which depends on the role's buffers
  bool operator==(const InstructionUse&) const = default;
};

struct Patterns {
  std::vector<Peer> peers = {};              // distinct and reduced (core/plan/program.h)
  std::vector<Collective> collectives = {};  // distinct, sizes aside
  std::vector<int> links_like = {};          // [collective]: the first collective that crosses the same links
  std::vector<double> volume = {};           // [collective]: bytes that it puts on them, over the bytes of that first one
  std::vector<CopyPattern> copies = {};
  std::vector<std::vector<InstructionUse>> uses = {};  // [segment][instruction]; empty: no role issues the segment
  std::vector<std::vector<SegmentId>> segments = {};   // [role]: the segments that it issues
  std::vector<std::vector<int>> slots = {};            // [role]: the slots that it uses, ascending

  // Every rank has one slot per pattern and direction: to a peer, from a peer, in a collective, for a kind of copy.
  int slot_count() const { return 2 * static_cast<int>(peers.size()) + static_cast<int>(collectives.size() + copies.size()); }
  int to_slot(int peer) const { return peer; }
  int from_slot(int peer) const { return static_cast<int>(peers.size()) + peer; }
  int collective_slot(int collective) const { return 2 * static_cast<int>(peers.size()) + collective; }
  int copy_slot(int copy) const { return 2 * static_cast<int>(peers.size()) + static_cast<int>(collectives.size()) + copy; }
};

// The plan must have passed check_playable (replay/validate.h).
Patterns find_patterns(const Plan& plan);

// Index into Patterns::copies of a copy instruction; -1: it crosses no link (inside the device, or inside host memory).
int copy_pattern(const Patterns& patterns, const Role& role, const Instruction& instruction);

}  // namespace foreshard::player
