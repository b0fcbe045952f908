// search: the best strategies of a model on a cluster (docs/search.md). Every point of the space is screened, the best are
// refined, and the best of those are ranked by a callback, which the program fills with the simulator.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "strategy/estimate/estimate_screen.h"

namespace foreshard {

enum class Objective : std::uint8_t { Time, Memory, Cost, Energy, Pareto };
const char* name_of(Objective objective);
const std::vector<std::string>& objective_names();  // in the order of the enumerators

struct Candidate {
  Point point = {};        // where the strategy says its stages one by one tp, pp and dp are 0
  Strategy strategy = {};  // resolved
  Screened screened = {};
  Estimate estimate = {};
  std::optional<double> simulated = {};  // seconds
  double score = 0;                      // what the objective ranks by: seconds, bytes or GPU seconds
  double handicap = 1;                   // 1 + SearchOptions::noise where the strategy is not simple
  struct LessSimple {
    double gain = 0;  // share of the score
    Strategy strategy = {};
  };
  // The best with the same degrees, micro-batch and schedule whose score is better, but not by more than the noise.
  std::optional<LessSimple> less_simple = {};
  double seconds() const { return simulated ? *simulated : estimate.time.value; }
  int gpus() const;
};

struct SearchOptions {
  Strategy base = {};                   // what the search leaves alone
  std::vector<std::string> fixed = {};  // paths of searched options that keep their value of `base`; see searched_options()
  Objective objective = Objective::Time;
  int max_tp = 0;         // 0: no limit but the model's heads
  bool balance = true;    // tries stages as long as their own layers take (layer_split auto)
  bool schedules = true;  // tries recomputation inside layers (recompute graph) where layers are redone
  bool best = true;       // tries recomputation chosen layer by layer (recompute best)
  bool offload = true;    // tries host memory where nothing fits, or memory rules out what is faster
  bool stages = true;     // tries stages with degrees of their own, after all others
  bool prune = true;      // false: every point is screened; the winner is the same
  int shortlist = 256;    // points that screening keeps
  int refine = 48;        // of those, how many that fit are refined, best first
  int sample = 0;         // points from all over the space that are refined, too
  int threads = 0;        // 0: one per core
  // Scores that differ by less than this share do not tell strategies apart: the simple one ranks first, and of twins, which
  // have the same degrees and micro-batch, only the better one is ranked, unless the other one needs less memory.
  double noise = 0.003;
  const MachineProfile* profile = nullptr;    // measured costs
  const std::atomic<bool>* cancel = nullptr;  // set: ends early with the best so far
  // Both are called by the calling thread; `found` with every candidate that was refined and fits, as it comes.
  std::function<void(double fraction)> progress = {};
  std::function<void(const Candidate&)> found = {};
};

struct PrunedBy {
  std::int64_t shape = 0;      // the model cannot be cut so, or the schedule refuses
  std::int64_t memory = 0;     // the screen says that it does not fit
  std::int64_t framework = 0;  // the framework cannot run it
  std::int64_t bound = 0;      // slower than what is known already, whatever the rest
  std::int64_t redone = 0;     // redoes layers although everything fits without
};

struct RuledOut {    // the best point that memory alone, or the framework alone, rules out
  double score = 0;  // screened
  Point point = {};
};

struct SearchResult {
  std::vector<Candidate> ranked = {};  // best first, all of them fit
  std::vector<Candidate> front = {};   // Objective::Pareto: no other is both faster and smaller; fastest first
  std::vector<Candidate> sample = {};  // SearchOptions::sample points that fit, in the order of the space
  std::optional<RuledOut> without_memory_limit = {}, without_framework = {};
  // No strategy of the space with equal degrees on all stages and an even layer split scores less; 1e300: not known. Of what was
  // screened only, when interrupted.
  double bound = 1e300;
  std::int64_t enumerated = 0, evaluated = 0, refined = 0;
  PrunedBy pruned = {};
  double measuring_s = 0,
         screening_s = 0;  // of the clock: for the costs of grids and shapes, which screening reads; for screening
  bool interrupted = false;
  std::string without_host_memory = {};  // why nothing fits with everything on the devices; empty: something does, or nobody asked
};

// Paths of the options that a search varies: "tp", "cp", "pp", "dp", "virtual_stages", ...
const std::vector<std::string>& searched_options();

// Infeasible: no point fits; the reason says which constraint empties the space, would_help what comes nearest.
std::variant<SearchResult, Infeasible> search(const Model& model, const Cluster& cluster, const SearchOptions& options);

// Seconds of each; empty: stopped before it was done.
using SimulateAll = std::function<std::vector<std::optional<double>>(const std::vector<const Candidate*>&)>;
// Simulates until the first `top` are simulated and stand in the order of the objective: one that the simulator finds slower
// than its estimate gives its place to the next. All that are missing are asked for at once. Of twins within `noise` one stays.
void rerank(std::vector<Candidate>& ranked, int top, Objective objective, double noise, const SimulateAll& simulate);

}  // namespace foreshard
