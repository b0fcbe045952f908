// search: finds the best strategies for a model on a cluster (docs/search.md). It screens every point of the space and refines the
// best points. `rerank` then orders the best refined strategies by a callback, which the caller implements with the simulator.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "strategy/estimate/estimate_screen.h"
#include "strategy/verdict/verdict.h"

namespace foreshard {

enum class Objective : std::uint8_t { Time, Memory, Cost, Energy, Pareto };
const char* name_of(Objective objective);
const std::vector<std::string>& objective_names();  // in the order of the enumerators

struct Candidate {
  Point point = {};        // tp, pp and dp are 0 where Strategy::stages gives every stage its own degrees
  Strategy strategy = {};  // resolved
  Screened screened = {};
  Estimate estimate = {};
  std::optional<double> simulated = {};  // seconds
  double score = 0;                      // what the objective ranks by, smaller is better: seconds, bytes or GPU seconds
  // Factor on the score when ranking: 1 + SearchOptions::noise unless the strategy is simple.
  double handicap = 1;
  Verdict verdict = {};  // Fits, or MayFit where nothing fits
  struct LessSimple {
    double gain = 0;  // (the candidate's score - its own score) / the candidate's score
    Strategy strategy = {};
  };
  // Of the strategies with the same degrees, micro-batch and schedule whose score is better by no more than the noise, the best.
  std::optional<LessSimple> less_simple = {};
  double seconds() const { return simulated ? *simulated : estimate.time.value; }  // of one iteration
  int gpus() const;                                                                // that the strategy uses
};

// Candidates that a bug of ours kept from being evaluated: one of them for each reason. They are in no list of the result.
struct FailedCandidate {
  Strategy strategy = {};
  std::string why = {};         // "CONDITION is false (FILE:LINE)"
  std::int64_t candidates = 0;  // that met this reason
};

struct SearchOptions {
  Strategy base = {};                   // the value of every option that the search does not vary
  std::vector<std::string> fixed = {};  // paths of searched_options() that keep the value they have in `base`
  std::vector<std::string> tries = {};  // paths of tried_options() that are varied for the best families
  Objective objective = Objective::Time;
  int max_tp = 0;         // the largest tp; 0: limited by the model's heads only
  bool balance = true;    // tries layer splits that balance the measured times of the layers (layer_split auto)
  bool schedules = true;  // tries recomputation inside layers (recompute graph) for families whose best recomputes
  bool best = true;       // tries recomputation chosen layer by layer (recompute best)
  bool offload = true;    // tries host memory where nothing fits, or memory rules out something faster
  bool stages = true;     // tries stages with degrees of their own, after everything else
  bool prune = true;      // skips points that are provably slower; false: screens every point, with the same winner
  int shortlist = 256;    // families of points that screening keeps
  int refine = 48;        // families that are refined: counts those with a strategy that fits, best first
  int sample = 0;         // further points from all over the space that are refined
  int threads = 0;        // 0: one per core
  // Two strategies whose scores differ by less than this share count as equally fast, and the simple one ranks first. Twins are such
  // strategies with the same tp, cp, pp, dp and micro-batch: only the better twin is ranked, unless the other needs less memory.
  double noise = 0.003;
  const MachineProfile* profile = nullptr;    // measured costs; null: the cost model's
  const std::atomic<bool>* cancel = nullptr;  // when it becomes true, the search ends early with the best found by then
  // The calling thread calls both functions: `found` once for every candidate that was refined and fits, soon after it was refined.
  std::function<void(double fraction)> progress = {};
  std::function<void(const Candidate&)> found = {};
  double least_probability = kFits;  // that a candidate fits (strategy/verdict); where none does, `search` takes what may fit
  // Called by any thread for each candidate whose evaluation throws; `search` sets it, to collect SearchResult::failed. Empty: it throws.
  std::function<void(const Strategy&, const std::exception_ptr&)> failed = {};
};

struct PrunedBy {              // how many points were discarded, by reason
  std::int64_t shape = 0;      // these degrees do not divide the model or the batch, or the schedule does not allow them
  std::int64_t memory = 0;     // the screen says that it does not fit
  std::int64_t framework = 0;  // the framework cannot run it
  std::int64_t bound = 0;      // its lower bound is above the scores of all families that are kept
  std::int64_t redone = 0;     // recomputes although everything fits without recomputation
};

struct RuledOut {    // the best point that only the memory limit, or only the framework, rules out
  double score = 0;  // by the screen
  Point point = {};
};

struct SearchResult {
  std::vector<Candidate> ranked = {};  // best first, one per family; all of them fit
  // Objective::Pareto: strategies that no other beats in both time and memory; fastest first.
  std::vector<Candidate> front = {};
  std::vector<Candidate> sample = {};  // those of the SearchOptions::sample points that fit, in the order of the space
  std::optional<RuledOut> without_memory_limit = {}, without_framework = {};
  // Lower bound on the score of every strategy of the space with equal degrees on all stages and an even layer split; 1e300: not
  // known. After an interrupt it holds for the screened points only.
  double bound = 1e300;
  std::int64_t enumerated = 0, evaluated = 0, refined = 0;  // points enumerated, points screened, strategies refined
  PrunedBy pruned = {};
  // Wall-clock seconds of measuring the costs of grids and shapes that the screen reads, and of screening.
  double measuring_s = 0, screening_s = 0;
  bool interrupted = false;
  // When all of `ranked` use host memory because nothing fits without it: why nothing fits. Else empty.
  std::string without_host_memory = {};
  std::vector<FailedCandidate> failed = {};  // most frequent reason first
};

// Paths of the options that a search varies: "tp", "cp", "pp", "dp", "virtual_stages", ...
const std::vector<std::string>& searched_options();

// Options that a search varies only if asked, for the best families, and the values that it tries beside the one of the base.
struct TriedOption {
  std::string path = {};
  std::vector<std::string> values = {};
};
const std::vector<TriedOption>& tried_options();

// Infeasible when no point fits; `reason` names the constraint that rules out all points. A candidate that meets a bug of ours is in
// SearchResult::failed, and the search goes on; if nothing else is found, throws Bug.
std::variant<SearchResult, Infeasible> search(const Model& model, const Cluster& cluster, const SearchOptions& options);

// Simulates all candidates and returns the seconds of one iteration of each; empty where the simulation was stopped, NaN where it met a bug of
// ours.
using SimulateAll = std::function<std::vector<std::optional<double>>(const std::vector<const Candidate*>&)>;
// Simulates and sorts `ranked` until its first `top` candidates are simulated. A candidate that the simulator finds slower than its
// estimate moves down, and the next one is simulated in its place. Each call of `simulate` gets all candidates that are missing at
// that moment. A candidate whose simulation met a bug leaves `ranked`. Of twins whose scores differ by less than `noise` one stays (SearchOptions::noise).
void rerank(std::vector<Candidate>& ranked, int top, Objective objective, double noise, const SimulateAll& simulate);

}  // namespace foreshard
