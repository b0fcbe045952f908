#include "report/binding.h"

#include <algorithm>
#include <string>

#include "core/error.h"
#include "report/joints.h"
#include "report/meetings.h"

namespace foreshard {

namespace {

void require(bool good, std::size_t span, const char* field) {
  if (!good) throw Error("trace", "spans[" + std::to_string(span) + "]." + field, "an index out of range", "one of the plan");
}

void check_belongs(const Plan& plan, const Trace& trace) {
  for (std::size_t s = 0; s < trace.spans.size(); ++s) {
    const Span& span = trace.spans[s];
    require(span.who.valid() && span.who.index() < trace.classes.size(), s, "who");
    const RoleId role = trace.classes[span.who.index()].role;
    require(role.valid() && role.index() < plan.roles.size(), s, "who");
    const Role& program = plan.roles[role.index()];
    require(span.stream.valid() && span.stream.index() < program.streams.size(), s, "stream");
    require(span.action >= 0 && static_cast<std::size_t>(span.action) < program.actions.size(), s, "action");
    const SegmentId segment = program.actions[static_cast<std::size_t>(span.action)].segment;
    const std::size_t length = plan.segments[segment.index()].instructions.size();
    require(span.instruction >= 0 && static_cast<std::size_t>(span.instruction) < length, s, "instruction");
    require(span.count >= 1 && static_cast<std::size_t>(span.count) <= length, s, "count");
    const bool ordered =
        s == 0 || std::pair(trace.spans[s - 1].who, trace.spans[s - 1].stream) <= std::pair(span.who, span.stream);
    require(ordered, s, "who");
  }
}

// Plays the issue order of one class over its spans and notes, for each, the latest end among its local predecessors.
class LocalWalk {
 public:
  LocalWalk(const Plan& plan, const Trace& trace, const std::vector<SegmentJoints>& joints, Meetings& meetings,
            std::vector<std::int32_t>& before)
      : plan_(plan), trace_(trace), joints_(joints), meetings_(meetings), before_(before) {}

  void walk(ClassId who, std::int32_t first, std::int32_t last) {
    who_ = who;
    role_ = &plan_.roles[trace_.classes[who.index()].role.index()];
    lanes_.assign(role_->streams.size(), {});
    events_.assign(role_->events.size(), {});
    for (std::size_t e = 0; e < events_.size(); ++e) events_[e].assign(static_cast<std::size_t>(role_->events[e].slots), -1);
    for (std::int32_t s = first; s < last; ++s) {
      Lane& lane = lanes_[at(s).stream.index()];
      if (lane.next < 0) lane.next = s;
      lane.last = s + 1;
    }
    for (std::size_t a = 0; a < role_->actions.size(); ++a) visit(static_cast<std::int32_t>(a));
    for (Lane& lane : lanes_)
      while (lane.next >= 0 && lane.next < lane.last) open(lane);
  }

 private:
  struct Lane {
    std::int32_t next = -1, last = -1;  // spans of the class on this stream not yet opened
    std::int32_t newest = -1;           // what the next instruction of the stream comes after
    std::int32_t open = -1;             // the span opened last
  };

  const Span& at(std::int32_t span) const { return trace_.spans[static_cast<std::size_t>(span)]; }

  void open(Lane& lane) {
    lane.open = lane.next++;
    before_[static_cast<std::size_t>(lane.open)] = lane.newest;
    lane.newest = lane.open;
  }

  std::int32_t later(std::int32_t a, std::int32_t b) const { return a < 0 || (b >= 0 && at(b).end > at(a).end) ? b : a; }

  // The span that covers the instruction, -1 when the backend wrote none (a mark, say).
  std::int32_t reach(Lane& lane, std::int32_t action, std::int32_t instruction, const SegmentJoints& segment) {
    while (lane.next >= 0 && lane.next < lane.last &&
           std::pair(at(lane.next).action, at(lane.next).instruction) <= std::pair(action, instruction))
      open(lane);
    if (lane.open < 0 || at(lane.open).action != action) return -1;
    const auto place = [&](std::int32_t i) { return segment.ordinal[static_cast<std::size_t>(i)]; };
    return place(instruction) < place(at(lane.open).instruction) + at(lane.open).count ? lane.open : -1;
  }

  std::int32_t* event(const EventUse& use, const Action& action) {
    std::int32_t slot = 0;
    if (const auto* param = std::get_if<ParamId>(&use.slot.which))
      slot = param->index() < action.args.size() ? action.args[param->index()] : 0;
    else
      slot = std::get<std::int32_t>(use.slot.which);
    if (!use.event.valid() || use.event.index() >= events_.size()) return nullptr;
    std::vector<std::int32_t>& slots = events_[use.event.index()];
    return slot >= 0 && static_cast<std::size_t>(slot) < slots.size() ? &slots[static_cast<std::size_t>(slot)] : nullptr;
  }

  void visit(std::int32_t number) {
    const Action& action = role_->actions[static_cast<std::size_t>(number)];
    const SegmentJoints& segment = joints_[action.segment.index()];
    if (ends_.size() < segment.ordinal.size()) ends_.resize(segment.ordinal.size());
    for (std::size_t j = 0; j < segment.joints.size(); ++j) {
      const Joint& joint = segment.joints[j];
      Lane& lane = lanes_[joint.source->stream.index()];
      const std::int32_t span = reach(lane, number, joint.instruction, segment);
      std::int32_t best = -1;
      for (const std::int32_t earlier : joint.source->after) best = later(best, ends_[static_cast<std::size_t>(earlier)]);
      for (const EventUse& wait : joint.source->waits)
        if (const std::int32_t* recorded = event(wait, action)) best = later(best, *recorded);
      if (span >= 0) {
        std::int32_t& before = before_[static_cast<std::size_t>(span)];
        if (best >= 0 && best != span && at(best).end <= at(span).begin) before = later(before, best);
        meetings_.attend(who_, segment.first_joint + static_cast<int>(j), joint, span);
      } else {
        lane.newest = later(lane.newest, best);  // an instruction without a span passes on what it waited for
      }
      const std::int32_t done = span >= 0 ? span : lane.newest;
      ends_[static_cast<std::size_t>(joint.instruction)] = done;
      for (const EventUse& record : joint.source->records)
        if (std::int32_t* slot = event(record, action)) *slot = done;
    }
  }

  const Plan& plan_;
  const Trace& trace_;
  const std::vector<SegmentJoints>& joints_;
  Meetings& meetings_;
  std::vector<std::int32_t>& before_;
  ClassId who_ = {};
  const Role* role_ = nullptr;
  std::vector<Lane> lanes_ = {};                        // [stream]
  std::vector<std::vector<std::int32_t>> events_ = {};  // [event][slot]: the span of the newest record
  std::vector<std::int32_t> ends_ = {};                 // [instruction] of the current action
};

}  // namespace

std::vector<Binding> bind_spans(const Plan& plan, const Trace& trace) {
  check_belongs(plan, trace);
  const std::vector<SegmentJoints> joints = find_joints(plan);
  const int count = joints.empty() ? 0 : joints.back().first_joint + static_cast<int>(joints.back().joints.size());
  Meetings meetings(plan, trace, count);
  std::vector<std::int32_t> before(trace.spans.size(), -1);
  LocalWalk walk(plan, trace, joints, meetings, before);
  for (std::size_t first = 0; first < trace.spans.size();) {
    std::size_t last = first;
    while (last < trace.spans.size() && trace.spans[last].who == trace.spans[first].who) ++last;
    walk.walk(trace.spans[first].who, static_cast<std::int32_t>(first), static_cast<std::int32_t>(last));
    first = last;
  }
  const std::vector<std::int32_t> peers = meetings.last_to_come();
  std::vector<Binding> bindings(trace.spans.size());
  for (std::size_t s = 0; s < bindings.size(); ++s) {
    const std::int32_t peer = peers[s];
    bindings[s] = {peer < 0 ? before[s] : before[static_cast<std::size_t>(peer)], peer};
  }
  return bindings;
}

std::vector<ChainLink> critical_chain(const Trace& trace, const std::vector<Binding>& bindings) {
  std::vector<ChainLink> chain;
  std::int32_t span = -1;
  for (std::size_t s = 0; s < trace.spans.size(); ++s)
    if (span < 0 || trace.spans[s].end > trace.spans[static_cast<std::size_t>(span)].end) span = static_cast<std::int32_t>(s);
  Nanoseconds end = trace.makespan;
  // Each step goes to an earlier instruction; the bound keeps a trace that contradicts its plan from running in
  // circles.
  while (span >= 0 && chain.size() <= trace.spans.size()) {
    const std::int32_t before = bindings[static_cast<std::size_t>(span)].before;
    const Nanoseconds from = before < 0 ? Nanoseconds{} : std::min(end, trace.spans[static_cast<std::size_t>(before)].end);
    chain.push_back({span, from, end});
    end = from;
    span = before;
  }
  std::reverse(chain.begin(), chain.end());
  return chain;
}

}  // namespace foreshard
