// The table of strategy options. --help, completion, checks of files, `list options --json`, --set and the strategy panel of the GUI all
// read it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/strategy/strategy.h"

namespace foreshard {

enum class OptionType : std::uint8_t { Integer, Number, Text, Choice, Flag, Bytes, List };

struct StrategyOption {
  std::string path = {};  // field in files and --set: "recompute", "overlap"
  std::string flag = {};  // "--global-batch"; empty: only by --set
  OptionType type = OptionType::Integer;
  std::vector<std::string> values = {};                  // Choice, List: the known words; Text: suggestions for completion
  std::string unit = {};                                 // "sequences", "tokens", ""
  std::string help = {};                                 // one line
  std::string constraint = {};                           // "divides the number of heads"
  std::string group = {};                                // "parallelism", "batch", "memory", "numbers", "communication", "run"
  std::function<std::string(const Strategy&)> get = {};  // the value as a text that `set` accepts
  // Throws Error(where, path, found, expected) on a bad value.
  std::function<void(Strategy&, const std::string& value, const std::string& where)> set = {};
};

// The table: every field of Strategy once, in the order of groups in StrategyOption::group.
const std::vector<StrategyOption>& strategy_options();
const StrategyOption* find_option(const std::string& path);  // null: unknown
// Sets one option by its path, or one part of it ("overlap.grad", "recompute.layers"). Throws Error, which suggests the nearest known path
// for an unknown one; `where` names the origin of the value.
void set_option(Strategy& strategy, const std::string& path, const std::string& value, const std::string& where);

// If PipelineChoice::order has only this entry, strategy/tune searches for the order.
inline constexpr const char* kBestOrder = "best";
// [pipeline rank]: its list of actions from a schedule file: one line each, without empty lines and lines that begin with '#', or, in a
// .json, the texts of "ranks". The lists are parsed when the strategy is used (strategy/schedule/schedule_read.h). Throws Error.
std::vector<std::string> read_schedule_lists(const std::string& path);

}  // namespace foreshard
