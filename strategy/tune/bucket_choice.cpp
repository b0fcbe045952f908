#include "strategy/tune/bucket_choice.h"

#include <algorithm>
#include <optional>

#include "replay/replay.h"
#include "strategy/tune/plan_trial.h"

namespace foreshard {

namespace {

constexpr std::int64_t kLeast = 1 << 20, kSmallestShare = 64, kSmallestPart = 32;

// Bytes of gradients on the rank that has most of them.
Bytes gradients_of(const Plan& plan) {
  Bytes most = {};
  for (const Role& role : plan.roles) {
    Bytes here = {};
    for (const Buffer& buffer : role.buffers)
      if (buffer.resident && buffer.category == Category::Gradients) here += buffer.bytes;
    most = std::max(most, here);
  }
  return most;
}

class Least {
 public:
  explicit Least(const std::function<std::optional<double>(const BucketSettings&)>& seconds) : seconds_(seconds) {}
  void consider(const BucketSettings& units) {
    const std::optional<double> taken = seconds_(units);
    if (!taken || (least_ && *taken >= *least_)) return;
    least_ = taken, best_ = units;
  }
  const BucketSettings& best() const { return best_; }

 private:
  const std::function<std::optional<double>(const BucketSettings&)>& seconds_;
  std::optional<double> least_ = {};
  BucketSettings best_ = {};
};

}  // namespace

BucketSettings fastest_buckets(Bytes gradients, SumOrder asked,
                               const std::function<std::optional<double>(const BucketSettings&)>& seconds) {
  const bool by_priority = asked == SumOrder::Priority;
  std::vector<Bytes> sizes = {Bytes{}};
  for (std::int64_t share = 1; share <= kSmallestShare; share *= 2)
    if (const Bytes size = {ceil_div(gradients.value, share)}; size.value >= kLeast || share == 1) sizes.push_back(size);
  Least least(seconds);
  if (by_priority) least.consider({.order = asked});  // as it is without `auto`
  for (const Bytes size : sizes) least.consider({.bucket = size});
  if (!by_priority) return least.best();
  for (const Bytes size : sizes) least.consider({.bucket = size, .order = asked});
  const Bytes bucket = least.best().bucket, whole = bucket.value > 0 ? bucket : gradients;
  for (std::int64_t share = 2; share <= kSmallestPart; share *= 2)
    for (const std::int64_t room : {1, 4}) {
      const Bytes part = {ceil_div(whole.value, share)};
      if (part.value >= kLeast / 4)
        least.consider({.bucket = bucket, .order = asked, .partition = part, .credit = room > 1 ? part * room : Bytes{}});
    }
  return least.best();
}

void apply(const BucketSettings& units, CommunicationChoice& to) {
  to.bucket = units.bucket, to.order = units.order;
  if (units.partition.value > 0) to.partition = units.partition, to.credit = units.credit;
}

BucketSettings best_units(const Model& model, const Cluster& cluster, const Strategy& strategy, const LowerOptions& options) {
  const SumOrder asked = strategy.communication.order;
  const auto with = [&](const BucketSettings& units) {
    Strategy tried = strategy;
    apply(units, tried.communication);
    return trial_plan(model, cluster, std::move(tried), options);
  };
  const auto plain = with({.order = asked});
  if (!plain) return {.order = asked};
  const auto seconds = [&](const BucketSettings& units) -> std::optional<double> {
    const bool cuts_again = units.partition.value > 0 && strategy.communication.partition.value > 0;
    const auto plan = cuts_again ? std::nullopt : with(units);  // a size of parts that was asked for stays
    if (!plan) return {};
    const double one = makespan_of(*plan, cluster, {.granularity = Granularity::Layer});
    if (asked == SumOrder::Ready || has_steady_period(*plan)) return one;
    return makespan_of(*plan, cluster, {.granularity = Granularity::Layer, .memory = false, .runs = 2}) - one;
  };
  return fastest_buckets(gradients_of(*plain), asked, seconds);
}

}  // namespace foreshard
