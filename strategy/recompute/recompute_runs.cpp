#include "strategy/recompute/recompute_runs.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/base/at.h"
#include "core/base/error.h"

namespace foreshard {

namespace {

bool runs_forward(const Operator& op) { return !op.communication || op.communication->forward.has_value(); }
bool in_place(const Operator& op) { return op.communication && op.outputs.empty(); }

// [value]: the operator that computes it; -1: it is the layer's input, or equal to another value (KeepRule::same_as).
std::vector<int> makers(const LayerGraph& layer) {
  std::vector<int> maker(layer.values.size(), -1);
  for (std::size_t i = 0; i < layer.operators.size(); ++i)
    for (const int value : layer.operators[i].outputs)
      if (runs_forward(layer.operators[i])) maker[at(value)] = static_cast<int>(i);
  return maker;
}

// The input of a communication that does nothing in the forward, for its output; other values themselves.
int real(const LayerGraph& layer, int value) {
  for (const Operator& op : layer.operators)
    if (!runs_forward(op) && !op.outputs.empty() && op.outputs[0] == value) return real(layer, op.inputs[0]);
  return value;
}

void run_layer(const LayerGraph& layer, int index, std::vector<OpRun>& runs) {
  for (std::size_t i = 0; i < layer.operators.size(); ++i)
    if (runs_forward(layer.operators[i])) runs.push_back({index, static_cast<int>(i)});
}

// Appends the backwards of a layer. `regathers`: recomputes operators marked always_recompute before the first backward that reads them.
void run_back(const LayerGraph& layer, int index, bool regathers, std::vector<OpRun>& runs) {
  const std::vector<int> maker = makers(layer);
  std::vector<char> there(layer.operators.size(), 0);
  for (int i = static_cast<int>(layer.operators.size()) - 1; i >= 0; --i) {
    for (const int saved : layer.operators[at(i)].saved) {
      const int from = maker[at(real(layer, saved))];
      if (!regathers || from < 0 || !layer.operators[at(from)].always_recompute || there[at(from)]) continue;
      there[at(from)] = 1;
      runs.push_back({index, from});
    }
    runs.push_back({index, i, true});
  }
}

// Removes recomputed forwards whose results no run reads: at the end of a layer whose backward follows, for instance.
StageRuns without_idle(const StageLayers& layers, StageRuns stage) {
  std::set<std::pair<int, int>> wanted;
  const auto name = [&](int layer, int value) {
    const int known = real(*layers[at(layer)], value);
    return layer > 0 && known == layers[at(layer)]->input ? std::pair{layer - 1, layers[at(layer) - 1]->output}
                                                          : std::pair{layer, known};
  };
  std::vector<OpRun> kept;
  for (std::size_t k = stage.runs.size(); k-- > at(stage.turn);) {
    const OpRun& run = stage.runs[k];
    const Operator& op = layers[at(run.layer)]->operators[at(run.op)];
    const std::vector<int>& makes = in_place(op) ? op.inputs : op.outputs;
    const bool read =
        std::any_of(makes.begin(), makes.end(), [&](int value) { return wanted.contains(name(run.layer, value)); });
    if (!run.backward && !read) continue;
    kept.push_back(run);
    if (!run.backward && !in_place(op))
      for (const int value : op.outputs) wanted.erase(name(run.layer, value));
    for (const int value : run.backward ? op.saved : op.inputs) wanted.insert(name(run.layer, value));
  }
  stage.runs.resize(at(stage.turn));
  stage.runs.insert(stage.runs.end(), kept.rbegin(), kept.rend());
  return stage;
}

}  // namespace

StageRuns runs_of_chain(const StageLayers& layers, const std::vector<RecomputeStep>& steps) {
  StageRuns stage;
  bool turned = false;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const LayerGraph& layer = *layers[at(steps[i].stage)];
    if (steps[i].work != RecomputeWork::Backward) {
      run_layer(layer, steps[i].stage, stage.runs);
      continue;
    }
    const bool just_made = turned && steps[i - 1].stage == steps[i].stage && steps[i - 1].work != RecomputeWork::Backward;
    if (!turned) stage.turn = static_cast<int>(stage.runs.size());
    turned = true;
    run_back(layer, steps[i].stage, !just_made, stage.runs);
  }
  return without_idle(layers, std::move(stage));
}

LayerNodes nodes_of(const LayerGraph& layer, const std::vector<double>& seconds) {
  LayerNodes all;
  const std::vector<int> maker = makers(layer);
  std::vector<int> node_of(layer.operators.size(), -1);
  double everything = 1;
  for (const Value& value : layer.values) everything += static_cast<double>(value.bytes.value);
  all.unit = std::max(1.0, everything / (1 << 20));
  const auto units = [&](const std::vector<int>& values) {
    double bytes = 0;
    for (const int value : values) bytes += static_cast<double>(layer.values[at(value)].bytes.value);
    return static_cast<int>(bytes / all.unit) + (bytes > 0 ? 1 : 0);
  };
  const auto read = [&](RecomputeNode& node, const std::vector<int>& values) {
    for (const int value : values)
      if (const int from = maker[at(real(layer, value))]; from >= 0) node.inputs.push_back(node_of[at(from)]);
    std::sort(node.inputs.begin(), node.inputs.end());
    node.inputs.erase(std::unique(node.inputs.begin(), node.inputs.end()), node.inputs.end());
  };
  for (std::size_t i = 0; i < layer.operators.size(); ++i) {
    const Operator& op = layer.operators[i];
    if (!runs_forward(op)) continue;
    const int from = in_place(op) ? maker[at(real(layer, op.inputs[0]))] : -1;
    if (from >= 0) {  // a sum in place belongs to the node of the operator whose result it sums
      node_of[i] = node_of[at(from)];
      all.ops[at(node_of[i])].push_back(static_cast<int>(i));
      all.nodes[at(node_of[i])].seconds += seconds[i];
      continue;
    }
    node_of[i] = static_cast<int>(all.nodes.size());
    RecomputeNode node{.seconds = seconds[i], .bytes = units(op.outputs)};
    read(node, op.inputs);
    all.nodes.push_back(std::move(node)), all.ops.push_back({static_cast<int>(i)});
  }
  all.turn = static_cast<int>(all.nodes.size());
  all.nodes.push_back({.bytes = (1 << 21) + static_cast<int>(layer.values.size()), .once = true});
  all.ops.emplace_back();
  for (int i = static_cast<int>(layer.operators.size()) - 1; i >= 0; --i) {
    const Operator& op = layer.operators[at(i)];
    if (op.saved.empty()) continue;
    RecomputeNode node{.bytes = units(op.inputs), .once = true};
    read(node, op.saved);
    if (static_cast<int>(all.nodes.size()) > all.turn + 1) node.inputs.push_back(static_cast<int>(all.nodes.size()) - 1);
    all.nodes.push_back(std::move(node)), all.ops.push_back({i});
  }
  return all;
}

double kept_bytes(const LayerNodes& nodes, const GraphSchedule& schedule) {
  if (at(nodes.turn) + 1 >= schedule.keep.size()) return 0;
  double bytes = 0;
  for (int i = 0; i < nodes.turn; ++i)
    if (schedule.keep[at(nodes.turn)][at(i)] && schedule.keep[at(nodes.turn) + 1][at(i)]) bytes += nodes.nodes[at(i)].bytes;
  return bytes * nodes.unit;
}

StageRuns runs_of_graphs(const StageLayers& layers, const std::vector<const LayerNodes*>& nodes,
                         const std::vector<const GraphSchedule*>& schedules) {
  StageRuns stage;
  const auto forwards = [&](std::size_t l, int t, int to) {  // appends what stage t computes among the nodes before `to`
    for (int node = 0; node < to; ++node)
      if (schedules[l]->compute[at(t)][at(node)])
        for (const int op : nodes[l]->ops[at(node)]) stage.runs.push_back({static_cast<int>(l), op});
  };
  for (std::size_t l = 0; l < layers.size(); ++l)
    for (int t = 0; t < nodes[l]->turn; ++t) forwards(l, t, t + 1);
  stage.turn = static_cast<int>(stage.runs.size());
  for (std::size_t l = layers.size(); l-- > 0;) {
    int t = nodes[l]->turn;
    forwards(l, t, t);
    for (int i = static_cast<int>(layers[l]->operators.size()) - 1; i >= 0; --i) {
      if (!layers[l]->operators[at(i)].saved.empty()) ++t, forwards(l, t, nodes[l]->turn);
      stage.runs.push_back({static_cast<int>(l), i, true});
    }
  }
  return without_idle(layers, std::move(stage));
}

RunLives lives_of(const StageLayers& layers, const std::vector<std::vector<int>>& same_as, const StageRuns& stage) {
  RunLives lives;
  lives.made.resize(stage.runs.size()), lives.ended.resize(stage.runs.size()), lives.again.assign(stage.runs.size(), 0);
  std::map<std::pair<int, int>, int> now;  // (layer that computes it, value): index of its newest lifetime
  std::map<std::pair<int, int>, bool> ran;
  const auto key = [&](int layer, int value) {
    const int known = same_as[at(layer)][at(value)];
    return layer > 0 && known == layers[at(layer)]->input ? std::pair{layer - 1, layers[at(layer) - 1]->output}
                                                          : std::pair{layer, known};
  };
  if (const int input = layers.front()->input; input >= 0)
    now[{0, input}] = 0, lives.all.push_back({.layer = 0, .value = input, .from = -1, .to = -1});
  for (int k = 0; k < static_cast<int>(stage.runs.size()); ++k) {
    const OpRun& run = stage.runs[at(k)];
    const Operator& op = layers[at(run.layer)]->operators[at(run.op)];
    for (const int value : run.backward ? op.saved : op.inputs) {
      const auto found = now.find(key(run.layer, value));
      FS_ASSERT(found != now.end());
      lives.all[at(found->second)].to = k;
    }
    if (run.backward) continue;
    lives.again[at(k)] = std::exchange(ran[{run.layer, run.op}], true);
    for (const int value : op.outputs) {
      const auto [layer, name] = key(run.layer, value);
      now[{layer, name}] = static_cast<int>(lives.all.size());
      lives.made[at(k)].push_back(static_cast<int>(lives.all.size()));
      lives.all.push_back({.layer = layer, .value = name, .from = k, .to = k});
    }
  }
  for (std::size_t life = 0; life < lives.all.size(); ++life)
    if (lives.all[life].to >= 0) lives.ended[at(lives.all[life].to)].push_back(static_cast<int>(life));
  return lives;
}

}  // namespace foreshard
