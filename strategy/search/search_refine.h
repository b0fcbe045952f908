// Refining: lowers a strategy, replays its plan, and decides whether it fits. Internal to strategy/.
//
// What fits says strategy/verdict: without a framework by the plan's arena, with one by the memory that this framework is predicted to
// allocate, with the error of such predictions, as in `simulate --framework`.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "strategy/search/search.h"

namespace foreshard {

class Refiner {
 public:
  // All arguments must outlive it.
  Refiner(const Model& model, const Cluster& cluster, const SearchOptions& options);

  // Nothing: it cannot be lowered, or does not fit. `point` and `screened` are put into the candidate. Any thread may call it.
  // A strategy that meets a bug of ours goes to SearchOptions::failed.
  std::optional<Candidate> refined(const Strategy& strategy, const Point& point, const Screened& screened = {}) const;

  bool asks_framework() const { return asks_framework_; }
  // Of the strategies that the framework's memory refused since the last call: the least ratio of that memory to the screen's; 0: none was
  // refused that had been screened.
  double least_excess();

 private:
  // Nothing: it does not fit with SearchOptions::least_probability, or the framework does not take the strategy.
  std::optional<FrameworkAllocation> framework_memory(const Strategy& strategy, double screened) const;
  std::optional<Candidate> evaluated(const Strategy& strategy, const Point& point, const Screened& screened) const;

  const Model& model_;
  const Cluster& cluster_;
  const SearchOptions& options_;
  bool asks_framework_ = false;
  Spread errors_ = {};  // of predictions of the framework's memory
  mutable std::mutex mutex_ = {};
  mutable std::map<std::string, FrameworkAllocation> known_ =
      {};  // [strategy without overlap and placement]; no ranks: refused
  mutable double least_excess_ = 0;
};

// What a search on other nodes or with other options needs after the search on all nodes.
struct FurtherSearch {
  const Model& model;
  const Cluster& cluster;
  const SearchOptions& options;
  // The search that uses all GPUs of the cluster given to it.
  std::function<std::variant<SearchResult, Infeasible>(const Cluster& cluster, const SearchOptions& options)> on_all;
};

}  // namespace foreshard
