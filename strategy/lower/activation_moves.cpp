#include "strategy/lower/activation_moves.h"

#include <algorithm>

namespace foreshard {

// A place has room for the largest value that passes through it.
static Use first_bytes(const Block& block, Bytes bytes) {
  return {.buffer = block.buffer, .slot = block.slot, .length = bytes};
}

void ActivationMoves::add_events() {
  for (const ChunkLayer& layer : values_.layers) {
    for (std::size_t v = 0; v < layer.away.size(); ++v) {
      if (!layer.away[v].buffer.valid()) continue;
      const Block& place = layer.home[v];
      const Buffer& here = frame_.role.buffers[place.buffer.index()];
      if (const auto [known, fresh] = free_.try_emplace(place.buffer.value); fresh)
        known->second = frame_.add_event(here.name + "_free", static_cast<int>(here.offsets.size()));
    }
  }
}

void ActivationMoves::begin() { met_.clear(); }

bool ActivationMoves::first_here(const Block& block) {
  const std::pair<std::int32_t, std::int32_t> place{block.buffer.value, std::get<std::int32_t>(block.slot.which)};
  if (std::ranges::find(met_, place) != met_.end()) return false;
  met_.push_back(place);
  return true;
}

void ActivationMoves::before_write(Instruction& run, int layer, int value) {
  const Block& place = values_.layer(layer).home[values_.layer(layer).real(value)];
  if (free_.contains(place.buffer.value) && first_here(place)) run.waits.push_back(free(place));
}

void ActivationMoves::send(SegmentBuilder& out, int layer, int value) {
  const ChunkLayer& of = values_.layer(layer);
  const Block &place = of.home[of.real(value)], &home = of.away[of.real(value)];
  out.emit({.name = "to host",
            .what = Copy{.bytes = values_.bytes(home)},
            .stream = frame_.copy_way(frame_.role.buffers[home.buffer.index()].space, true).stream,
            .layer = of.id,
            .records = {free(place)},
            .reads = {first_bytes(place, values_.bytes(home))},
            .writes = {whole(home)},
            .acquires = {home}});
  out.release(place);
}

void ActivationMoves::fetch(SegmentBuilder& out, int layer) {
  if (layer < 0) return;
  const ChunkLayer& of = values_.layer(layer);
  for (std::size_t v = 0; v < of.away.size(); ++v) {
    if (!of.away[v].buffer.valid()) continue;
    const Block &place = of.home[v], &home = of.away[v];
    Instruction copy{.name = "from host",
                     .what = Copy{.bytes = values_.bytes(home)},
                     .stream = frame_.copy_way(frame_.role.buffers[home.buffer.index()].space, false).stream,
                     .layer = of.id,
                     .reads = {whole(home)},
                     .writes = {first_bytes(place, values_.bytes(home))},
                     .acquires = {place},
                     .releases = {home}};
    if (first_here(place)) copy.waits.push_back(free(place));
    out.emit(std::move(copy));
  }
}

void ActivationMoves::release(SegmentBuilder& out, const Block& block) const {
  if (free_.contains(block.buffer.value)) out.record_after_last_use(block, free(block));
  out.release(block);
}

}  // namespace foreshard
