// The preset of a row: the framework that it names, with the kernels that its other columns say.
#pragma once

#include <string>
#include <vector>

#include "validation/measured.h"

namespace foreshard {

// Names of presets (strategy/cost/framework_preset.h).
struct RowPreset {
  std::string preset = {};
  std::string stack = {};  // that of the framework alone, by which rows are grouped into cells
};

// For a framework without a preset: megatron, and "framework" is added to `assumed`.
RowPreset preset_of(const MeasuredRow& row, std::vector<std::string>& assumed);

}  // namespace foreshard
