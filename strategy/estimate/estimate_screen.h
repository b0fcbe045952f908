// screen: the time and memory of a strategy of a transformer in closed form (docs/search-estimates.md, "Screen"). What depends on shapes
// is measured once per shape on a small plan that `lower` makes: three stages, one and two layers each. What depends on the
// degrees is measured once per grid of ranks. A point of the space is then arithmetic only: no allocation, no lookup.
#pragma once

#include "strategy/estimate/estimate_costs.h"
#include "strategy/estimate/estimate_model.h"
#include "strategy/estimate/estimate_probe.h"
#include "strategy/estimate/estimate_times.h"

namespace foreshard {

class Screen {
 public:
  static constexpr double kMemorySlack = 1.05;  // its memory is this far off at most; refining decides exactly
  // `base` gives what points leave open. The model must be a transformer.
  Screen(const Model& model, const Cluster& cluster, const Strategy& base, const MachineProfile* profile = nullptr);
  Screen(Screen&&) = default;
  Screen(const Screen&) = delete;

  // Empty: shapes that cannot be cut so.
  std::optional<ShapeCosts> shape(const Point& point) const;
  bool shares_nics() const { return foreshard::shares_nics(model_.cluster); }
  GridCosts grid(const Point& point) const;
  // `point` must divide the batch evenly.
  Screened at(const Point& point, const ShapeCosts& shape, const GridCosts& grid) const;
  // With the fewest layers redone on each rank that fit, of costs without and with full recomputation.
  Screened filled(const Point& point, const ShapeCosts& none, const ShapeCosts& full, const GridCosts& grid) const;

  // Nothing needs to be redone, whatever the screen gets wrong.
  bool fits_for_sure(const Point& point, const ShapeCosts& shape, const GridCosts& grid) const;

  double capacity() const { return capacity_; }  // bytes that arena and framework may take; of the largest GPU
  int layers() const { return model_.layers; }

 private:
  // estimate_gpus.cpp: GPUs differ
  struct Part;   // ranks whose chunks take equal times
  struct Parts;  // of a pipeline
  void find_gpus();
  void find_gpus(const Point& point, GridCosts& grid) const;
  Screened mixed(const Point& point, const ShapeCosts& none, const ShapeCosts& full, const GridCosts& grid) const;
  TimedPoint timed(const Point& point, const GridCosts& grid, Parts& parts) const;
  double finished(const Point& point, const GridCosts& grid, const Parts& parts) const;

  ScreenedModel model_;
  double capacity_ = 0;
  std::vector<Cluster> alike_ = {};  // where GPUs differ: as many of each sort
  std::vector<Screen> gpus_ = {};    // of these
};

}  // namespace foreshard
