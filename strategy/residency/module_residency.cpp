#include "strategy/residency/module_residency.h"

#include <algorithm>

namespace foreshard {

namespace {

// Goes through the uses of one step as DeepSpeed's PartitionedParameterCoordinator does (fetch_sub_module, release_sub_module).
class ModuleWalk {
 public:
  ModuleWalk(const std::vector<ParameterUnit>& modules, const std::vector<UnitUse>& uses, const ModuleRule& rule)
      : modules_(modules), uses_(uses), rule_(rule), stay_(modules.size(), kAbsent), fetched_for_(modules.size(), -1) {
    std::int64_t persistent = 0;
    for (std::size_t m = 0; m < modules.size(); ++m) {
      const std::int64_t size = modules[m].elements;
      if (size > rule.persist_threshold || persistent + size > rule.persist_cap) continue;
      persistent += size;
      stay_[m] = kPersistent;
      residency_.persistent.push_back(static_cast<int>(m));
    }
  }

  Residency walk() {
    for (int moment = 0; moment < static_cast<int>(uses_.size()); ++moment) {
      if (stay_[used(moment)] == kAbsent) gather(used(moment), moment, moment);
      prefetch(moment);
      if (stay_[used(moment)] != kPersistent && !keeps(moment)) release(used(moment), moment);
    }
    return std::move(residency_);
  }

 private:
  static constexpr int kAbsent = -1, kPersistent = -2;  // values of stay_: these, or an index into residency_.stays

  std::size_t used(int moment) const { return static_cast<std::size_t>(uses_[static_cast<std::size_t>(moment)].unit); }

  void gather(std::size_t module, int moment, int first_use) {
    stay_[module] = static_cast<int>(residency_.stays.size());
    residency_.stays.push_back({static_cast<int>(module), moment, first_use, static_cast<int>(uses_.size())});
    live_ += modules_[module].elements;
  }

  void release(std::size_t module, int moment) {
    residency_.stays[static_cast<std::size_t>(stay_[module])].released_after = moment;
    stay_[module] = kAbsent;
    live_ -= modules_[module].elements;
  }

  void pass(int moment) { fetched_for_[used(moment)] = std::max(fetched_for_[used(moment)], moment); }

  void prefetch(int moment) {
    for (; ahead_ <= moment; ++ahead_) pass(ahead_);
    const std::int64_t limit = std::min(rule_.live_cap - live_, rule_.prefetch);
    std::int64_t got = 0;
    for (; ahead_ < static_cast<int>(uses_.size()) && got < limit; ++ahead_) {
      pass(ahead_);
      const std::size_t next = used(ahead_);
      if (stay_[next] != kAbsent) continue;
      gather(next, moment, ahead_);
      got += modules_[next].elements;
    }
  }

  // Whether the module in use stays on the device. DeepSpeed does not look at max_live_parameters here.
  bool keeps(int moment) const {
    const std::size_t module = used(moment);
    if (fetched_for_[module] > moment) return true;
    std::int64_t walked = 0;
    for (int later = moment + 1; later < static_cast<int>(uses_.size()) && walked < rule_.reuse_distance; ++later) {
      if (used(later) == module) return true;
      walked += modules_[used(later)].elements;
    }
    return false;
  }

  const std::vector<ParameterUnit>& modules_;
  const std::vector<UnitUse>& uses_;
  const ModuleRule& rule_;
  std::vector<int> stay_ = {}, fetched_for_ = {};
  int ahead_ = 0;          // the first use that the prefetch has not passed yet
  std::int64_t live_ = 0;  // elements that are gathered
  Residency residency_ = {};
};

}  // namespace

Residency module_residency(const std::vector<ParameterUnit>& modules, const std::vector<UnitUse>& uses,
                           const ModuleRule& rule) {
  return ModuleWalk(modules, uses, rule).walk();
}

}  // namespace foreshard
