#include "validation/shipped_interval.h"

#include <cmath>

#include "core/base/data_path.h"
#include "core/json/json.h"
#include "strategy/cost/framework_preset.h"
#include "strategy/cost/learned_factors.h"
#include "strategy/kernels/kernel_rates.h"
#include "strategy/learning/part_shares.h"

namespace foreshard {

std::optional<PredictionInterval> interval_of(const Cluster& cluster, const Strategy& strategy, bool experts,
                                              Seconds predicted) {
  const Gpu& gpu = gpu_of(cluster, cluster.nodes.front().shape.gpu);
  if (gpu.architecture == "host") return {};
  PredictionInterval interval = prediction_interval(shipped_spreads(), gpu.architecture, strategy.framework, experts, predicted,
                                                    strategy.optimizer.lora.any());
  const RateOrigin rates = kernel_rates().product_origin(gpu, strategy.precision);
  interval.rates_of = rates.gpus;
  interval.rates_spread = rates.spread;
  const double wider = kNinetyPercent * rates.spread;
  const auto widened = [&](Seconds end, double sign) {
    return Seconds{predicted.value * std::exp(sign * std::hypot(std::log(end.value / predicted.value), wider))};
  };
  if (wider > 0 && interval.low.value > 0 && interval.low <= predicted && predicted <= interval.high)
    interval.low = widened(interval.low, -1), interval.high = widened(interval.high, 1);
  return interval;
}

std::optional<PredictionInterval> learned_interval(const MachineProfile* profile, const Lowered& lowered,
                                                   const Cluster& cluster, Seconds predicted) {
  if (!profile || !profile->learned) return {};
  const FrameworkPreset& preset = framework_preset(lowered.strategy.framework);
  const double spread = LearnedFactors(*profile->learned).spread(part_shares(lowered, cluster, preset));
  const double wide = std::exp(kNinetyPercent * spread);
  return PredictionInterval{
      .low = predicted * (1 / wide), .high = predicted * wide, .rows = profile->learned->runs, .learned = true};
}

}  // namespace foreshard
