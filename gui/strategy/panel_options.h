// Reads the output of `foreshard list ... --json`: the options for the strategy panel, and the names of models and topologies. Options of
// a newer foreshard program appear without a change of the window, even with an unknown type.
#pragma once

#include <string>
#include <vector>

#include "core/strategy/strategy_options.h"

namespace foreshard {

struct PanelOption {
  std::string path = {}, flag = {};
  OptionType type = OptionType::Text;  // an unknown type is read as Text
  std::vector<std::string> values = {};
  std::string otherwise = {};  // its default as text; empty: none
  std::string unit = {}, help = {}, constraint = {}, group = {};
  bool operator==(const PanelOption&) const = default;
};

// From `list options --json`. `where` names the source in errors. Throws Error.
std::vector<PanelOption> parse_panel_options(const std::string& text, const std::string& where);
// From the field "name" of each entry of `list models|topologies --json`. Throws Error.
std::vector<std::string> parse_names(const std::string& text, const std::string& where);

}  // namespace foreshard
