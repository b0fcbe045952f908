// A mixture of experts in place of the MLP, over the ranks that share the experts (ep) and those that share each of them (etp):
//
//   x -> router -> route -> dispatch -> [all-to-all over ep] -> [gather over etp] -> fc1 -> activation -> fc2
//     -> [reduce-scatter over etp] -> [all-to-all] -> combine -> y          x -> shared experts, a dense MLP cut over tp -> + y
//
// With etp 1 a rank holds consecutive experts. With etp above 1, every block of ep consecutive experts is cut over the ep x etp ranks, so
// expert e is on expert rank e mod ep.
// A rank dispatches the tokens that it holds outside the tensor-parallel regions, so with sequence parallelism no token is sent twice.
#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/error.h"
#include "core/graph/op_graph_transformer.h"
#include "core/op/expert_copies.h"

namespace foreshard {

namespace {

const Kinds kCutOver = {ExpertKind::OuterExpert, ExpertKind::Expert, ExpertKind::ExpertTensor};

std::int64_t product_of(const Dims& dims) {
  std::int64_t product = 1;
  for (const std::int64_t d : dims) product *= d;
  return product;
}

ops::Route::Score score_of(RouterScore score) {
  switch (score) {
    case RouterScore::Softmax: return ops::Route::Score::Softmax;
    case RouterScore::SoftmaxOfChosen: return ops::Route::Score::SoftmaxOfChosen;
    case RouterScore::Sigmoid: return ops::Route::Score::Sigmoid;
  }
  return ops::Route::Score::Softmax;
}

void refuse_unless(bool holds, const std::string& reason) {
  if (!holds) throw Error(reason);
}

int grouped(LayerBuilder& layer, const LocalTransformer& t, const std::string& name, const Mixture& what,
            const ops::GroupedMatMul& op, int x, int counts) {
  const std::int64_t local = what.experts / t.sharding.ep, width = what.width / t.sharding.etp;
  const std::int64_t n = op.transposed ? what.hidden : op.parts * width, k = op.transposed ? width : what.hidden;
  const Value in = layer.at(x);
  Operator run = {.name = name, .op = op, .inputs = {x, counts}, .module = "mlp"};
  Dims dims = in.dims;
  dims.back() = n;
  run.outputs = {layer.value(name + "_out", dims)};
  const char* const names[] = {"up", "gate"};  // the gate stands before it
  for (std::int64_t part = 0; part < op.parts; ++part)
    run.weights.push_back(
        layer.parameter({.name = "experts." + std::string(op.transposed ? "down" : names[op.parts - 1 - part]) + ".weight",
                         .shape = {what.experts * what.width, what.hidden},
                         .split_dim = 0,
                         .split_over = kCutOver,
                         .blocks = t.sharding.etp > 1 ? local : 1,
                         .init = op.transposed ? what.residual_init : "normal(0.02)",
                         .grid = Grid::Expert}));
  for (std::int64_t part = 0; what.biases && part < op.parts; ++part)
    run.weights.push_back(
        layer.parameter({.name = "experts." + std::string(op.transposed ? "down" : names[op.parts - 1 - part]) + ".bias",
                         .shape = {what.experts * (op.transposed ? what.hidden : what.width)},
                         .split_dim = 0,
                         .split_over = kCutOver,
                         .init = "zeros",
                         .grid = Grid::Expert}));
  const DType type = t.sharding.factors.value_or(t.sharding.compute);
  run.shapes = {{.dims = {local, ceil_div(what.expected, local), n, k}, .dtype = type},
                {.dims = {product_of(dims) / n / dims[dims.size() - 2], dims[dims.size() - 2]}, .dtype = in.dtype}};
  return layer.add(std::move(run)).outputs[0];
}

}  // namespace

void check_experts(const Transformer& m, const Sharding& s) {
  const Experts& e = m.block.experts;
  if (e.count == 0) {
    refuse_unless(s.ep == 1 && s.etp == 1, "the model has no experts: --ep 1 and --etp 1");
    refuse_unless(s.expert_capacity == 0, "the model has no experts: --expert-capacity 0");
    return;
  }
  refuse_unless(!m.mlp_bias && !m.post_norm,
                "a mixture of experts needs products without biases beside it, and norms before it");
  refuse_unless(e.count % s.ep == 0,
                "ep " + std::to_string(s.ep) + " does not divide the " + std::to_string(e.count) + " experts of a layer");
  refuse_unless(e.width % s.etp == 0,
                "etp " + std::to_string(s.etp) + " does not divide the " + std::to_string(e.width) + " columns of an expert");
  refuse_unless(e.shared_width % s.tp == 0, "tp " + std::to_string(s.tp) + " does not divide the " +
                                                std::to_string(e.shared_width) + " columns of the shared experts");
  refuse_unless(s.tp == 1 || s.sequence_parallel,
                "tensor-parallel ranks would send the same tokens to the experts: --sequence-parallel");
  refuse_unless(!(e.biases && s.etp > 1),
                "biases of experts would be added by each of etp " + std::to_string(s.etp) + " ranks: --etp 1");
  if (s.expert_load.kind == ExpertLoad::Kind::Measured) {
    const std::vector<std::vector<double>>& loads = s.expert_load.measured;
    const std::string lists = std::to_string(loads.size()), layers = std::to_string(mixtures_of(m));
    refuse_unless(loads[0].size() == static_cast<std::size_t>(e.count),
                  "the measured loads are of " + std::to_string(loads[0].size()) + " experts, a layer of the model has " +
                      std::to_string(e.count));
    refuse_unless(loads.size() == 1 || loads.size() == static_cast<std::size_t>(mixtures_of(m)),
                  "the measured loads are of " + lists + " layers, the model has " + layers + " with experts");
  }
  refuse_unless(!(e.score == RouterScore::SoftmaxOfChosen && e.chosen == 1),
                "a softmax over one chosen expert is always 1, so the router would not learn");
}

int mixtures_of(const Transformer& m) {
  int count = 0;
  for (int i = 0; i < m.layers; ++i) count += has_experts(m, i) ? 1 : 0;
  return count;
}

int experts(LayerBuilder& layer, const LocalTransformer& t, const Mixture& what, int x,
            const std::function<void()>& meanwhile) {
  const Value in = layer.at(x);
  const std::int64_t tokens = product_of(in.dims) / what.hidden;
  const auto beside = [&](std::int64_t columns) { return Dims{in.dims[0], in.dims[1], columns}; };
  const Linear router = {
      .name = "router", .module = "router", .in = what.hidden, .out = what.experts, .bias = what.router_bias};
  const int logits = layer.linear(router, x, beside(what.experts));

  Operator route = {.name = "route", .op = what.route, .inputs = {logits}, .module = "router"};
  const int weights = layer.value("expert_weights", beside(what.chosen), layer.statistics_type());
  const int chosen = layer.value("chosen_experts", beside(what.chosen), DType::I64, false);
  const int loads = layer.value("expert_loads", {what.experts}, layer.statistics_type(), false);
  route.outputs = {weights, chosen, loads};
  route.shapes = {{.dims = {tokens, what.experts, what.chosen}, .dtype = layer.at(logits).dtype}};
  layer.add(std::move(route));
  if (what.route.ranks > 1)
    layer.communicate(
        "expert_loads_sum",
        {.over = {DenseKind::Context, DenseKind::Tensor}, .forward = CollectiveKind::AllReduce, .bytes = layer.bytes(loads)},
        {loads}, {});

  const SentRows sent = dispatch_tokens(layer, t, what, x, {weights, chosen});
  meanwhile();
  const std::int64_t parts = is_gated(what.activation) ? 2 : 1;
  int y = grouped(layer, t, "experts_fc1", what, {.parts = parts, .others = what.others}, sent.rows, sent.counts);
  Dims inner = layer.at(y).dims;
  inner.back() /= parts;
  y = layer.activation("experts_activation", what.activation, y, inner);
  y = grouped(layer, t, "experts_fc2", what, {.parts = 1, .transposed = true, .others = what.others}, y, sent.counts);
  return combine_tokens(layer, t, what, sent, y, in.dims);
}

// Sets the rows for which there is room (docs/experts.md, "Rows").
static void make_room(const LocalTransformer& t, Mixture& what, int mixture) {
  const Sharding& s = t.sharding;
  const Experts& e = t.model.block.experts;
  const std::int64_t tokens = t.batch * t.part, copies = tokens * e.chosen, local = e.count / s.ep;
  const auto up = [](double rows) {
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(rows * (1 - 1e-12))));
  };
  if (s.expert_capacity > 0)
    what.capacity = std::min(tokens, up(s.expert_capacity * static_cast<double>(copies) / static_cast<double>(e.count)));
  const double sources = static_cast<double>(s.ep) * s.etp;
  ExpertChoices of = {.experts = e.count,
                      .chosen = e.chosen,
                      .ranks = s.ep,
                      .tokens = static_cast<double>(tokens) * sources,
                      .mixture = mixture,
                      .dealt_over = s.etp > 1 ? s.ep : 0};
  if (s.expert_unpadded) of.capacity = static_cast<double>(what.capacity) * sources;
  const bool limited = what.capacity > 0, worst = s.expert_load.kind == ExpertLoad::Kind::Worst;
  // Rows of a rank's tokens to the most loaded rank.
  std::int64_t rows =
      std::min(up(most_loaded(s.expert_load, of) * static_cast<double>(copies) / s.ep), tokens * std::min(e.chosen, local));
  if (limited) rows = s.expert_unpadded ? std::min(rows, local * what.capacity) : local * what.capacity;
  const DispatcherRow& row = row_of(s.dispatcher);
  what.room = rows;
  if (row.once && s.ep > 1) {
    what.parts = row.by_node ? s.expert_nodes : s.ep;
    ExpertSpread spread = {.experts = e.count,
                           .chosen = e.chosen,
                           .groups = e.groups,
                           .chosen_groups = e.chosen_groups,
                           .best_of_group = e.best_of_group,
                           .ranks = s.ep,
                           .parts = static_cast<int>(what.parts),
                           .dealt = s.etp > 1};
    of.ranks = static_cast<int>(what.parts), of.capacity = 0;
    what.part_room = worst ? tokens
                           : up(most_loaded(s.expert_load, of) * parts_of_token(spread) * static_cast<double>(tokens) /
                                static_cast<double>(what.parts));
    what.part_room = std::min(what.part_room, tokens);
    if (limited) what.part_room = std::min(what.part_room, e.count / what.parts * what.capacity);
    what.room = rows * what.parts;  // one of the ranks of a part passes on what came from all parts
    what.room = std::min(what.room, what.parts * what.part_room * std::min(e.chosen, local));
  }
  what.expected = rows * s.ep * s.etp;
  const bool padded = limited && !s.expert_unpadded;
  if (s.ep > 1 && !padded)
    what.others = std::clamp(static_cast<double>(copies - rows) / static_cast<double>((s.ep - 1) * rows), 0.0, 1.0);
}

Mixture mixture_of(const LocalTransformer& t, const std::string& residual_init, int mixture) {
  const Transformer& m = t.model;
  const Experts& e = m.block.experts;
  Mixture what = {.hidden = m.hidden,
                  .width = e.width,
                  .experts = e.count,
                  .chosen = e.chosen,
                  .activation = m.activation,
                  .router_bias = e.router_bias,
                  .biases = e.biases,
                  .scaled_inputs = e.scaled_inputs,
                  .residual_init = residual_init};
  what.route = {.score = score_of(e.score),
                .chosen = e.chosen,
                .renormalised = e.renormalised,
                .scale = e.scale,
                .groups = e.groups,
                .chosen_groups = e.chosen_groups,
                .best_of_group = e.best_of_group,
                .auxiliary = e.auxiliary_loss,
                .ranks = std::int64_t{t.sharding.tp} * t.sharding.cp,
                .z_loss = e.z_loss};
  make_room(t, what, mixture);
  return what;
}

}  // namespace foreshard
