// Trace: what ran when. Spans in integer nanoseconds from the start of the run; (class or rank, action, instruction) joins a
// predicted span with its measured twin.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/base/units.h"

namespace foreshard {

enum class Origin : std::uint8_t { Simulated, Measured };

// A run of `count` instructions of one stream of one action, beginning with instruction `instruction`. At granularity "op"
// count is 1. Merged instructions follow each other without a gap in their isolated times.
struct Span {
  ClassId who = {};  // index into Trace::classes
  std::int32_t action = 0;
  std::int32_t instruction = 0;
  std::int32_t count = 1;
  StreamId stream = {};
  Nanoseconds ready = {};  // everything on this rank it waits for is done (for a collective or exchange: it has arrived)
  Nanoseconds begin = {}, end = {};
  bool operator==(const Span&) const = default;
};

// Identical ranks, played by one representative. Unfolded: one class per rank.
struct RankClass {
  RoleId role = {};
  std::vector<RankId> members = {};
  bool operator==(const RankClass&) const = default;
};

// A class of links of the cluster and what crossed one of them during the run.
struct LinkClass {
  std::string name = {};           // "node NIC up", with the name of the first link
  std::vector<LinkId> links = {};  // members in the expanded cluster
  BytesPerSecond bandwidth = {};
  double bytes = 0;   // over one link of the class, wire bytes
  Seconds busy = {};  // time with at least one flow on it
  bool operator==(const LinkClass&) const = default;
};

struct Trace {
  Origin origin = Origin::Simulated;
  std::string plan_hash = {};
  Nanoseconds makespan = {};
  std::vector<RankClass> classes = {};
  std::vector<Span> spans = {};  // ordered by (who, stream, begin)
  std::vector<LinkClass> links = {};
  bool operator==(const Trace&) const = default;
};

}  // namespace foreshard
