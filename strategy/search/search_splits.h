// Stages as long as their own layers take, once for all strategies of a search that are cut alike. Internal to strategy/.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include "core/cluster/cluster.h"
#include "core/model/model.h"
#include "strategy/estimate/estimate_screen.h"

namespace foreshard {

class SearchSplits {
 public:
  // All must outlive it.
  SearchSplits(const Model& model, const Cluster& cluster, const MachineProfile* profile)
      : model_(model), cluster_(cluster), profile_(profile) {}

  // As `--layer-split auto` would find for `strategy`, which is `point`; "auto" where it cannot be. Any thread.
  std::string of(const Strategy& strategy, const Point& point);

 private:
  using Key = std::tuple<int, int, std::int64_t, Schedule, int, int>;  // pp, dp, micro-batch, schedule, ZeRO stage and group
  struct Split {
    std::once_flag once = {};
    std::string text = {};
  };
  const Model& model_;
  const Cluster& cluster_;
  const MachineProfile* profile_ = nullptr;
  std::mutex mutex_ = {};
  std::map<Key, Split> splits_ = {};
};

}  // namespace foreshard
