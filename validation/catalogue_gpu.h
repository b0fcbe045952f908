// Which card of the catalogue people mean when they write "A100-80GB (DGX A100)" or "NVIDIA RTX A6000".
#pragma once

#include <optional>
#include <string>

namespace foreshard {

// Name in topologies/gpus; empty: not in the catalogue.
std::optional<std::string> catalogue_gpu(const std::string& text);

}  // namespace foreshard
