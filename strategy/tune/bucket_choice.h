// `--bucket auto`: chooses the size of the buckets in which gradients are summed over replicas and, with `--sum-order priority`, the size
// of the parts that a bucket is sent in and the credit (bytes in flight). Small buckets are sent sooner, overlap more of the backward and
// let urgent ones overtake; large ones pay the latency less often.
#pragma once

#include <functional>
#include <vector>

#include "core/cluster/cluster.h"
#include "core/model/model.h"
#include "core/strategy/strategy.h"
#include "strategy/lower/lower.h"

namespace foreshard {

struct BucketSettings {
  Bytes bucket = {};  // bytes of gradients; 0: the default
  SumOrder order = SumOrder::Ready;
  Bytes partition = {}, credit = {};  // as in CommunicationChoice; partition 0: apply() leaves both as they are
  bool operator==(const BucketSettings&) const = default;
};

// The fastest of the candidates for `gradients` bytes on a rank; of equals the first. Bucket sizes: the default, all gradients in one
// bucket, and halves of that down to a 64th, but not below 1 MiB.
//   asked Ready      each size
//   asked Priority   also each size in order of priority; then the fastest of these in parts of a half down to a 32nd of a bucket, not
//                    below 256 KiB, with a credit of one part or of four
// `seconds` times a candidate; empty: no plan has it.
BucketSettings fastest_buckets(Bytes gradients, SumOrder asked,
                               const std::function<std::optional<double>(const BucketSettings&)>& seconds);

void apply(const BucketSettings& units, CommunicationChoice& to);

// The same, with candidates timed by replays on the light clock. It times one step; where `strategy` asks for priority, whose gain comes
// from overlap with the next forward, what a second step adds to the first.
BucketSettings best_units(const Model& model, const Cluster& cluster, const Strategy& strategy, const LowerOptions& options);

}  // namespace foreshard
