#include "strategy/frameworks/online_allocation.h"

#include <algorithm>
#include <map>

#include "core/plan/program.h"
#include "strategy/frameworks/caching_allocator.h"

namespace foreshard {

OnlineAllocation allocate_online(const Plan& plan, RoleId id, Space space) {
  constexpr int kRuns = 2;
  const Role& role = plan.roles[id.index()];
  CachingAllocator memory;
  OnlineAllocation result;
  Bytes asked = {};
  std::map<std::pair<BufferId, std::int32_t>, int> alive;  // (buffer, slot) -> block of the allocator
  const auto bytes_of = [&](BufferId buffer) { return role.buffers[buffer.index()].bytes; };
  const auto allocate = [&](BufferId buffer, std::int32_t slot) {
    if (role.buffers[buffer.index()].space != space) return;
    alive[{buffer, slot}] = memory.allocate(bytes_of(buffer).value);
    asked += bytes_of(buffer);
    result.asked_peak = std::max(result.asked_peak, asked);
  };
  const auto release = [&](BufferId buffer, std::int32_t slot) {
    const auto block = alive.find({buffer, slot});
    if (block == alive.end()) return;  // it is in another space, or was acquired in a run before the first
    memory.free(block->second);
    alive.erase(block);
    asked -= bytes_of(buffer);
  };
  for (std::int32_t b = 0; b < static_cast<std::int32_t>(role.buffers.size()); ++b)
    for (std::int32_t s = 0; role.buffers[static_cast<std::size_t>(b)].resident &&
                             s < static_cast<std::int32_t>(role.buffers[static_cast<std::size_t>(b)].offsets.size());
         ++s)
      allocate({b}, s);
  each_issued(issue_order(role), kRuns, [&](std::int32_t a, std::int32_t) {
    const Action& action = role.actions[static_cast<std::size_t>(a)];
    for (const Instruction& instruction : plan.segments[action.segment.index()].instructions) {
      for (const Block& block : instruction.acquires) allocate(block.buffer, value_of(block.slot, action));
      for (const Block& block : instruction.releases) release(block.buffer, value_of(block.slot, action));
    }
  });
  result.allocated_peak = {memory.allocated_peak()};
  result.reserved = {memory.reserved()};
  return result;
}

}  // namespace foreshard
