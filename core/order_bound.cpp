#include "core/order_bound.h"

#include <algorithm>
#include <deque>
#include <vector>

#include "core/memory_run.h"
#include "core/program_order.h"

namespace foreshard {
namespace {

// One stream: after 2k half steps k instructions have ended, after 2k + 1 the next one has started.
struct StreamMemory {
  std::vector<std::int32_t> steps = {};
  std::vector<std::int64_t> live = {0};  // [half steps]: acquired less released
  std::size_t touches = 0;
};

std::vector<StreamMemory> streams_of(const Plan& plan, const Role& role, Space space, const ProgramOrder& order) {
  std::vector<StreamMemory> streams(static_cast<std::size_t>(order.streams()));
  const auto bytes = [&](const std::vector<Block>& blocks) {
    std::int64_t sum = 0;
    for (const Block& block : blocks) {
      const Buffer& buffer = role.buffers[block.buffer.index()];
      if (buffer.space == space && !buffer.resident) sum += buffer.bytes.value;
    }
    return sum;
  };
  for (int s = 0; s < order.count(); ++s) {
    const Step& step = order.step(s);
    const SegmentId segment = role.actions[static_cast<std::size_t>(step.action)].segment;
    const Instruction& instruction = plan.segments[segment.index()].instructions[static_cast<std::size_t>(step.instruction)];
    StreamMemory& stream = streams[static_cast<std::size_t>(step.stream)];
    const std::int64_t acquired = bytes(instruction.acquires), released = bytes(instruction.releases);
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

}  // namespace

Bytes order_bound(const Plan& plan, RoleId id, Space space) {
  const ProgramOrder order(plan, id);
  const std::vector<StreamMemory> streams = streams_of(plan, plan.roles[id.index()], space, order);
  const Bytes start = sum(RoleMemory(plan, id, space).start());
  if (streams.empty()) return start;
  const auto busiest = std::max_element(streams.begin(), streams.end(),
                                        [](const StreamMemory& a, const StreamMemory& b) { return a.touches < b.touches; });
  const auto main = static_cast<std::size_t>(busiest - streams.begin());
  std::vector<SlidingTop> tops;
  for (const StreamMemory& stream : streams) tops.emplace_back(stream.live);
  std::vector<std::size_t> allowed(streams.size(), 0);  // instructions that may have started
  std::int64_t best = 0;
  for (std::size_t half = 0; half < busiest->live.size(); ++half) {
    const auto ended = static_cast<std::int32_t>(half / 2);
    const std::size_t started = (half + 1) / 2;
    std::int64_t live = busiest->live[half];
    for (std::size_t s = 0; s < streams.size(); ++s) {
      if (s == main || streams[s].touches == 0) continue;
      const std::vector<std::int32_t>& steps = streams[s].steps;
      while (allowed[s] < steps.size() && order.ended_before(steps[allowed[s]])[main] <= ended) ++allowed[s];
      const std::int32_t forced = started == 0 ? 0 : order.ended_before(busiest->steps[started - 1])[s];
      live += tops[s].of(2 * static_cast<std::size_t>(forced), 2 * allowed[s]);
    }
    best = std::max(best, live);
  }
  return start + Bytes{best};
}

}  // namespace foreshard
