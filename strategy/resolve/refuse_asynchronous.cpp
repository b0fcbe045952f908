#include "strategy/resolve/refuse_asynchronous.h"

#include <algorithm>
#include <string>
#include <utility>

namespace foreshard {

std::optional<Infeasible> refuse_asynchronous(const Cluster& cluster, const Strategy& s) {
  if (!s.communication.asynchronous) return {};
  const auto instead = [](Infeasible refused, std::string other) {
    refused.would_help = {std::move(other), "--asynchronous=false"};
    return refused;
  };
  const std::string& first = cluster.nodes.front().shape.gpu;
  if (gpu_count(cluster) < 2)
    return instead({.reason = "an asynchronous server and a worker are on 2 GPUs, " + cluster.name + " has one"},
                   "a larger cluster");
  if (std::ranges::any_of(cluster.nodes, [&](const NodeGroup& group) { return group.shape.gpu != first; }))
    return instead({.reason = "an asynchronous server and its workers need equal GPUs"}, "a cluster of one kind of GPU");
  if (s.framework != Strategy{}.framework)
    return instead({.reason = "framework " + s.framework + " has no asynchronous server"}, "--framework foreshard");
  if (!s.stages.empty()) return instead({.reason = "an asynchronous server has workers on one GPU each, not stages"}, "--dp");
  if (s.tp * s.cp * s.pp > 1)
    return instead({.reason = "an asynchronous server has workers on one GPU each: found tp " + std::to_string(s.tp) + ", cp " +
                              std::to_string(s.cp) + ", pp " + std::to_string(s.pp)},
                   "--tp 1 --cp 1 --pp 1");
  if (s.experts.ep * s.experts.etp > 1)
    return instead({.reason = "an asynchronous server has workers with all experts"}, "--ep 1 --etp 1");
  if (s.zero.stage > 0)
    return instead({.reason = "an asynchronous server keeps all optimizer states: there is nothing to shard"}, "--zero 0");
  if (!(s.offload == OffloadChoice{}))
    return instead({.reason = "an asynchronous server has workers that keep everything on their GPU"}, "--policy auto");
  if (s.communication.gradients.codec != Codec::None)
    return instead({.reason = "an asynchronous server takes gradients as they are"}, "--compress-gradients none");
  if (s.optimizer.loss_scale == 0)
    return instead({.reason = "an asynchronous server updates before it knows all workers' gradients"}, "--loss-scale 1024");
  return {};
}

}  // namespace foreshard
