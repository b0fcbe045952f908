#include "core/result/memory_run.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/plan/root_places.h"

namespace foreshard {

RoleMemory::RoleMemory(const Plan& plan, RoleId role, Space space, std::vector<char> root_of)
    : plan_(plan), role_(plan.roles[role.index()]), space_(space), root_of_(std::move(root_of)) {
  for (const CostTable& table : plan.costs)
    if (table.device_kind == role_.device_kind) costs_ = &table;
  for (const Buffer& buffer : role_.buffers)
    if (buffer.resident && buffer.space == space_)
      start_[static_cast<std::size_t>(buffer.category)] += buffer.bytes * static_cast<std::int64_t>(buffer.offsets.size());
  find_start();
}

namespace {

// How a segment meets a block first, in issue order.
struct Touch {
  std::int32_t buffer = 0;
  Slot slot = {};
  bool releases = false;
  std::int32_t earlier = -1;  // index of the touch before it of another slot of the buffer
};

// The first touch of each block expression of a segment, in issue order.
class FirstTouches {
 public:
  explicit FirstTouches(std::size_t buffers) : newest_(buffers, -1) {}

  std::vector<Touch> of(const Segment& segment, const std::vector<char>& wanted) {
    std::vector<Touch> touches;
    const auto touch = [&](const Block& block, bool releases) {
      if (!wanted[block.buffer.index()]) return;
      std::int32_t& newest = newest_[block.buffer.index()];
      for (std::int32_t t = newest; t >= 0; t = touches[static_cast<std::size_t>(t)].earlier)
        if (touches[static_cast<std::size_t>(t)].slot == block.slot) return;
      touches.push_back({block.buffer.value, block.slot, releases, newest});
      newest = static_cast<std::int32_t>(touches.size()) - 1;
    };
    for (const Instruction& instruction : segment.instructions) {
      for (const Block& block : instruction.acquires) touch(block, false);
      for (const Block& block : instruction.releases) touch(block, true);
    }
    for (const Touch& each : touches) newest_[static_cast<std::size_t>(each.buffer)] = -1;
    return touches;
  }

 private:
  std::vector<std::int32_t> newest_;  // [buffer]: its touch that was found last; -1: none
};

}  // namespace

// A block is carried over from the previous run if its first acquire or release in the program is a release. Only buffers of which some
// segment releases a block first can have such blocks; the walk ends as soon as all their blocks are decided.
void RoleMemory::find_start() {
  std::vector<std::vector<Touch>> touches(plan_.segments.size());
  std::vector<char> used(plan_.segments.size(), 0), candidate(role_.buffers.size(), 0), wanted;
  for (const Buffer& buffer : role_.buffers) wanted.push_back(!buffer.resident && buffer.space == space_);
  FirstTouches first_touches(role_.buffers.size());
  for (const Action& action : role_.actions) {
    if (used[action.segment.index()]) continue;
    used[action.segment.index()] = 1;
    touches[action.segment.index()] = first_touches.of(plan_.segments[action.segment.index()], wanted);
    for (const Touch& touch : touches[action.segment.index()])
      if (touch.releases) candidate[static_cast<std::size_t>(touch.buffer)] = 1;
  }
  std::vector<std::size_t> base(role_.buffers.size(), 0);
  std::size_t unseen = 0;
  for (std::size_t b = 0; b < candidate.size(); ++b) {
    base[b] = unseen;
    if (candidate[b]) unseen += role_.buffers[b].offsets.size();
  }
  std::vector<char> seen(unseen, 0);
  for (std::vector<Touch>& list : touches)
    std::erase_if(list, [&](const Touch& touch) { return !candidate[static_cast<std::size_t>(touch.buffer)]; });
  for (const Action& action : role_.actions) {
    if (unseen == 0) break;
    for (const Touch& touch : touches[action.segment.index()]) {
      const auto b = static_cast<std::size_t>(touch.buffer);
      char& met = seen[base[b] + static_cast<std::size_t>(value_of(touch.slot, action))];
      if (met) continue;
      met = 1, --unseen;
      const Buffer& buffer = role_.buffers[b];
      if (touch.releases) start_[static_cast<std::size_t>(buffer.category)] += buffer.bytes;
    }
  }
}

const MemoryRun& RoleMemory::run(const Span& span) {
  return run(role_.actions[static_cast<std::size_t>(span.action)].segment, span.instruction, span.count);
}

const MemoryRun& RoleMemory::run(SegmentId segment, std::int32_t instruction, std::int32_t count) {
  const auto word = [](std::int32_t v) { return static_cast<std::uint64_t>(v); };
  const std::uint64_t key = word(segment.value) << 42U ^ word(instruction) << 21U ^ word(count);
  const auto found = runs_.find(key);
  if (found != runs_.end()) return found->second;
  return runs_.emplace(key, make(segment, instruction, count)).first->second;
}

bool RoleMemory::holds(const Instruction& run, const Block& block) const {
  return !is_root_only_block(run, block) || root_of_.empty() || root_of_[std::get<Collective>(run.what).group.index()];
}

MemoryRun RoleMemory::make(SegmentId segment, std::int32_t instruction, std::int32_t count) const {
  const std::vector<Cost>* costs = costs_ ? &costs_->by_segment[segment.index()] : nullptr;
  MemoryRun run;
  std::vector<std::size_t> members;
  const std::vector<Instruction>& all = plan_.segments[segment.index()].instructions;
  for (auto i = static_cast<std::size_t>(instruction); members.size() < static_cast<std::size_t>(count); ++i) {
    FS_ASSERT(i < all.size());  // a span counts instructions of its stream
    if (all[i].stream == all[static_cast<std::size_t>(instruction)].stream) members.push_back(i);
  }
  std::int64_t isolated = 0;
  for (const std::size_t i : members) isolated += costs ? (*costs)[i].busy.value : 0;
  std::int64_t now = 0;
  const auto step = [&](const Block& block, std::int64_t sign) {
    const Buffer& buffer = role_.buffers[block.buffer.index()];
    if (buffer.space != space_ || buffer.bytes.value == 0) return;
    run.steps.push_back({now, buffer.category, sign * buffer.bytes.value});
  };
  for (const std::size_t i : members) {
    for (const Block& block : all[i].acquires)
      if (holds(all[i], block)) step(block, 1);
    now += isolated > 0 ? (*costs)[i].busy.value : 1;
    for (const Block& block : all[i].releases)
      if (holds(all[i], block)) step(block, -1);
  }
  run.total = now;
  std::stable_sort(run.steps.begin(), run.steps.end(), [](const MemoryRun::Step& a, const MemoryRun::Step& b) {
    return a.at != b.at ? a.at < b.at : (a.bytes < 0) > (b.bytes < 0);
  });
  std::int64_t live = 0;
  for (const MemoryRun::Step& s : run.steps) {
    live += s.bytes;
    run.net[static_cast<std::size_t>(s.category)] += {s.bytes};
    if (run.times.empty() || run.times.back() != s.at) run.times.push_back(s.at), run.live.push_back(0);
    run.live.back() = live;
  }
  for (const std::int64_t l : run.live) run.highest = std::max(run.highest, l);
  return run;
}

}  // namespace foreshard
