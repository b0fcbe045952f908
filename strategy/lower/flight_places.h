// Assigns a buffer slot to each micro-batch in flight, going through the actions of a rank in order. Internal to strategy/.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

namespace foreshard {

// The slots of one ring buffer, taken and given back by keys. A key is a micro-batch; for the pool that all chunks share, a pair of
// micro-batch and chunk as one number.
struct FlightPlaces {
  std::deque<int> free = {};          // slots in the order in which they will be taken
  std::vector<std::int32_t> of = {};  // [key]: its slot
  bool fixed = false;

  void fill(int slots, int keys) {
    for (int slot = 0; slot < slots; ++slot) free.push_back(slot);
    of.assign(static_cast<std::size_t>(keys), 0);
  }
  // Every key has its slot for good: the runs overlap, and each of them has these.
  template <class SlotOf>
  void fix(int keys, SlotOf slot_of) {
    fixed = true;
    for (int key = 0; key < keys; ++key) of.push_back(slot_of(key));
  }
  int at(int key) const { return of[static_cast<std::size_t>(key)]; }
  // The slot given back last is taken first. So the higher slots stay free for long, and the memory planner lets rings share their bytes.
  void take(int key) {
    if (!fixed) of[static_cast<std::size_t>(key)] = free.front(), free.pop_front();
  }
  void give_back(int key) {
    if (!fixed) free.push_front(at(key));
  }
};
// Slots of activations until the last gradients that read them (kept), until the input gradients (early), and of what lives between input
// and weight gradients (deferred).
struct FlightRings {
  FlightPlaces kept = {}, early = {}, deferred = {};
  bool one_place = false;  // early and deferred use the slot numbers of kept
  int early_at(int key) const { return one_place ? kept.at(key) : early.at(key); }
  int deferred_at(int key) const { return one_place ? kept.at(key) : deferred.at(key); }
};

}  // namespace foreshard
