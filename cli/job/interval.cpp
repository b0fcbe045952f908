#include "cli/job/interval.h"

#include "strategy/tune/tune.h"

namespace foreshard {

std::optional<PredictionInterval> interval_of(const Job& job, const Strategy& strategy, Seconds predicted) {
  if (job.profile && job.profile->learned) {
    const auto answer = tuned_plan(job.model, job.cluster, strategy, {.ignore_memory = true, .profile = job.measured()});
    if (const auto* lowered = std::get_if<Lowered>(&answer))
      return learned_interval(job.measured(), *lowered, job.cluster, predicted);
  }
  const auto* transformer = std::get_if<Transformer>(&job.model.shape);
  return interval_of(job.cluster, strategy, transformer && transformer->block.experts.count > 0, predicted);
}

}  // namespace foreshard
