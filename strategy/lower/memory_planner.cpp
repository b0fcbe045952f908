#include "strategy/lower/memory_planner.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "core/plan/equal_roles.h"
#include "core/result/memory_timeline.h"
#include "core/result/order_bound.h"
#include "strategy/lower/ring_blocks.h"
#include "strategy/memory/ordered_blocks.h"
#include "strategy/memory/own_slots.h"
#include "strategy/memory/packing.h"
#include "strategy/memory/slot_numbers.h"

namespace foreshard {

namespace {

// The local search of pack(): a search lowers thousands of plans.
constexpr int kMoves = 20;
// Packing by the order of a whole run is tried where the arena is above the order bound by a share of 1 / kWorthTrying, and taken where it
// saves as much. It is close enough to the bound at 1 / kCloseEnough above it. Its time grows with the instructions of the run, and with the
// square of the blocks: longer runs and more blocks are not looked at.
constexpr std::int64_t kWorthTrying = 50, kCloseEnough = 100;
constexpr int kMostSteps = 200'000, kMostBlocks = 5'000;

bool far_above(Bytes arena, Bytes bound) { return arena > bound + std::max(Bytes{bound.value / kWorthTrying}, kWorthPacking); }

// What the order of a role's run says of its device memory, found when it is asked for first. Other slot numbers do not change it.
struct OrderBounds {
  std::optional<Bytes> peak = {};   // issue_order_peak
  std::optional<Bytes> bound = {};  // order_bound
};

struct Scratch {  // one block that lives inside actions only, or is kept and shares bytes with these
  BufferId buffer = {};
  int slot = 0;
};

class RolePlanner {
 public:
  RolePlanner(Plan& plan, const MeetingPoints& meetings, RoleId id, Space space, const MemoryPlanOptions& options,
              OrderBounds& bounds)
      : plan_(plan),
        meetings_(meetings),
        id_(id),
        role_(plan.roles[id.index()]),
        space_(space),
        options_(options),
        bounds_(bounds) {}

  // Whether the arena stays clearly above the order bound. Known only of device memory that is packed by the order of a run.
  // `before`: the planner of another role, or null. The scratch of roles with the same segments and bytes is packed once: a twentieth of the
  // time of lowering GPT-3 on 4,096 GPUs.
  bool place(const RolePlanner* before) {
    find_segments();
    if (before != nullptr && has_scratch_of(*before)) {
      is_scratch_ = before->is_scratch_, is_kept_ = before->is_kept_, numbered_ = before->numbered_;
      scratch_ = before->scratch_, packing_ = before->packing_;
    } else {
      classify();
      if (options_.share_kept) find_kept();
      find_lifetimes();
      packing_ = packed(timed_);
    }
    place_resident();
    place_rings();
    place_scratch();
    if (options_.by_order && space_ == Space::Device) place_by_order();  // host memory is not what binds
    return is_far_;
  }

 private:
  static constexpr std::int64_t kOpen = std::numeric_limits<std::int64_t>::max();
  static std::int64_t aligned(Bytes bytes) { return round_up(bytes.value, kBlockAlignment); }
  bool is_here(const Buffer& buffer) const { return buffer.space == space_; }

  void find_segments() {
    std::vector<char> seen(plan_.segments.size(), 0);
    for (const Action& action : role_.actions) {
      if (seen[action.segment.index()]) continue;
      seen[action.segment.index()] = 1;
      segments_.push_back(&plan_.segments[action.segment.index()]);
    }
  }

  bool has_scratch_of(const RolePlanner& other) const {
    const auto alike = [](const Buffer& a, const Buffer& b) {
      return a.bytes == b.bytes && a.space == b.space && a.resident == b.resident &&
             (a.offsets.size() == 1) == (b.offsets.size() == 1);
    };
    return space_ == other.space_ && segments_ == other.segments_ && role_.streams == other.role_.streams &&
           std::ranges::equal(role_.buffers, other.role_.buffers, alike);
  }

  // A buffer is scratch when every segment that acquires one of its blocks also releases it, on the compute stream, under
  // fixed slots or always under that of a micro-batch. Another stream may read it in between: the release waits for that.
  void classify() {
    is_scratch_.resize(role_.buffers.size());
    for (std::size_t b = 0; b < is_scratch_.size(); ++b) is_scratch_[b] = is_here(role_.buffers[b]);
    numbered_.assign(role_.buffers.size(), 0);
    std::vector<int> open(role_.buffers.size(), 0);
    std::vector<char> fixed(role_.buffers.size(), 0);
    const auto on_compute = [&](const Instruction& i) { return role_.streams[i.stream.index()].kind == StreamKind::Compute; };
    const auto note = [&](const Block& block, const Instruction& instruction, int change) {
      const bool is_fixed = std::holds_alternative<std::int32_t>(block.slot.which);
      (is_fixed ? fixed : numbered_)[block.buffer.index()] = 1;
      if (!on_compute(instruction)) is_scratch_[block.buffer.index()] = 0;
      open[block.buffer.index()] += change;
    };
    for (const Segment* segment : segments_) {
      std::vector<BufferId> touched;
      for (const Instruction& instruction : segment->instructions) {
        for (const Block& block : instruction.acquires) note(block, instruction, 1), touched.push_back(block.buffer);
        for (const Block& block : instruction.releases) note(block, instruction, -1), touched.push_back(block.buffer);
      }
      for (const BufferId id : touched)
        if (std::exchange(open[id.index()], 0) != 0) is_scratch_[id.index()] = 0;
    }
    for (std::size_t b = 0; b < is_scratch_.size(); ++b)
      if (fixed[b] && numbered_[b]) is_scratch_[b] = 0;
  }

  // A buffer of one place that some segments acquire and others release, both on the compute stream: its block is alive in those
  // from or up to there, and in all other segments throughout.
  void find_kept() {
    std::vector<char> possible(role_.buffers.size(), 0);
    for (std::size_t b = 0; b < possible.size(); ++b)
      possible[b] =
          is_here(role_.buffers[b]) && !role_.buffers[b].resident && !is_scratch_[b] && role_.buffers[b].offsets.size() == 1;
    for (const Segment* segment : segments_)
      for (const Instruction& instruction : segment->instructions) {
        const bool compute = role_.streams[instruction.stream.index()].kind == StreamKind::Compute;
        for (const auto* blocks : {&instruction.acquires, &instruction.releases})
          for (const Block& block : *blocks)
            if (!compute) possible[block.buffer.index()] = 0;
      }
    is_kept_ = possible;
  }
  bool moves(BufferId buffer) const { return is_scratch_[buffer.index()] || (!is_kept_.empty() && is_kept_[buffer.index()]); }

  // All blocks but resident ones are packed by the order of the whole run, where that takes clearly less. Elsewhere rings stay slot by slot.
  void place_by_order() {
    const Bytes arena{end_};
    if (!bounds_.peak) bounds_.peak = issue_order_peak(plan_, id_);
    if (!far_above(arena, *bounds_.peak)) return;  // most arenas are close to the peak, and it costs less than the bound
    if (!bounds_.bound) bounds_.bound = order_bound(plan_, meetings_, id_);
    const std::int64_t bound = bounds_.bound->value;
    is_far_ = far_above(arena, {bound});
    if (!is_far_) return;
    const auto& [blocks, meets] = ordered_blocks(plan_, meetings_, id_, space_, {.steps = kMostSteps, .blocks = kMostBlocks});
    if (blocks.empty()) return;
    std::vector<TimedBlock> timed;
    for (const OrderedBlock& block : blocks) timed.push_back(block.block);
    const Bytes enough{bound + bound / kCloseEnough - resident_};
    Packing packing = pack(timed, meets, {.alignment = kBlockAlignment}, enough);
    if (options_.search_nodes > 0)
      if (Packing searched = packed(timed); searched.arena < packing.arena) packing = std::move(searched);
    is_far_ = far_above(Bytes{resident_} + packing.arena, {bound});
    if (resident_ + packing.arena.value > end_ - end_ / kWorthTrying) return;
    for (std::size_t i = 0; i < blocks.size(); ++i)
      role_.buffers[blocks[i].buffer.index()].offsets[static_cast<std::size_t>(blocks[i].slot)] =
          Bytes{resident_} + packing.offsets[i];
  }

  void place_resident() {
    for (Buffer& buffer : role_.buffers) {
      if (!buffer.resident || !is_here(buffer)) continue;
      for (Bytes& offset : buffer.offsets) offset = {top_}, top_ += aligned(buffer.bytes);
    }
    resident_ = top_;
  }

  Packing packed(const std::vector<TimedBlock>& blocks) const {
    const PackOptions options{.alignment = kBlockAlignment, .moves = kMoves};
    return options_.search_nodes > 0 ? pack_smallest(blocks, options, options_.search_nodes).packing : pack(blocks, options);
  }

  bool is_ring(std::size_t buffer) const {
    return is_here(role_.buffers[buffer]) && !role_.buffers[buffer].resident && !moves({static_cast<std::int32_t>(buffer)});
  }

  bool splits_backward() const {
    const auto is_reduce_scatter_or_all_gather = [](const Does& does) { return does.work == Work::W; };
    return std::ranges::any_of(
        role_.actions, [&](const Action& action) { return std::ranges::any_of(action.does, is_reduce_scatter_or_all_gather); });
  }

  // First the rings that share bytes, then the others slot by slot, so that what one micro-batch keeps lies together.
  void place_rings() {
    std::vector<char> is_placed(role_.buffers.size(), 0);
    pack_rings(is_placed);
    std::size_t most = 0;
    for (const Buffer& buffer : role_.buffers) most = std::max(most, buffer.offsets.size());
    for (std::size_t slot = 0; slot < most; ++slot)
      for (std::size_t b = 0; b < role_.buffers.size(); ++b) {
        Buffer& buffer = role_.buffers[b];
        if (!is_ring(b) || is_placed[b] || slot >= buffer.offsets.size()) continue;
        buffer.offsets[slot] = {top_};
        top_ += aligned(buffer.bytes);
      }
  }

  // Some rings are full while others are not (zero bubble: what the input gradients need, and what they leave for the weight
  // gradients). They share bytes where that takes fewer than places of their own.
  void pack_rings(std::vector<char>& is_placed) {
    if (!splits_backward()) return;  // all rings are full at once, and the search lowers thousands of plans
    std::vector<BufferId> rings;
    for (std::size_t b = 0; b < role_.buffers.size(); ++b)
      if (is_ring(b)) rings.push_back({static_cast<std::int32_t>(b)});
    const std::vector<RingBlocks> blocks = ring_blocks(plan_, role_, rings, kBlockAlignment);
    std::vector<TimedBlock> timed;
    Bytes apart = {};
    for (const RingBlocks& block : blocks) {
      timed.push_back(block.block);
      for (const BufferId id : block.buffers) apart += Bytes{aligned(role_.buffers[id.index()].bytes)};
    }
    if (live_bound(timed, kBlockAlignment) >= apart) return;
    const Packing packing = packed(timed);
    if (packing.arena >= apart) return;
    for (std::size_t i = 0; i < blocks.size(); ++i)
      for (std::size_t b = 0; b < blocks[i].buffers.size(); ++b) {
        const BufferId id = blocks[i].buffers[b];
        role_.buffers[id.index()].offsets[static_cast<std::size_t>(blocks[i].slot)] =
            Bytes{top_} + packing.offsets[i] + blocks[i].offsets[b];
        is_placed[id.index()] = 1;
      }
    top_ += packing.arena.value;
  }

  int scratch_index(const Block& block) {
    const auto* number = std::get_if<std::int32_t>(&block.slot.which);
    const std::size_t slot = number && is_scratch_[block.buffer.index()] ? static_cast<std::size_t>(*number) : 0;
    std::vector<int>& of_buffer = index_[block.buffer.index()];
    of_buffer.resize(std::max(of_buffer.size(), slot + 1), -1);
    if (of_buffer[slot] < 0) {
      of_buffer[slot] = static_cast<int>(scratch_.size());
      scratch_.push_back({.buffer = block.buffer, .slot = static_cast<int>(slot)});
      timed_.push_back({.bytes = role_.buffers[block.buffer.index()].bytes});
    }
    return of_buffer[slot];
  }

  // Instructions are the clock, those of all segments one after the other: no block is alive across their border. An instruction
  // that releases a block still holds it while the blocks that it acquires appear.
  void find_lifetimes() {
    index_.resize(role_.buffers.size());
    std::int64_t now = 0;
    const auto begin = [&](int i) { timed_[static_cast<std::size_t>(i)].lifetimes.push_back({now, kOpen}); };
    const auto end = [&](int i) {
      std::vector<Lifetime>& lifetimes = timed_[static_cast<std::size_t>(i)].lifetimes;
      if (!lifetimes.empty() && lifetimes.back().end == kOpen) lifetimes.back().end = now;
    };
    for (const Segment* segment : segments_) {
      for (const int kept : kept_before(*segment)) begin(kept);
      for (const Instruction& instruction : segment->instructions) {
        for (const Block& block : instruction.acquires)
          if (moves(block.buffer)) begin(scratch_index(block));
        ++now;
        for (const Block& block : instruction.releases)
          if (moves(block.buffer)) end(scratch_index(block));
      }
      for (int i = 0; i < static_cast<int>(timed_.size()); ++i) end(i);
    }
  }

  // Kept blocks that the segment does not acquire before it releases them.
  std::vector<int> kept_before(const Segment& segment) {
    std::vector<int> kept;
    for (std::size_t b = 0; b < is_kept_.size(); ++b) {
      if (!is_kept_[b]) continue;
      const BufferId buffer{static_cast<std::int32_t>(b)};
      const auto names = [&](const std::vector<Block>& blocks) {
        return std::any_of(blocks.begin(), blocks.end(), [&](const Block& block) { return block.buffer == buffer; });
      };
      bool acquired_first = false;
      for (const Instruction& instruction : segment.instructions) {
        acquired_first = names(instruction.acquires);
        if (acquired_first || names(instruction.releases)) break;
      }
      if (!acquired_first) kept.push_back(scratch_index({buffer, {0}}));
    }
    return kept;
  }

  void place_scratch() {
    for (std::size_t i = 0; i < scratch_.size(); ++i) {
      const auto& [buffer, slot] = scratch_[i];
      std::vector<Bytes>& offsets = role_.buffers[buffer.index()].offsets;
      offsets[static_cast<std::size_t>(slot)] = Bytes{top_} + packing_.offsets[i];
      if (numbered_[buffer.index()] && is_scratch_[buffer.index()])
        std::ranges::fill(offsets, Bytes{top_} + packing_.offsets[i]);
    }
    end_ = top_ + packing_.arena.value;
  }

  const Plan& plan_;
  const MeetingPoints& meetings_;
  RoleId id_ = {};
  Role& role_;
  Space space_;
  MemoryPlanOptions options_ = {};
  OrderBounds& bounds_;
  std::vector<const Segment*> segments_ = {};
  std::vector<char> is_scratch_ = {}, is_kept_ = {};  // [buffer]
  std::vector<char> numbered_ = {};                   // [buffer]: some slot is that of a micro-batch; of scratch, all are
  std::vector<Scratch> scratch_ = {};
  std::vector<TimedBlock> timed_ = {};        // [scratch]
  Packing packing_ = {};                      // of the scratch
  std::vector<std::vector<int>> index_ = {};  // [buffer][slot] -> scratch
  bool is_far_ = false;
  std::int64_t top_ = 0, resident_ = 0, end_ = 0;  // bytes placed so far; of resident blocks; of all
};

Bytes device_bytes(const Plan& plan) {
  Bytes sum = {};
  for (const Role& role : plan.roles) sum += arena_bytes(role, Space::Device);
  return sum;
}

// [role]: whether its arena on the device stays clearly above the order bound (RolePlanner::place). `bounds`: [role].
std::vector<char> place_roles(Plan& plan, const MemoryPlanOptions& options, std::vector<OrderBounds>& bounds) {
  const MeetingPoints meetings = options.by_order ? find_meeting_points(plan) : MeetingPoints{};
  const std::vector<std::size_t> first = first_equal_roles(plan);
  std::vector<char> far(plan.roles.size(), 0);
  for (const Space space : {Space::Device, Space::PinnedHost, Space::PageableHost, Space::Nvme}) {
    std::unique_ptr<const RolePlanner> before;
    for (std::size_t r = 0; r < plan.roles.size(); ++r) {
      if (first[r] != r) continue;
      if (std::ranges::none_of(plan.roles[r].buffers, [&](const Buffer& buffer) { return buffer.space == space; })) continue;
      auto planner =
          std::make_unique<RolePlanner>(plan, meetings, RoleId{static_cast<std::int32_t>(r)}, space, options, bounds[r]);
      far[r] |= planner->place(before.get()) ? 1 : 0;
      before = std::move(planner);
    }
  }
  for (std::size_t r = 0; r < plan.roles.size(); ++r)
    if (first[r] != r) copy_memory(plan, first[r], r), far[r] = far[first[r]], bounds[r] = bounds[first[r]];
  return far;
}

// Roles that share their segments get other slot numbers where that makes their arenas smaller.
void number_slots(Plan& plan, const std::vector<std::size_t>& roles, const MemoryPlanOptions& options,
                  const std::vector<OrderBounds>& all_bounds) {
  Plan best = roles_alone(plan, roles), other = best;
  std::vector<OrderBounds> bounds;
  for (const std::size_t r : roles) bounds.push_back(all_bounds[r]);
  bool far = true, changed = false;
  for (const auto number : {&number_scratch, &number_kept}) {
    if (!far || !number(other)) continue;
    far = std::ranges::any_of(place_roles(other, options, bounds), std::identity{});
    if (device_bytes(other) >= device_bytes(best)) continue;
    best = other;
    changed = true;
  }
  if (changed) put_back(std::move(best), roles, plan);
}

}  // namespace

void plan_memory(Plan& plan, const MemoryPlanOptions& options) {
  std::vector<OrderBounds> bounds(plan.roles.size());
  const std::vector<char> far = place_roles(plan, options, bounds);
  if (std::ranges::none_of(far, std::identity{})) return;
  for (const std::vector<std::size_t>& roles : sharing_roles(plan))
    if (std::ranges::any_of(roles, [&](std::size_t r) { return far[r] != 0; })) number_slots(plan, roles, options, bounds);
  if (!options.own_slots) return;
  std::vector<std::optional<Bytes>> least;
  for (const OrderBounds& one : bounds)
    least.push_back(one.bound ? one.bound : one.peak);  // close to the peak is close to the bound
  pack_own_slots(plan, least, kBlockAlignment);
}

}  // namespace foreshard
