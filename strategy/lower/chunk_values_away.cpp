// Homes of values that leave the device between their forward and their backward.
//
//   rows    a place of a few that all layers of a kind share, from the forward on and again in the backward
//   moves   two places of its own, one in the forward and one in the backward: the memory planner packs them with what lives at other times
#include <algorithm>

#include "core/base/at.h"
#include "strategy/lower/chunk_values.h"

namespace foreshard {

// For each micro-batch in flight.
BufferId ChunkValues::away_from(int l, int value, Space space) {
  const ChunkLayer& of = layers[at(l)];
  const Value& shape = of.graph->values[at(value)];
  const BufferId home = frame_.add_buffer(frame_.role.layers[of.id.index()] + "." + shape.name + ".away", Category::Activations,
                                          shape.dtype, shape.bytes, slots_.activation);
  frame_.role.buffers[home.index()].space = space;
  return home;
}

// The input of a layer goes where the row of that layer says; the chunk's own input and output wait in their rings.
Space ChunkValues::space_of(int l, int value) const {
  const bool border = value == layer(l).graph->output;
  if (border && is_last(l)) return Space::Device;
  const ActivationRow* of = row(border ? l + 1 : l);
  return !of || (of->inputs_only && !border) ? Space::Device : of->home;
}

// One place of a few that all layers share, and a home of its own for each micro-batch in flight.
Block ChunkValues::passing_home(int l, int value, Space space) {
  ChunkLayer& of = layers[static_cast<std::size_t>(l)];
  const Value& shape = of.graph->values[static_cast<std::size_t>(value)];
  const bool border = value == of.graph->output;
  const int kind = static_cast<int>(of.graph - frame_.lowering.graph.kinds.data());
  const int places = border ? 3 : 2;
  BufferId& place = passing_[border ? std::pair{-1, 0} : std::pair{kind, value}];
  if (!place.valid())
    place = frame_.add_buffer((border ? "border" : of.graph->kind + "." + shape.name) + ".passing", Category::Activations,
                              shape.dtype, shape.bytes, places);
  Bytes& room = frame_.role.buffers[place.index()].bytes;
  room = std::max(room, shape.bytes);
  const BufferId home = away_from(l, value, space);
  // Whoever reads it first in the backward fetches it: of an input the layer behind.
  ChunkLayer& reader = border ? layers[static_cast<std::size_t>(l) + 1] : of;
  reader.away[border ? static_cast<std::size_t>(reader.graph->input) : static_cast<std::size_t>(value)] = {
      home, {ChunkArgs::activation}};
  return {place, {l % places}};
}

const ValueMove* ChunkValues::move_of(int l, int value) const {
  const std::vector<ValueMove>& moves = frame_.lowering.tables.activations.moves;
  const int layer = frame_.first_layer() + l;
  const auto found =
      std::ranges::find_if(moves, [&](const ValueMove& move) { return move.layer == layer && move.value == value; });
  return found == moves.end() ? nullptr : &*found;
}

Block ChunkValues::moved_home(int l, int value, const ValueMove& move) {
  ChunkLayer& of = layers[at(l)];
  const Value& shape = of.graph->values[at(value)];
  const std::string name = frame_.role.layers[of.id.index()] + "." + shape.name;
  const auto add = [&](const std::string& tail) {
    return Block{frame_.add_buffer(name + tail, Category::Activations, shape.dtype, shape.bytes, 1), {0}};
  };
  const auto here = [&](ValueMove::At place) { return ValueMove::At{place.layer - frame_.first_layer(), place.op}; };
  const bool border = value == of.graph->output;
  MovedValue& moved_value = moved.emplace_back(MovedValue{.layer = border ? l + 1 : l, .value = value, .move = &move});
  if (border) moved_value.value = layers[at(l) + 1].graph->input;
  moved_value.leaves = here(move.leaves), moved_value.returns = here(move.returns);
  moved_value.here = add(""), moved_value.back = add(".back");
  moved_value.away = {away_from(l, value, move.home), {ChunkArgs::activation}};
  ChunkLayer& reader = layers[at(moved_value.layer)];
  reader.away[at(moved_value.value)] = moved_value.away;
  reader.back[at(moved_value.value)] = of.back[at(value)] = moved_value.back;
  return moved_value.here;
}

}  // namespace foreshard
