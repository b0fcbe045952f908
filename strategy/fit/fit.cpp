#include "strategy/fit/fit.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "replay/replay.h"
#include "strategy/cost/runtime_policy.h"
#include "strategy/lower/lower.h"

namespace foreshard {

namespace {

constexpr int kMostDoublings = 6;  // of the micro-batch

struct Played {
  Seconds time = {};
  std::int64_t micro_batch = 0;
  double tokens_per_s = 0;
};

class Fitter {
 public:
  Fitter(const Cluster& cluster, const FitOptions& options) : cluster_(cluster), options_(options) {}

  Fit fit(const FitWay& way, const std::optional<Model>& reference) const {
    Fit fit{.way = way};
    const int step = largest_step(way, fit);
    if (step == 0) return fit;
    fit.model = member(step);
    fit.parameters = parameter_count(*fit.model);
    const Played played = fastest(*fit.model, way);
    fit.micro_batch = played.micro_batch, fit.iteration = played.time, fit.tokens_per_s = played.tokens_per_s;
    if (reference)
      if (const double speed = fastest(*reference, way).tokens_per_s; speed > 0) fit.speed = speed;
    return fit;
  }

 private:
  Model member(int step) const { return family_member(options_.family, step, options_.seq); }

  Strategy strategy(const FitWay& way, std::int64_t micro_batch) const {
    Strategy s = options_.base;
    s.dp = options_.gpus;
    s.batch = {.micro = micro_batch, .seq = options_.seq};
    s.zero = {.stage = options_.gpus > 1 ? way.zero : 0};
    s.offload = way.offload;
    s.policy = way.policy;
    return s;
  }
  std::variant<Lowered, Infeasible> made(const Model& model, const FitWay& way, std::int64_t micro_batch) const {
    return lower(model, cluster_, strategy(way, micro_batch));
  }

  // The step of the largest member that fits with one sequence per GPU; 0: none. Sets fit.binds and fit.why to the reason why the next one
  // does not fit. Bisection: memory grows with the step.
  int largest_step(const FitWay& way, Fit& fit) const {
    int fits = 0, fails = kLargestStep + 1;
    fit.binds = Binds::Family;
    for (int step = 2; fails - std::max(fits, 1) > 1;
         step = fits == 0 && fails > kLargestStep ? step * 2 : (fits + fails) / 2) {
      step = std::min(step, kLargestStep);
      const auto answer = made(member(step), way, 1);
      if (const auto* refused = std::get_if<Infeasible>(&answer))
        fails = step, fit.binds = what_binds(*refused), fit.why = refused->reason;
      else
        fits = step;
    }
    return fits;
  }
  static Binds what_binds(const Infeasible& refused) {
    const auto says = [&](const char* words) { return refused.reason.find(words) != std::string::npos; };
    return says("of host memory") ? Binds::HostMemory : says("NVMe") ? Binds::Drives : Binds::GpuMemory;
  }

  Played fastest(const Model& model, const FitWay& way) const {
    Played best;
    std::int64_t micro_batch = 1;
    for (int doubling = 0; doubling <= kMostDoublings; ++doubling, micro_batch *= 2) {
      const auto answer = made(model, way, micro_batch);
      const auto* lowered = std::get_if<Lowered>(&answer);
      if (!lowered) break;
      const Seconds time{makespan_of(lowered->plan, cluster_, {.granularity = Granularity::Layer})};
      const double tokens = static_cast<double>(micro_batch * options_.seq * options_.gpus) / time.value;
      if (tokens > best.tokens_per_s) best = {time, micro_batch, tokens};
    }
    return best;
  }

  const Cluster& cluster_;
  const FitOptions& options_;
};

}  // namespace

const char* name_of(SizedFamily family) { return family == SizedFamily::Gpt ? "gpt" : "llama"; }

const char* name_of(Binds binds) {
  switch (binds) {
    case Binds::GpuMemory: return "GPU memory";
    case Binds::HostMemory: return "host memory";
    case Binds::Drives: return "drives";
    case Binds::Family: return "nothing";
  }
  return "?";
}

Model family_member(SizedFamily family, int step, std::int64_t seq) {
  constexpr std::int64_t kHead = 128;
  const std::int64_t hidden = 2 * kHead * (step / 2);
  const int heads = static_cast<int>(hidden / kHead);
  Transformer t{.layers = step,
                .hidden = hidden,
                .ffn_hidden = 4 * hidden,
                .heads = heads,
                .kv_heads = heads,
                .head_dim = kHead,
                .vocab = 50257,
                .max_positions = seq};
  if (family == SizedFamily::Llama) {
    t.ffn_hidden = round_up(hidden * 8 / 3, 256);
    t.vocab = 32000;
    t.norm = NormKind::RmsNorm, t.activation = ActivationKind::SwiGlu, t.positions = PositionKind::Rope;
    t.qkv_bias = t.projection_bias = t.mlp_bias = t.tied_embeddings = false;
  }
  Model model{.name = std::string(name_of(family)) + "-" + std::to_string(step) + "x" + std::to_string(hidden)};
  model.shape = t;
  return model;
}

std::vector<FitWay> fit_ways(bool drives) {
  using enum Space;
  std::vector<FitWay> ways = {{"nothing", "everything stays on the GPUs", 3, {}},
                              {"optimizer",
                               "gradients and optimizer states in host memory, updated there (ZeRO-Offload)",
                               2,
                               {.optimizer = PinnedHost, .gradients = PinnedHost}},
                              {"layer by layer",
                               "parameters, too: copied in for each forward and backward (L2L, ZeRO-Infinity)",
                               3,
                               {.optimizer = PinnedHost, .parameters = PinnedHost, .gradients = PinnedHost}},
                              {"and inputs",
                               "and the inputs of layers",
                               3,
                               {.optimizer = PinnedHost,
                                .parameters = PinnedHost,
                                .gradients = PinnedHost,
                                .activations = OffloadedActivations::Inputs}}};
  if (!drives) return ways;
  ways.push_back(
      {"states on drives",
       "the same, optimizer states on drives",
       3,
       {.optimizer = Nvme, .parameters = PinnedHost, .gradients = PinnedHost, .activations = OffloadedActivations::Inputs}});
  ways.push_back({"all on drives",
                  "the same, parameters and gradients on drives, too",
                  3,
                  {.optimizer = Nvme, .parameters = Nvme, .gradients = Nvme, .activations = OffloadedActivations::Inputs}});
  return ways;
}

std::vector<FitWay> fit_policies(const std::vector<std::string>& policies) {
  std::vector<FitWay> ways = {fit_ways(false).front()};
  for (const std::string& name : policies) {
    const RuntimePolicy& policy = *find_policy(name);
    ways.push_back({.name = name, .what = policy.summary + " (" + policy.of + ")", .policy = name});
  }
  return ways;
}

std::vector<Fit> largest_models(const Cluster& cluster, const FitOptions& options) {
  const bool drives = std::ranges::all_of(cluster.nodes, [](const NodeGroup& group) { return group.shape.nvme > Bytes{}; });
  const Fitter fitter(cluster, options);
  const std::vector<FitWay> ways = options.policies.empty() ? fit_ways(drives) : fit_policies(options.policies);
  std::vector<Fit> fits;
  for (const FitWay& way : ways) {
    if (options.stop && *options.stop) break;
    try {
      fits.push_back(fitter.fit(way, fits.empty() ? std::nullopt : fits.front().model));
    } catch (const Bug& bug) {
      fits.push_back({.way = way, .why = std::string("internal error: ") + bug.what(), .bug = true});
    }
    if (options.progress) options.progress(static_cast<double>(fits.size()) / static_cast<double>(ways.size()));
  }
  if (fits.empty()) return fits;
  const double alone = fits.front().tokens_per_s;
  if (fits.front().model) fits.front().speed = alone;
  for (Fit& fit : fits)
    if (fit.speed) fit.speed = alone > 0 ? std::optional(*fit.speed / alone) : std::nullopt;
  return fits;
}

}  // namespace foreshard
