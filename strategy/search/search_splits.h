// The balanced layer splits of a search (--layer-split auto), each computed once for all strategies that share it. Internal to
// strategy/.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include "core/base/once.h"
#include "core/cluster/cluster.h"
#include "core/model/model.h"
#include "strategy/estimate/estimate_screen.h"

namespace foreshard {

class SearchSplits {
 public:
  // All arguments must outlive it.
  SearchSplits(const Model& model, const Cluster& cluster, const MachineProfile* profile)
      : model_(model), cluster_(cluster), profile_(profile) {}

  // The text of the split that `--layer-split auto` finds for `strategy`, the strategy of `point`; "auto" where it finds none. Any
  // thread may call it.
  std::string of(const Strategy& strategy, const Point& point);

 private:
  using Key = std::tuple<int, int, std::int64_t, Schedule, int, int>;  // pp, dp, micro-batch, schedule, ZeRO stage and group
  struct Split {
    Once once = {};
    std::string text = {};
  };
  const Model& model_;
  const Cluster& cluster_;
  const MachineProfile* profile_ = nullptr;
  std::mutex mutex_ = {};
  std::map<Key, Split> splits_ = {};
};

}  // namespace foreshard
