// Arrays of the operators of experts, and one call of each: for the tests of their kernels.
#pragma once

#include <string>
#include <vector>

#include "tests/exec/host_arrays.h"

namespace foreshard {

struct Routing {
  std::int64_t tokens = 1, experts = 1, chosen = 1, hidden = 1, ranks = 1, room = 1;
  std::int64_t choices() const { return tokens * chosen; }
  std::int64_t rows() const { return ranks * room * hidden; }
};

struct Routed {
  Array weights = {}, experts = {}, loads = {};
};
inline Compute route_op(const ops::Route& op, const Routing& r, Phase phase = Phase::Forward) {
  return {.op = op, .phase = phase, .shapes = {{{r.tokens, r.experts, r.chosen}, DType::F64}}};
}
inline Routed route(const ops::Route& op, const Routing& r, const Array& logits) {
  std::vector<Array> reads = {logits};
  std::vector<Array> writes = {Array(r.choices(), DType::F64), Array(r.choices(), DType::I64), Array(r.experts, DType::F64)};
  run_on(route_op(op, r), reads, writes);
  return {writes[0], writes[1], writes[2]};
}

struct Sent {
  Array rows = {}, places = {}, counts = {};
};
template <class Op>
Compute rows_op(const Op& op, const Routing& r, Phase phase = Phase::Forward) {
  return {.op = op,
          .phase = phase,
          .shapes = {{{r.tokens, r.hidden, r.chosen, r.experts}, DType::F64}, {{r.ranks, r.room}, DType::F64}}};
}
// reads: x, [weights], experts
inline Sent dispatch(const ops::Dispatch& op, const Routing& r, std::vector<Array> reads) {
  std::vector<Array> writes = {random_array(r.rows(), 99), Array(r.choices(), DType::I64), Array(r.experts, DType::I64)};
  run_on(rows_op(op, r), reads, writes);
  return {writes[0], writes[1], writes[2]};
}
// The same tokens of every source, dispatched on rank `own` of the group. reads: x, [weights], experts of all sources
inline Sent dispatch_gathered(ops::Dispatch op, const Routing& r, std::int64_t sources, int own, std::vector<Array> reads) {
  op.sources = sources;
  std::vector<Array> writes = {random_array(sources * r.room * r.hidden, 99), Array(sources * r.choices(), DType::I64),
                               Array(sources * r.experts / r.ranks, DType::I64)};
  OpArguments arguments;
  arguments.expert_rank = own;
  run_on(rows_op(op, r), reads, writes, arguments);
  return {writes[0], writes[1], writes[2]};
}

struct SentOnce {
  Array rows = {}, weights = {}, experts = {}, places = {};
};
inline Compute once_op(const ops::SendOnce& op, const Routing& r, std::int64_t parts, Phase phase = Phase::Forward) {
  return {.op = op,
          .phase = phase,
          .shapes = {{{r.tokens, r.hidden, r.chosen, r.experts}, DType::F64}, {{parts, r.room}, DType::F64}}};
}
// reads: x, weights, experts
inline SentOnce send_once(const ops::SendOnce& op, const Routing& r, std::int64_t parts, std::vector<Array> reads) {
  const std::int64_t rows = parts * r.room;
  std::vector<Array> writes = {random_array(rows * r.hidden, 99), random_array(rows * r.chosen, 98),
                               Array(rows * r.chosen, DType::I64), Array(r.tokens * parts, DType::I64)};
  run_on(once_op(op, r, parts), reads, writes);
  return {writes[0], writes[1], writes[2], writes[3]};
}

// reads: rows, places, [weights]
inline Array combine(const ops::Combine& op, const Routing& r, const std::vector<Array>& reads) {
  return outputs_of(rows_op(op, r), reads, {r.tokens * r.hidden})[0];
}

// Operands of a dispatch: the experts of a token differ.
inline std::vector<Array> random_dispatch(const ops::Dispatch& op, const Routing& r, std::uint64_t seed) {
  const Routed routed = route({.chosen = r.chosen}, r, random_array(r.tokens * r.experts, seed));
  const Array x = random_array(r.tokens * r.hidden, seed + 1);
  if (!op.scaled) return {x, routed.experts};
  return {x, routed.weights, routed.experts};
}

struct Products {
  std::int64_t experts = 3, sources = 2, room = 9, n = 4, k = 6, parts = 1;
  bool transposed = false, biases = false;

  std::int64_t rows() const { return sources * room; }
  Compute compute(Phase phase) const {
    return {.op = ops::GroupedMatMul{.parts = parts, .transposed = transposed},
            .phase = phase,
            .shapes = {{{experts, room * sources / experts, parts * n, k}, DType::F64}, {{sources, room}, DType::F64}}};
  }
  std::string name() const {
    return std::to_string(parts) + " parts" + (transposed ? ", transposed" : "") + (biases ? ", biases" : "");
  }
};
inline std::vector<Products> all_products() {
  std::vector<Products> all;
  for (const bool biases : {false, true})
    for (const std::int64_t parts : {1, 2, 3}) all.push_back({.parts = parts, .biases = biases});
  for (const bool biases : {false, true}) all.push_back({.transposed = true, .biases = biases});
  return all;
}
// x, counts, weights, biases; one expert of the first source has no rows, and each source has rows that are not used.
inline std::vector<Array> random_products(const Products& p, std::uint64_t seed) {
  std::vector<Array> reads = {random_array(p.rows() * p.k, seed), Array({3, 0, 4, 1, 5, 2}, DType::I64)};
  for (std::int64_t part = 0; part < p.parts; ++part)
    reads.push_back(random_array(p.experts * p.n * p.k, seed + 10 + static_cast<std::uint64_t>(part)));
  for (std::int64_t part = 0; p.biases && part < p.parts; ++part)
    reads.push_back(random_array(p.experts * p.n, seed + 20 + static_cast<std::uint64_t>(part)));
  return reads;
}
template <class Body>
void for_each_unused(const Products& p, const Array& counts, Body&& body) {
  for (std::int64_t source = 0; source < p.sources; ++source) {
    std::int64_t used = 0;
    for (std::int64_t e = 0; e < p.experts; ++e) used += static_cast<std::int64_t>(counts.at(source * p.experts + e));
    for (std::int64_t row = used; row < p.room; ++row) body(source * p.room + row);
  }
}

}  // namespace foreshard
