#include <gtest/gtest.h>

#include <algorithm>

#include "tests/sim/plans.h"

namespace foreshard::playing {
namespace {

Item item(decltype(Instruction::what) what, int stream, std::int64_t ns, const char* name) {
  return {{.name = name, .what = std::move(what), .stream = {stream}}, {.busy = {ns}}};
}

}  // namespace

Item compute(int stream, std::int64_t ns) { return item(Compute{}, stream, ns, "compute"); }
Item host(int stream, std::int64_t ns) { return item(HostCompute{}, stream, ns, "host"); }
Item mark(int stream) { return item(Mark{}, stream, 0, "mark"); }

Item send(int stream, Peer to, std::int64_t bytes, std::int64_t alpha_ns, const std::string& tag) {
  return item(Exchange{.to = to, .tag = tag, .bytes = {bytes}}, stream, alpha_ns, "send");
}
Item receive(int stream, Peer from, std::int64_t bytes, std::int64_t alpha_ns, const std::string& tag) {
  return item(Exchange{.from = from, .tag = tag, .bytes = {bytes}}, stream, alpha_ns, "receive");
}
Item both(int stream, Peer to, Peer from, std::int64_t bytes, std::int64_t alpha_ns, const std::string& tag) {
  return item(Exchange{.to = to, .from = from, .tag = tag, .bytes = {bytes}}, stream, alpha_ns, "exchange");
}
Item collective(int stream, CollectiveKind kind, GroupId group, std::int64_t bytes, std::int64_t alpha_ns) {
  return item(Collective{.kind = kind, .group = group, .bytes = {bytes}}, stream, alpha_ns, "collective");
}
Item copy(int stream, int from_buffer, int to_buffer, std::int64_t bytes, std::int64_t alpha_ns) {
  Item made = item(Copy{.bytes = {bytes}}, stream, alpha_ns, "copy");
  made.what.reads.push_back({.buffer = {from_buffer}});
  made.what.writes.push_back({.buffer = {to_buffer}});
  return made;
}

AxisId PlanOf::axis(DenseKind kind, int size) {
  plan_.axes.push_back({.name = axis_name(kind), .dense = kind, .size = size});
  return {static_cast<std::int32_t>(plan_.axes.size()) - 1};
}

RoleId PlanOf::role(const std::string& name, std::vector<AxisId> axes, int streams, int events, int slots) {
  Role role{.name = name, .device_kind = "X", .axes = std::move(axes)};
  for (int s = 0; s < streams; ++s) role.streams.push_back({"stream" + std::to_string(s), StreamKind::Compute});
  for (int e = 0; e < events; ++e) role.events.push_back({"event" + std::to_string(e), slots});
  plan_.roles.push_back(std::move(role));
  return {static_cast<std::int32_t>(plan_.roles.size()) - 1};
}

GroupId PlanOf::group(std::vector<AxisId> over, std::vector<RoleId> roles) {
  plan_.groups.push_back({"group" + std::to_string(plan_.groups.size()), std::move(roles), std::move(over)});
  return {static_cast<std::int32_t>(plan_.groups.size()) - 1};
}

BufferId PlanOf::buffer(RoleId role, Space space) {
  std::vector<Buffer>& buffers = plan_.roles[role.index()].buffers;
  buffers.push_back({.name = "buffer", .space = space, .resident = true});
  return {static_cast<std::int32_t>(buffers.size()) - 1};
}

SegmentId PlanOf::segment(const std::string& name, std::vector<Item> items, int params) {
  Segment segment{.name = name};
  for (int p = 0; p < params; ++p) segment.params.push_back({"p" + std::to_string(p), ParamKind::Slot});
  std::vector<Cost> costs;
  for (Item& item : items) {
    segment.instructions.push_back(std::move(item.what));
    costs.push_back(item.cost);
  }
  plan_.segments.push_back(std::move(segment));
  plan_.costs[0].by_segment.push_back(std::move(costs));
  return {static_cast<std::int32_t>(plan_.segments.size()) - 1};
}

void PlanOf::issue(RoleId role, SegmentId segment, std::vector<std::int32_t> args) {
  plan_.roles[role.index()].actions.push_back({segment, std::move(args), {}});
}

Line::Line(int ranks, int streams, int events) {
  axis = of.axis(DenseKind::Data, ranks);
  role = of.role("worker", {axis}, streams, events);
  all = of.group({axis});
}

Span span_of(const Result& result, int rank, int action, int instruction) {
  for (const Span& span : result.trace.spans) {
    const std::vector<RankId>& members = result.trace.classes[span.who.index()].members;
    if (span.action == action && span.instruction == instruction &&
        std::find(members.begin(), members.end(), RankId{rank}) != members.end())
      return span;
  }
  ADD_FAILURE() << "no span of rank " << rank << ", action " << action << ", instruction " << instruction;
  return {};
}

double milliseconds(Nanoseconds time) { return static_cast<double>(time.value) / static_cast<double>(kMs); }

}  // namespace foreshard::playing
