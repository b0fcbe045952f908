// How far a training has come, and on what: what a checkpoint knows beside its tensors, as texts by name.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "exec/arithmetic/host_samples.h"
#include "exec/arithmetic/loss_scale_state.h"

namespace foreshard {

struct TrainingPoint {
  int step = 0;              // steps done
  std::int64_t samples = 0;  // samples used
  std::uint64_t seed = 0;    // of samples and dropout
  LossScaleState loss_scale = {};
  std::optional<SampleSource> source = {};  // none: the file does not say (versions before 0.1 did not write it)
  bool operator==(const TrainingPoint&) const = default;
};

std::map<std::string, std::string> words_of(const TrainingPoint& point);
// Throws Error naming `file` for words that are none of a training point.
TrainingPoint point_of(const std::map<std::string, std::string>& words, const std::string& file);

}  // namespace foreshard
