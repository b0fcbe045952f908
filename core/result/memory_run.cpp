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
};

std::vector<Touch> first_touches(const Segment& segment) {
  std::vector<Touch> touches;
  for (const Instruction& instruction : segment.instructions) {
    const auto touch = [&](const Block& block, bool releases) {
      touches.push_back({block.buffer.value, block.slot, releases});
    };
    for (const Block& block : instruction.acquires) touch(block, false);
    for (const Block& block : instruction.releases) touch(block, true);
  }
  // The first touch of each block expression, still in issue order.
  std::vector<std::size_t> order(touches.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto key = [&](std::size_t i) { return std::tie(touches[i].buffer, touches[i].slot.which); };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
  order.erase(std::unique(order.begin(), order.end(), [&](auto a, auto b) { return key(a) == key(b); }), order.end());
  std::sort(order.begin(), order.end());
  std::vector<Touch> first;
  for (const std::size_t i : order) first.push_back(touches[i]);
  return first;
}

}  // namespace

// A block is carried over from the previous run if its first acquire or release in the program is a release. Only buffers of which some
// segment releases a block first can have such blocks; the walk ends as soon as all their blocks are decided.
void RoleMemory::find_start() {
  std::vector<std::vector<Touch>> touches(plan_.segments.size());
  std::vector<char> used(plan_.segments.size(), 0), candidate(role_.buffers.size(), 0);
  for (const Action& action : role_.actions) {
    if (used[action.segment.index()]) continue;
    used[action.segment.index()] = 1;
    touches[action.segment.index()] = first_touches(plan_.segments[action.segment.index()]);
    for (const Touch& touch : touches[action.segment.index()]) {
      const Buffer& buffer = role_.buffers[static_cast<std::size_t>(touch.buffer)];
      if (touch.releases && !buffer.resident && buffer.space == space_) candidate[static_cast<std::size_t>(touch.buffer)] = 1;
    }
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
  return !is_root_place(run, block) || root_of_.empty() || root_of_[std::get<Collective>(run.what).group.index()];
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
