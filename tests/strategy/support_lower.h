// Short ways to a plan in tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "core/cluster_file/cluster_file.h"
#include "core/result/memory_timeline.h"
#include "core/result/order_bound.h"
#include "strategy/tune/tune.h"
#include "tests/core/support_models.h"

namespace foreshard {

// GPT with biases, so small that thousands are lowered in seconds; the vocabulary is no multiple of what tensor groups want.
inline Transformer small_transformer(int layers) { return std::get<Transformer>(gpt(layers, 64, 8, 250, 64).shape); }

inline Lowered lowered(const Model& model, const Cluster& cluster, const Strategy& strategy, bool check = true) {
  auto answer = tuned_plan(model, cluster, strategy, {.ignore_memory = true, .check = check});
  if (auto* refused = std::get_if<Infeasible>(&answer)) {
    ADD_FAILURE() << refused->reason;
    return {};
  }
  return std::get<Lowered>(std::move(answer));
}

inline Lowered lowered(const std::string& model, const std::string& cluster, const Strategy& strategy, bool check = true) {
  return lowered(load_model(model), load_cluster(cluster), strategy, check);
}

inline Infeasible refused(const Model& model, const Cluster& cluster, const Strategy& strategy) {
  auto answer = tuned_plan(model, cluster, strategy);
  if (auto* why = std::get_if<Infeasible>(&answer)) return *why;
  ADD_FAILURE() << "was expected to be refused";
  return {};
}

// Arena over order bound (core/result/order_bound.h), of the rank where it is largest.
inline double fragmentation(const Plan& plan) {
  double most = 0;
  const std::vector<Bytes> bounds = order_bounds(plan);
  for (std::size_t r = 0; r < bounds.size(); ++r)
    most = std::max(
        most, static_cast<double>(arena_bytes(plan.roles[r], Space::Device).value) / static_cast<double>(bounds[r].value));
  return most;
}

// Bytes of resident buffers by category.
inline LiveBytes resident(const Role& role) {
  LiveBytes sum = {};
  for (const Buffer& buffer : role.buffers)
    if (buffer.resident) sum[static_cast<std::size_t>(buffer.category)] += buffer.bytes;
  return sum;
}

// All slots of the buffers of a category.
inline Bytes slots(const Role& role, Category category) {
  Bytes sum = {};
  for (const Buffer& buffer : role.buffers)
    if (buffer.category == category) sum += buffer.bytes * static_cast<std::int64_t>(buffer.offsets.size());
  return sum;
}

}  // namespace foreshard
