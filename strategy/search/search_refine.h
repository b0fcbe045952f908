// Refining: lowers a strategy, replays its plan, and decides whether it fits. Internal to strategy/.
//
// Without a framework the plan's arena decides. With one the memory that this framework allocates for the same strategy does
// (strategy/frameworks), as in `simulate --framework` and `validate`; the arena does not count then, since the framework does not run the
// plan.
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
  // Bytes on the fullest GPU. Nothing: more than it has, or the framework does not take the strategy.
  std::optional<double> framework_memory(const Strategy& strategy, double screened) const;
  std::optional<Candidate> evaluated(const Strategy& strategy, const Point& point, const Screened& screened) const;

  const Model& model_;
  const Cluster& cluster_;
  const SearchOptions& options_;
  bool asks_framework_ = false;
  mutable std::mutex mutex_ = {};
  mutable std::map<std::string, double> known_ = {};  // [strategy without overlap and placement]: bytes
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
