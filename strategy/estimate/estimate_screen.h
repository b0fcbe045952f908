// screen: the time and memory of a strategy of a transformer in closed form (docs/search-estimates.md, "Screen"). Costs that depend on
// shapes are measured once per shape on small plans that `lower` makes: three stages, of one layer and of two layers each. Costs that
// depend on the degrees are measured once per grid of ranks. A point of the space is then arithmetic only: no allocation, no lookup.
#pragma once

#include "strategy/estimate/estimate_costs.h"
#include "strategy/estimate/estimate_model.h"
#include "strategy/estimate/estimate_probe.h"
#include "strategy/estimate/estimate_times.h"

namespace foreshard {

class Screen {
 public:
  static constexpr double kMemorySlack = 1.05;  // the screen's memory is wrong by at most this factor; refine decides exactly
  // `base` gives the choices that points do not vary. The model must be a transformer.
  Screen(const Model& model, const Cluster& cluster, const Strategy& base, const MachineProfile* profile = nullptr);
  Screen(Screen&&) = default;
  Screen(const Screen&) = delete;

  // Measures the costs of the shape of a point, and of its grid. Empty: the model cannot be divided this way.
  std::optional<ShapeCosts> shape(const Point& point) const;
  bool shares_nics() const { return foreshard::shares_nics(model_.cluster); }
  GridCosts grid(const Point& point) const;
  // The estimate of a point. Its dp and micro-batch must divide the batch evenly.
  Screened at(const Point& point, const ShapeCosts& shape, const GridCosts& grid) const;
  // The same, when each rank recomputes the fewest layers with which it fits; `none`, `full`: costs without and with full recomputation.
  Screened filled(const Point& point, const ShapeCosts& none, const ShapeCosts& full, const GridCosts& grid) const;

  // The point fits even if the screen underestimates its memory by kMemorySlack.
  bool fits_for_sure(const Point& point, const ShapeCosts& shape, const GridCosts& grid) const;

  double capacity() const { return capacity_; }  // bytes for arena and framework memory on the largest GPU, after the reserve
  int layers() const { return model_.layers; }

 private:
  TimedPoint timed(const Point& point, const ShapeCosts& shape, const GridCosts& grid) const;
  // For clusters whose GPUs differ; defined in estimate_gpus.cpp.
  struct Part;   // pipeline ranks whose chunks take equal times
  struct Parts;  // all of a pipeline
  void find_gpus();
  void find_gpus(const Point& point, GridCosts& grid) const;
  Screened mixed(const Point& point, const ShapeCosts& none, const ShapeCosts& full, const GridCosts& grid) const;
  TimedPoint timed(const Point& point, const GridCosts& grid, Parts& parts) const;
  double finished(const Point& point, const GridCosts& grid, const Parts& parts) const;

  ScreenedModel model_;
  double capacity_ = 0;
  std::vector<Cluster> alike_ = {};  // where GPUs differ: for each kind, the cluster as if all its GPUs were of that kind
  std::vector<Screen> gpus_ = {};    // the screens of these clusters
};

}  // namespace foreshard
