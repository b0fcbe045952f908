// Strategies drawn at random over all options of the table together. A draw is determined by its seed, so that a failure can be
// repeated by itself.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/strategy/strategy.h"
#include "core/strategy/strategy_options.h"

namespace foreshard::drawn {

// What a draw may set an option to. An option without values is set by draw_degrees or draw_order, or is left as it is; `because` says so.
struct OptionValues {
  std::string path = {};
  std::vector<std::string> values = {};
  std::string because = {};
};

// One entry for every option of strategy_options(): DrawnPlans.EveryOptionIsDrawn.
inline const std::vector<OptionValues>& option_values() {
  const std::string degrees = "draw_degrees";
  static const std::vector<OptionValues> all = {
      {"dp", {}, degrees},
      {"tp", {}, degrees},
      {"pp", {}, degrees},
      {"cp", {}, degrees},
      {"ep", {}, degrees},
      {"etp", {}, degrees},
      {"virtual_stages", {}, degrees},
      {"schedule", {}, degrees},
      {"schedule_order", {}, degrees},
      {"stages", {}, degrees},
      {"layer_split", {}, degrees},
      {"micro_batch", {}, degrees},
      {"global_batch", {}, degrees},
      {"context", {"all-gather", "ring", "all-to-all"}},
      {"sequence_parallel", {"true"}},
      {"expert_load", {"worst", "balanced", "gini:0.15", "2"}},
      {"expert_capacity", {"1", "2"}},
      {"expert_unpadded", {"true"}},
      {"expert_dispatcher", {"all-gather", "hierarchical", "once-per-rank", "once-per-node"}},
      {"expert_node_ranks", {"1", "2"}},
      {"schedule_times", {"3,2,1,0.5"}},
      {"microbatch_group", {"2", "3", "4"}},
      {"delay_wgrad", {"true"}},
      {"placement", {"role,tp,cp,dp", "dp,tp,cp,role", "cp,dp,tp,role"}},
      {"seq", {"8"}},
      {"packed_length", {"4", "8"}},
      {"policy",
       {"none", "deepspeed_z1", "deepspeed_z2", "deepspeed_z3", "zero_offload", "fsdp", "fsdp2", "megatron", "bmtrain_z2",
        "bmtrain_z3", "l2l", "gemini_cpu", "gemini_static", "gemini_auto", "patrickstar", "greedy", "greedy_sync"}},
      {"zero", {"1", "2", "3"}},
      {"zero_group", {"2"}},
      {"recompute",
       {"selective", "full", "full:1", "layers:0,2", "attention,norm", "activation,mlp,dropout", "auto", "best",
        "each:2xfull,none,attention+norm", "rotor", "rotor:200 KB", "graph", "graph:200 KB", "revolve:1", "revolve:2"}},
      {"framework_memory", {"0", "1 GiB"}},
      {"reserve", {"0", "0.1"}},
      {"packing", {"exact"}},
      {"offload_optimizer", {"host", "nvme"}},
      {"offload_kept", {"0.3", "0.9"}},
      {"updated_on", {"device", "host"}},
      {"update_per_layer", {"true"}},
      {"offload_parameters", {"host", "nvme"}},
      {"offload_gradients", {"host", "nvme"}},
      {"offload_activations", {"inputs", "all", "vdnn", "free-time"}},
      {"offload_to", {"nvme"}},
      {"offload_layers", {"1", "2"}},
      {"offload_budget", {"400 KB", "1 MB"}},
      {"precision", {"fp32", "bf16", "fp16", "fp8", "tf32"}},
      {"param_dtype", {"fp32", "bf16"}},
      {"grad_dtype", {"fp32", "bf16"}},
      {"state_dtype", {"fp32", "bf16"}},
      {"attention", {"flash", "unfused"}},
      {"dropout", {"0", "0.1"}},
      {"optimizer", {"sgd"}},
      {"momentum", {"0.9"}},
      {"clip_norm", {"0", "0.01", "1"}},
      {"loss_scale", {"0", "1024", "3"}},
      {"delay_annealing", {"2"}},
      {"vocab_multiple", {"4", "64"}},
      {"lora_rank", {"2", "4"}},
      {"lora_alpha", {"8"}},
      {"lora_targets", {"all"}},
      {"bucket", {"4 KB", "20 KB", "300 KB", "auto"}},
      {"overlap", {"none", "grad", "grad,p2p", "grad,param", "grad,param,p2p,tp", "tp", "param", "p2p,tp"}},
      {"algorithm",
       {"auto", "tree", "double-tree", "hierarchical", "parameter-server", "nvlink-sharp", "2d", "gather-to-root",
        "two-level"}},
      {"parts", {"2", "1,2", "2,1", "2,1;1,2;1,1", "auto"}},
      {"servers", {"1", "2"}},
      {"server_placement", {"spread", "nodes"}},
      {"transfers", {"whole", "split"}},
      {"asynchronous", {"true"}},
      {"sum_order", {"priority"}},
      {"partition", {"4 KB"}},
      {"credit", {"16 KB"}},
      {"compress_gradients", {"eight-bit", "segmented:4", "segmented:8x8", "one-bit", "one-bit:1", "dgc:0.1"}},
      {"compress_group", {"1", "2", "4"}},
      {"compress_activations", {"token-topk:0.5", "segmented:8", "segmented:4x8", "token-topk:0.5,segmented:8"}},
      {"compress_dispatch", {"fp8", "eight-bit"}},
      {"framework", {}, "the tests draw it, in their own ways"}};
  return all;
}

class Dice {
 public:
  explicit Dice(std::uint32_t seed) : engine_(seed) {}
  int below(int count) { return static_cast<int>(engine_() % static_cast<std::uint32_t>(count)); }
  bool one_in(int count) { return below(count) == 0; }
  bool chance(double probability) { return engine_() < probability * 4294967296.0; }
  template <class T>
  T any(std::initializer_list<T> choices) {
    return choices.begin()[below(static_cast<int>(choices.size()))];
  }
  template <class T>
  const T& any(const std::vector<T>& choices) {
    return choices[static_cast<std::size_t>(below(static_cast<int>(choices.size())))];
  }

 private:
  std::mt19937 engine_;
};

// What the model and the machine allow.
struct Bounds {
  int ranks = 8;          // at most
  int layers = 4;         // of the model
  int most_tp = 4;        // 1: the model cannot be cut into tensor-parallel parts
  int experts = 0;        // of a layer
  int samples = 8;        // of an iteration, at least; more where the micro-batches ask for it
  bool sequences = true;  // the model has tokens
};

inline int any_divisor(Dice& dice, int number, int most) {
  std::vector<int> all;
  for (int d = 1; d <= std::min(number, most); ++d)
    if (number % d == 0) all.push_back(d);
  return dice.any(all);
}

// `layers` in `stages` parts of at least one.
inline std::string any_split(Dice& dice, int layers, int stages) {
  std::vector<int> parts(static_cast<std::size_t>(stages), 1);
  for (int left = layers - stages; left > 0; --left) ++parts[static_cast<std::size_t>(dice.below(stages))];
  std::string text;
  for (const int part : parts) text += (text.empty() ? "" : ",") + std::to_string(part);
  return text;
}

// All forwards, then all backwards in some order, whole or in halves, the same on all ranks.
inline std::vector<std::string> any_order(Dice& dice, int pp, int microbatches) {
  std::vector<int> order(static_cast<std::size_t>(microbatches));
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[static_cast<std::size_t>(dice.below(static_cast<int>(i)))]);
  const bool halves = dice.one_in(2);
  std::vector<std::string> lists;
  for (int rank = 0; rank < pp; ++rank) {
    const std::string stage = std::to_string(rank);
    std::string list;
    const auto add = [&](const char* work, int microbatch) {
      list += (list.empty() ? "" : " ") + stage + work + std::to_string(microbatch);
    };
    for (int m = 0; m < microbatches; ++m) add("F", m);
    for (const int m : order) add(halves ? "I" : "B", m);
    for (const int m : order)
      if (halves) add("W", m);
    lists.push_back(list);
  }
  return lists;
}

inline void draw_stages(Dice& dice, const Bounds& bounds, Strategy& s) {
  s = {.pp = 1, .batch = s.batch};
  const int count = 1 + dice.below(std::min(4, bounds.layers));
  int left = bounds.layers;
  for (int stage = 0; stage < count; ++stage) {
    StageDegrees of{.dp = dice.any({1, 1, 2, 4}), .tp = std::min(bounds.most_tp, dice.any({1, 1, 2}))};
    of.layers = stage + 1 == count ? left : 1 + dice.below(left - (count - 1 - stage));
    left -= of.layers;
    s.stages.push_back(of);
  }
  s.pipeline.schedule = dice.any<std::optional<Schedule>>({{}, Schedule::GPipe, Schedule::OneFOneB});
  s.batch.micro = dice.any({1, 1, 2});
  s.batch.global = s.batch.micro * dice.any({4, 8});
}

// Asynchronous servers with workers of up to four ranks.
inline void draw_servers(Dice& dice, const Bounds& bounds, Strategy& s) {
  s.communication.asynchronous = true, s.cp = 1, s.experts.ep = s.experts.etp = 1;
  s.tp = std::min(bounds.most_tp, dice.any({1, 1, 2}));
  s.pp = std::min(bounds.layers, dice.any({1, 1, 2}));
  s.dp = s.tp * s.pp > 2 ? dice.any({1, 2}) : dice.any({2, 3, 4});
  s.communication.servers = s.tp * dice.any({0, 1, 2});
  s.communication.server_placement = dice.any({ServerPlacement::First, ServerPlacement::Spread, ServerPlacement::Nodes});
  if (s.pp > 1 && dice.one_in(2))
    s.pipeline.schedule = dice.any({Schedule::GPipe, Schedule::OneFOneB, Schedule::ZeroBubbleH1, Schedule::Interleaved});
  if (s.pipeline.schedule == Schedule::Interleaved) s.virtual_stages = s.pp * 2 <= bounds.layers ? 2 : 1;
}

// Degrees, schedule and batch together, since each restricts the others.
inline void draw_degrees(Dice& dice, const Bounds& bounds, Strategy& s) {
  const int ranks = dice.any({1, 2, 2, 4, 4, 8});
  int left = std::min(ranks, bounds.ranks);
  s.pp = any_divisor(dice, left, std::min(4, bounds.layers)), left /= s.pp;
  s.tp = any_divisor(dice, left, bounds.most_tp), left /= s.tp;
  s.cp = bounds.sequences && dice.one_in(4) ? any_divisor(dice, left, 4) : 1, left /= s.cp;
  s.dp = left;
  if (bounds.experts > 0) {
    const int grid = s.dp * s.tp * s.cp;
    s.experts.ep = any_divisor(dice, std::gcd(grid, bounds.experts), 8);
    if (dice.one_in(3)) s.experts.etp = any_divisor(dice, grid / s.experts.ep, 2);
  }
  if (dice.one_in(8)) return draw_stages(dice, bounds, s);
  if (dice.one_in(30)) draw_servers(dice, bounds, s);
  if (!s.communication.asynchronous && dice.chance(0.7)) {
    const auto& names = schedule_names();
    const auto listed = static_cast<int>(Schedule::Listed);
    s.pipeline.schedule = static_cast<Schedule>(dice.below(std::min(static_cast<int>(names.size()), listed + 1)));
    using enum Schedule;
    const Schedule drawn = *s.pipeline.schedule;
    const bool chunks =
        drawn == Interleaved || drawn == LoopedBfs || drawn == InterleavedZeroBubble || drawn == InterleavedCells;
    const bool folded = drawn == ZeroBubbleV || drawn == VHalf || drawn == VMin || drawn == DualPipeV;
    s.virtual_stages = folded ? 2 : chunks ? dice.any({2, 2, 3, 4}) : 1;
    const bool whole = drawn == GPipe || drawn == OneFOneB || drawn == OneFOneBCells;
    if (s.pp == 1 && !whole) s.pp = 2, s.dp = std::max(1, s.dp / 2);
    while (s.pp > 1 && s.pp * s.virtual_stages > bounds.layers) s.pp /= 2;
    if (s.pp == 1 && s.virtual_stages > 1) s.virtual_stages = 1, s.pipeline.schedule.reset();
  }
  s.batch.micro = dice.any({1, 1, 2, 4});
  const int replicas = s.dp, microbatches = dice.any({1, 2, 3, 4, 4, 8});
  s.batch.global = s.batch.micro * replicas * microbatches;
  if (s.batch.global < bounds.samples && dice.chance(0.7)) {
    s.batch.global = std::lcm<std::int64_t>(bounds.samples, s.batch.micro * replicas);
  }
  const int stages = s.pp * s.virtual_stages;
  if (stages > 1 && stages <= bounds.layers && dice.one_in(4))
    s.pipeline.layer_split = dice.one_in(4) ? "auto" : any_split(dice, bounds.layers, stages);
  if (s.pipeline.schedule == Schedule::Listed)
    s.pipeline.order = any_order(dice, s.pp, static_cast<int>(s.batch.global / (s.batch.micro * replicas)));
}

struct Draw {
  Strategy strategy = {};
  std::string options = {};  // what was set: "dp=2 tp=2 ... recompute=full"
};

// Options that are refused beside what the draw has already; a few are drawn nevertheless.
inline bool is_refused(const std::string& option, const Strategy& s) {
  using enum Schedule;
  const Schedule schedule = s.pipeline.schedule.value_or(OneFOneB);
  const bool replicas = s.dp > 1 && s.dp % 2 == 0;
  if (option == "zero_group") return !replicas;
  if (option == "delay_wgrad") return schedule != OneFOneBCells && schedule != InterleavedCells;
  if (option == "schedule_times") return schedule != ZeroBubble2p;
  if (option == "asynchronous") return true;
  if (option.starts_with("expert_")) return s.experts.ep == 1 && s.experts.etp == 1;
  if (option == "sequence_parallel" || option == "parts" || option == "compress_activations") return s.tp == 1;
  if (option == "context") return s.cp == 1;
  return false;
}

// `leave`: paths of options that are not drawn. A third of the draws sets a few of the options, a third some, a third many.
inline Draw draw_strategy(Dice& dice, const Bounds& bounds, const std::vector<std::string>& leave = {}) {
  Draw draw;
  draw_degrees(dice, bounds, draw.strategy);
  const double probability = dice.any({0.03, 0.08, 0.15});
  for (const OptionValues& option : option_values()) {
    if (option.values.empty() || std::ranges::count(leave, option.path) > 0 || !dice.chance(probability)) continue;
    if (is_refused(option.path, draw.strategy) && !dice.one_in(20)) continue;
    set_option(draw.strategy, option.path, dice.any(option.values), "drawn");
  }
  const Strategy plain;
  for (const StrategyOption& option : strategy_options())
    if (const std::string value = option.get(draw.strategy); value != option.get(plain))
      draw.options += (draw.options.empty() ? "" : " ") + option.path + "=" + value;
  return draw;
}

// A number in the environment, for runs that are longer than those of the tests.
inline int number_of(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atoi(text) : otherwise;
}

}  // namespace foreshard::drawn
