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

inline constexpr const char* kUnknownStack = "unknown";

// For a framework without a preset: the costs of megatron, but a stack of its own, kUnknownStack, and "framework" is added to `assumed`.
RowPreset preset_of(const MeasuredRow& row, std::vector<std::string>& assumed);

}  // namespace foreshard
