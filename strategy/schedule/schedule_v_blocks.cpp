// V-Half and V-Min (Qi et al. 2024, "Pipeline Parallelism with Controllable Memory", arXiv:2405.15362): the placement of zb-v with about
// half, or a third, of its activations. Time is cut into slots of one action. Every micro-batch repeats a building block of four actions
// six slots later; weight gradients take free slots after their input gradients; then each action, earliest first, moves to the first free
// slot after the actions that it depends on that does not raise the memory peak (docs/schedules.md, "Less memory on a V").
#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

#include "core/base/at.h"
#include "strategy/schedule/schedule_rules.h"

namespace foreshard {

namespace {

constexpr int kPeriod = 6;  // slots: four actions and two weight gradients
enum Kind : std::int8_t { Free = -1, F0, F1, I1, I0 };

struct Block {
  int slots[4];  // of F0, F1, I1, I0 of micro-batch 0
};
Block v_half_block(int p, int r) {
  const int d = p % 2 == 0 ? 3 : 0;
  return {{2 * r, 3 * p - r - 2, 3 * p + d + 2 * r - 1, 6 * p + d - r - 2}};
}
Block v_min_block(int p, int r) {
  const int d = p % 3 == 0 ? 2 : 0;
  return {{r, 2 * p - r - 1, 2 * p + d + r, 4 * p + d - r - 1}};
}

// The slots of one rank. Keeps, for the end of each slot, the number of deferred weight gradients per chunk and of chunks in flight, if
// every free slot runs a deferred weight gradient, those of chunk 1 first. After a move these are computed again from the moved slot on,
// until they equal the old ones.
class RankSlots {
 public:
  struct State {
    int waiting[2] = {}, flight = 0;
    bool operator==(const State&) const = default;
  };

  void put(Kind kind, int slot) {
    if (static_cast<std::size_t>(slot) >= kinds_.size()) kinds_.resize(static_cast<std::size_t>(slot) + 1, Free);
    FS_ASSERT(kinds_[static_cast<std::size_t>(slot)] == Free);
    kinds_[static_cast<std::size_t>(slot)] = kind;
  }
  bool is_free(int slot) const { return kinds_[static_cast<std::size_t>(slot)] == Free; }

  int find_states() {  // the peak
    states_.resize(kinds_.size());
    State now;
    int peak = 0;
    for (std::size_t slot = 0; slot < kinds_.size(); ++slot) {
      now = after(now, kinds_[slot]);
      states_[slot] = now;
      peak = std::max(peak, now.flight);
    }
    return peak;
  }

  // Moves the action in slot `from` to the free slot `to` before it, unless more than `cap` chunks would be in flight in some slot.
  bool move(int from, int to, int cap) {
    const auto source = static_cast<std::size_t>(from), target = static_cast<std::size_t>(to);
    std::swap(kinds_[source], kinds_[target]);
    changed_.clear();
    State now = to > 0 ? states_[target - 1] : State{};
    for (std::size_t slot = target; slot < kinds_.size(); ++slot) {
      now = after(now, kinds_[slot]);
      if (now.flight > cap) {
        std::swap(kinds_[source], kinds_[target]);
        return false;
      }
      if (slot > source && now == states_[slot]) break;
      changed_.push_back(now);
    }
    std::copy(changed_.begin(), changed_.end(), states_.begin() + to);
    return true;
  }

  // The list of the rank, weight gradients included. `stages`: the stages of its two chunks.
  std::vector<ScheduleOp> list(const std::array<int, 2>& stages) const {
    std::vector<ScheduleOp> ops;
    std::array<int, 4> next = {};
    std::array<int, 2> waiting = {}, done = {};
    const auto weights = [&] {
      const std::size_t chunk = waiting[1] > 0 ? 1 : 0;
      if (waiting[chunk] == 0) return false;
      --waiting[chunk];
      ops.push_back({Work::W, stages[chunk], done[chunk]++});
      return true;
    };
    for (const Kind kind : kinds_) {
      if (kind == Free) {
        weights();
        continue;
      }
      const std::size_t chunk = kind == F1 || kind == I1;
      ops.push_back({kind == F0 || kind == F1 ? Work::F : Work::I, stages[chunk], next[static_cast<std::size_t>(kind)]++});
      if (kind == I0 || kind == I1) ++waiting[chunk];
    }
    while (weights()) {
    }
    return ops;
  }

 private:
  static State after(State now, Kind kind) {
    switch (kind) {
      case F0:
      case F1: ++now.flight; break;
      case I0: ++now.waiting[0]; break;
      case I1: ++now.waiting[1]; break;
      case Free:
        if (int& waiting = now.waiting[now.waiting[1] > 0 ? 1 : 0]; waiting > 0) --waiting, --now.flight;
    }
    return now;
  }

  std::vector<Kind> kinds_ = {};
  std::vector<State> states_ = {}, changed_ = {};
};

class Blocks {
 public:
  Blocks(const ScheduleShape& shape, Block (*block)(int, int)) : p_(shape.p), m_(shape.m), ranks_(at(p_)) {
    slots_.resize(at(p_) * 4 * at(m_));
    for (int r = 0; r < p_; ++r) {
      const Block first = block(p_, r);
      for (int i = 0; i < m_; ++i)
        for (const Kind kind : {F0, F1, I1, I0}) {
          slot(r, kind, i) = first.slots[kind] + kPeriod * i;
          ranks_[at(r)].put(kind, slot(r, kind, i));
        }
      cap_ = std::max(cap_, ranks_[at(r)].find_states());
    }
  }

  void compact() {
    struct Entry {
      int slot, rank;
      Kind kind;
      int microbatch;
    };
    std::vector<Entry> order;
    order.reserve(slots_.size());
    for (int r = 0; r < p_; ++r)
      for (const Kind kind : {F0, F1, I1, I0})
        for (int i = 0; i < m_; ++i) order.push_back({slot(r, kind, i), r, kind, i});
    std::sort(order.begin(), order.end(),
              [](const Entry& a, const Entry& b) { return std::tie(a.slot, a.rank) < std::tie(b.slot, b.rank); });
    for (const Entry& entry : order) {
      RankSlots& slots = ranks_[at(entry.rank)];
      for (int to = earliest(entry.rank, entry.kind, entry.microbatch); to < entry.slot; ++to) {
        if (!slots.is_free(to) || !slots.move(entry.slot, to, cap_)) continue;
        slot(entry.rank, entry.kind, entry.microbatch) = to;
        break;
      }
    }
  }

  ScheduleLists lists() const {
    ScheduleLists result;
    for (int r = 0; r < p_; ++r) result.push_back(ranks_[at(r)].list({v_stage(r, 0, p_), v_stage(r, 1, p_)}));
    return result;
  }

 private:
  int& slot(int rank, Kind kind, int microbatch) {
    return slots_[(at(rank) * 4 + static_cast<std::size_t>(kind)) * at(m_) + at(microbatch)];
  }
  int earliest(int rank, Kind kind, int microbatch) {
    int first = 0;
    const auto behind = [&](int other, Kind before, int i) {
      if (other >= 0 && other < p_ && i >= 0) first = std::max(first, slot(other, before, i) + 1);
    };
    behind(rank, kind, microbatch - 1);
    behind(kind == F0 || kind == I1 ? rank - 1 : rank + 1, kind, microbatch);
    if (kind != F0) behind(rank, static_cast<Kind>(kind - 1), microbatch);  // F0, F1, I1, I0
    return first;
  }

  int p_, m_, cap_ = 0;
  std::vector<RankSlots> ranks_;
  std::vector<int> slots_ = {};  // [rank][kind][micro-batch]
};

ScheduleLists compacted(const ScheduleShape& shape, Block (*block)(int, int)) {
  Blocks blocks(shape, block);
  blocks.compact();
  return blocks.lists();
}

}  // namespace

ScheduleEntry v_half_schedule() {
  return {.id = Schedule::VHalf,
          .name = name_of(Schedule::VHalf),
          .summary = "the placement of zb-v with half of its activations: about half the idle time of 1f1b",
          .chunks = Chunks::Two,
          .refuse = [](const ScheduleShape& shape) { return refuse_all_but_two(shape, "v-half"); },
          .lists = [](const ScheduleShape& shape) { return compacted(shape, v_half_block); },
          .rank_of_stage = v_placement,
          .stage_of = v_stage,
          .splits = true,
          .in_flight = [](const FlightShape& s) { return std::min(s.m * s.v, s.p + 2); },
          .idle = [](const FillTimes& t) { return (t.forward + t.input_grad + t.weight_grad) / 2; },
          .idle_hops = [](int p) { return p > 1 ? 5 * p - 7 : 0; }};
}

ScheduleEntry v_min_schedule() {
  return {.id = Schedule::VMin,
          .name = name_of(Schedule::VMin),
          .summary = "the placement of zb-v with a third of its activations: about two thirds of the idle time of 1f1b",
          .chunks = Chunks::Two,
          .refuse = [](const ScheduleShape& shape) { return refuse_all_but_two(shape, "v-min"); },
          .lists = [](const ScheduleShape& shape) { return compacted(shape, v_min_block); },
          .rank_of_stage = v_placement,
          .stage_of = v_stage,
          .splits = true,
          .in_flight = [](const FlightShape& s) { return std::min(s.m * s.v, 2 * std::floor((s.p + 1) / 3) + 2); },
          .idle = [](const FillTimes& t) { return (t.forward + t.input_grad + t.weight_grad) * 2 / 3; },
          .idle_hops = [](int p) { return p > 1 ? 5 * p - 7 : 0; }};
}

}  // namespace foreshard
