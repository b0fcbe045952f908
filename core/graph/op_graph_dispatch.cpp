// How tokens reach the ranks that hold their experts and results come back, by the columns of core/op/dispatcher.h:
//
//   all-to-all        dispatch -> [all-to-all over ep] -> ... -> [all-to-all] -> combine
//   all-gather        [gather of tokens over ep and etp] -> dispatch of the rank's own -> ... -> combine -> [reduce-scatter]
//   once              send_once -> [all-to-all over the parts] -> dispatch -> [all-to-all inside a part] -> ... -> [all-to-all] -> combine
//                       -> [all-to-all over the parts] -> combine of a row per part
//
// After an all-to-all the rows of an expert that is cut over etp ranks are gathered over them, and its results reduce-scattered.
#include <utility>

#include "core/graph/op_graph_transformer.h"

namespace foreshard {

namespace {

constexpr AxisKind kExperts = ExpertKind::Expert, kNodes = ExpertKind::OuterExpert, kParts = ExpertKind::ExpertTensor;

std::int64_t tokens_of(const LayerBuilder& layer, int x, std::int64_t hidden) {
  return layer.bytes(x).value / size_of(layer.at(x).dtype).value / hidden;
}

class Dispatching {
 public:
  Dispatching(LayerBuilder& layer, const LocalTransformer& t, const Mixture& what)
      : layer_(layer), s_(t.sharding), row_(row_of(t.sharding.dispatcher)), what_(what) {}

  SentRows go(int x, RouterResults choices) {
    if (row_.gathers && ranks() > 1) return of_gathered(x, choices);
    SentRows sent;
    if (row_.once && what_.parts > 1) sent.once = send_once(x, choices);
    const int to = static_cast<int>(s_.ep / what_.parts);
    const Dims all = layer_.at(choices.experts).dims;
    dispatch(sent, x, choices, {.experts = what_.experts / what_.parts, .ranks = to, .places = all, .tokens = tokens(x)});
    sent.rows = spread(all_to_all(sent.rows, "dispatch", {kExperts}, to, Way::There), "dispatch");
    sent.counts = spread(all_to_all(sent.counts, "expert_counts", {kExperts}, to), "expert_counts");
    return sent;
  }

  int back(const SentRows& sent, int y, const Dims& dims) {
    if (row_.gathers && ranks() > 1) {
      Dims of_all = dims;
      of_all.insert(of_all.begin(), ranks());
      const int summed =
          combine(sent, y, of_all, {.experts = what_.experts, .ranks = ranks(), .tokens = ranks() * tokens_in(dims)});
      return meet(summed, "combine_reduce_scatter", all(), CollectiveKind::ReduceScatter, dims);
    }
    const int to = static_cast<int>(s_.ep / what_.parts);
    y = all_to_all(joined(y, "combine"), "combine", {kExperts}, to, Way::Back);
    const std::int64_t own = what_.experts / what_.parts;
    if (sent.once < 0) return combine(sent, y, dims, {.experts = own, .ranks = to, .tokens = tokens_in(dims)});
    y = combine(sent, y, {what_.parts, what_.part_room, what_.hidden},
                {.experts = own, .ranks = to, .tokens = what_.parts * what_.part_room});
    y = all_to_all(y, "combine_once", parts(), what_.parts, Way::Back);
    Operator add = {.name = "combine_once", .op = ops::Combine{.plain = true}, .inputs = {y, sent.once}, .module = "router"};
    add.outputs = {layer_.value("combined_once", dims, layer_.at(y).dtype)};
    add.shapes = {{.dims = {tokens_in(dims), what_.hidden, what_.parts, what_.experts}, .dtype = layer_.at(y).dtype},
                  {.dims = {what_.parts, what_.part_room}, .dtype = layer_.at(y).dtype}};
    return layer_.add(std::move(add)).outputs[0];
  }

 private:
  struct Sizes {  // of a dispatch and the combine after it
    std::int64_t experts = 0, ranks = 0;
    Dims places = {};
    std::int64_t tokens = 0, sources = 1;
  };

  std::int64_t ranks() const { return std::int64_t{s_.ep} * s_.etp; }
  Kinds all() const { return s_.etp > 1 ? Kinds{kExperts, kParts} : Kinds{kExperts}; }
  Kinds parts() const { return row_.by_node ? Kinds{kNodes} : Kinds{kExperts}; }
  std::int64_t tokens(int x) const { return tokens_of(layer_, x, what_.hidden); }
  std::int64_t tokens_in(const Dims& dims) const {
    std::int64_t count = 1;
    for (std::size_t d = 0; d + 1 < dims.size(); ++d) count *= dims[d];
    return count;
  }

  int meet(int from, const std::string& name, const Kinds& over, CollectiveKind kind, Dims dims) {
    const Value in = layer_.at(from);
    const int to = layer_.value(name + "_out", std::move(dims), in.dtype, in.needs_grad);
    const bool gathers = kind == CollectiveKind::AllGather;
    const CollectiveKind back = gathers ? CollectiveKind::ReduceScatter : CollectiveKind::AllGather;
    layer_.communicate(name,
                       {.over = over,
                        .forward = kind,
                        .backward = in.needs_grad ? std::optional(back) : std::nullopt,
                        .bytes = layer_.bytes(gathers ? to : from)},
                       {from}, {to});
    return to;
  }
  enum class Way : std::uint8_t { There, Back, Beside };  // rows to their experts and back, or what goes beside them
  int all_to_all(int from, const std::string& name, const Kinds& over, std::int64_t members, Way way = Way::Beside) {
    if (members == 1) return from;
    const Value in = layer_.at(from);
    const int to = layer_.value(name + "_all", in.dims, in.dtype, in.needs_grad);
    Communication what = {.over = over,
                          .forward = CollectiveKind::AllToAll,
                          .backward = in.needs_grad ? std::optional(CollectiveKind::AllToAll) : std::nullopt,
                          .bytes = layer_.bytes(from),
                          .to_experts = way == Way::There,
                          .from_experts = way == Way::Back};
    if (row_.two_level) what.algorithm = Algorithm::TwoLevel;
    layer_.communicate(name + "_all_to_all", what, {from}, {to});
    return to;
  }
  // The ranks that share an expert gather the rows of all of them, and sum the results of all of them.
  int spread(int from, const std::string& name) {
    if (s_.etp == 1) return from;
    const Value in = layer_.at(from);
    Dims dims = in.dims;
    dims.insert(dims.begin(), s_.etp);
    const int to = layer_.value(name + "_gathered", dims, in.dtype, in.needs_grad);
    layer_.communicate(name + "_gather",
                       {.over = {kParts},
                        .forward = CollectiveKind::AllGather,
                        .backward = in.needs_grad ? std::optional(CollectiveKind::ReduceScatter) : std::nullopt,
                        .bytes = layer_.bytes(to)},
                       {from}, {to});
    return to;
  }
  int joined(int from, const std::string& name) {
    if (s_.etp == 1) return from;
    const Value in = layer_.at(from);
    Dims dims = in.dims;
    dims.erase(dims.begin());
    const int to = layer_.value(name + "_summed", dims, in.dtype, in.needs_grad);
    layer_.communicate(name + "_reduce",
                       {.over = {kParts},
                        .forward = CollectiveKind::ReduceScatter,
                        .backward = in.needs_grad ? std::optional(CollectiveKind::AllGather) : std::nullopt,
                        .bytes = layer_.bytes(from)},
                       {from}, {to});
    return to;
  }

  void dispatch(SentRows& sent, int x, const RouterResults& choices, const Sizes& sizes) {
    const Value in = layer_.at(x);
    const bool gathered = sizes.sources > 1;
    Operator dispatch = {.name = "dispatch",
                         .op = ops::Dispatch{.capacity = sent.once < 0 ? what_.capacity : 0,
                                             .scaled = what_.scaled_inputs,
                                             .dealt = s_.etp > 1,
                                             .sources = sizes.sources},
                         .inputs = {x, choices.experts},
                         .module = "router"};
    if (what_.scaled_inputs) dispatch.inputs = {x, choices.weights, choices.experts};
    const std::int64_t from = gathered ? sizes.sources : sizes.ranks, local = sizes.experts / sizes.ranks;
    sent.rows = layer_.value("dispatched", {from, what_.room, what_.hidden}, in.dtype);
    sent.places = layer_.value("expert_places", sizes.places, DType::I64, false);
    sent.counts = layer_.value("expert_counts", {from, local}, DType::I64, false);
    sent.weights = choices.weights;
    dispatch.outputs = {sent.rows, sent.places, sent.counts};
    dispatch.shapes = shapes(sizes.tokens, sizes.experts, sizes.ranks, in.dtype);
    layer_.add(std::move(dispatch));
  }
  std::vector<Shape> shapes(std::int64_t tokens, std::int64_t experts, std::int64_t ranks, DType type) const {
    return {{.dims = {tokens, what_.hidden, what_.chosen, experts}, .dtype = type},
            {.dims = {ranks, what_.room}, .dtype = type}};
  }

  int combine(const SentRows& sent, int y, const Dims& dims, const Sizes& sizes) {
    const DType type = layer_.at(y).dtype;
    Operator combine = {.name = "combine",
                        .op = ops::Combine{.plain = what_.scaled_inputs, .partial = row_.gathers && ranks() > 1},
                        .inputs = {y, sent.places, sent.weights},
                        .module = "router"};
    if (what_.scaled_inputs) combine.inputs = {y, sent.places};
    combine.outputs = {layer_.value("combined", dims, type)};
    combine.shapes = shapes(sizes.tokens, sizes.experts, sizes.ranks, type);
    return layer_.add(std::move(combine)).outputs[0];
  }

  SentRows of_gathered(int x, RouterResults choices) {
    const std::int64_t own = tokens(x);
    const auto gather = [&](int value, const char* name) {
      Dims dims = layer_.at(value).dims;
      dims.insert(dims.begin(), ranks());
      return meet(value, name, all(), CollectiveKind::AllGather, dims);
    };
    x = gather(x, "dispatch_tokens_gather");
    choices = {gather(choices.weights, "dispatch_weights_gather"), gather(choices.experts, "dispatch_experts_gather")};
    SentRows sent;
    dispatch(sent, x, choices,
             {.experts = what_.experts,
              .ranks = s_.ep,
              .places = layer_.at(choices.experts).dims,
              .tokens = own,
              .sources = ranks()});
    return sent;
  }

  // Sends each token once to each part. x and the choices become those of the tokens that came from all parts.
  int send_once(int& x, RouterResults& choices) {
    const Value in = layer_.at(x);
    const std::int64_t parts = what_.parts, room = what_.part_room;
    Operator send = {.name = "send_once",
                     .op = ops::SendOnce{.capacity = what_.capacity, .ranks = s_.ep, .dealt = s_.etp > 1},
                     .inputs = {x, choices.weights, choices.experts},
                     .module = "router"};
    Dims places = in.dims;
    places.back() = parts;
    send.outputs = {layer_.value("sent_once", {parts, room, what_.hidden}, in.dtype),
                    layer_.value("weights_sent_once", {parts, room, what_.chosen}, layer_.statistics_type()),
                    layer_.value("experts_sent_once", {parts, room, what_.chosen}, DType::I64, false),
                    layer_.value("places_in_parts", places, DType::I64, false)};
    send.shapes = {{.dims = {tokens(x), what_.hidden, what_.chosen, what_.experts}, .dtype = in.dtype},
                   {.dims = {parts, room}, .dtype = in.dtype}};
    const std::vector<int> sent = layer_.add(std::move(send)).outputs;
    x = all_to_all(sent[0], "dispatch_once", this->parts(), parts, Way::There);
    choices.weights = all_to_all(sent[1], "dispatch_once_weights", this->parts(), parts);
    choices.experts = all_to_all(sent[2], "dispatch_once_experts", this->parts(), parts);
    return sent[3];
  }

  LayerBuilder& layer_;
  const Sharding& s_;
  const DispatcherRow& row_;
  const Mixture& what_;
};

}  // namespace

SentRows dispatch_tokens(LayerBuilder& layer, const LocalTransformer& t, const Mixture& what, int x,
                         const RouterResults& choices) {
  return Dispatching(layer, t, what).go(x, choices);
}

int combine_tokens(LayerBuilder& layer, const LocalTransformer& t, const Mixture& what, const SentRows& sent, int y,
                   const Dims& dims) {
  return Dispatching(layer, t, what).back(sent, y, dims);
}

}  // namespace foreshard
