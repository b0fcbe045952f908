#include "strategy/search/search_splits.h"

#include "strategy/lower/lower.h"
#include "strategy/tune/hybrid_model.h"
#include "strategy/tune/partition_model.h"

namespace foreshard {

std::string SearchSplits::of(const Strategy& strategy, const Point& p) {
  Split* split = nullptr;
  {
    const std::scoped_lock lock(mutex_);
    split = &splits_[{p.pp, p.dp, p.micro_batch, p.schedule, p.zero, p.zero_group}];
  }
  split->once.call([&] {
    const auto resolved = resolve(model_, cluster_, strategy);
    if (const auto* s = std::get_if<Strategy>(&resolved))
      split->text = balanced_split(model_, cluster_, *s, split_layers(model_), profile_);
    if (split->text.empty()) split->text = "auto";
  });
  return split->text;
}

}  // namespace foreshard
