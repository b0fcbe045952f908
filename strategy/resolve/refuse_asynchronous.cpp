#include "strategy/resolve/refuse_asynchronous.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/base/count_text.h"

namespace foreshard {

std::optional<Infeasible> refuse_asynchronous(const Cluster& cluster, const Strategy& s) {
  if (!s.communication.asynchronous) return {};
  const auto instead = [](Infeasible refused, std::string other) {
    refused.would_help = {std::move(other), "--asynchronous=false"};
    return refused;
  };
  const std::string& first = cluster.nodes.front().shape.gpu;
  const int servers = serving_gpus(s);
  if (gpu_count(cluster) < 2)
    return instead({.reason = "an asynchronous server and a worker are on 2 GPUs, " + cluster.name + " has one"},
                   "a larger cluster");
  if (std::ranges::any_of(cluster.nodes, [&](const NodeGroup& group) { return group.shape.gpu != first; }))
    return instead({.reason = "an asynchronous server and its workers need equal GPUs"}, "a cluster of one kind of GPU");
  if (s.framework != Strategy{}.framework)
    return instead({.reason = "framework " + s.framework + " has no asynchronous server"}, "--framework foreshard");
  if (!s.stages.empty())
    return instead({.reason = "an asynchronous server has equal workers, not stages with degrees of their own"},
                   "--dp, --tp and --pp");
  if (s.cp > 1)
    return instead({.reason = "an asynchronous server has workers that see whole sequences: found cp " + std::to_string(s.cp)},
                   "--cp 1");
  if (servers % s.tp != 0)
    return instead(
        {.reason = "each of the tp " + std::to_string(s.tp) +
                   " GPUs that share a worker's layers pushes to servers of its own: found " + counted(servers, "server")},
        "--servers " + std::to_string((servers / s.tp + 1) * s.tp));
  if (s.optimizer.clip_norm.value_or(0) > 0 && (servers > 1 || s.tp * s.pp > 1))
    return instead(
        {.reason = "gradients are clipped by the norm of all of them, which several asynchronous servers, or the GPUs of "
                   "a worker, have in parts"},
        "--clip-norm 0");
  if (s.experts.ep * s.experts.etp > 1)
    return instead({.reason = "an asynchronous server has workers with all experts"}, "--ep 1 --etp 1");
  if (s.zero.stage > 0)
    return instead({.reason = "an asynchronous server keeps all optimizer states: there is nothing to shard"}, "--zero 0");
  if (!(s.offload == OffloadChoice{}))
    return instead({.reason = "an asynchronous server has workers that keep everything on their GPU"}, "--policy auto");
  if (s.communication.gradients.codec == Codec::OneBit && s.optimizer.kind == OptimizerKind::Adam)
    return instead({.reason = "an asynchronous server has the first moment, which one-bit with Adam would send"},
                   "--compress-gradients eight-bit");
  if (s.optimizer.loss_scale == 0)
    return instead({.reason = "an asynchronous server updates before it knows all workers' gradients"}, "--loss-scale 1024");
  return {};
}

}  // namespace foreshard
