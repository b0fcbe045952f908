#include "cli/job/unchanged.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "cli/job/notes.h"
#include "core/base/error.h"
#include "core/result/memory_timeline.h"
#include "core/result/order_bound.h"
#include "core/strategy/strategy_options.h"
#include "replay/replay.h"
#include "strategy/tune/tune.h"

namespace foreshard {

const std::map<std::string, std::string>& where_options_matter() {
  static const std::map<std::string, std::string> where = {
      {"context", "cp above 1"},
      {"precision", "formats that differ in speed or size on this GPU"},
      {"sequence_parallel", "tp above 1"},
      {"expert_load", "ep above 1 and no --expert-capacity"},
      {"expert_unpadded", "an --expert-capacity that gives more rows than the load"},
      {"expert_dispatcher", "ep above 1; hierarchical and once-per-node: expert groups of more than one node"},
      {"expert_node_ranks", "--expert-dispatcher once-per-node, and another number than the nodes give"},
      {"schedule", "pp above 1, and another order of actions"},
      {"schedule_order", "another order of actions than the schedule's own"},
      {"schedule_times", "--schedule zb-2p, and times that make another order"},
      {"microbatch_group", "--schedule interleaved-1f1b and more micro-batches than pp"},
      {"delay_wgrad", "--overlap tp, and communication of experts or tensor-parallel ranks"},
      {"layer_split", "layers other than the even split"},
      {"placement", "several kinds of groups, in another order than the default"},
      {"policy", "dp or cp above 1, or a policy that keeps something in host memory"},
      {"zero", "dp or cp above 1"},
      {"offload_kept", "--offload-optimizer host or nvme, and more than one bucket"},
      {"updated_on", "--offload-optimizer host or nvme"},
      {"offload_activations", "more than one layer"},
      {"offload_budget", "--offload-activations free-time or --policy greedy, and a plan that takes more without it"},
      {"offload_to", "--offload-activations other than none"},
      {"offload_layers", "--offload-activations inputs or all, and another number of layers"},
      {"zero_group", "--zero 1 to 3 and fewer GPUs than all that are data parallel"},
      {"recompute", "layers that keep what it would make again"},
      {"packing", "blocks that the rules do not pack as closely as possible"},
      {"param_dtype", "another format than --precision gives"},
      {"grad_dtype", "another format than --precision gives"},
      {"state_dtype", "another format than --precision gives"},
      {"attention", "a transformer, and a GPU with the kernel"},
      {"dropout", "a transformer"},
      {"momentum", "--optimizer sgd"},
      {"delay_annealing",
       "foreshard run, and a stage that is late by two updates or more; time and memory do not depend on it"},
      {"loss_scale", "foreshard run; time and memory do not depend on it"},
      {"vocab_multiple", "a vocabulary that it pads otherwise than by default"},
      {"bucket", "gradients of data-parallel replicas that overlap, larger than a bucket"},
      {"overlap", "communication of the kinds that it names"},
      {"algorithm", "collectives and clusters to which it applies"},
      {"parts", "tp above 1 and micro-batches of several samples"},
      {"transfers", "tp and pp above 1, without --sequence-parallel"},
      {"servers", "--algorithm parameter-server or --asynchronous"},
      {"server_placement",
       "--algorithm parameter-server with fewer --servers than members, or --asynchronous, where others than the first ones "
       "serve"},
      {"sum_order", "data-parallel replicas without ZeRO, offload and clipping, and a pipeline that flushes"},
      {"partition", "--sum-order priority and larger buckets"},
      {"credit", "--algorithm gather-to-root, or --sum-order priority and smaller parts"},
      {"compress_gradients", "dp or cp above 1"},
      {"compress_group", "--compress-gradients, and another number than the nodes give"},
      {"compress_activations", "tp above 1"},
      {"compress_dispatch", "ep above 1"},
      {"lora_alpha", "--lora-rank, and another alpha than the rank"},
      {"lora_targets", "--lora-rank"},
      {"packed_length", "fewer tokens than --seq"},
      {"seq", "a transformer"}};
  return where;
}

namespace {

constexpr std::size_t kLargest = 20'000;  // actions of a plan up to which it is lowered again for a note

bool small(const Job& job, const Plan& plan) {
  std::size_t actions = 0;
  for (const Role& role : plan.roles) actions += role.actions.size();
  const RecomputeKind kind = job.strategy.recompute.kind;
  return actions <= kLargest && kind <= RecomputeKind::Modules;
}

// Whether --fix PATH=VALUE gives the option.
bool fixed(const Arguments& arguments, const StrategyOption& option) {
  return std::ranges::any_of(arguments.all("--fix"), [&](const std::string& setting) {
    return setting.starts_with(option.path + "=") || setting.starts_with("strategy." + option.path + "=");
  });
}

std::optional<Strategy> strategy_file(const Arguments& arguments) {
  if (!arguments.has("--strategy")) return {};
  return load_strategy(arguments.text("--strategy"));
}

// Whether only --strategy FILE gives the option, with a value other than the default.
bool of_file_only(const Arguments& arguments, const StrategyOption& option, const std::optional<Strategy>& file) {
  return file && !given(arguments, option) && option.get(*file) != option.get(Strategy{});
}

// Whether the user chose the value that `strategy` has.
bool chosen(const Arguments& arguments, const StrategyOption& option, const std::optional<Strategy>& file,
            const Strategy& strategy) {
  return given(arguments, option) || (of_file_only(arguments, option, file) && option.get(*file) == option.get(strategy));
}

std::string said_as(const Arguments& arguments, const StrategyOption& option) {
  if (!given(arguments, option)) return option.path + " of " + arguments.text("--strategy");
  if (fixed(arguments, option)) return "--fix " + option.path;
  return option.flag.empty() ? "strategy." + option.path : option.flag;
}

std::optional<Lowered> lowered_of(const Job& job, const Strategy& strategy, bool pack_by_order = true) {
  auto answer = tuned_plan(job.model, job.cluster, strategy,
                           {.ignore_memory = true, .pack_by_order = pack_by_order, .check = false, .profile = job.measured()});
  if (auto* lowered = std::get_if<Lowered>(&answer)) return std::move(*lowered);
  return {};
}

bool same_answer(const Plan& a, const Plan& b) {
  return program_hash(a) == program_hash(b) && a.costs == b.costs && a.framework == b.framework && a.reserve == b.reserve;
}

// What the output shows besides the time: memory, price, power.
auto shape(const Job& job, const Plan& plan) {
  std::vector<std::int64_t> arenas;
  for (const Role& role : plan.roles)
    arenas.push_back(arena_bytes(role, Space::Device).value - gpu_of(job.cluster, role.device_kind).memory.value);
  return std::tuple(arenas, plan.framework, plan.reserve, job.cluster.price_per_gpu_hour, job.cluster.power_per_gpu_watts);
}

double seconds(const Job& job, const Plan& plan) { return makespan_of(plan, job.cluster, {.granularity = Granularity::Stage}); }

bool same_seen(const Job& a, const Plan& plan_a, const Job& b,
               const Plan& plan_b) {  // replays only when memory and price are equal
  return shape(a, plan_a) == shape(b, plan_b) && seconds(a, plan_a) == seconds(b, plan_b);
}

// Whether the devices hold other bytes than under `plan`, wherever blocks of the other plan lie. It is not packed by the order of its run yet:
// that makes its arenas smaller in sum, but none smaller than the largest set of its blocks that is alive at one time.
bool is_other_memory(const Job& job, const Plan& plan, const Job& other, const Plan& loose) {
  if (plan.roles.size() != loose.roles.size() || plan.framework != loose.framework || plan.reserve != loose.reserve)
    return true;
  Bytes sum = {}, loose_sum = {};
  for (std::size_t r = 0; r < plan.roles.size(); ++r) {
    const Bytes memory = gpu_of(job.cluster, plan.roles[r].device_kind).memory;
    const Bytes other_memory = gpu_of(other.cluster, loose.roles[r].device_kind).memory;
    const Bytes arena = arena_bytes(plan.roles[r], Space::Device) - memory;
    if (issue_order_peak(loose, {static_cast<std::int32_t>(r)}) - other_memory > arena) return true;
    sum += arena, loose_sum += arena_bytes(loose.roles[r], Space::Device) - other_memory;
  }
  return loose_sum < sum;
}

// A plan, and its time once it is asked for.
class TimedPlan {
 public:
  TimedPlan(const Job& job, const Plan& plan) : job_(job), plan_(plan) {}

  // Whether the other strategy is seen to take another memory or time without packing its memory by the order of its run, which may be most of
  // the time of lowering it. Time does not depend on where blocks lie. False: the answers may be the same.
  bool differs(const Job& other, const Strategy& strategy) {
    if (leaves_open(strategy) || chooses_regions(strategy)) return false;  // what is chosen may depend on the packing
    const std::optional<Lowered> lowered = lowered_of(other, strategy, false);
    if (!lowered) return false;
    if (is_other_memory(job_, plan_, other, lowered->plan)) return true;
    if (!seconds_) seconds_ = seconds(job_, plan_);
    return seconds(other, lowered->plan) != *seconds_;
  }

 private:
  const Job& job_;
  const Plan& plan_;
  std::optional<double> seconds_ = {};
};

}  // namespace

// A bug of ours that is met only where an option is left out, to see whether it has an effect. The answer of the job stands.
static std::string without_it(const std::string& option, const Bug& bug) {
  return "the same job without " + option + " meets an internal error; please report it: " + bug.what();
}

bool given(const Arguments& arguments, const StrategyOption& option) {
  if (!option.flag.empty() && arguments.has(option.flag)) return true;
  for (const std::string& setting : arguments.all("--set"))
    if (setting.starts_with("strategy." + option.path + "=") || setting.starts_with("strategy." + option.path + "."))
      return true;
  return fixed(arguments, option);
}

std::vector<std::string> without_effect(const Arguments& arguments, const Job& job, const Plan& plan,
                                        const UnchangedOptions& options) {
  std::vector<std::string> notes;
  if (!small(job, plan)) return notes;
  const std::optional<Strategy> file = strategy_file(arguments);
  TimedPlan timed(job, plan);
  for (const auto& [path, where] : where_options_matter()) {
    const StrategyOption& option = *find_option(path);
    Strategy without = job.strategy;
    if (!chosen(arguments, option, file, job.strategy) || std::ranges::find(options.skipped, path) != options.skipped.end())
      continue;
    try {
      option.set(without, option.get(Strategy{}), kCommandLine);
    } catch (const Error&) {  // the default cannot be set as a text
      continue;
    }
    if (without == job.strategy) continue;  // the default was given
    try {
      if (timed.differs(job, without)) continue;
      const std::optional<Lowered> other = lowered_of(job, without);
      if (!other || option.get(other->strategy) == option.get(job.strategy))
        continue;  // the tuned value is the same without the option
      if (same_answer(plan, other->plan) || (options.played && same_seen(job, plan, job, other->plan)))
        notes.push_back(said_as(arguments, option) + " changes nothing " + options.where + ": it matters with " + where);
    } catch (const Bug& bug) {
      notes.push_back(without_it(said_as(arguments, option), bug));
    }
  }
  return notes;
}

std::vector<std::string> settings_without_effect(const Arguments& arguments, const Job& job, const Plan& plan,
                                                 const std::string& where) {
  std::vector<std::string> notes;
  if (!small(job, plan)) return notes;
  TimedPlan timed(job, plan);
  for (const std::string& setting : arguments.all("--set")) {
    if (setting.starts_with("strategy.")) continue;
    try {
      const Job without = read_job(arguments.without("--set", setting));
      if (timed.differs(without, job.strategy)) continue;
      const std::optional<Lowered> other = lowered_of(without, job.strategy);
      if (other && same_seen(without, other->plan, job, plan))
        notes.push_back("--set " + setting + " changes nothing " + where + ": time, memory and price are the same without it");
    } catch (const Error&) {  // without the setting the job is invalid: it has an effect
    } catch (const Bug& bug) {
      notes.push_back(without_it("--set " + setting, bug));
    }
  }
  return notes;
}

std::vector<std::string> without_effect_on_found(const Arguments& arguments, Job job, const Strategy& found,
                                                 const std::vector<std::string>& skipped) {
  const std::string where = "in the strategy that was found";
  std::vector<std::string> notes;
  const std::optional<Strategy> file = strategy_file(arguments);
  for (const auto& [path, matters] : where_options_matter()) {  // options that the strategy found does not use
    const StrategyOption& option = *find_option(path);
    const std::string standard = option.get(Strategy{});
    const bool looked_at = chosen(arguments, option, file, job.strategy) && std::ranges::find(skipped, path) == skipped.end();
    if (looked_at && option.get(job.strategy) != standard && option.get(found) == standard)
      notes.push_back(said_as(arguments, option) + " changes nothing " + where + ": it matters with " + matters);
  }
  job.strategy = found;
  const std::optional<Lowered> lowered = lowered_of(job, found);
  if (!lowered) return notes;
  const Plan& plan = lowered->plan;
  for (const auto& more : {without_effect(arguments, job, plan, {.played = true, .skipped = skipped, .where = where}),
                           settings_without_effect(arguments, job, plan, where)})
    notes.insert(notes.end(), more.begin(), more.end());
  return notes;
}

void keep_common(std::optional<std::vector<std::string>>& common, const std::vector<std::string>& more) {
  if (!common) common = more;
  std::erase_if(*common, [&](const std::string& note) { return std::ranges::find(more, note) == more.end(); });
}

void say_all(const Arguments& arguments, const Console& console, const std::vector<std::string>& notes) {
  for (const std::string& note : notes) say(arguments, console, note);
}

std::vector<std::string> set_by_file_only(const Arguments& arguments, const std::vector<std::string>& paths) {
  std::vector<std::string> flags;
  const std::optional<Strategy> file = strategy_file(arguments);
  for (const std::string& path : paths)
    if (const StrategyOption* option = find_option(path); option && of_file_only(arguments, *option, file))
      flags.push_back(option->flag);
  return flags;
}

}  // namespace foreshard
