// Times from a machine profile: the measured samples of a kind of instruction, interpolated over its sizes.
#pragma once

#include <optional>

#include "core/profile/machine_profile.h"

namespace foreshard {

// In logarithms of the sizes and of time per unit of work (FLOPs of products and attention, else traffic) a plane is fitted to the
// nearest samples, near ones counting more; it is pulled towards "time goes with work", so that a size beyond all samples keeps
// their rate. Sizes that were measured give what was measured. A variant that was not measured takes the nearest one of the same
// op, phase and number format; none at all: nothing.
std::optional<Seconds> profiled_time(const MachineProfile& profile, const Compute& compute);

// A copy inside the device: time over size, linear between samples, at the last rate beyond them. Nothing without samples.
std::optional<Seconds> profiled_copy(const MachineProfile& profile, Bytes bytes);

}  // namespace foreshard
