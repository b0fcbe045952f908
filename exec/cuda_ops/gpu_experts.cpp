// Makers for a mixture of experts: the router, the rows of choices, and a product for each expert.
#include "exec/cuda_ops/gpu_kernel.h"
#include "exec/host/host_experts.h"

namespace foreshard::gpu {

namespace {

Scoring scoring_of(ops::Route::Score score) {
  switch (score) {
    case ops::Route::Score::Softmax: return Scoring::Softmax;
    case ops::Route::Score::SoftmaxOfChosen: return Scoring::SoftmaxOfChosen;
    case ops::Route::Score::Sigmoid: return Scoring::Sigmoid;
  }
  return Scoring::Softmax;
}

void expect_at_most(const host::Form& form, std::int64_t found, int most, const char* what) {
  if (found > most) form.refuse(std::to_string(found) + " " + what, "at most " + std::to_string(most) + " on a GPU");
}

RouteArgs route_args(const host::Form& form) {
  const auto& dims = form.dims(0, 3);
  const auto& op = form.as<ops::Route>();
  const bool groups = op.groups >= 1 && dims[1] % op.groups == 0 && op.chosen_groups >= 1 && op.chosen_groups <= op.groups &&
                      op.chosen <= op.chosen_groups * (dims[1] / op.groups);
  if (op.chosen < 1 || op.chosen != dims[2] || !groups || op.ranks < 1)
    form.refuse("\"" + settings_text(form.what.op) + "\" for " + std::to_string(dims[1]) + " experts",
                "equal groups with at least as many experts as a token chooses");
  expect_at_most(form, dims[1], kMostExperts, "experts");
  expect_at_most(form, op.groups, kMostGroups, "groups of experts");
  expect_at_most(form, op.chosen, kMostChosen, "chosen experts");
  RouteArgs args = {.tokens = dims[0]};
  args.experts_of_layer = static_cast<int>(dims[1]), args.chosen = static_cast<int>(op.chosen);
  args.groups = static_cast<int>(op.groups), args.chosen_groups = static_cast<int>(op.chosen_groups);
  args.best_of_group = static_cast<int>(op.best_of_group), args.scoring = scoring_of(op.score);
  args.renormalised = op.renormalised, args.scale = static_cast<float>(op.scale);
  return args;
}

Kernel route_forward(const host::Form& form, const RouteArgs& route) {
  const std::int64_t experts = route.experts_of_layer, choices = route.tokens * route.chosen;
  const bool biased = form.reads.size() > 1, counts = form.writes.size() > 3;
  std::vector<std::int64_t> in = {route.tokens * experts}, out = {choices, choices, experts};
  if (biased) in.push_back(experts);
  if (counts) in.push_back(experts), out.push_back(experts);
  form.expect(in, out);
  return {.run = [=](const Launcher& on, const Call& call) {
    RouteArgs args = route;
    args.logits = reads(call.reads[0]), args.weights = writes(call.writes[0]), args.experts = writes(call.writes[1]);
    if (biased) args.biases = reads(call.reads[1]);
    on.launch(KernelId::route_forward, args.tokens, 1, 128, args);
    TallyArgs tally = {.experts = reads(call.writes[1]), .loads = writes(call.writes[2]), .choices = choices};
    if (counts) tally.before = reads(call.reads[2]), tally.totals = writes(call.writes[3]);
    on.launch(KernelId::tally_choices, experts, 1, 256, tally);
  }};
}

// reads: gradient of the weights, logits, experts, loads
Kernel route_backward(const host::Form& form, const RouteArgs& route) {
  const auto op = form.as<ops::Route>();
  const std::int64_t experts = route.experts_of_layer, choices = route.tokens * route.chosen;
  form.expect({choices, route.tokens * experts, choices, experts}, {route.tokens * experts});
  const bool add = form.what.accumulate;
  return {.run = [=](const Launcher& on, const Call& call) {
    RouteArgs args = route;
    const double each = host::loss_weight(call.arguments, args.tokens, static_cast<int>(op.ranks)) * call.arguments.loss_scale;
    const auto tokens = static_cast<double>(args.tokens * op.ranks);
    args.balance = static_cast<float>(op.auxiliary * static_cast<double>(experts) / (args.chosen * tokens) * each);
    args.z = static_cast<float>(op.z_loss * each), args.accumulate = add, args.state = call.state;
    args.dweights = reads(call.reads[0]), args.logits = reads(call.reads[1]), args.experts = reads(call.reads[2]);
    args.loads = reads(call.reads[3]), args.dlogits = writes(call.writes[0]);
    on.launch(KernelId::route_backward, args.tokens, 1, 128, args);
  }};
}

using host::ChoiceRows, host::GroupedProduct, host::SentTokens;

ChoiceRows rows_of(const host::Form& form) {
  const ChoiceRows rows = host::choice_rows(form);
  expect_at_most(form, rows.experts, kMostExperts, "experts");
  return rows;
}

void clear(const Launcher& on, const Operand& array, std::int64_t elements) {
  Operand all = array;
  all.elements = elements;
  on.fill(all, std::byte{0});
}

Kernel dispatch_forward(const host::Form& form, const ChoiceRows& rows) {
  const auto op = form.as<ops::Dispatch>();
  const std::int64_t sources = rows.sources, choices = sources * rows.choices(), each = rows.experts / rows.ranks;
  std::vector<std::int64_t> in = {sources * rows.tokens * rows.hidden};
  if (op.scaled) in.push_back(choices);
  in.push_back(choices);
  form.expect(in, {rows.size(), choices, sources > 1 ? sources * each : rows.experts});
  const std::int64_t marks = sources * rows.experts;
  const std::size_t experts = in.size() - 1;
  const auto run = [=](const Launcher& on, const Call& call) {
    PlacesArgs sizes = {};
    const auto scratch = [&](std::int64_t i) { return scratch_array(call.scratch + 8 * i * marks, marks, Type::I64); };
    sizes.choices = rows.choices(), sizes.room = rows.room, sizes.capacity = op.capacity, sizes.dealt = op.dealt;
    sizes.experts_of_layer = static_cast<int>(rows.experts), sizes.ranks = static_cast<int>(rows.ranks);
    sizes.own = sources > 1 ? call.arguments.expert_rank : -1;
    PlacesArgs count = sizes, divide = sizes, place = sizes;  // each kernel gets the arrays that it uses
    count.experts = place.experts = reads(call.reads[experts]);
    count.wanted = divide.wanted = scratch(0);
    divide.first = place.first = scratch(1), divide.end = place.end = scratch(2);
    divide.counts = writes(call.writes[2]), place.places = writes(call.writes[1]);
    on.launch(KernelId::count_choices, rows.experts, sources, 256, count);
    on.launch(KernelId::divide_room, sources, 1, 32, divide);
    on.launch(KernelId::place_choices, rows.experts, sources, 256, place);
    clear(on, call.writes[0], rows.size());
    ChoiceRowsArgs sent = {.from = reads(call.reads[0]), .to = writes(call.writes[0]), .places = reads(call.writes[1])};
    if (op.scaled) sent.weights = reads(call.reads[1]);
    sent.choices = choices, sent.h = rows.hidden, sent.chosen = static_cast<int>(rows.chosen);
    on.launch(KernelId::spread_rows, choices, 1, 256, sent);
  };
  return {.run = run, .scratch = {24 * marks}};
}

Kernel dispatch_backward(const host::Form& form, const ChoiceRows& rows) {
  const host::DispatchGradient at = host::dispatch_gradient(form, rows);
  const bool add = form.what.accumulate;
  return {.run = [=](const Launcher& on, const Call& call) {
    ChoiceRowsArgs back = {
        .from = reads(call.reads[0]), .to = writes(call.writes[0]), .places = reads(call.reads[at.places()])};
    if (at.scaled) back.other = reads(call.reads[1]), back.weights = reads(call.reads[2]), back.dots = writes(call.writes[1]);
    back.choices = at.choices, back.h = rows.hidden, back.chosen = static_cast<int>(rows.chosen), back.accumulate = add;
    on.launch(KernelId::collect_rows, at.choices / rows.chosen, 1, 256, back);
  }};
}

Kernel combine_forward(const host::Form& form, const ChoiceRows& rows) {
  const bool plain = form.as<ops::Combine>().plain;
  std::vector<std::int64_t> in = {rows.size(), rows.choices()};
  if (!plain) in.push_back(rows.choices());
  form.expect(in, {rows.tokens * rows.hidden});
  return {.run = [=](const Launcher& on, const Call& call) {
    ChoiceRowsArgs sum = {.from = reads(call.reads[0]), .to = writes(call.writes[0]), .places = reads(call.reads[1])};
    if (!plain) sum.weights = reads(call.reads[2]);
    sum.choices = rows.choices(), sum.h = rows.hidden, sum.chosen = static_cast<int>(rows.chosen);
    on.launch(KernelId::collect_rows, rows.tokens, 1, 256, sum);
  }};
}

Kernel combine_backward(const host::Form& form, const ChoiceRows& rows) {
  const host::CombineGradient gradient = host::combine_gradient(form, rows);
  const bool plain = gradient.plain, add = form.what.accumulate;
  return {.run = [=](const Launcher& on, const Call& call) {
    if (!add) clear(on, call.writes[0], rows.size());
    ChoiceRowsArgs back = {
        .from = reads(call.reads[0]), .to = writes(call.writes[0]), .places = reads(call.reads[gradient.places()])};
    if (!plain) back.other = reads(call.reads[1]), back.weights = reads(call.reads[3]), back.dots = writes(call.writes[1]);
    back.choices = rows.choices(), back.h = rows.hidden, back.chosen = static_cast<int>(rows.chosen), back.accumulate = add;
    on.launch(KernelId::spread_rows, rows.choices(), 1, 256, back);
  }};
}

Kernel send_forward(const host::Form& form, const SentTokens& s) {
  const std::int64_t k = s.chosen, rows = s.rows(), places = s.tokens * s.parts;
  form.expect({s.tokens * s.hidden, s.choices(), s.choices()}, {rows * s.hidden, rows * k, rows * k, places});
  const bool limited = s.op.capacity > 0;
  const auto run = [=](const Launcher& on, const Call& call) {
    SendArgs sizes = {.tokens = s.tokens, .room = s.room, .capacity = s.op.capacity, .dealt = s.op.dealt};
    sizes.experts_of_layer = static_cast<int>(s.experts), sizes.chosen = static_cast<int>(k);
    sizes.ranks = static_cast<int>(s.op.ranks), sizes.parts = static_cast<int>(s.parts);
    sizes.experts = reads(call.reads[2]);
    SendArgs keep = sizes, send = sizes;
    if (limited) {
      keep.kept = scratch_array(call.scratch, s.choices(), Type::U8);
      on.launch(KernelId::keep_choices, s.experts, 1, 256, keep);
      send.kept = keep.kept, send.kept.writes = false;
    }
    send.weights = reads(call.reads[1]), send.sent_weights = writes(call.writes[1]);
    send.sent_experts = writes(call.writes[2]), send.places = writes(call.writes[3]);
    on.launch(KernelId::send_tokens, s.parts, 1, 256, send);
    clear(on, call.writes[0], rows * s.hidden);
    ChoiceRowsArgs sent = {.from = reads(call.reads[0]), .to = writes(call.writes[0]), .places = reads(call.writes[3])};
    sent.choices = places, sent.h = s.hidden, sent.chosen = static_cast<int>(s.parts);
    on.launch(KernelId::spread_rows, places, 1, 256, sent);
  };
  return {.run = run, .scratch = {limited ? s.choices() : 0}};
}

// reads: gradients of the rows and of their weights, places
Kernel send_backward(const host::Form& form, const SentTokens& s) {
  const std::int64_t k = s.chosen, places = s.tokens * s.parts;
  form.expect({s.rows() * s.hidden, s.rows() * k, places}, {s.tokens * s.hidden, s.choices()});
  const bool add = form.what.accumulate;
  return {.run = [=](const Launcher& on, const Call& call) {
    ChoiceRowsArgs rows = {.from = reads(call.reads[0]), .to = writes(call.writes[0]), .places = reads(call.reads[2])};
    rows.choices = places, rows.h = s.hidden, rows.chosen = static_cast<int>(s.parts), rows.accumulate = add;
    on.launch(KernelId::collect_rows, s.tokens, 1, 256, rows);
    ChoiceRowsArgs weights = rows;
    weights.from = reads(call.reads[1]), weights.to = writes(call.writes[1]), weights.h = k, weights.accumulate = false;
    on.launch(KernelId::collect_rows, s.tokens, 1, 256, weights);
  }};
}

// Results of a thread block, along rows and columns: on the vector units, on tensor cores (kGroupedTile and kSide of kernels/grouped.h).
constexpr std::int64_t kTileSide = 16, kTiledSide = 64;

// Whether tensor cores can read a factor: bf16, in packs whose rows are `step` elements apart, from element `first` on.
bool is_tiled(const View& factor, std::int64_t step, std::int64_t first) {
  return factor.type == Type::BF16 && on_pack_border(factor) && step % 8 == 0 && first % 8 == 0;
}

GroupedArgs grouped_args(const GroupedProduct& g) {
  GroupedArgs a = {.room = g.room, .size = g.columns() * g.k, .by_row = g.by_k(), .by_column = g.by_column()};
  a.x_width = g.k, a.y_width = g.n, a.sources = static_cast<int>(g.sources), a.experts = static_cast<int>(g.experts);
  a.inner = static_cast<int>(g.k), a.columns = static_cast<int>(g.columns());
  return a;
}

void launch_rows(const Launcher& on, const GroupedArgs& args) {
  const bool tiled = is_tiled(args.x, args.x_width, args.x_first) && args.inner % 8 == 0 && args.columns % 8 == 0 &&
                     is_tiled(args.w, args.by_row == 1 ? args.by_column : args.by_row, args.size);
  const std::int64_t side = tiled ? kTiledSide : kTileSide;
  on.launch(tiled ? KernelId::grouped_rows_tiled : KernelId::grouped_rows, ceil_div(args.columns, side),
            args.sources * ceil_div(args.room, side), tiled ? 128 : 256, args);
}

void launch_weights(const Launcher& on, GroupedArgs args) {
  const bool tiled = is_tiled(args.x, args.x_width, args.x_first) && is_tiled(args.y, args.y_width, args.y_first) &&
                     args.inner % 8 == 0 && args.columns % 8 == 0;
  if (tiled && args.by_column != 1) {  // neighbouring results of the kernel are to be neighbours in memory
    std::swap(args.x, args.y), std::swap(args.x_width, args.y_width), std::swap(args.x_first, args.y_first);
    std::swap(args.inner, args.columns), std::swap(args.by_row, args.by_column);
    args.swapped = true;
  }
  const std::int64_t side = tiled ? kTiledSide : kTileSide;
  on.launch(tiled ? KernelId::grouped_weights_tiled : KernelId::grouped_weights, ceil_div(args.columns, side),
            args.experts * ceil_div(args.inner, side), tiled ? 128 : 256, args);
}

Kernel grouped_forward(const host::Form& form, const GroupedProduct& g) {
  const bool bias = form.reads.size() > static_cast<std::size_t>(2 + g.parts);
  std::vector<std::int64_t> in = {g.rows() * g.k, g.sources * g.experts};
  in.insert(in.end(), static_cast<std::size_t>(g.parts), g.weight());
  if (bias) in.insert(in.end(), static_cast<std::size_t>(g.parts), g.experts * g.columns());
  form.expect(in, {g.rows() * g.n});
  return {.run = [=](const Launcher& on, const Call& call) {
    for (std::int64_t part = 0; part < g.parts; ++part) {
      GroupedArgs args = grouped_args(g);
      args.x = reads(call.reads[0]), args.counts = reads(call.reads[1]), args.y = writes(call.writes[0]);
      args.w = reads(call.reads[static_cast<std::size_t>(2 + part)]), args.y_first = part * g.columns();
      if (bias) args.bias = reads(call.reads[static_cast<std::size_t>(2 + g.parts + part)]);
      launch_rows(on, args);
    }
  }};
}

// reads: gradient of y, x, counts, weights, biases
Kernel grouped_input_grad(const host::Form& form, const GroupedProduct& g) {
  std::vector<std::int64_t> in = {g.rows() * g.n, g.rows() * g.k, g.sources * g.experts};
  in.insert(in.end(), static_cast<std::size_t>(g.parts), g.weight());
  if (form.reads.size() > in.size()) in.insert(in.end(), static_cast<std::size_t>(g.parts), g.experts * g.columns());
  form.expect(in, {g.rows() * g.k});
  const bool add = form.what.accumulate;
  return {.run = [=](const Launcher& on, const Call& call) {
    for (std::int64_t part = 0; part < g.parts; ++part) {
      GroupedArgs args = grouped_args(g);
      args.x = reads(call.reads[0]), args.counts = reads(call.reads[2]), args.y = writes(call.writes[0]);
      args.w = reads(call.reads[static_cast<std::size_t>(3 + part)]);
      std::swap(args.inner, args.columns), std::swap(args.by_row, args.by_column), std::swap(args.x_width, args.y_width);
      args.x_first = part * g.columns(), args.accumulate = add || part > 0;
      launch_rows(on, args);
    }
  }};
}

// reads: gradient of y, x, counts
Kernel grouped_weight_grad(const host::Form& form, const GroupedProduct& g) {
  const auto parts = static_cast<std::size_t>(g.parts);
  const bool bias = form.writes.size() > parts, add = form.what.accumulate;
  std::vector<std::int64_t> out(parts, g.weight());
  if (bias) out.insert(out.end(), parts, g.experts * g.columns());
  form.expect({g.rows() * g.n, g.rows() * g.k, g.sources * g.experts}, out);
  return {.run = [=](const Launcher& on, const Call& call) {
    for (std::size_t part = 0; part < parts; ++part) {
      GroupedArgs args = grouped_args(g);
      args.x = reads(call.reads[1]), args.counts = reads(call.reads[2]), args.y = reads(call.reads[0]);
      args.w = writes(call.writes[part]), args.y_first = static_cast<std::int64_t>(part) * g.columns(), args.accumulate = add;
      if (bias) args.bias = writes(call.writes[parts + part]);
      launch_weights(on, args);
    }
  }};
}

}  // namespace

Kernel make_route(const host::Form& form) {
  const RouteArgs args = route_args(form);
  return form.forward() ? route_forward(form, args) : route_backward(form, args);
}

Kernel make_balance_experts(const host::Form& form) {
  const auto& dims = form.dims(0, 2);
  const std::int64_t routers = dims[0], all = routers * dims[1];
  form.expect({all, all}, {all, all});
  const auto speed = static_cast<float>(form.as<ops::BalanceExperts>().speed);
  const auto experts = static_cast<int>(dims[1]);
  return {.run = [=](const Launcher& on, const Call& call) {
    BalanceArgs args = {.counts = reads(call.reads[0]), .before = reads(call.reads[1]), .biases = writes(call.writes[0])};
    args.experts = experts, args.speed = speed;
    on.launch(KernelId::balance_experts, routers, 1, 256, args);
    clear(on, call.writes[1], routers * experts);  // after all blocks have read the counts, which may be the same array
  }};
}

Kernel make_dispatch(const host::Form& form) {
  return form.forward() ? dispatch_forward(form, rows_of(form)) : dispatch_backward(form, rows_of(form));
}
Kernel make_combine(const host::Form& form) {
  return form.forward() ? combine_forward(form, rows_of(form)) : combine_backward(form, rows_of(form));
}

Kernel make_send_once(const host::Form& form) {
  const SentTokens sent = host::sent_tokens(form);
  return form.forward() ? send_forward(form, sent) : send_backward(form, sent);
}

Kernel make_grouped_matmul(const host::Form& form) {
  const GroupedProduct g = host::grouped_product(form);
  if (form.forward()) return grouped_forward(form, g);
  if (form.what.phase == Phase::InputGrad) return grouped_input_grad(form, g);
  if (form.what.phase == Phase::WeightGrad) return grouped_weight_grad(form, g);
  form.refuse("this phase", "forward, recompute, input gradient or weight gradient");
}

}  // namespace foreshard::gpu
