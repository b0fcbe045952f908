#include "core/strategy/strategy_option_kinds.h"

#include "core/json/json.h"
#include "core/strategy/compression.h"

namespace foreshard::option_kinds {

std::string shown(const std::string& value) { return value.empty() ? "nothing" : "\"" + value + "\""; }

std::string one_of(const std::vector<std::string>& words, const std::string& found) {
  std::string list;
  for (const std::string& word : words) list += (list.empty() ? "" : ", ") + word;
  const std::string near = nearest_name(found, words);
  return "one of " + list + (near.empty() ? "" : " (nearest: \"" + near + "\")");
}

std::string shortest(double number) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, number).ptr};
}

double read_number(const std::string& value, double least, double below, bool percent, const std::string& path,
                   const std::string& where) {
  const bool in_percent = percent && value.ends_with('%');
  auto number = parse<double>(in_percent ? value.substr(0, value.size() - 1) : value);
  if (number && in_percent) *number /= 100;
  if (!number || !(*number >= least && *number < below)) {
    const std::string range = "a number of at least " + shortest(least) + " and below " + shortest(below);
    throw Error(where, path, shown(value), range + (percent ? ", or a percentage such as 6%" : ""));
  }
  return *number == 0 ? 0 : *number;  // never a negative zero
}

StrategyOption flag(std::function<bool&(Strategy&)> at, StrategyOption option) {
  option.type = OptionType::Flag;
  option.values = {"true", "false"};
  option.get = [at](const Strategy& s) {
    Strategy copy = s;
    return std::string(at(copy) ? "true" : "false");
  };
  option.set = [at, path = option.path](Strategy& s, const std::string& value, const std::string& where) {
    if (value != "true" && value != "false") throw Error(where, path, shown(value), "true or false");
    at(s) = value == "true";
  };
  return option;
}

StrategyOption layer_split(StrategyOption option) {
  option.type = OptionType::Text;
  option.get = [](const Strategy& s) { return s.pipeline.layer_split; };
  option.set = [](Strategy& s, const std::string& value, const std::string& where) {
    if (!value.empty() && value != "auto") parse_layer_split(value, where);  // checked here, resolved by lower
    s.pipeline.layer_split = value;
  };
  return option;
}

StrategyOption expert_load(StrategyOption option) {
  option.type = OptionType::Text;
  option.get = [](const Strategy& s) { return to_text(s.experts.load); };
  option.set = [](Strategy& s, const std::string& value, const std::string& where) {
    s.experts.load = parse_expert_load(value, where);
  };
  return option;
}

StrategyOption stages(StrategyOption option) {
  option.type = OptionType::Text;
  option.get = [](const Strategy& s) { return to_text(s.stages); };
  option.set = [](Strategy& s, const std::string& value, const std::string& where) {
    s.stages = value.empty() ? std::vector<StageDegrees>() : parse_stages(value, where);
  };
  return option;
}

StrategyOption schedule(StrategyOption option) {
  std::vector<Schedule> all;
  for (std::size_t i = 0; i < schedule_names().size(); ++i) all.push_back(static_cast<Schedule>(i));
  option = optional_choice(
      [](auto& s) -> auto& { return s.pipeline.schedule; }, all, std::move(option));
  option.set = [by_name = option.set](Strategy& s, const std::string& value, const std::string& where) {
    if (value == kBestOrder) {
      s.pipeline.schedule = Schedule::Listed, s.pipeline.order = {kBestOrder};
      return;
    }
    if (value.starts_with("file:")) {
      s.pipeline.order = read_schedule_lists(value.substr(5));
      s.pipeline.schedule = Schedule::Listed;
      return;
    }
    by_name(s, value, where);
    if (s.pipeline.schedule != Schedule::Listed || s.pipeline.order == std::vector<std::string>{kBestOrder})
      s.pipeline.order.clear();
  };
  option.get = [by_name = option.get](const Strategy& s) {
    const bool best = s.pipeline.schedule == Schedule::Listed && s.pipeline.order == std::vector<std::string>{kBestOrder};
    return best ? kBestOrder : by_name(s);
  };
  option.values.emplace_back(kBestOrder);
  return option;
}

StrategyOption schedule_order(StrategyOption option) {
  option.type = OptionType::Text;
  option.get = [](const Strategy& s) {
    std::string text;
    for (const std::string& rank : s.pipeline.order) text += (text.empty() ? "" : "; ") + rank;
    return text;
  };
  option.set = [](Strategy& s, const std::string& value, const std::string&) {
    s.pipeline.order.clear();
    for (std::size_t from = value.find_first_not_of("; "); from != std::string::npos;) {
      const std::size_t to = std::min(value.find(';', from), value.size());
      s.pipeline.order.push_back(value.substr(from, to - from));
      from = value.find_first_not_of("; ", to);
    }
    if (!s.pipeline.order.empty()) s.pipeline.schedule = Schedule::Listed;
  };
  return option;
}

StrategyOption schedule_times(StrategyOption option) {
  option.type = OptionType::Text;
  option.values = {"auto"};
  option.get = [](const Strategy& s) {
    if (!s.pipeline.times) return std::string("auto");
    const auto& [f, i, w, c] = *s.pipeline.times;
    return shortest(f) + "," + shortest(i) + "," + shortest(w) + "," + shortest(c);
  };
  option.set = [path = option.path](Strategy& s, const std::string& value, const std::string& where) {
    s.pipeline.times = {};
    if (value == "auto") return;
    ActionTimes times;
    std::size_t from = 0;
    for (double* time : {&times.forward, &times.input_grad, &times.weight_grad, &times.transfer}) {
      const std::size_t to = time == &times.transfer ? value.size() : std::min(value.find(',', from), value.size());
      const auto number = parse<double>(value.substr(std::min(from, value.size()), to - std::min(from, to)));
      if (!number || !(*number >= 0 && *number <= 1e9))
        throw Error(where, path, shown(value), "auto, or four times F,I,W,C from 0 to 1e9, such as 2,2,1,0.1");
      *time = *number == 0 ? 0 : *number, from = to + 1;  // never a negative zero
    }
    s.pipeline.times = times;
  };
  return option;
}

StrategyOption placement(StrategyOption option) {
  option.type = OptionType::List;
  option.values = short_names();
  option.values.emplace_back("role");
  option.get = [](const Strategy& s) { return to_text(s.placement); };
  option.set = [words = option.values](Strategy& s, const std::string& value, const std::string& where) {
    RankOrder order;
    bool known = true;
    for (std::size_t from = 0; from < value.size();) {
      const std::size_t to = std::min(value.find(',', from), value.size());
      const auto word = std::find(words.begin(), words.end(), value.substr(from, to - from));
      const auto kind = static_cast<std::size_t>(word - words.begin());
      known = known && word != words.end();
      order.push_back(kind < short_names().size() ? std::optional(static_cast<DenseKind>(kind)) : std::nullopt);
      from = to + 1;
    }
    if (!value.empty() && !(known && is_complete(order)))
      throw Error(where, "placement", shown(value),
                  "tp, cp, dp and role (and dp_outer), each once, in any order, such as tp,cp,dp,role");
    s.placement = order;
  };
  return option;
}

StrategyOption recompute(StrategyOption option) {
  option.type = OptionType::Text;
  option.values = {"none", "selective", "full", "auto", "best", "rotor", "graph"};
  option.values.insert(option.values.end(), recompute_modules().begin(), recompute_modules().end());
  option.get = [](const Strategy& s) { return to_text(s.recompute); };
  option.set = [](Strategy& s, const std::string& value, const std::string& where) {
    s.recompute = parse_recompute(value, where);
  };
  return option;
}

StrategyOption compression(Compression CommunicationChoice::*field, StrategyOption option) {
  const bool gradients = field == &CommunicationChoice::gradients, activations = field == &CommunicationChoice::activations;
  const Compressed what = gradients ? Compressed::Gradients : activations ? Compressed::Activations : Compressed::Dispatch;
  option.type = OptionType::Text;
  option.values = gradients
                      ? std::vector<std::string>{"none", "dgc:0.01", "one-bit:100", "eight-bit", "segmented:8", "segmented:4x8"}
                  : activations ? std::vector<std::string>{"none", "token-topk:0.5", "segmented:8", "segmented:4x8"}
                                : std::vector<std::string>{"none", "fp8", "eight-bit"};
  option.get = [field](const Strategy& s) { return to_text(s.communication.*field); };
  option.set = [field, what, path = option.path](Strategy& s, const std::string& value, const std::string& where) {
    s.communication.*field = parse_compression(value, what, path, where);
  };
  return option;
}

StrategyOption overlap(StrategyOption option) {
  option.type = OptionType::List;
  option.values = {"grad", "param", "p2p", "tp"};
  option.get = [](const Strategy& s) {
    return s.communication.overlap ? to_text(*s.communication.overlap) : std::string("auto");
  };
  option.set = [](Strategy& s, const std::string& value, const std::string& where) {
    s.communication.overlap = value == "auto" ? std::nullopt : std::optional(parse_overlap(value, where));
  };
  return option;
}

static Bytes bounded_bytes(const std::string& value, const std::string& where, const std::string& path) {
  const Bytes bytes = parse_bytes(value, where, path);
  constexpr Bytes most = {std::int64_t{1} << 50};
  if (bytes.value < 0 || bytes > most) throw Error(where, path, shown(value), "a size from 0 to 1024 TiB, such as \"40 MB\"");
  return bytes;
}

StrategyOption size(std::function<Bytes&(Strategy&)> at, StrategyOption option) {
  option.type = OptionType::Bytes;
  option.get = [at](const Strategy& s) {
    Strategy copy = s;
    return std::to_string(at(copy).value);
  };
  option.set = [at, path = option.path](Strategy& s, const std::string& value, const std::string& where) {
    at(s) = bounded_bytes(value, where, path);
  };
  return option;
}

StrategyOption size_or_auto(std::function<Bytes&(Strategy&)> at, StrategyOption option) {
  option = size(at, std::move(option));
  option.values = {"auto"};
  option.get = [at, number = option.get](const Strategy& s) {
    Strategy copy = s;
    return at(copy).value < 0 ? "auto" : number(s);
  };
  option.set = [at, bytes = option.set](Strategy& s, const std::string& value, const std::string& where) {
    if (value == "auto")
      at(s) = {-1};
    else
      bytes(s, value, where);
  };
  return option;
}

// "4", "2,4", or layer by layer "2,4x11;1,8", of which the last holds for all layers that follow.
static std::string text_of_parts(const std::vector<int>& parts) {
  if (parts.size() == 1) return std::to_string(parts[0]);
  std::string text;
  for (std::size_t at = 0, same = 0; at + 1 < parts.size(); at += 2 * same) {
    const auto pair = [&](std::size_t i) { return std::pair(parts[i], parts[i + 1]); };
    for (same = 1; at + 2 * same + 1 < parts.size() && pair(at + 2 * same) == pair(at);) ++same;
    text += (at > 0 ? ";" : "") + std::to_string(parts[at]) + "," + std::to_string(parts[at + 1]);
    if (same > 1) text += "x" + std::to_string(same);
  }
  return text;
}

// Empty: not such a text.
static std::vector<int> parts_of_text(const std::string& text) {
  constexpr int kMostLayers = 1 << 14, kMostParts = 1024;
  const auto number = [](const std::string& word, int most) {
    const auto n = parse<int>(word);
    return n && *n >= 1 && *n <= most ? *n : 0;
  };
  if (const int all = number(text, kMostParts); all > 0) return {all};
  std::vector<int> parts;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t to = std::min(text.find(';', from), text.size());
    const std::string layer = text.substr(from, to - from);
    const std::size_t times = std::min(layer.find('x'), layer.size()), comma = std::min(layer.find(','), times);
    const int first = number(layer.substr(0, comma), kMostParts);
    const int second = comma == times ? first : number(layer.substr(comma + 1, times - comma - 1), kMostParts);
    const int count = times == layer.size() ? 1 : number(layer.substr(times + 1), kMostLayers);
    if (first == 0 || second == 0 || count == 0 || parts.size() / 2 + static_cast<std::size_t>(count) > kMostLayers) return {};
    for (int i = 0; i < count; ++i) parts.push_back(first), parts.push_back(second);
    from = to + 1;
  }
  return parts;
}

// "auto" is {0}, "1" is empty.
StrategyOption operator_parts(StrategyOption option) {
  option.type = OptionType::Text;
  option.values = {"auto"};
  option.get = [](const Strategy& s) {
    const std::vector<int>& parts = s.communication.parts;
    if (parts.empty()) return std::string("1");
    return parts.front() == 0 ? std::string("auto") : text_of_parts(parts);
  };
  option.set = [path = option.path](Strategy& s, const std::string& value, const std::string& where) {
    std::vector<int> parts = value == "auto" ? std::vector<int>{0} : parts_of_text(value);
    if (parts.empty())
      throw Error(where, path, shown(value),
                  "auto, or numbers of parts from 1 to 1024, such as 4 or 2,4, or layer by layer 2,4x11;1,8");
    s.communication.parts = shortest_parts(std::move(parts));
  };
  return option;
}

StrategyOption framework_memory(StrategyOption option) {
  option.type = OptionType::Bytes;
  option.values = {"auto"};
  option.get = [](const Strategy& s) {
    return s.device_memory.framework ? std::to_string(s.device_memory.framework->value) : std::string("auto");
  };
  option.set = [path = option.path](Strategy& s, const std::string& value, const std::string& where) {
    s.device_memory.framework = value == "auto" ? std::nullopt : std::optional(bounded_bytes(value, where, path));
  };
  return option;
}

StrategyOption named(std::string Strategy::*field, const std::vector<std::string>& known, StrategyOption option) {
  option.type = OptionType::Choice;
  option.values = known;
  option.get = [field](const Strategy& s) { return s.*field; };
  option.set = [=, path = option.path](Strategy& s, const std::string& value, const std::string& where) {
    if (std::find(known.begin(), known.end(), value) == known.end())
      throw Error(where, path, shown(value), one_of(known, value));
    s.*field = value;
  };
  return option;
}

}  // namespace foreshard::option_kinds
