#include "core/result/memory_timeline.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <span>

#include "core/base/error.h"
#include "core/plan/root_places.h"
#include "core/result/plan_memory.h"

namespace foreshard {

Bytes sum(const LiveBytes& live) {
  Bytes total;
  for (const Bytes bytes : live) total += bytes;
  return total;
}

Bytes arena_bytes(const Role& role, Space space) {
  Bytes highest;
  for (const Buffer& buffer : role.buffers)
    if (buffer.space == space)
      for (const Bytes offset : buffer.offsets) highest = std::max(highest, offset + buffer.bytes);
  return highest;
}

namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

// Reads the spans of one stream of one class, one instant (time of changes) after the other.
class StreamCursor {
 public:
  StreamCursor(std::span<const Span> spans, RoleMemory& memory) : spans_(spans), memory_(&memory) { enter(); }

  std::int64_t next() const { return next_; }
  std::int64_t take() {  // moves past the next instant and returns its change in bytes
    const std::int64_t change = run_->live[at_] - (at_ > 0 ? run_->live[at_ - 1] : 0);
    if (++at_ == run_->live.size()) {
      spans_ = spans_.subspan(1);
      enter();
    } else {
      next_ = time_in(spans_.front(), *run_, run_->times[at_]);
    }
    return change;
  }

  // Moves past the instants before `limit` and before the end of the span, at which another span may begin. Adds their changes to `live`.
  // Returns the first of these instants at which `live` is largest, if that is above `best`.
  struct Top {
    std::int64_t live = 0, when = kNever;
  };
  Top take_before(std::int64_t limit, std::int64_t& live, std::int64_t best) {
    const Span& span = spans_.front();
    limit = std::min(limit, span.end.value);
    // in a span shorter than its isolated time several instants may fall into one nanosecond: these are taken one by one
    if (span.end.value - span.begin.value < run_->total) return {};
    const auto& times = run_->times;
    const auto first = times.begin() + static_cast<std::ptrdiff_t>(at_);
    const auto last =
        std::partition_point(first, times.end(), [&](std::int64_t at) { return time_in(span, *run_, at) < limit; });
    if (first == last) return {};
    const std::int64_t before = live - (at_ > 0 ? run_->live[at_ - 1] : 0);
    const auto from = run_->live.begin() + (first - times.begin()), to = run_->live.begin() + (last - times.begin());
    Top top;
    if (before + run_->highest > best) {
      std::int64_t highest = *from;
      for (auto l = from; l != to; ++l) highest = std::max(highest, *l);
      if (before + highest > best) {
        const auto where = std::find(from, to, highest) - run_->live.begin();
        top = {before + highest, time_in(span, *run_, times[static_cast<std::size_t>(where)])};
      }
    }
    live = before + *(to - 1);
    at_ = static_cast<std::size_t>(last - times.begin()) - 1;
    take();
    return top;
  }

 private:
  void enter() {
    at_ = 0;
    next_ = kNever;
    for (; !spans_.empty(); spans_ = spans_.subspan(1)) {
      run_ = &memory_->run(spans_.front());
      if (run_->times.empty()) continue;
      next_ = time_in(spans_.front(), *run_, run_->times[0]);
      return;
    }
  }

  std::span<const Span> spans_;
  RoleMemory* memory_;
  const MemoryRun* run_ = nullptr;
  std::size_t at_ = 0;
  std::int64_t next_ = kNever;
};

std::vector<std::span<const Span>> by_stream(std::span<const Span> spans) {
  std::vector<std::span<const Span>> streams;
  for (std::size_t first = 0, last = 0; first < spans.size(); first = last) {
    while (last < spans.size() && spans[last].stream == spans[first].stream) ++last;
    streams.push_back(spans.subspan(first, last - first));
  }
  return streams;
}

LiveBytes live_at(std::span<const Span> spans, RoleMemory& memory, const LiveBytes& start, std::int64_t when) {
  LiveBytes live = start;
  for (const Span& span : spans) {
    if (span.begin.value > when) continue;
    const MemoryRun& run = memory.run(span);
    if (span.end.value <= when) {
      for (std::size_t c = 0; c < live.size(); ++c) live[c] += run.net[c];
      continue;
    }
    for (const MemoryRun::Step& step : run.steps) {
      if (time_in(span, run, step.at) > when) break;
      live[static_cast<std::size_t>(step.category)] += {step.bytes};
    }
  }
  return live;
}

// Sweeps all streams in order of time. A stretch of time in which only one stream has instants is taken in one step.
void find_peak(std::span<const Span> spans, RoleMemory& memory, MemoryCurve& curve) {
  std::vector<StreamCursor> cursors;
  for (const std::span<const Span> stream : by_stream(spans)) cursors.emplace_back(stream, memory);
  std::int64_t live = sum(curve.start).value, best = live, when = -1;  // -1: the start
  for (;;) {
    std::size_t first = 0;
    std::int64_t now = kNever, then = kNever;  // the nearest instant, and the nearest of another stream
    for (std::size_t c = 0; c < cursors.size(); ++c) {
      const std::int64_t next = cursors[c].next();
      if (next < now)
        then = now, now = next, first = c;
      else
        then = std::min(then, next);
    }
    if (now == kNever) break;
    if (now < then) {
      const StreamCursor::Top top = cursors[first].take_before(then, live, best);
      if (top.live > best) best = top.live, when = top.when;
      if (cursors[first].next() != now) continue;
    }
    for (StreamCursor& cursor : cursors)
      while (cursor.next() == now) live += cursor.take();
    if (live > best) best = live, when = now;
  }
  curve.peak_time = {std::max<std::int64_t>(when, 0)};
  curve.peak = when < 0 ? curve.start : live_at(spans, memory, curve.start, when);
}

std::vector<MemoryEvent> all_events(std::span<const Span> spans, RoleMemory& memory) {
  std::vector<MemoryEvent> events;
  for (const Span& span : spans) {
    const MemoryRun& run = memory.run(span);
    for (const MemoryRun::Step& step : run.steps)
      events.push_back({{time_in(span, run, step.at)}, step.category, {step.bytes}});
  }
  std::stable_sort(events.begin(), events.end(), [](const MemoryEvent& a, const MemoryEvent& b) {
    return a.when != b.when ? a.when < b.when : (a.bytes.value < 0) > (b.bytes.value < 0);
  });
  return events;
}

std::vector<Space> spaces_of(const Role& role) {
  std::vector<Space> spaces = {Space::Device};
  for (const Space space : {Space::PinnedHost, Space::PageableHost, Space::Nvme})
    if (std::any_of(role.buffers.begin(), role.buffers.end(), [&](const Buffer& b) { return b.space == space; }))
      spaces.push_back(space);
  return spaces;
}

}  // namespace

PlanMemory::PlanMemory(const Plan& plan, const std::vector<RankClass>& classes) : plan_(plan) {
  const std::vector<GroupId> rooted = groups_with_root_only_blocks(plan);
  const std::optional<Ranks> ranks = rooted.empty() ? std::nullopt : std::optional<Ranks>(plan);
  for (const RankClass& each : classes) {
    std::vector<char> root_of(rooted.empty() ? 0 : plan.groups.size());
    for (const GroupId group : rooted) root_of[group.index()] = is_root(plan, *ranks, each.members.front(), group);
    std::vector<OfSpace>& spaces = of_class_.emplace_back();
    for (const Space space : spaces_of(plan.roles[each.role.index()]))
      spaces.push_back(
          {space, &memories_.try_emplace({each.role, space, root_of}, plan, each.role, space, root_of).first->second});
  }
}

void PlanMemory::prepare(ClassId who, SegmentId segment, std::int32_t instruction, std::int32_t count) {
  for (const OfSpace& each : of_class_[who.index()]) each.memory->run(segment, instruction, count);
}

MemoryTimeline PlanMemory::timeline(const Trace& trace, const MemoryTimelineOptions& options) {
  FS_ASSERT(trace.classes.size() == of_class_.size());
  MemoryTimeline timeline;
  const std::span<const Span> all(trace.spans);
  std::size_t first = 0, last = 0;
  for (std::size_t c = 0; c < trace.classes.size(); ++c, first = last) {
    const ClassId who{static_cast<std::int32_t>(c)};
    while (last < all.size() && all[last].who == who) ++last;
    const std::span<const Span> spans = all.subspan(first, last - first);
    for (const OfSpace& each : of_class_[c]) {
      MemoryCurve curve{.who = who, .space = each.space, .start = each.memory->start()};
      curve.arena = arena_bytes(plan_.roles[trace.classes[c].role.index()], each.space);
      find_peak(spans, *each.memory, curve);
      if (options.events) curve.events = all_events(spans, *each.memory);
      timeline.curves.push_back(std::move(curve));
    }
  }
  FS_ASSERT(last == all.size());  // spans are in the order of their classes
  return timeline;
}

MemoryTimeline memory_timeline(const Plan& plan, const Trace& trace, const MemoryTimelineOptions& options) {
  return PlanMemory(plan, trace.classes).timeline(trace, options);
}

}  // namespace foreshard
