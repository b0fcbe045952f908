#include "validation/shipped_interval.h"

#include <cmath>

#include "core/base/data_path.h"
#include "core/json/json.h"
#include "strategy/cost/framework_preset.h"
#include "strategy/cost/learned_factors.h"
#include "strategy/kernels/kernel_rates.h"
#include "strategy/learning/part_shares.h"

namespace foreshard {

PredictedRun predicted_run(const Cluster& cluster, const Strategy& strategy, bool experts) {
  return {.framework = compared_framework(shipped_comparisons(), strategy.framework),
          .architecture = gpu_of(cluster, cluster.nodes.front().shape.gpu).architecture,
          .kind = strategy.optimizer.lora.any() ? ModelKind::Adapters
                  : experts                     ? ModelKind::Experts
                                                : ModelKind::Dense,
          .tokens = static_cast<double>(strategy.batch.micro * strategy.batch.seq)};
}

Spread time_spread(const Comparisons& comparisons, const PredictedRun& run, const Gpu& gpu, DType precision) {
  const double of_rates = kNinetyPercent * kernel_rates().product_origin(gpu, precision).spread;
  return wider(comparisons.times(run), of_rates, of_rates);
}

Spread wider(Spread spread, double below, double above) {
  if (spread.low <= 1) spread.low = std::exp(-std::hypot(std::log(spread.low), below));
  if (spread.high >= 1) spread.high = std::exp(std::hypot(std::log(spread.high), above));
  return spread;
}

std::optional<PredictionInterval> interval_of(const Cluster& cluster, const Strategy& strategy, bool experts,
                                              Seconds predicted) {
  const Gpu& gpu = gpu_of(cluster, cluster.nodes.front().shape.gpu);
  if (gpu.architecture == "host") return {};
  const Spread spread = time_spread(shipped_comparisons(), predicted_run(cluster, strategy, experts), gpu, strategy.precision);
  const RateOrigin rates = kernel_rates().product_origin(gpu, strategy.precision);
  return PredictionInterval{.low = predicted * spread.low,
                            .high = predicted * spread.high,
                            .rows = spread.rows,
                            .basis = words_of(spread, gpu.architecture),
                            .extrapolated = spread.basis != Spread::Basis::ThisGpu,
                            .rates_of = rates.gpus,
                            .rates_spread = rates.spread};
}

std::optional<PredictionInterval> learned_interval(const MachineProfile* profile, const Lowered& lowered,
                                                   const Cluster& cluster, Seconds predicted) {
  if (!profile || !profile->learned) return {};
  const FrameworkPreset& preset = framework_preset(lowered.strategy.framework);
  const double spread = LearnedFactors(*profile->learned).spread(part_shares(lowered, cluster, preset));
  const double wide = std::exp(kNinetyPercent * spread);
  return PredictionInterval{
      .low = predicted * (1 / wide),
      .high = predicted * wide,
      .rows = profile->learned->runs,
      .basis = "from the errors of " + std::to_string(profile->learned->runs) + " runs that the profile learned from",
      .learned = true};
}

}  // namespace foreshard
