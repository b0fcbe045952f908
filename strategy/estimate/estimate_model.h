// The inputs of the screen that all points of a search share: model, cluster, the choices that points do not vary, number formats, and the
// cost of an optimizer update.
#pragma once

#include "strategy/estimate/estimate.h"
#include "strategy/estimate/estimate_costs.h"

namespace foreshard {

struct ScreenedModel {
  // The model must be a transformer.
  ScreenedModel(const Model& model, const Cluster& cluster, const Strategy& base, const MachineProfile* profile);

  using Layers = std::array<double, 4>;        // [stage_kind]
  Layers layers_of(const Point& point) const;  // of one stage
  // Where the layers do not divide evenly: the number of stages, from the second on, that have one layer less than those after them.
  int thinner(const Point& point) const;
  double microbatches(const Point& point) const {  // of a replica, in one iteration
    return static_cast<double>(base.batch.global) / static_cast<double>(point.micro_batch * point.dp);
  }
  double tied_elements(int tp) const;  // elements of a tied embedding on one rank, padding of the vocabulary included

  const Model& model;
  const Cluster& cluster;
  Strategy base;
  const MachineProfile* profile = nullptr;
  StateTypes types = {};
  int layers = 0;
  bool tied = false;                        // the head shares the weights of the embedding
  std::vector<int> listed_in_flight = {};   // [pipeline rank]: the most chunks in flight by a schedule file; empty: no file
  double adam_per_element = 0, launch = 0;  // seconds of an optimizer update: per element, and per kernel

 private:
  double update_time(std::int64_t elements) const;
};

}  // namespace foreshard
