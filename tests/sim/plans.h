// Plans and clusters small enough to follow on paper.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/cluster/cluster.h"
#include "core/plan/plan.h"
#include "sim/simulate.h"

namespace foreshard::playing {

constexpr std::int64_t kUs = 1000, kMs = 1'000'000;  // nanoseconds

// An instruction and what it costs.
struct Item {
  Instruction what = {};
  Cost cost = {};
  Item after(std::vector<std::int32_t> earlier) && { return what.after = std::move(earlier), std::move(*this); }
  Item waits(EventId event, Slot slot = {}) && { return what.waits.push_back({event, slot}), std::move(*this); }
  Item records(EventId event, Slot slot = {}) && { return what.records.push_back({event, slot}), std::move(*this); }
  Item layer(int id) && { return what.layer = {id}, std::move(*this); }
  Item wire(double factor) && { return cost.wire_factor = factor, std::move(*this); }
  Item takes(double sm_share) && { return cost.sm_share = sm_share, std::move(*this); }
};
Item compute(int stream, std::int64_t ns);
Item host(int stream, std::int64_t ns);
Item mark(int stream);
Item send(int stream, Peer to, std::int64_t bytes, std::int64_t alpha_ns = 0, const std::string& tag = "t");
Item receive(int stream, Peer from, std::int64_t bytes, std::int64_t alpha_ns = 0, const std::string& tag = "t");
Item both(int stream, Peer to, Peer from, std::int64_t bytes, std::int64_t alpha_ns = 0, const std::string& tag = "t");
Item collective(int stream, CollectiveKind kind, GroupId group, std::int64_t bytes, std::int64_t alpha_ns = 0);
Item copy(int stream, int from_buffer, int to_buffer, std::int64_t bytes, std::int64_t alpha_ns = 0);

// Builds a plan for GPUs of kind "X" (the one of tests/core/network_clusters.h).
class PlanOf {
 public:
  PlanOf() { plan_.costs.push_back({.device_kind = "X"}); }
  AxisId axis(DenseKind kind, int size);
  RoleId role(const std::string& name, std::vector<AxisId> axes, int streams = 4, int events = 0, int slots = 1);
  GroupId group(std::vector<AxisId> over, std::vector<RoleId> roles = {});
  BufferId buffer(RoleId role, Space space);
  SegmentId segment(const std::string& name, std::vector<Item> items, int params = 0);
  void issue(RoleId role, SegmentId segment, std::vector<std::int32_t> args = {});
  void issue(RoleId role, std::vector<Item> items) { issue(role, segment("s", std::move(items))); }
  Plan& plan() { return plan_; }

 private:
  Plan plan_ = {};
};

// One role of `ranks` ranks on one data axis.
struct Line {
  PlanOf of = {};
  AxisId axis = {};
  RoleId role = {};
  GroupId all = {};
  explicit Line(int ranks, int streams = 4, int events = 0);
  Peer next(int shift = 1) const { return {0, {axis}, shift}; }
};

// The span of (rank, action, instruction); fails the test when there is none.
Span span_of(const Result& result, int rank, int action, int instruction);
double milliseconds(Nanoseconds time);

}  // namespace foreshard::playing
