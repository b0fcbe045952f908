// Cases of a mixture of experts.
#include "exec/cuda_checks/case_list.h"

namespace foreshard::gpu {

namespace {

using Score = ops::Route::Score;

// The three experts of a token differ, and experts are chosen unequally often: a wrong place of an array changes what a rank gets.
double chosen_by(std::int64_t choice, std::int64_t chosen) {
  const std::int64_t token = choice / chosen;
  return static_cast<double>((2 * token + choice % chosen + 2 + token * token / 3) % 8);
}
StoredArray chosen_experts(std::int64_t count, std::int64_t chosen) {
  return filled(count, DType::I64, [=](std::int64_t i) { return i % 11 == 5 ? -1 : chosen_by(i, chosen); });
}

void add_router_cases(Cases& all) {
  const std::int64_t tokens = 37;
  struct Router {
    const char* name;
    ops::Route op;
    std::int64_t experts;
    bool biased;
  };
  const Router routers[] = {
      {"route_softmax", {.score = Score::Softmax, .chosen = 2, .auxiliary = 0.5, .z_loss = 0.1}, 8, false},
      {"route_renormalised", {.score = Score::Softmax, .chosen = 4, .renormalised = true, .scale = 3}, 130, false},
      {"route_chosen", {.score = Score::SoftmaxOfChosen, .chosen = 3, .auxiliary = 0.5}, 33, false},
      {"route_one", {.score = Score::Sigmoid, .chosen = 1}, 5, false},
      {"route_groups",
       {.score = Score::Sigmoid,
        .chosen = 4,
        .renormalised = true,
        .scale = 2.5,
        .groups = 8,
        .chosen_groups = 3,
        .best_of_group = 2,
        .auxiliary = 0.5,
        .ranks = 2},
       64,
       true}};
  for (const Router& r : routers) {
    const std::int64_t logits = tokens * r.experts, picked = tokens * r.op.chosen;
    Compute what{.op = r.op, .shapes = {{{tokens, r.experts, r.op.chosen}}}};
    std::vector<std::int64_t> in = {logits};
    if (r.biased) in.insert(in.end(), 2, r.experts);
    KernelCase& forward = all.add(r.name, what, in, {picked});
    forward.writes.push_back(empty_array(picked, DType::I64));
    forward.writes.push_back(empty_array(r.experts, DType::F32));
    if (r.biased) forward.writes.push_back(empty_array(r.experts, DType::F32));
    what.phase = Phase::InputGrad;
    for (const bool add : {false, true}) {
      what.accumulate = add;
      KernelCase& back = all.add(std::string(r.name) + (add ? "_grad_added" : "_grad"), what, {picked, logits}, {logits});
      back.tolerance = 5 * kSingle;
      back.reads.push_back(filled(picked, DType::I64, [chosen = r.op.chosen, experts = r.experts](std::int64_t i) {
        return static_cast<double>((i / chosen + 2 * (i % chosen)) % experts);
      }));
      back.reads.push_back(filled(r.experts, DType::F32, [](std::int64_t i) { return static_cast<double>(i % 7); }));
    }
  }
  KernelCase& balance =
      all.add("balance_experts", {.op = ops::BalanceExperts{.speed = 0.25}, .phase = Phase::Update, .shapes = {{{3, 40}}}}, {},
              {120, 120});
  balance.reads = {filled(120, DType::F32, [](std::int64_t i) { return static_cast<double>(i * 7 % 13); }),
                   random_array(120, 4, DType::F32)};
}

void add_choice_rows(Cases& all) {
  const std::int64_t tokens = 41, hidden = 70, ranks = 4, experts = 8, chosen = 3, room = 27;
  const std::int64_t x = tokens * hidden, picked = tokens * chosen, rows = ranks * room * hidden;
  const auto shapes = [&](std::int64_t to) { return std::vector<Shape>{{{tokens, hidden, chosen, experts}}, {{to, room}}}; };
  const auto places =
      filled(picked, DType::I64, [](std::int64_t i) { return i % 9 == 4 ? -1.0 : static_cast<double>(i * 5 % 108); });
  for (const DType dtype : {DType::F32, DType::BF16}) {
    const std::string end = dtype == DType::F32 ? "" : "_bf16";
    const double tolerance = dtype == DType::F32 ? kSingle : kHalf;
    for (const bool scaled : {false, true})
      for (const bool dealt : {false, true})
        for (const std::int64_t sources : {1, 2}) {
          const ops::Dispatch op{.capacity = dealt ? 14 : 0, .scaled = scaled, .dealt = dealt, .sources = sources};
          const std::string name = "dispatch" + std::string(scaled ? "_scaled" : "") + (dealt ? "_dealt" : "") +
                                   (sources > 1 ? "_gathered" : "") + end;
          const std::int64_t out = sources > 1 ? sources * room * hidden : rows;
          KernelCase& forward = all.add(name, {.op = op, .shapes = shapes(ranks)}, {sources * x}, {out}, dtype, tolerance);
          if (scaled) forward.reads.push_back(random_array(sources * picked, 3, DType::F32));
          forward.reads.push_back(chosen_experts(sources * picked, chosen));
          forward.writes.push_back(empty_array(sources * picked, DType::I64));
          forward.writes.push_back(empty_array(sources > 1 ? sources * experts / ranks : experts, DType::I64));
          forward.arguments.expert_rank = sources > 1 ? 2 : 0;
        }
    for (const bool scaled : {false, true}) {
      const Compute what{
          .op = ops::Dispatch{.scaled = scaled}, .phase = Phase::InputGrad, .shapes = shapes(ranks), .accumulate = scaled};
      KernelCase& back = all.add("dispatch_grad" + std::string(scaled ? "_scaled" : "") + end, what,
                                 scaled ? std::vector{rows, x} : std::vector{rows}, {x}, dtype, tolerance);
      if (scaled) back.reads.push_back(random_array(picked, 5, DType::F32));
      back.reads.push_back(places);
      if (scaled) back.writes.push_back(empty_array(picked, DType::F32));
      const bool plain = scaled;
      Compute sum{.op = ops::Combine{.plain = plain}, .shapes = shapes(ranks)};
      KernelCase& forward = all.add("combine" + std::string(plain ? "_plain" : "") + end, sum, {rows}, {x}, dtype, tolerance);
      forward.reads.push_back(places);
      if (!plain) forward.reads.push_back(random_array(picked, 6, DType::F32));
      sum.phase = Phase::InputGrad, sum.accumulate = plain;
      KernelCase& grad = all.add("combine_grad" + std::string(plain ? "_plain" : "") + end, sum,
                                 plain ? std::vector{x} : std::vector{x, rows}, {rows}, dtype, tolerance);
      // Each row belongs to one choice.
      grad.reads.push_back(filled(
          picked, DType::I64, [](std::int64_t i) { return i % 9 == 4 || i > 107 ? -1.0 : static_cast<double>(i * 5 % 108); }));
      if (!plain)
        grad.reads.push_back(random_array(picked, 7, DType::F32)), grad.writes.push_back(empty_array(picked, DType::F32));
    }
  }
}

// Three choices of each token, of which some experts get more; on the ranks of two parts; the capacity and the room leave some of them out.
double unequal_choice(std::int64_t choice) {
  const std::int64_t token = choice / 3, first = token % 4 == 0 ? 0 : 1 + token % 7;
  const std::array after = {std::int64_t{0}, 1 + token % 3, 4 + token % 3};
  return static_cast<double>((first + after[static_cast<std::size_t>(choice % 3)]) % 8);
}
void add_sending(Cases& all) {
  const std::int64_t tokens = 300, hidden = 24, chosen = 3, experts = 8, parts = 2;
  for (const bool dealt : {false, true})
    for (const bool limited : {false, true}) {
      const std::int64_t room = limited ? 95 : tokens, rows = parts * room;
      Compute what{.op = ops::SendOnce{.capacity = limited ? 35 : 0, .ranks = 4, .dealt = dealt},
                   .shapes = {{{tokens, hidden, chosen, experts}}, {{parts, room}}}};
      const std::string name = "send_once" + std::string(dealt ? "_dealt" : "") + (limited ? "_limited" : "");
      KernelCase& forward = all.add(name, what, {tokens * hidden, tokens * chosen}, {rows * hidden, rows * chosen});
      forward.reads.push_back(filled(tokens * chosen, DType::I64, unequal_choice));
      forward.writes.push_back(empty_array(rows * chosen, DType::I64));
      forward.writes.push_back(empty_array(tokens * parts, DType::I64));
      what.phase = Phase::InputGrad, what.accumulate = limited;
      KernelCase& back = all.add(name + "_grad", what, {rows * hidden, rows * chosen}, {tokens * hidden, tokens * chosen});
      back.reads.push_back(filled(tokens * parts, DType::I64, [=](std::int64_t i) {
        return i % 7 == 3 ? -1.0 : static_cast<double>(i % parts * room + i / parts * 11 % room);
      }));
    }
}

// Sizes of whole packs are those of tensor cores, in bf16; an expert ends within a tile of 64 rows.
struct GroupedSizes {
  const char* name;
  std::int64_t room, k, columns;
  std::array<double, 6> counts;  // of rows: of three experts, by two sources
};
const GroupedSizes kGroupedSizes[] = {{"grouped", 41, 37, 22, {19, 0, 20, 7, 33, 1}},
                                      {"grouped_tiled", 104, 72, 40, {19, 0, 70, 5, 65, 34}}};

void add_grouped_products(Cases& all, const GroupedSizes& sizes) {
  const std::int64_t experts = 3, sources = 2, room = sizes.room, k = sizes.k, columns = sizes.columns;
  const StoredArray counts = filled(sources * experts, DType::I64,
                                    [counts = sizes.counts](std::int64_t i) { return counts[static_cast<std::size_t>(i)]; });
  for (const DType dtype : {DType::F32, DType::BF16})
    for (const std::int64_t parts : {1, 2})
      for (const bool transposed : {false, true})
        for (const bool biases : {false, true}) {
          if (transposed && parts > 1) continue;
          const std::int64_t n = parts * columns, rows = sources * room;
          const std::string name = sizes.name + std::string(parts > 1 ? "_parts" : "") + (transposed ? "_transposed" : "") +
                                   (biases ? "_biases" : "") + (dtype == DType::F32 ? "" : "_bf16");
          const double tolerance = dtype == DType::F32 ? kSingle : 2 * kHalf;
          Compute what{.op = ops::GroupedMatMul{.parts = parts, .transposed = transposed},
                       .shapes = {{{experts, rows / experts, n, k}}, {{sources, room}}}};
          const auto weights = [&](KernelCase& to) {
            for (std::int64_t p = 0; p < parts; ++p) to.reads.push_back(random_array(experts * columns * k, 20 + p, dtype));
            for (std::int64_t p = 0; biases && p < parts; ++p)
              to.reads.push_back(random_array(experts * columns, 30 + p, dtype));
          };
          KernelCase& forward = all.add(name, what, {rows * k}, {rows * n}, dtype, tolerance);
          forward.reads.push_back(counts);
          weights(forward);
          what.accumulate = biases;
          what.phase = Phase::InputGrad;
          KernelCase& input = all.add(name + "_input_grad", what, {rows * n, rows * k}, {rows * k}, dtype, tolerance);
          input.reads.push_back(counts);
          weights(input);
          what.phase = Phase::WeightGrad;
          std::vector<std::int64_t> out(static_cast<std::size_t>(parts), experts * columns * k);
          if (biases) out.insert(out.end(), static_cast<std::size_t>(parts), experts * columns);
          all.add(name + "_weight_grad", what, {rows * n, rows * k}, out, dtype, tolerance).reads.push_back(counts);
        }
}

}  // namespace

void add_experts(Cases& all) {
  add_router_cases(all);
  add_choice_rows(all);
  add_sending(all);
  for (const GroupedSizes& sizes : kGroupedSizes) add_grouped_products(all, sizes);
}

}  // namespace foreshard::gpu
