// What `foreshard list ... --json` says of itself: the fields of the strategy panel and the names that can be chosen. Options
// of a newer program appear by themselves, also those of a type that is not known here.
#pragma once

#include <string>
#include <vector>

#include "core/strategy/strategy_options.h"

namespace foreshard {

struct PanelOption {
  std::string path = {}, flag = {};
  OptionType type = OptionType::Text;  // an unknown word is Text
  std::vector<std::string> values = {};
  std::string otherwise = {};  // its default, as text; empty: none to show
  std::string unit = {}, help = {}, constraint = {}, group = {};
  bool operator==(const PanelOption&) const = default;
};

// `list options --json`. Throws Error.
std::vector<PanelOption> parse_panel_options(const std::string& text, const std::string& where);
// The field "name" of each entry of `list models|topologies --json`. Throws Error.
std::vector<std::string> parse_names(const std::string& text, const std::string& where);

}  // namespace foreshard
