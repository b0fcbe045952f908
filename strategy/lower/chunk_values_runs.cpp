// Homes under a recomputation schedule. Every life of a value has a place:
//
//   from the forward to the backward        its home, one for each micro-batch in flight
//   inside the forward                      its home, or the scratch places of the layer's kind
//   inside the backward, one layer running  the scratch places of the layer's kind
//   inside the backward, past others        a place of its own: "<layer>.<value>.again"
#include <algorithm>

#include "core/base/at.h"
#include "strategy/lower/chunk_values.h"

namespace foreshard {

void ChunkValues::keep_by_runs() {
  runs = &frame_.lowering.tables.activations.runs_of_stage[at(frame_.stage)];
  StageLayers graphs;
  std::vector<std::vector<int>> names;
  keeps_.clear();
  for (ChunkLayer& layer : layers) {
    graphs.push_back(layer.graph);
    names.push_back(keep_rule(*layer.graph, {}).same_as);
    KeepRule rule{.same_as = names.back()};
    rule.stored.assign(layer.graph->values.size(), 0), rule.redone.assign(layer.graph->operators.size(), 0);
    keeps_.push_back(std::move(rule));
  }
  lives = lives_of(graphs, names, *runs);
  for (const ValueLife& life : lives.all) {
    if (!crosses(life)) continue;
    keeps_[at(life.layer)].stored[at(life.value)] = 1;
    if (life.value == graphs[at(life.layer)]->output && at(life.layer) + 1 < layers.size())
      keeps_[at(life.layer) + 1].stored[at(graphs[at(life.layer) + 1]->input)] = 1;
  }
  for (std::size_t k = at(runs->turn); k < runs->runs.size(); ++k)
    if (const OpRun& run = runs->runs[k]; !run.backward) keeps_[at(run.layer)].redone[at(run.op)] = 1;
  for (std::size_t l = 0; l < layers.size(); ++l) layers[l].keep = &keeps_[l];
}

Block ChunkValues::place_of(int life) {
  const ValueLife& it = lives.all[at(life)];
  const ChunkLayer& layer = layers[at(it.layer)];
  if (it.from < runs->turn) return layer.home[at(it.value)];
  const bool border = it.value == layer.graph->output;
  bool alone = true;
  for (int k = it.from; k <= it.to; ++k) {
    const int running = runs->runs[at(k)].layer;
    alone &= running == it.layer || (border && running == it.layer + 1);
  }
  if (alone && border) return {border_value, {it.layer % 2}};
  if (alone) return {scratch(*layer.graph, it.value, false), {0}};
  BufferId& known = again_[{it.layer, it.value}];
  if (!known.valid()) {
    const Value& shape = layer.graph->values[at(it.value)];
    known = frame_.add_buffer(frame_.role.layers[layer.id.index()] + "." + shape.name + ".again", Category::Activations,
                              shape.dtype, shape.bytes, 1);
  }
  return {known, {0}};
}

}  // namespace foreshard
