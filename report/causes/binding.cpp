#include "report/causes/binding.h"

#include <algorithm>
#include <optional>
#include <string>

#include "core/base/error.h"
#include "core/plan/program.h"
#include "report/causes/joints.h"
#include "report/causes/meetings.h"

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

// Follows the issue order of one class over its spans and notes, for each, the latest end among its local predecessors.
class LocalWalk {
 public:
  LocalWalk(const Plan& plan, const Trace& trace)
      : plan_(plan),
        trace_(trace),
        points_(find_meeting_points(plan)),
        joints_(find_joints(plan)),
        meetings_(plan, trace, points_),
        programs_(plan.roles.size()),
        before_(trace.spans.size(), -1) {}

  void walk(ClassId who, std::int32_t first, std::int32_t last) {
    who_ = who;
    const RoleId role = trace_.classes[who.index()].role;
    role_ = &plan_.roles[role.index()];
    if (!programs_[role.index()]) programs_[role.index()] = read_role(plan_, points_, role);
    program_ = &*programs_[role.index()];
    lanes_.assign(role_->streams.size(), {});
    for (std::int32_t s = first; s < last; ++s) {
      Lane& lane = lanes_[at(s).stream.index()];
      if (lane.next < 0) lane.next = s;
      lane.last = s + 1;
    }
    first_end_.clear();
    ends_.clear();
    for (std::size_t a = 0; a < role_->actions.size(); ++a) visit(static_cast<std::int32_t>(a));
    for (Lane& lane : lanes_)
      while (lane.next >= 0 && lane.next < lane.last) open(lane);
  }

  const std::vector<std::int32_t>& before() const { return before_; }
  std::vector<std::int32_t> last_to_come() const { return meetings_.last_to_come(); }

 private:
  struct Lane {
    std::int32_t next = -1, last = -1;  // spans of the class on this stream not yet opened
    std::int32_t newest = -1;           // the span that the next instruction of the stream follows
    std::int32_t open = -1;             // the span opened last
  };

  const Span& at(std::int32_t span) const { return trace_.spans[static_cast<std::size_t>(span)]; }
  const SegmentJoints& joints(std::int32_t action) const {
    return joints_[role_->actions[static_cast<std::size_t>(action)].segment.index()];
  }

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

  // The span that ended an instruction which came before: of this action or of an earlier one.
  std::int32_t end_of(std::int32_t action, std::int32_t instruction) const {
    const std::int32_t joint = joints(action).joint_of[static_cast<std::size_t>(instruction)];
    return ends_[first_end_[static_cast<std::size_t>(action)] + static_cast<std::size_t>(joint)];
  }

  void visit(std::int32_t action) {
    const SegmentId segment_id = role_->actions[static_cast<std::size_t>(action)].segment;
    const SegmentJoints& segment = joints_[segment_id.index()];
    const SegmentMeetings& uses = points_.segments[segment_id.index()];
    first_end_.push_back(ends_.size());
    for (const std::int32_t i : segment.joints) {
      const Instruction& instruction = plan_.segments[segment_id.index()].instructions[static_cast<std::size_t>(i)];
      Lane& lane = lanes_[instruction.stream.index()];
      const std::int32_t span = reach(lane, action, i, segment);
      std::int32_t best = -1;
      for (const std::int32_t earlier : instruction.after) best = later(best, end_of(action, earlier));
      for (const Position& on : program_->waits(action, i, uses))
        if (on.action >= 0 && on.runs_back == 0) best = later(best, end_of(on.action, on.instruction));
      if (span >= 0) {
        std::int32_t& before = before_[static_cast<std::size_t>(span)];
        if (best >= 0 && best != span && at(best).end <= at(span).begin) before = later(before, best);
        for (const MeetingUse* use : {&uses.meeting[static_cast<std::size_t>(i)], &uses.from[static_cast<std::size_t>(i)]})
          if (use->point >= 0) meetings_.attend(who_, use->point, program_->number(action, *use), span);
      } else {
        lane.newest = later(lane.newest, best);  // an instruction without a span passes on what it waited for
      }
      ends_.push_back(span >= 0 ? span : lane.newest);
    }
  }

  const Plan& plan_;
  const Trace& trace_;
  MeetingPoints points_;
  std::vector<SegmentJoints> joints_;
  Meetings meetings_;
  std::vector<std::optional<RoleProgram>> programs_;  // [role]
  std::vector<std::int32_t> before_;                  // [span]
  ClassId who_ = {};
  const Role* role_ = nullptr;
  const RoleProgram* program_ = nullptr;
  std::vector<Lane> lanes_ = {};             // [stream]
  std::vector<std::size_t> first_end_ = {};  // [action] in ends_
  std::vector<std::int32_t> ends_ = {};      // joint by joint: the span that ended it
};

}  // namespace

std::vector<Binding> bind_spans(const Plan& plan, const Trace& trace) {
  check_belongs(plan, trace);
  LocalWalk walk(plan, trace);
  for (std::size_t first = 0; first < trace.spans.size();) {
    std::size_t last = first;
    while (last < trace.spans.size() && trace.spans[last].who == trace.spans[first].who) ++last;
    walk.walk(trace.spans[first].who, static_cast<std::int32_t>(first), static_cast<std::int32_t>(last));
    first = last;
  }
  const std::vector<std::int32_t>& before = walk.before();
  const std::vector<std::int32_t> peers = walk.last_to_come();
  std::vector<Binding> bindings(trace.spans.size());
  for (std::size_t s = 0; s < bindings.size(); ++s) {
    const std::int32_t peer = peers[s];
    bindings[s] = {peer < 0 ? before[s] : before[static_cast<std::size_t>(peer)], peer};
  }
  return bindings;
}

std::vector<ChainStep> critical_chain(const Trace& trace, const std::vector<Binding>& bindings) {
  std::vector<ChainStep> chain;
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
