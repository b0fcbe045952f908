// Trace: what ran when, simulated or measured. Times are integer nanoseconds from the start of the run. A predicted span and the measured
// one have the same (class or rank, action, instruction). The granularity of a trace says how many instructions a span covers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/base/units.h"

namespace foreshard {

enum class Origin : std::uint8_t { Simulated, Measured };

// A run of `count` instructions of one stream of one action; `instruction` is the first. At granularity "op" count is 1. Inside a span the
// instructions share its length in proportion to their isolated times, without gaps.
struct Span {
  ClassId who = {};  // index into Trace::classes
  std::int32_t action = 0;
  std::int32_t instruction = 0;
  std::int32_t count = 1;
  StreamId stream = {};
  Nanoseconds ready = {};  // all that it waits for on this rank has ended; a collective or exchange then waits for other ranks
  Nanoseconds begin = {}, end = {};
  bool operator==(const Span&) const = default;
};

// Ranks that behave the same, simulated by one representative (folding). Without folding, one class per rank.
struct RankClass {
  RoleId role = {};
  std::vector<RankId> members = {};
  bool operator==(const RankClass&) const = default;
};

// A class of links of the cluster that behave the same, and the load of one of them during the run.
struct LinkClass {
  std::string name = {};           // "node NIC up", with the name of the first link
  std::vector<LinkId> links = {};  // members in the expanded cluster
  BytesPerSecond bandwidth = {};
  double bytes = 0;   // that crossed one link of the class, with Cost::wire_factor
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
