// Blocks: checks when they are alive, which of them share bytes, and that accesses which must be ordered are ordered.
#include <algorithm>
#include <utility>

#include "core/check/check_plan_rules.h"

namespace foreshard {
namespace {

// The arena of one space, cut at the borders of all blocks. Each piece has its current owner and the step that released the last one.
class Arena {
 public:
  struct Piece {
    std::int32_t owner = -1;     // block
    std::int32_t released = -1;  // step at whose end the last owner was released
  };

  Arena(const Role& role, const RoleUses& uses, Space space) : first_(uses.blocks()), last_(uses.blocks()) {
    const auto each = [&](auto visit) {
      for (std::size_t b = 0; b < role.buffers.size(); ++b)
        if (role.buffers[b].space == space && role.buffers[b].scope == Scope::Rank)
          for (std::size_t s = 0; s < role.buffers[b].offsets.size(); ++s) {
            const std::int64_t from = role.buffers[b].offsets[s].value;
            visit(uses.block({static_cast<std::int32_t>(b)}, static_cast<std::int32_t>(s)), from,
                  from + role.buffers[b].bytes.value);
          }
    };
    std::vector<std::int64_t> cuts;
    each([&](std::size_t, std::int64_t from, std::int64_t to) { cuts.push_back(from), cuts.push_back(to); });
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    const auto index = [&](std::int64_t at) {
      return static_cast<std::size_t>(std::lower_bound(cuts.begin(), cuts.end(), at) - cuts.begin());
    };
    each([&](std::size_t block, std::int64_t from, std::int64_t to) { first_[block] = index(from), last_[block] = index(to); });
    pieces_.resize(cuts.size());
  }

  Piece* begin(std::size_t block) { return pieces_.data() + first_[block]; }
  Piece* end(std::size_t block) { return pieces_.data() + last_[block]; }

 private:
  std::vector<std::size_t> first_, last_;  // [block]; empty for blocks of other spaces
  std::vector<Piece> pieces_;
};

enum class Life : std::uint8_t { Unknown, Alive, Dead };
struct BlockState {
  Life life = Life::Unknown, at_start = Life::Unknown;
  std::int32_t acquired = -1, released = -1;  // steps; -1: before the first run
};

class LifeCheck {
 public:
  LifeCheck(const Plan& plan, RoleId id, const CheckOrder& order, const RoleUses& uses, Defects& defects)
      : plan_(plan),
        role_(plan.roles[id.index()]),
        id_(id),
        order_(order),
        uses_(uses),
        defects_(defects),
        streams_(static_cast<std::size_t>(order.streams())),
        blocks_(uses.blocks()),
        block_uses_(uses.blocks() * streams_, -1),
        writes_(uses.pieces(), -1),
        reads_(uses.pieces() * streams_, -1),
        buffer_of_(uses.blocks()) {
    for (const Space space : {Space::Device, Space::PinnedHost, Space::PageableHost, Space::Nvme})
      arenas_.emplace_back(role_, uses, space);
    for (std::size_t b = 0; b < role_.buffers.size(); ++b) {
      const BufferId buffer{static_cast<std::int32_t>(b)};
      for (std::size_t s = 0; s < role_.buffers[b].offsets.size(); ++s) {
        const std::size_t block = uses.block(buffer, static_cast<std::int32_t>(s));
        buffer_of_[block] = buffer;
        if (role_.buffers[b].resident) settle(buffer, static_cast<std::int32_t>(s));
      }
    }
    find_acquired();
  }

  // Where runs overlap, blocks that actions issued ahead acquired are alive between runs, the same ones each time, and none at the end of
  // the last run.
  void run() {
    std::vector<char> between;
    const bool overlaps = !role_.ahead.empty();
    int s = 0;
    for (std::size_t run = 0; run < order_.ends().size(); ++run) {
      for (; s < order_.ends()[run] && !defects_.full(); ++s) step(s);
      if (defects_.full()) return;
      const bool last = run + 1 == order_.ends().size();
      if (overlaps ? last : run == 0) check_end();
      if (!overlaps || last) continue;
      std::vector<char> alive(blocks_.size());
      for (std::size_t block = 0; block < alive.size(); ++block) alive[block] = blocks_[block].life == Life::Alive;
      if (run > 0 && alive != between)
        defects_.add("life-not-closed", "role " + std::to_string(id_.value) + " (" + role_.name + ")",
                     "other blocks are alive after one run than after the run before");
      between = std::move(alive);
    }
  }

 private:
  Arena& arena(BufferId buffer) { return arenas_[static_cast<std::size_t>(role_.buffers[buffer.index()].space)]; }
  bool ordered(std::int32_t earlier, std::int32_t here) const {
    return earlier < 0 || earlier == here || order_.before(earlier, here);
  }
  std::string name(BufferId buffer, std::int32_t slot) const { return block_name(role_, buffer, slot); }
  std::string name(std::size_t block) const {
    const BufferId buffer = buffer_of_[block];
    return name(buffer, static_cast<std::int32_t>(block - uses_.block(buffer, 0)));
  }
  std::string by(std::int32_t step) const {
    const CheckStep& s = order_.step(step);
    const SegmentId segment = role_.actions[static_cast<std::size_t>(s.action)].segment;
    const std::string& instruction = plan_.segments[segment.index()].instructions[static_cast<std::size_t>(s.instruction)].name;
    return "action " + std::to_string(s.action) + ", instruction " + std::to_string(s.instruction) +
           (instruction.empty() ? "" : " (" + instruction + ")") + (s.run > 0 ? " of the next run" : "");
  }
  void tell(const char* rule, std::int32_t here, std::string what) {
    const CheckStep& s = order_.step(here);
    if (s.run > 0) what += " (in the second run)";
    defects_.add(rule, id_, s.action, s.instruction, std::move(what));
  }

  void settle(BufferId buffer, std::int32_t slot) {  // marks a resident block as the owner for the whole run
    const auto block = static_cast<std::int32_t>(uses_.block(buffer, slot));
    for (Arena::Piece* piece = arena(buffer).begin(uses_.block(buffer, slot));
         piece != arena(buffer).end(uses_.block(buffer, slot)); ++piece) {
      if (piece->owner >= 0) {
        defects_.add(
            "shared-bytes-unordered", "role " + std::to_string(id_.value) + " (" + role_.name + ")",
            name(buffer, slot) + " and " + name(static_cast<std::size_t>(piece->owner)) + " are both resident and share bytes");
        return;
      }
      piece->owner = block;
    }
  }

  void find_acquired() {
    acquired_.assign(role_.buffers.size(), 0);
    std::vector<char> seen(plan_.segments.size(), 0);
    for (const Action& action : role_.actions) {
      if (std::exchange(seen[action.segment.index()], 1)) continue;
      for (const Instruction& instruction : plan_.segments[action.segment.index()].instructions)
        for (const Block& block : instruction.acquires) acquired_[block.buffer.index()] = 1;
    }
  }

  void step(std::int32_t here) {
    const CheckStep& s = order_.step(here);
    const Action& action = role_.actions[static_cast<std::size_t>(s.action)];
    const Instruction& instruction =
        plan_.segments[action.segment.index()].instructions[static_cast<std::size_t>(s.instruction)];
    for (const Block& block : instruction.acquires) acquire(here, block.buffer, value_of(block.slot, action));
    for (const RoleUses::Access& access : uses_.of(action.segment, s.instruction)) {
      if (role_.buffers[access.buffer.index()].scope == Scope::Device) continue;  // exclusive by its meaning
      use(here, access, value_of(access.slot, action));
    }
    for (const Block& block : instruction.releases) release(here, block.buffer, value_of(block.slot, action));
  }

  void acquire(std::int32_t here, BufferId buffer, std::int32_t slot) {
    const std::size_t block = uses_.block(buffer, slot);
    if (role_.buffers[buffer.index()].resident)
      return tell("resident-acquired", here, "acquires resident " + name(buffer, slot));
    BlockState& state = blocks_[block];
    if (state.life == Life::Unknown) state.at_start = Life::Dead;
    if (state.life == Life::Alive) {
      tell("double-acquire", here,
           "acquires " + name(buffer, slot) + ", which is alive since " +
               (state.acquired < 0 ? "the start of the run" : by(state.acquired)));
    } else if (!ordered(state.released, here)) {
      tell("reuse-unordered", here,
           "takes " + name(buffer, slot) + " without waiting for its release by " + by(state.released));
    } else {
      share(here, buffer, slot);
    }
    state.life = Life::Alive;
    state.acquired = here;
    for (Arena::Piece* piece = arena(buffer).begin(block); piece != arena(buffer).end(block); ++piece)
      piece->owner = static_cast<std::int32_t>(block);
  }

  void share(std::int32_t here, BufferId buffer, std::int32_t slot) {
    const std::size_t block = uses_.block(buffer, slot);
    for (const Arena::Piece* piece = arena(buffer).begin(block); piece != arena(buffer).end(block); ++piece) {
      if (piece->owner >= 0)
        return tell(
            "shared-bytes-unordered", here,
            name(buffer, slot) + " takes bytes of " + name(static_cast<std::size_t>(piece->owner)) + ", which is alive");
      if (!ordered(piece->released, here))
        return tell("shared-bytes-unordered", here,
                    name(buffer, slot) + " takes bytes without waiting for their release by " + by(piece->released));
    }
  }

  void use(std::int32_t here, const RoleUses::Access& access, std::int32_t slot) {
    const std::size_t block = uses_.block(access.buffer, slot);
    if (!role_.buffers[access.buffer.index()].resident) {
      if (!acquired_[access.buffer.index()])
        return tell("use-outside-life", here,
                    "uses " + name(access.buffer, slot) + ", which is neither resident nor ever acquired");
      enter(access.buffer, block);
      const BlockState& state = blocks_[block];
      if (state.life != Life::Alive)
        tell("use-outside-life", here, "uses " + name(access.buffer, slot) + " after its release by " + by(state.released));
      else if (!ordered(state.acquired, here))
        tell("use-outside-life", here,
             "uses " + name(access.buffer, slot) + " without waiting for its acquire by " + by(state.acquired));
      block_uses_[block * streams_ + static_cast<std::size_t>(order_.stream(here))] = here;
    }
    const std::size_t first = uses_.piece(access.buffer, slot) + static_cast<std::size_t>(access.first);
    for (std::size_t piece = first; piece < first + static_cast<std::size_t>(access.pieces); ++piece)
      touch(here, access, slot, piece);
  }

  // A block whose first instruction is a use or a release is carried over from the previous run.
  void enter(BufferId buffer, std::size_t block) {
    if (blocks_[block].life != Life::Unknown) return;
    blocks_[block].life = blocks_[block].at_start = Life::Alive;
    for (Arena::Piece* piece = arena(buffer).begin(block); piece != arena(buffer).end(block); ++piece)
      if (piece->owner < 0) piece->owner = static_cast<std::int32_t>(block);
  }

  void touch(std::int32_t here, const RoleUses::Access& access, std::int32_t slot, std::size_t piece) {
    const auto clash = [&](std::int32_t other, const char* did) {
      tell("access-unordered", here,
           std::string(access.write ? "writes " : "reads ") + name(access.buffer, slot) + " without waiting for what " + did +
               " it: " + by(other));
    };
    if (!ordered(writes_[piece], here)) clash(writes_[piece], "wrote");
    std::int32_t* reads = reads_.data() + piece * streams_;
    if (!access.write) {
      reads[order_.stream(here)] = here;
      return;
    }
    for (std::size_t s = 0; s < streams_; ++s) {
      if (!ordered(reads[s], here)) clash(reads[s], "reads");
      reads[s] = -1;
    }
    writes_[piece] = here;
  }

  void release(std::int32_t here, BufferId buffer, std::int32_t slot) {
    const std::size_t block = uses_.block(buffer, slot);
    if (role_.buffers[buffer.index()].resident)
      return tell("resident-acquired", here, "releases resident " + name(buffer, slot));
    enter(buffer, block);
    BlockState& state = blocks_[block];
    if (state.life != Life::Alive)
      return tell("release-without-acquire", here,
                  "releases " + name(buffer, slot) + ", which was released by " + by(state.released) + " already");
    if (!ordered(state.acquired, here))
      tell("release-unordered", here,
           "releases " + name(buffer, slot) + " without waiting for its acquire by " + by(state.acquired));
    for (std::size_t s = 0; s < streams_; ++s) {
      std::int32_t& last = block_uses_[block * streams_ + s];
      if (!ordered(last, here))
        tell("release-unordered", here, "releases " + name(buffer, slot) + " without waiting for its use by " + by(last));
      last = -1;
    }
    state.life = Life::Dead;
    state.released = here;
    for (Arena::Piece* piece = arena(buffer).begin(block); piece != arena(buffer).end(block); ++piece)
      if (piece->owner == static_cast<std::int32_t>(block)) *piece = {-1, here};
  }

  void check_end() {
    for (std::size_t block = 0; block < blocks_.size(); ++block)
      if (blocks_[block].life != blocks_[block].at_start)
        defects_.add(
            "life-not-closed", "role " + std::to_string(id_.value) + " (" + role_.name + ")",
            name(block) + (blocks_[block].life == Life::Alive ? " is alive at the end of the run and was not at its start"
                                                              : " is alive at the start of the run and not at its end"));
  }

  const Plan& plan_;
  const Role& role_;
  RoleId id_;
  const CheckOrder& order_;
  const RoleUses& uses_;
  Defects& defects_;
  std::size_t streams_;
  std::vector<Arena> arenas_;  // [Space]
  std::vector<BlockState> blocks_;
  std::vector<std::int32_t> block_uses_;  // [block][stream]: latest use in this life
  std::vector<std::int32_t> writes_;      // [piece]: latest
  std::vector<std::int32_t> reads_;       // [piece][stream]: latest since the latest write
  std::vector<BufferId> buffer_of_;       // [block]
  std::vector<char> acquired_;            // [buffer]: by some instruction
};

}  // namespace

void check_lives(const Plan& plan, RoleId role, const CheckOrder& runs, const RoleUses& uses, Defects& defects) {
  LifeCheck(plan, role, runs, uses, defects).run();
}

}  // namespace foreshard
