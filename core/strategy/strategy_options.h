// The table of strategy options: the one place that --help, completion, file checks, `list options --json`, --set and
// the GUI panel read.
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
  std::vector<std::string> values = {};                  // Choice, List: the known words; Text: words worth completing
  std::string unit = {};                                 // "sequences", "tokens", ""
  std::string help = {};                                 // one line
  std::string constraint = {};                           // "divides the number of heads"
  std::string group = {};                                // "parallelism", "batch", "memory", "numbers", "communication", "run"
  std::function<std::string(const Strategy&)> get = {};  // text that `set` takes back
  // Throws Error(where, path, found, expected) on a bad value.
  std::function<void(Strategy&, const std::string& value, const std::string& where)> set = {};
};

// Every field of Strategy once, in the order of the groups above.
const std::vector<StrategyOption>& strategy_options();
const StrategyOption* find_option(const std::string& path);
// Sets one option by its path, or one part of it ("overlap.grad", "recompute.layers"); unknown paths throw with the
// nearest known one.
void set_option(Strategy& strategy, const std::string& path, const std::string& value, const std::string& where);

// PipelineChoice::order with this one entry: the order is to be found (strategy/tune).
inline constexpr const char* kBestOrder = "best";
// The lists of a schedule file, of every pipeline rank: its lines that are not empty and do not begin with '#', or the texts of "ranks" of a
// .json. What they say is looked at when the strategy is used (strategy/schedule/schedule_read.h). Throws Error.
std::vector<std::string> read_schedule_lists(const std::string& path);

}  // namespace foreshard
