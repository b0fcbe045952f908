// Finds the GPU that a text such as "A100-80GB (DGX A100)" or "NVIDIA RTX A6000" names.
#pragma once

#include <optional>
#include <string>

namespace foreshard {

// The GPU's name in topologies/gpus; empty: not there.
std::optional<std::string> catalogue_gpu(const std::string& text);

}  // namespace foreshard
