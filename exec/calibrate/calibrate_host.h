// The individual measurements of `calibrate` on the CPU. Each is repeated, and the result is the median.
#pragma once

#include <functional>
#include <vector>

#include "core/profile/machine_profile.h"

namespace foreshard {

// Measures y = x w^T with x [rows, depth] and w [columns, depth], for every pair (columns, depth) from `sizes`, and the products that make
// the gradients of x and w. Operands are not in the caches before. Calls `tell` once per product, with CPU time.
void measure_products(DType dtype, std::int64_t rows, const std::vector<std::int64_t>& sizes,
                      const std::function<void(const Compute&, Seconds)>& tell);
Seconds measure_start();                             // launch overhead: time of an instruction with almost no work
std::vector<ProfileTransfer> measure_copies();       // copies in memory of 4 KiB to 64 MiB
std::vector<ProfileTransfer> measure_all_reduces();  // of 2 ranks that are threads, fp32, 4 KiB to 16 MiB; wall-clock time

}  // namespace foreshard
