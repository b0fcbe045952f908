// Times of computes and copies from a machine profile: its measured samples, interpolated over sizes.
#pragma once

#include <optional>
#include <vector>

#include "core/profile/machine_profile.h"

namespace foreshard {

// Interpolates the logarithm of time per unit of work (FLOPs of products and attention, else bytes of traffic) over the logarithms of the
// sizes: a plane is fitted to the nearest samples, with more weight on nearer ones, and regularised towards constant time per work, so that
// sizes beyond all samples keep their rate. Sizes that were measured return the measured time. The samples are those of the same op and
// phase (a recomputation also takes a forward's), preferably of the same number format, then of the same variant; fp8 takes fp8 only.
// `joined`: of a product together with its GELU (ProfileOp::joined). Empty: there are none.
std::optional<Seconds> profiled_time(const MachineProfile& profile, const Compute& compute, bool joined = false);

// A product that runs fused with its GELU takes the time that was measured for both together; the GELU gets the part beyond the isolated
// product's time. Changes their costs [instruction of the segment] and returns the time that the fusion saves.
Seconds join_products(const MachineProfile& profile, const Segment& segment, std::vector<Cost>& costs);

// Time of a copy of `bytes` inside the device: linear between samples, at the rate of the last sample beyond them. Empty: no samples.
std::optional<Seconds> profiled_copy(const MachineProfile& profile, Bytes bytes);

}  // namespace foreshard
