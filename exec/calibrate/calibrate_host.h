// The single measurements of `calibrate`. Each is repeated; the median counts.
#pragma once

#include <functional>
#include <vector>

#include "core/profile/machine_profile.h"

namespace foreshard {

// y = x w^T of `rows` rows, for all columns and depths of `sizes`, and the products of its gradients; operands come from memory
// that was not used lately.
void measure_products(DType dtype, std::int64_t rows, const std::vector<std::int64_t>& sizes,
                      const std::function<void(const Compute&, Seconds)>& tell);
Seconds measure_start();                             // of an instruction that does next to nothing
std::vector<ProfileTransfer> measure_copies();       // 4 KiB to 64 MiB
std::vector<ProfileTransfer> measure_all_reduces();  // 2 ranks, threads, 4 KiB to 16 MiB, fp32

}  // namespace foreshard
