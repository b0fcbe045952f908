// `--layer-split auto`: splits the layers of a model over pipeline stages by the times of the layers. The first stage also has the
// embedding, the last one the loss, and the layers of a layer list differ. Internal to strategy/.
#pragma once

#include <string>

#include "core/cluster/cluster.h"
#include "core/model/model.h"
#include "core/strategy/strategy.h"
#include "strategy/lower/lower.h"
#include "strategy/partition/partition.h"

namespace foreshard {

// Times and bytes of each layer on one rank at the strategy's tensor degree, without transfers between stages. They come from a plan with
// one layer per stage; where the cluster has too few GPUs for it, the plan has more nodes. `layers`: the number that a split counts
// (split_layers); the first includes the embedding, the last the loss. Empty: the model cannot be divided by the degree, or more nodes
// are needed and nodes differ.
std::vector<ChainLayer> layer_chain(const Model& model, const Cluster& cluster, const Strategy& strategy, int layers,
                                    const MachineProfile* profile = nullptr);

// The split with the shortest schedule, transfers included, as the text of --layer-split. Candidates are the nearly even split; the splits
// that fit the memory of every stage and minimize the slowest stage, or the slowest stage or transfer; and what these become when borders
// between stages move. With virtual stages: the nearly even split. `strategy` is resolved; its own split is ignored. Empty: one stage, or
// more stages than layers.
std::string balanced_split(const Model& model, const Cluster& cluster, const Strategy& strategy, int layers,
                           const MachineProfile* profile = nullptr);

}  // namespace foreshard
