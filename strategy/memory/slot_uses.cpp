#include "strategy/memory/slot_uses.h"

#include <algorithm>
#include <boost/pending/disjoint_sets.hpp>
#include <utility>
#include <vector>

#include "core/base/at.h"

namespace foreshard {

namespace {

constexpr std::size_t kNobody = static_cast<std::size_t>(-1);

using Sets = boost::disjoint_sets_with_storage<>;  // of numbers from 0

class SlotUses {
 public:
  SlotUses(Plan& plan, RoleId id)
      : plan_(plan), role_(plan.roles[id.index()]), first_param_(plan.segments.size(), kNobody), kinds_(0), uses_(0) {
    std::size_t count = role_.buffers.size();
    for (const Action& action : role_.actions) {
      std::size_t& first = first_param_[action.segment.index()];
      if (first == kNobody) first = std::exchange(count, count + segment_of(action).params.size());
      first_argument_.push_back(arguments_);
      arguments_ += action.args.size();
    }
    kinds_ = Sets(count);
    uses_ = Sets(arguments_);
    is_used_.assign(arguments_, 0);
    fixed_.assign(count, 0);
  }

  bool number() {
    find_kinds();
    find_uses();
    return renumber();
  }

 private:
  const Segment& segment_of(const Action& action) const { return plan_.segments[action.segment.index()]; }

  // Buffers and parameters that number them, as sets: those of one set have one range of numbers. Sets that stay as they are: fixed_.
  void find_kinds() {
    for (std::size_t b = 0; b < role_.buffers.size(); ++b) {
      const Buffer& buffer = role_.buffers[b];
      fixed_[b] = buffer.resident || buffer.space != Space::Device || buffer.scope != Scope::Rank;
    }
    for (std::size_t s = 0; s < first_param_.size(); ++s)
      if (first_param_[s] != kNobody) find_kinds(plan_.segments[s], first_param_[s]);
    for (std::size_t i = 0; i < fixed_.size(); ++i)
      if (fixed_[i]) fixed_[kinds_.find_set(i)] = 1;
  }
  void find_kinds(const Segment& segment, std::size_t first) {
    for (std::size_t p = 0; p < segment.params.size(); ++p)
      if (segment.params[p].kind != ParamKind::Slot) fixed_[first + p] = 1;
    const auto note = [&](BufferId buffer, const Slot& slot) {
      if (const auto* param = std::get_if<ParamId>(&slot.which))
        kinds_.union_set(buffer.index(), first + param->index());
      else
        fixed_[buffer.index()] = 1;
    };
    for (const Instruction& run : segment.instructions) {
      for (const auto* blocks : {&run.acquires, &run.releases})
        for (const Block& block : *blocks) note(block.buffer, block.slot);
      for (const auto* uses : {&run.reads, &run.writes})
        for (const Use& use : *uses) note(use.buffer, use.slot);
      for (const auto* events : {&run.waits, &run.records})
        for (const EventUse& event : *events)
          if (const auto* param = std::get_if<ParamId>(&event.slot.which)) fixed_[first + param->index()] = 1;
    }
  }
  bool is_fixed(std::size_t kind) { return fixed_[kinds_.find_set(kind)] != 0; }

  // Arguments that name one use of a slot, as sets: those by which a block is acquired, used and released.
  void find_uses() {
    std::vector<std::vector<std::size_t>> now(role_.buffers.size()), early = now;  // [buffer][slot]: an argument
    for (std::size_t b = 0; b < now.size(); ++b) now[b].assign(role_.buffers[b].offsets.size(), kNobody), early[b] = now[b];
    for (std::size_t a = 0; a < role_.actions.size(); ++a) {
      const Action& action = role_.actions[a];
      const auto touch = [&](BufferId buffer, const Slot& slot) -> std::size_t* {  // who uses the block now
        const auto* param = std::get_if<ParamId>(&slot.which);
        if (param == nullptr || is_fixed(buffer.index())) return nullptr;
        const std::size_t argument = first_argument_[a] + param->index();
        is_used_[argument] = 1;
        const std::size_t number = at(value_of(slot, action));
        std::size_t& user =
            now[buffer.index()][number] == kNobody ? early[buffer.index()][number] : now[buffer.index()][number];
        if (user == kNobody)
          user = argument;
        else
          uses_.union_set(user, argument);
        return &now[buffer.index()][number];
      };
      for (const Instruction& run : segment_of(action).instructions) {
        for (const Block& block : run.acquires) {
          const auto* param = std::get_if<ParamId>(&block.slot.which);
          if (param == nullptr || is_fixed(block.buffer.index())) continue;
          now[block.buffer.index()][at(value_of(block.slot, action))] = first_argument_[a] + param->index();
          is_used_[first_argument_[a] + param->index()] = 1;
        }
        for (const auto* uses : {&run.reads, &run.writes})
          for (const Use& use : *uses) touch(use.buffer, use.slot);
        for (const Block& block : run.releases)
          if (std::size_t* user = touch(block.buffer, block.slot)) *user = kNobody;
      }
    }
    for (std::size_t b = 0; b < now.size(); ++b)  // what is alive at the end is alive at the start of the next run
      for (std::size_t slot = 0; slot < now[b].size(); ++slot)
        if (now[b][slot] != kNobody && early[b][slot] != kNobody) uses_.union_set(now[b][slot], early[b][slot]);
  }

  bool renumber() {
    std::vector<std::int32_t> slots(fixed_.size(), 0), before = slots;  // [kind]: how many there are now, and were
    for (std::size_t b = 0; b < role_.buffers.size(); ++b) {
      std::int32_t& count = before[kinds_.find_set(b)];
      count = std::max(count, static_cast<std::int32_t>(role_.buffers[b].offsets.size()));
    }
    std::vector<std::int32_t> numbers(arguments_, -1);  // [use]
    for (std::size_t a = 0; a < role_.actions.size(); ++a) {
      Action& action = role_.actions[a];
      for (std::size_t p = 0; p < action.args.size(); ++p) {
        if (is_used_[first_argument_[a] + p] == 0) continue;
        std::int32_t& number = numbers[uses_.find_set(first_argument_[a] + p)];
        if (number < 0) number = slots[kinds_.find_set(first_param_[action.segment.index()] + p)]++;
        action.args[p] = number;
      }
    }
    bool more = false;
    for (std::size_t b = 0; b < role_.buffers.size(); ++b) {
      const std::size_t kind = kinds_.find_set(b);
      if (slots[kind] == 0) continue;
      role_.buffers[b].offsets.assign(at(slots[kind]), Bytes{});
      more = more || slots[kind] > before[kind];
    }
    return more;
  }

  Plan& plan_;
  Role& role_;
  std::vector<std::size_t> first_param_ =
      {};  // [segment]: number of its first parameter; buffers have the numbers before these
  std::vector<std::size_t> first_argument_ = {};  // [action]
  std::size_t arguments_ = 0;
  Sets kinds_, uses_;
  std::vector<char> fixed_ = {};    // [buffer or parameter]
  std::vector<char> is_used_ = {};  // [argument]: names a block that it acquires, uses or releases
};

}  // namespace

bool number_uses(Plan& plan, RoleId role) { return SlotUses(plan, role).number(); }

}  // namespace foreshard
