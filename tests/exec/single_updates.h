// A single device whose updates take their gradients at weights that a test chooses: what plans with stale weights are compared with.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "exec/data/safetensors.h"
#include "tests/exec/checkpoint_folder.h"
#include "tests/exec/training.h"

namespace foreshard {

using Weights = std::map<std::string, std::vector<double>>;  // by name of the tensor

inline Weights named(const Plan& plan, const std::vector<WholeTensor>& tensors) {
  Weights all;
  for (std::size_t t = 0; t < plan.tensors.size(); ++t) all[plan.tensors[t].name] = tensors[t].elements;
  return all;
}

// Within the tolerance, and away from the weights that the training began with.
inline void expect_trained_to(const Weights& expected, const Weights& found, const Weights& begin, double tolerance = 1e-12) {
  double largest = 0, moved = 0;
  for (const auto& [name, weights] : found)
    for (std::size_t i = 0; i < weights.size(); ++i) {
      largest = std::max(largest, std::abs(weights[i] - expected.at(name)[i]));
      moved = std::max(moved, std::abs(weights[i] - begin.at(name)[i]));
    }
  EXPECT_LE(largest, tolerance);
  EXPECT_GT(moved, 1e-3);
}

struct SingleUpdates : CheckpointFolder {
  static constexpr double kRate = 0.1;
  CountingSamples samples;

  ExecuteOptions options(int steps = 1) const {
    ExecuteOptions all = training(steps);
    all.optimizer.learning_rate = kRate, all.optimizer.weight_decay = 0, all.samples = &samples;
    return all;
  }

  // The gradients of update `step` of `one`, a single device, at these weights.
  Weights gradients_at(const Plan& one, int step, const Weights& weights) {
    ExecuteOptions before = options();
    before.save = file("before.safetensors");
    run(one, before);
    SafetensorsFile old(before.save);
    std::vector<StoredTensor> tensors = old.tensors();
    auto metadata = old.metadata();
    metadata.at("step") = std::to_string(step);
    metadata.at("samples") = std::to_string(step * one.samples);
    SafetensorsWriter writer(file("at.safetensors"), tensors, metadata);
    for (std::size_t t = 0; t < tensors.size(); ++t) writer.places().write(t, 0, weights.at(tensors[t].name));
    writer.finish();
    ExecuteOptions run_of = options();
    run_of.resume = file("at.safetensors");
    return named(one, run(one, run_of).gradients);
  }
};

}  // namespace foreshard
