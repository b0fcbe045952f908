// Which places the micro-batches in flight have, in the order of a rank's actions. Internal to strategy/.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

namespace foreshard {

// Places of the micro-batches of one chunk: of what lives until the (weight) gradients, until the input gradients, between the
// two.
struct FlightPlaces {
  std::deque<int> free = {};
  std::vector<std::int32_t> of = {};  // [micro-batch; of all chunks together: of micro-batch and chunk]

  void fill(int slots, int keys) {
    for (int slot = 0; slot < slots; ++slot) free.push_back(slot);
    of.assign(static_cast<std::size_t>(keys), 0);
  }
  int at(int key) const { return of[static_cast<std::size_t>(key)]; }
  // The place given back last comes first, so that the higher ones are free for long: the memory planner lets rings share them.
  void take(int key) { of[static_cast<std::size_t>(key)] = free.front(), free.pop_front(); }
  void give_back(int key) { free.push_front(at(key)); }
};
struct FlightRings {
  FlightPlaces kept = {}, early = {}, deferred = {};
  bool one_place = false;  // early and deferred are numbered as kept
  int early_at(int key) const { return one_place ? kept.at(key) : early.at(key); }
  int deferred_at(int key) const { return one_place ? kept.at(key) : deferred.at(key); }
};

}  // namespace foreshard
