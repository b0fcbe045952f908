// Patterns: what the instructions of a plan ask of the network, as small numbers that hold for every rank of a role.
// There are a handful of them, however many instructions and ranks a plan has: folding and playing both work on
// patterns.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/network/network.h"
#include "core/plan/plan.h"

namespace foreshard::player {

struct CopyPattern {
  Endpoint end = Endpoint::HostMemory;
  bool to_device = false;
  bool host_only = false;  // between host memory and NVMe: only the links of the drives and of the memory
  bool operator==(const CopyPattern&) const = default;
};

// What one instruction uses; -1: nothing of that sort.
struct InstructionUse {
  std::int32_t to = -1, from = -1;  // peers
  std::int32_t collective = -1;
  bool copy = false;  // its CopyPattern depends on the role's buffers: copy_pattern()
  bool operator==(const InstructionUse&) const = default;
};

struct Patterns {
  std::vector<Peer> peers = {};              // distinct and reduced (core/plan/program.h)
  std::vector<Collective> collectives = {};  // distinct but for their bytes
  std::vector<int> links_like = {};          // [collective]: the first one that crosses the same links ...
  std::vector<double> volume = {};           // ... and how many times its bytes this one carries
  std::vector<CopyPattern> copies = {};
  std::vector<std::vector<InstructionUse>> uses = {};  // [segment][instruction]; empty: no role issues the segment
  std::vector<std::vector<SegmentId>> segments = {};   // [role]: those it issues
  std::vector<std::vector<int>> slots = {};            // [role]: those of the slots below that it uses, ascending

  // A rank has one slot per pattern: what it sends to, receives from, takes part in, copies.
  int slot_count() const { return 2 * static_cast<int>(peers.size()) + static_cast<int>(collectives.size() + copies.size()); }
  int to_slot(int peer) const { return peer; }
  int from_slot(int peer) const { return static_cast<int>(peers.size()) + peer; }
  int collective_slot(int collective) const { return 2 * static_cast<int>(peers.size()) + collective; }
  int copy_slot(int copy) const { return 2 * static_cast<int>(peers.size()) + static_cast<int>(collectives.size()) + copy; }
};

// The plan must have passed check_numbers (sim/validate).
Patterns find_patterns(const Plan& plan);

// -1: stays on the device.
int copy_pattern(const Patterns& patterns, const Role& role, const Instruction& instruction);

}  // namespace foreshard::player
