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
      if (!layer.away[v].buffer.valid() || layer.back[v].buffer.valid()) continue;
      const Block& place = layer.home[v];
      const Buffer& here = frame_.role.buffers[place.buffer.index()];
      const auto [known, fresh] = free_.try_emplace(place.buffer.value);
      if (!fresh) continue;
      known->second = frame_.add_event(here.name + "_free", static_cast<int>(here.offsets.size()));
      if (frame_.lowering.tables.schedule.asynchronous())
        left_[place.buffer.value] = frame_.add_event(here.name + "_left", static_cast<int>(here.offsets.size()));
    }
  }
}

void ActivationMoves::wait_until_free(Instruction& run, const Block& place) const {
  run.waits.push_back(free(place));
  if (left_.contains(place.buffer.value)) run.waits.push_back(left(place));
}

void ActivationMoves::begin() { met_.clear(), awaited_ = -1; }

bool ActivationMoves::first_here(const Block& block) {
  const std::pair<std::int32_t, std::int32_t> place{block.buffer.value, std::get<std::int32_t>(block.slot.which)};
  if (std::ranges::find(met_, place) != met_.end()) return false;
  met_.push_back(place);
  return true;
}

void ActivationMoves::before_write(Instruction& run, int layer, int value) {
  const Block& place = values_.layer(layer).home[values_.layer(layer).real(value)];
  if (free_.contains(place.buffer.value) && first_here(place)) wait_until_free(run, place);
}

void ActivationMoves::send(SegmentBuilder& out, int layer, int value) {
  const ChunkLayer& of = values_.layer(layer);
  const Block &place = of.home[of.real(value)], &home = of.away[of.real(value)];
  const bool passes = free_.contains(place.buffer.value);
  Instruction copy{.name = "to host",
                   .what = Copy{.bytes = values_.bytes(home)},
                   .stream = frame_.copy_way(frame_.role.buffers[home.buffer.index()].space, true).stream,
                   .layer = of.id,
                   .reads = {first_bytes(place, values_.bytes(home))},
                   .writes = {whole(home)},
                   .acquires = {home}};
  if (passes) copy.records = {left_.empty() ? free(place) : left(place)};
  out.emit(std::move(copy));
  if (passes) out.release(place);  // else its move says when
}

void ActivationMoves::after_forward(SegmentBuilder& out, int layer, int op) {
  const ValueMove::At here{layer, op};
  if (std::ranges::find(values_.moved, here, &MovedValue::leaves) == values_.moved.end()) return;
  const int mark =
      out.emit({.name = "are in the host", .what = Mark{}, .stream = kComputeStream, .layer = values_.layer(layer).id});
  for (const MovedValue& value : values_.moved)
    if (value.leaves == here) out.use_until(value.here, mark), out.release(value.here);
}

void ActivationMoves::before_backward(SegmentBuilder& out, int layer, int op) {
  const ValueMove::At here{layer, op};
  if (std::ranges::find(values_.moved, here, &MovedValue::returns) == values_.moved.end()) return;
  const int mark = out.emit({.name = "return", .what = Mark{}, .stream = kComputeStream, .layer = values_.layer(layer).id});
  for (const MovedValue& value : values_.moved) {
    if (value.returns != here) continue;
    out.at(mark).acquires.push_back(value.back);
    const int copy = out.emit({.name = "from host",
                               .what = Copy{.bytes = values_.bytes(value.away)},
                               .stream = frame_.copy_way(value.move->home, false).stream,
                               .layer = values_.layer(value.layer).id,
                               .after = {mark},
                               .reads = {whole(value.away)},
                               .writes = {whole(value.back)},
                               .releases = {value.away}});
    if (value.move->computes_wait_back) awaited_ = copy;
  }
}

void ActivationMoves::after_backward(SegmentBuilder& out) {
  if (awaited_ < 0) return;
  out.emit({.name = "are back", .what = Mark{}, .stream = kComputeStream, .after = {awaited_}});
  awaited_ = -1;
}

void ActivationMoves::fetch(SegmentBuilder& out, int layer) {
  if (layer < 0) return;
  const ChunkLayer& of = values_.layer(layer);
  for (std::size_t v = 0; v < of.away.size(); ++v) {
    if (!of.away[v].buffer.valid() || of.back[v].buffer.valid()) continue;
    const Block &place = of.home[v], &home = of.away[v];
    Instruction copy{.name = "from host",
                     .what = Copy{.bytes = values_.bytes(home)},
                     .stream = frame_.copy_way(frame_.role.buffers[home.buffer.index()].space, false).stream,
                     .layer = of.id,
                     .reads = {whole(home)},
                     .writes = {first_bytes(place, values_.bytes(home))},
                     .acquires = {place},
                     .releases = {home}};
    if (first_here(place)) wait_until_free(copy, place);
    out.emit(std::move(copy));
  }
}

void ActivationMoves::release(SegmentBuilder& out, const Block& block) const {
  if (free_.contains(block.buffer.value)) out.record_after_last_use(block, free(block));
  out.release(block);
}

}  // namespace foreshard
