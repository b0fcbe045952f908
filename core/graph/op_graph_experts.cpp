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

namespace foreshard {

namespace {

constexpr AxisKind kExperts = ExpertKind::Expert, kParts = ExpertKind::ExpertTensor;

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
                         .split_over = {kExperts, kParts},
                         .blocks = t.sharding.etp > 1 ? local : 1,
                         .init = op.transposed ? what.residual_init : "normal(0.02)",
                         .grid = Grid::Expert}));
  for (std::int64_t part = 0; what.biases && part < op.parts; ++part)
    run.weights.push_back(
        layer.parameter({.name = "experts." + std::string(op.transposed ? "down" : names[op.parts - 1 - part]) + ".bias",
                         .shape = {what.experts * (op.transposed ? what.hidden : what.width)},
                         .split_dim = 0,
                         .split_over = {kExperts, kParts},
                         .init = "zeros",
                         .grid = Grid::Expert}));
  const DType type = t.sharding.eight_bits ? DType::F8 : t.sharding.compute;
  run.shapes = {{.dims = {local, ceil_div(what.expected, local), n, k}, .dtype = type},
                {.dims = {product_of(dims) / n / dims[dims.size() - 2], dims[dims.size() - 2]}, .dtype = in.dtype}};
  return layer.add(std::move(run)).outputs[0];
}

// Sends rows to the ranks that hold the experts, or back.
int between_experts(LayerBuilder& layer, const Sharding& sharding, const std::string& name, int x, bool back) {
  const Value in = layer.at(x);
  const bool gradient = in.needs_grad;
  const auto exchange = [&](int from) {
    if (sharding.ep == 1) return from;
    const int to = layer.value(name + "_all", layer.at(from).dims, in.dtype, gradient);
    layer.communicate(name + "_all_to_all",
                      {.over = {kExperts},
                       .forward = CollectiveKind::AllToAll,
                       .backward = gradient ? std::optional(CollectiveKind::AllToAll) : std::nullopt,
                       .bytes = layer.bytes(from)},
                      {from}, {to});
    return to;
  };
  const auto spread =
      [&](int from) {  // the ranks that share an expert gather the rows of all of them, and sum the results of all of them
        if (sharding.etp == 1) return from;
        Dims dims = layer.at(from).dims;
        if (back)
          dims.erase(dims.begin());
        else
          dims.insert(dims.begin(), sharding.etp);
        const int to = layer.value(name + (back ? "_summed" : "_gathered"), dims, in.dtype, gradient);
        const CollectiveKind gather = CollectiveKind::AllGather, reduce = CollectiveKind::ReduceScatter;
        layer.communicate(name + (back ? "_reduce" : "_gather"),
                          {.over = {kParts},
                           .forward = back ? reduce : gather,
                           .backward = gradient ? std::optional(back ? gather : reduce) : std::nullopt,
                           .bytes = layer.bytes(back ? from : to)},
                          {from}, {to});
        return to;
      };
  return back ? exchange(spread(x)) : spread(exchange(x));
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
  refuse_unless(!(e.score == RouterScore::SoftmaxOfChosen && e.chosen == 1),
                "a softmax over one chosen expert is always 1, so the router would not learn");
}

int experts(LayerBuilder& layer, const LocalTransformer& t, const Mixture& what, int x,
            const std::function<void()>& meanwhile) {
  const Value in = layer.at(x);
  const std::int64_t tokens = product_of(in.dims) / what.hidden, local = what.experts / t.sharding.ep;
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

  const std::vector<Shape> shapes = {{.dims = {tokens, what.hidden, what.chosen, what.experts}, .dtype = in.dtype},
                                     {.dims = {std::int64_t{t.sharding.ep}, what.room}, .dtype = in.dtype}};
  Operator dispatch = {
      .name = "dispatch",
      .op = ops::Dispatch{.capacity = what.capacity, .scaled = what.scaled_inputs, .dealt = t.sharding.etp > 1},
      .inputs = {x, chosen},
      .module = "router"};
  if (what.scaled_inputs) dispatch.inputs = {x, weights, chosen};
  const int rows = layer.value("dispatched", {std::int64_t{t.sharding.ep}, what.room, what.hidden}, in.dtype);
  const int places = layer.value("expert_places", beside(what.chosen), DType::I64, false);
  const int counts = layer.value("expert_counts", {std::int64_t{t.sharding.ep}, local}, DType::I64, false);
  dispatch.outputs = {rows, places, counts};
  dispatch.shapes = shapes;
  layer.add(std::move(dispatch));

  const int here = between_experts(layer, t.sharding, "dispatch", rows, false);
  const int known = between_experts(layer, t.sharding, "expert_counts", counts, false);
  meanwhile();
  const std::int64_t parts = is_gated(what.activation) ? 2 : 1;
  int y = grouped(layer, t, "experts_fc1", what, {.parts = parts}, here, known);
  Dims inner = layer.at(y).dims;
  inner.back() /= parts;
  y = layer.activation("experts_activation", what.activation, y, inner);
  y = grouped(layer, t, "experts_fc2", what, {.parts = 1, .transposed = true}, y, known);
  y = between_experts(layer, t.sharding, "combine", y, true);

  Operator combine = {
      .name = "combine", .op = ops::Combine{.plain = what.scaled_inputs}, .inputs = {y, places, weights}, .module = "router"};
  if (what.scaled_inputs) combine.inputs = {y, places};
  combine.outputs = {layer.value("combined", in.dims, in.dtype)};
  combine.shapes = shapes;
  return layer.add(std::move(combine)).outputs[0];
}

Mixture mixture_of(const LocalTransformer& t, const std::string& residual_init) {
  const Transformer& m = t.model;
  const Sharding& s = t.sharding;
  const Experts& e = m.block.experts;
  const std::int64_t tokens = t.batch * t.part, copies = tokens * e.chosen, local = e.count / s.ep;
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
                .ranks = std::int64_t{s.tp} * s.cp,
                .z_loss = e.z_loss};
  const double load = most_loaded(
      s.expert_load,
      {.experts = e.count, .chosen = e.chosen, .ranks = s.ep, .tokens = static_cast<double>(tokens) * s.ep * s.etp});
  if (s.expert_capacity > 0) {
    const auto share =
        static_cast<std::int64_t>(std::ceil(s.expert_capacity * static_cast<double>(copies) / static_cast<double>(e.count)));
    what.capacity = std::min(tokens, std::max<std::int64_t>(1, share));
    what.room = local * what.capacity;
  } else {
    const auto share = static_cast<std::int64_t>(std::ceil(load * static_cast<double>(copies) / s.ep * (1 - 1e-12)));
    what.room = s.ep == 1 ? copies : std::min(tokens * std::min(e.chosen, local), std::max<std::int64_t>(1, share));
  }
  what.expected = what.room * s.ep * s.etp;
  return what;
}

}  // namespace foreshard
