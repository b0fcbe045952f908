#include "core/result/order_bound.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <utility>
#include <vector>

#include "core/plan/equal_roles.h"
#include "core/plan/program_order.h"
#include "core/result/memory_run.h"

namespace foreshard {
namespace {

// One stream in half steps: after 2k half steps, k instructions have ended; after 2k + 1, the next one has started, too.
struct StreamMemory {
  std::vector<std::int32_t> steps = {};
  std::vector<std::int64_t> live = {0};  // [half steps]: acquired less released
  std::size_t touches = 0;
};

// What each instruction of a segment acquires and releases, in bytes.
using SegmentMemory = std::vector<std::pair<std::int64_t, std::int64_t>>;

SegmentMemory memory_of(const Segment& segment, const Role& role, Space space) {
  const auto bytes = [&](const std::vector<Block>& blocks) {
    std::int64_t sum = 0;
    for (const Block& block : blocks) {
      const Buffer& buffer = role.buffers[block.buffer.index()];
      if (buffer.space == space && !buffer.resident) sum += buffer.bytes.value;
    }
    return sum;
  };
  SegmentMemory memory;
  memory.reserve(segment.instructions.size());
  for (const Instruction& i : segment.instructions) memory.emplace_back(bytes(i.acquires), bytes(i.releases));
  return memory;
}

std::vector<StreamMemory> streams_of(const Plan& plan, const Role& role, Space space, const ProgramOrder& order) {
  std::vector<StreamMemory> streams(static_cast<std::size_t>(order.clocks().streams()));
  std::vector<SegmentMemory> segments(plan.segments.size());
  for (int s = 0; s < order.count(); ++s) {
    const ProgramStep& step = order.step(s);
    const SegmentId segment = role.actions[static_cast<std::size_t>(step.action)].segment;
    SegmentMemory& memory = segments[segment.index()];
    if (memory.empty()) memory = memory_of(plan.segments[segment.index()], role, space);
    const auto& [acquired, released] = memory[static_cast<std::size_t>(step.instruction)];
    StreamMemory& stream = streams[static_cast<std::size_t>(order.clocks().stream(s))];
    stream.steps.push_back(s);
    stream.live.push_back(stream.live.back() + acquired);
    stream.live.push_back(stream.live.back() - released);
    stream.touches += (acquired != 0 ? 1 : 0) + (released != 0 ? 1 : 0);
  }
  return streams;
}

// The largest value in a window of half steps whose two ends only move forward.
class SlidingTop {
 public:
  explicit SlidingTop(const std::vector<std::int64_t>& values) : values_(&values) {}
  std::int64_t of(std::size_t first, std::size_t last) {  // both included
    for (; next_ <= last; ++next_) {
      while (!tops_.empty() && (*values_)[tops_.back()] <= (*values_)[next_]) tops_.pop_back();
      tops_.push_back(next_);
    }
    while (tops_.front() < first) tops_.pop_front();
    return (*values_)[tops_.front()];
  }

 private:
  const std::vector<std::int64_t>* values_;
  std::size_t next_ = 0;
  std::deque<std::size_t> tops_;  // falling values
};

// A stream other than main: the most bytes that it can hold while main is at a given position.
class SideStream {
 public:
  SideStream(const StreamMemory& stream, const ProgramOrder& order, std::size_t index, std::size_t main)
      : steps_(&stream.steps), order_(&order), index_(index), main_(main), window_(stream.live) {
    find_next();
  }
  std::int64_t most() const { return most_; }
  // main has ended `ended` instructions; `latest` is the last that it has started, -1: none
  void advance(std::int32_t ended, int latest) {
    const std::int32_t forced = latest < 0 ? 0 : order_->clocks().ended_before(latest)[index_];
    if (forced == forced_ && ended < next_) return;
    forced_ = forced;
    while (next_ <= ended) ++allowed_, find_next();
    most_ = window_.of(2 * static_cast<std::size_t>(forced_), 2 * allowed_);
  }

 private:
  void find_next() {
    next_ = allowed_ < steps_->size() ? order_->clocks().ended_before((*steps_)[allowed_])[main_]
                                      : std::numeric_limits<std::int32_t>::max();
  }

  const std::vector<int>* steps_;
  const ProgramOrder* order_;
  std::size_t index_, main_;
  SlidingTop window_;
  std::size_t allowed_ = 0;   // instructions that may have started
  std::int32_t next_ = 0;     // number of instructions that main must have ended before one more may start
  std::int32_t forced_ = -1;  // instructions that must have ended
  std::int64_t most_ = 0;
};

}  // namespace

Bytes order_bound(const Plan& plan, RoleId id, Space space) { return order_bound(plan, find_meeting_points(plan), id, space); }

Bytes order_bound(const Plan& plan, const MeetingPoints& meetings, RoleId id, Space space) {
  const ProgramOrder order(plan, meetings, id);
  const std::vector<StreamMemory> streams = streams_of(plan, plan.roles[id.index()], space, order);
  const Bytes start = sum(RoleMemory(plan, id, space).start());
  if (streams.empty()) return start;
  const auto busiest = std::max_element(streams.begin(), streams.end(),
                                        [](const StreamMemory& a, const StreamMemory& b) { return a.touches < b.touches; });
  const auto main = static_cast<std::size_t>(busiest - streams.begin());
  std::vector<SideStream> sides;
  for (std::size_t s = 0; s < streams.size(); ++s)
    if (s != main && streams[s].touches > 0) sides.emplace_back(streams[s], order, s, main);
  std::int64_t best = 0;
  for (std::size_t half = 0; half < busiest->live.size(); ++half) {
    const std::size_t started = (half + 1) / 2;
    const int latest = started == 0 ? -1 : busiest->steps[started - 1];
    std::int64_t live = busiest->live[half];
    for (SideStream& side : sides) {
      side.advance(static_cast<std::int32_t>(half / 2), latest);
      live += side.most();
    }
    best = std::max(best, live);
  }
  return start + Bytes{best};
}

std::vector<Bytes> order_bounds(const Plan& plan) {
  const MeetingPoints meetings = find_meeting_points(plan);
  const std::vector<std::size_t> first = first_equal_roles(plan);
  std::vector<Bytes> bounds;
  for (std::size_t r = 0; r < plan.roles.size(); ++r)
    bounds.push_back(first[r] == r ? order_bound(plan, meetings, {static_cast<std::int32_t>(r)}) : bounds[first[r]]);
  return bounds;
}

Bytes issue_order_peak(const Plan& plan, RoleId id, Space space) {
  struct Change {  // of the live bytes, over a segment
    bool known = false;
    std::int64_t highest = 0, net = 0;
  };
  const Role& role = plan.roles[id.index()];
  std::vector<Change> changes(plan.segments.size());
  std::int64_t live = 0, peak = 0;
  for (const Action& action : role.actions) {
    Change& change = changes[action.segment.index()];
    if (!std::exchange(change.known, true))
      for (const auto& [acquired, released] : memory_of(plan.segments[action.segment.index()], role, space)) {
        change.highest = std::max(change.highest, change.net + acquired);
        change.net += acquired - released;
      }
    peak = std::max(peak, live + change.highest);
    live += change.net;
  }
  return sum(RoleMemory(plan, id, space).start()) + Bytes{peak};
}

}  // namespace foreshard
