// Progress of a training run, and the data that it uses: what a checkpoint stores besides tensors, in the metadata of the file.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "exec/arithmetic/host_samples.h"
#include "exec/arithmetic/loss_scale_state.h"

namespace foreshard {

struct TrainingPoint {
  int step = 0;                             // optimizer steps done
  std::int64_t samples = 0;                 // samples used
  std::uint64_t seed = 0;                   // of samples and dropout
  LossScaleState loss_scale = {};           // at the end of the last step; zeros without a dynamic loss scale
  std::optional<SampleSource> source = {};  // nothing: unknown (versions before 0.1 did not write it)
  bool checksums = true;                    // of a point that was read: the file has checksums
  bool operator==(const TrainingPoint&) const = default;
};

// The training point as metadata (key, text), and back. point_of throws Error, naming `file`, if a value is missing or invalid.
std::map<std::string, std::string> words_of(const TrainingPoint& point);
TrainingPoint point_of(const std::map<std::string, std::string>& words, const std::string& file);

}  // namespace foreshard
