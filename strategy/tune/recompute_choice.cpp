#include "strategy/tune/recompute_choice.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "core/base/at.h"
#include "strategy/estimate/isolated_times.h"
#include "strategy/recompute/keep_rule.h"
#include "strategy/recompute/layer_choice.h"
#include "strategy/tune/role_trial.h"

namespace foreshard {

namespace {

constexpr int kTries = 8;     // rounds of choosing and building, per rank and set of forms
constexpr int kTrials = 150;  // programs built by keep_more
// Most layers of a rank for which the exact Pareto front is computed; for more, a choice on a grid.
constexpr int kExact = 32;
constexpr int kGridCells = 4096;  // cells of that grid
constexpr double kNanoseconds = 1e9;

LayerRecompute modules(std::vector<std::string> names) { return {RecomputeKind::Modules, std::move(names)}; }

// The forms of recomputation that a layer may use; forms that save no memory for any layer are dropped later.
std::vector<LayerRecompute> candidates() {
  return {{},
          {RecomputeKind::Selective},
          modules({"activation"}),
          modules({"norm", "activation"}),
          modules({"norm", "activation", "dropout"}),
          modules({"attention", "norm", "activation", "dropout"}),
          modules({"norm", "qkv", "activation", "dropout"}),
          modules({"norm", "mlp", "dropout"}),
          {RecomputeKind::Full}};
}

// Costs of one layer in one form: nanoseconds by which its backward is longer than when everything is kept, and bytes that it keeps of one
// micro-batch. Both are whole numbers, so that sums are exact in any order.
using Costs = std::vector<std::vector<LayerOption>>;  // [layer of the model][form]

class LayerFiller {
 public:
  LayerFiller(const Lowering& lowering, bool by_order) : lowering_(lowering), trial_(lowering, by_order) {
    for (const auto& layer : lowering.graph.layers) layers_ += layer.counted ? 1 : 0;
    forms_ = candidates();
    measure();
    drop_forms();
  }

  BestLayers fill() {
    BestLayers best;
    std::vector<LayerRecompute> each(static_cast<std::size_t>(layers_));
    const std::vector<int> kept = peak_in_flight(lowering_.tables.schedule.order);
    for (int rank = 0; rank < lowering_.strategy.pp; ++rank) {
      find_positions(rank);
      set_job(kept[static_cast<std::size_t>(rank)]);
      const std::vector<int> chosen = fill_rank(rank);
      write(chosen, each);
      best.trades.push_back(trades(chosen));
    }
    best.recompute = {.kind = RecomputeKind::Each, .each = each};
    const bool alike = std::ranges::all_of(each, [&](const LayerRecompute& layer) { return layer == each.front(); });
    if (!alike) return best;
    Recompute whole{.kind = each.front().kind};
    if (whole.kind == RecomputeKind::Modules) whole.modules = each.front().modules;
    if (!fits(best.recompute) || fits(whole)) best.recompute = std::move(whole);
    return best;
  }

 private:
  // Fills costs_: isolated times of the operators that run again, from a small plan, and bytes of the values that are kept.
  void measure() {
    const std::map<std::string, double> seconds = forward_times();
    const bool equal = std::holds_alternative<Transformer>(lowering_.model.shape);
    for (const OpGraph::Layer& layer : lowering_.graph.layers) {
      if (!layer.counted) continue;
      const LayerGraph& graph = lowering_.graph.kinds[at(layer.kind)];
      std::vector<LayerOption> options;
      for (const LayerRecompute& form : forms_) {
        const KeepRule rule = keep_rule(graph, recomputed_by(form));
        LayerOption option;
        for (std::size_t i = 0; i < graph.operators.size(); ++i)
          if (const auto time = seconds.find((equal ? "" : layer.name) + "/" + graph.operators[i].name);
              rule.redone[i] && time != seconds.end())
            option.seconds += time->second;
        for (std::size_t v = 0; v < graph.values.size(); ++v)
          if (rule.stored[v] && static_cast<int>(v) != graph.output)
            option.bytes += static_cast<double>(graph.values[v].bytes.value);
        option.seconds = std::round(option.seconds * kNanoseconds);
        options.push_back(option);
      }
      const double plain = options.front().seconds;  // gathers that always run again
      for (LayerOption& option : options) option.seconds = std::max(0.0, option.seconds - plain);
      costs_.push_back(std::move(options));
    }
  }

  // Isolated seconds of each operator's forward, by "layer/operator". Layers of a transformer are equal, so there one layer is measured,
  // and the keys do not name it.
  std::map<std::string, double> forward_times() const {
    Model model = lowering_.model;
    auto* transformer = std::get_if<Transformer>(&model.shape);
    if (transformer) transformer->layers = 1;
    Cluster first = lowering_.cluster;
    first.nodes.resize(1);
    Strategy s = lowering_.strategy;
    s.dp = s.pp = s.virtual_stages = 1;
    s.zero.stage = s.zero.group = s.pipeline.microbatch_group = 0;
    s.pipeline.schedule = Schedule::OneFOneB;
    s.recompute = {}, s.batch.global = s.batch.micro;
    s.pipeline.layer_split.clear(), s.placement.clear();
    const auto answer = lower(model, first, without_open_choices(std::move(s)), {.ignore_memory = true, .pack_by_order = false});
    std::map<std::string, double> times;
    if (std::holds_alternative<Infeasible>(answer)) return times;
    const Plan& plan = std::get<Lowered>(answer).plan;
    const Role& role = plan.roles.front();
    IsolatedTimes alone(plan, first);
    for (const Action& action : role.actions) {
      if (action.does.empty() || action.does.front().work != Work::F) continue;
      const std::vector<Instruction>& runs = plan.segments[action.segment.index()].instructions;
      for (std::size_t i = 0; i < runs.size(); ++i) {
        if (!runs[i].layer.valid()) continue;
        const std::string& layer = role.layers[runs[i].layer.index()];
        const double seconds = alone.duration({0}, runs[i], plan.costs.front().by_segment[action.segment.index()][i]);
        const std::string own = transformer ? (layer.starts_with("layers.") ? "" : layer) : layer;
        times[own + "/" + runs[i].name] += seconds;
      }
    }
    return times;
  }

  void drop_forms() {
    for (std::size_t form = forms_.size(); form-- > 1;) {
      const auto no_worse = [&](std::size_t other) {
        return other != form && std::ranges::all_of(costs_, [&](const std::vector<LayerOption>& layer) {
                 return layer[other].seconds <= layer[form].seconds && layer[other].bytes <= layer[form].bytes;
               });
      };
      bool beaten = false;
      for (std::size_t other = 0; other < forms_.size() && !beaten; ++other) beaten = no_worse(other);
      if (!beaten) continue;
      forms_.erase(forms_.begin() + static_cast<std::ptrdiff_t>(form));
      for (std::vector<LayerOption>& layer : costs_) layer.erase(layer.begin() + static_cast<std::ptrdiff_t>(form));
    }
  }

  // [position in a chunk]: the layers of the model there, one of each chunk of the rank.
  void find_positions(int rank) {
    positions_.clear(), arenas_.clear();
    int of_model = 0;
    for (int stage = 0; stage < lowering_.stages(); ++stage) {
      std::size_t position = 0;
      const bool here = lowering_.tables.schedule.rank_of(stage) == rank;
      for (int l = lowering_.first_layer(stage); l < lowering_.first_layer(stage) + lowering_.layers_of(stage); ++l) {
        if (!lowering_.graph.layers[at(l)].counted) continue;
        if (here) {
          if (position == positions_.size()) positions_.emplace_back();
          positions_[position++].push_back(of_model);
        }
        ++of_model;
      }
    }
  }

  void set_job(int in_flight) {
    job_ = {};
    for (const std::vector<int>& layers : positions_) {
      std::vector<LayerOption> options(forms_.size());
      for (std::size_t form = 0; form < forms_.size(); ++form)
        for (const int layer : layers) {
          const LayerOption& one = costs_[at(layer)][form];
          options[form].seconds += one.seconds;
          options[form].bytes = std::max(options[form].bytes, one.bytes * in_flight);
        }
      job_.layers.push_back(std::move(options));
    }
  }

  void write(const std::vector<int>& chosen, std::vector<LayerRecompute>& each) const {
    for (std::size_t position = 0; position < positions_.size(); ++position)
      for (const int layer : positions_[position]) each[at(layer)] = forms_[at(chosen[position])];
  }

  // The arena of the current rank's program with a choice. The search may reach the same choice repeatedly; its program is built once.
  double arena(int rank, const std::vector<int>& chosen) {
    const auto [known, is_new] = arenas_.try_emplace(chosen, 0.0);
    if (is_new) known->second = built_arena(rank, chosen);
    return known->second;
  }
  double built_arena(int rank, const std::vector<int>& chosen) {
    Recompute recompute{.kind = RecomputeKind::Each, .each = std::vector<LayerRecompute>(at(layers_))};
    write(chosen, recompute.each);
    begin_trial(std::move(recompute));
    return static_cast<double>(trial_.arena(rank, {}).value);  // packed alike, whether it fits or not
  }
  void begin_trial(Recompute recompute) {
    trial_.lowering.strategy.recompute = std::move(recompute);
    trial_.lowering.tables.activations =
        activation_policy(trial_.lowering.strategy, lowering_.graph, lowering_.tables.layout.layers);
  }
  // Programs of one choice that is said in two ways may be packed differently.
  bool fits(const Recompute& recompute) {
    begin_trial(recompute);
    for (int rank = 0; rank < lowering_.strategy.pp; ++rank)
      if (!trial_.fits(rank)) return false;
    return true;
  }

  // For every position the form that keeps the fewest bytes among the first `forms` forms.
  std::vector<int> smallest(int forms) const {
    std::vector<int> all;
    for (const std::vector<LayerOption>& options : job_.layers) {
      const auto least = std::min_element(options.begin(), options.begin() + forms,
                                          [](const LayerOption& a, const LayerOption& b) { return a.bytes < b.bytes; });
      all.push_back(static_cast<int>(least - options.begin()));
    }
    return all;
  }

  std::vector<int> fill_rank(int rank) {
    const auto all = static_cast<int>(forms_.size());
    std::vector<int> none(positions_.size(), 0);
    const auto room = static_cast<double>(trial_.room(rank).value);
    if (positions_.empty() || arena(rank, none) <= room) return none;
    best_ = {.strategies = smallest(all), .seconds = std::numeric_limits<double>::infinity()};
    for (int forms = all; forms > 1; --forms) fill(rank, room, forms);  // without the last ones there is less scratch
    if (std::isfinite(best_.seconds)) best_ = keep_more(rank, room, best_);
    if (const LayerChoice whole = first_whole(rank, room); !whole.strategies.empty())
      if (const LayerChoice other = keep_more(rank, room, whole); other.seconds < best_.seconds) best_ = other;
    return best_.strategies;
  }

  // Full recomputation of the fewest first layers, as --recompute auto chooses it. It may be best if layers differ much: then the memory is
  // dominated by scratch buffers, which the sums of costs do not contain.
  LayerChoice first_whole(int rank, double room) {
    const auto full = std::ranges::find(forms_, LayerRecompute{RecomputeKind::Full});
    if (full == forms_.end()) return {};
    const auto first = [&](std::size_t count) {
      std::vector<int> chosen(positions_.size(), 0);
      std::fill_n(chosen.begin(), count, static_cast<int>(full - forms_.begin()));
      return chosen;
    };
    std::size_t few = 0, enough = positions_.size();
    while (enough - few > 1) {
      const std::size_t middle = (few + enough) / 2;
      (arena(rank, first(middle)) <= room ? enough : few) = middle;
    }
    if (arena(rank, first(enough)) > room) return {};
    return layer_choice(job_, first(enough));
  }

  // Gives layer by layer a faster form, if the program then still fits.
  LayerChoice keep_more(int rank, double room, LayerChoice choice) {
    int trials = 0;
    for (bool better = true; better;) {
      better = false;
      for (std::size_t i = 0; i < positions_.size(); ++i) {
        const int now = choice.strategies[i];
        // The equal layer before was tried.
        if (i > 0 && job_.layers[i] == job_.layers[i - 1] && now == choice.strategies[i - 1]) continue;
        for (const int form : faster(i, now)) {
          if (++trials > kTrials) return choice;
          std::vector<int> next = choice.strategies;
          next[i] = form;
          if (arena(rank, next) > room) continue;
          choice = layer_choice(job_, std::move(next));
          better = true;
          break;
        }
      }
    }
    return choice;
  }
  std::vector<int> faster(std::size_t position, int than) const {
    const std::vector<LayerOption>& options = job_.layers[position];
    std::vector<int> forms;
    for (std::size_t form = 0; form < options.size(); ++form)
      if (options[form].seconds < options[at(than)].seconds) forms.push_back(static_cast<int>(form));
    std::ranges::stable_sort(forms, {}, [&](int form) { return options[at(form)].seconds; });
    return forms;
  }

  // Chooses with the first `forms` forms only, adjusting the memory until the rank's program just fits; a better choice becomes best_.
  void fill(int rank, double room, int forms) {
    LayerChoiceJob job = job_;
    for (std::vector<LayerOption>& options : job.layers) options.resize(at(forms));
    const LayerChoice least = layer_choice(job, smallest(forms));
    const double beside = arena(rank, least.strategies) - least.bytes;
    job.memory = room - beside;
    double fits = 0, does_not = std::numeric_limits<double>::infinity();
    std::vector<int> before;
    for (int tries = 0; tries < kTries; ++tries) {
      const LayerChoice choice = together(job);
      if (choice.strategies.empty() || choice.strategies == before) return;
      before = choice.strategies;
      const double over = arena(rank, choice.strategies) - room;
      if (over <= 0) {
        fits = std::max(fits, job.memory);
        if (choice.seconds < best_.seconds) best_ = choice;
      } else {
        does_not = std::min(does_not, job.memory);
      }
      job.memory -= over;  // as if every byte of the arena were a byte that layers keep
      if (job.memory <= fits || job.memory >= does_not) job.memory = (fits + does_not) / 2;
      if (!std::isfinite(job.memory)) return;
    }
  }

  // The choice for the job, with the forms of equal layers sorted: those that recompute most go first.
  LayerChoice together(const LayerChoiceJob& job) const {
    LayerChoice choice = positions_.size() <= at(kExact) ? layer_choice_exact(job) : layer_choice_on_grid(job, kGridCells);
    for (std::size_t i = 0; i < choice.strategies.size(); ++i)
      for (std::size_t k = i + 1; k < choice.strategies.size(); ++k)
        if (job.layers[i] == job.layers[k] && choice.strategies[i] < choice.strategies[k])
          std::swap(choice.strategies[i], choice.strategies[k]);
    return choice;
  }

  RankTrades trades(const std::vector<int>& chosen) const {
    RankTrades rank{.forms = forms_, .chosen = trade(layer_choice(job_, chosen))};
    LayerChoiceJob job = job_;
    job.memory = std::numeric_limits<double>::infinity();
    if (positions_.size() <= at(kExact))
      for (const LayerChoice& choice : layer_choice_front(job)) rank.front.push_back(trade(choice));
    return rank;
  }
  LayerTrade trade(const LayerChoice& choice) const {
    LayerTrade trade{.seconds = {choice.seconds / kNanoseconds},
                     .kept = {static_cast<std::int64_t>(choice.bytes)},
                     .layers = std::vector<int>(forms_.size())};
    for (const int form : choice.strategies) ++trade.layers[at(form)];
    return trade;
  }

  const Lowering& lowering_;
  RoleTrial trial_;
  int layers_ = 0;  // of the model, those that count
  std::vector<LayerRecompute> forms_ = {};
  Costs costs_ = {};
  std::vector<std::vector<int>> positions_ = {};  // of the rank at hand
  LayerChoiceJob job_ = {};
  std::map<std::vector<int>, double> arenas_ = {};  // of the choices that were tried
  LayerChoice best_ = {};
};

}  // namespace

BestLayers best_layers(const Lowering& lowering, bool by_order) { return LayerFiller(lowering, by_order).fill(); }

}  // namespace foreshard
