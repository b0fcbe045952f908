// What the screen knows of a model on a cluster, whatever the point: what points leave open, number formats, what an update costs.
#pragma once

#include "strategy/estimate/estimate.h"
#include "strategy/estimate/estimate_costs.h"

namespace foreshard {

struct ScreenedModel {
  // The model must be a transformer.
  ScreenedModel(const Model& model, const Cluster& cluster, const Strategy& base, const MachineProfile* profile);

  using Layers = std::array<double, 4>;  // by stage_kind
  Layers layers_of(const Point& point) const;
  // The number of ranks, from the second on, whose stage has one layer less than those after them.
  int thinner(const Point& point) const;
  double microbatches(const Point& point) const {  // of a replica
    return static_cast<double>(base.batch.global) / static_cast<double>(point.micro_batch * point.dp);
  }
  double tied_elements(int tp) const;  // of one rank's part of a tied embedding, with the rows that pad it

  const Model& model;
  const Cluster& cluster;
  Strategy base;
  const MachineProfile* profile = nullptr;
  StateTypes types = {};
  int layers = 0;
  bool tied = false;
  std::vector<int> listed_in_flight = {};  // [pipeline rank], of a schedule file: chunks
  double adam_per_element = 0, launch = 0;  // seconds of an update: of each element, of its kernel

 private:
  double update_time(std::int64_t elements) const;
};

}  // namespace foreshard
