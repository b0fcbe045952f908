// A short run of a pipeline whose ranks have links of their own (docs/search.md, "Screen"): each rank has a stream that computes,
// one that talks to its replicas, layer by layer, and one per direction that sends. What the streams of a rank wait for of each
// other, and what they take from each other, is played; a closed form does not hold where chunks wait for each other both ways.
// Times in seconds. Internal to strategy/.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "strategy/estimate/estimate_play.h"

namespace foreshard {

// What a chunk of one kind (PipelineTimes) does, unit by unit: its layers, at the first stage the embedding before them, at the last one
// the head behind them. ZeRO 2 says a reduction for each unit of a backward; ZeRO 3 a gather for each unit of both, but for the backward
// of an embedding.
struct ChunkStreams {
  double forward = 0, backward = 0;  // seconds with nothing beside them
  double head = 0;                   // of a layer's backward, before its first weight gradient
  double rest = 0;                   // of a layer's forward, after its weights were last read
  int layers = 1;
  int end = 0;                                   // -1: an embedding before them, 1: a head behind them
  double forward_end = 0, backward_end = 0;      // of `forward` and `backward`, what that takes
  double redone = 0, redo = 0, redone_head = 0;  // so many first layers are redone: what each adds to the backward, its `head`
  double scatter = 0, gather = 0;                // of one layer; 0: nothing is said
  double end_scatter = 0, end_gather = 0;
  double tied_scatter = 0;            // of a head that is the embedding, behind what else it has: it has a place of its own
  double groups = 0, end_groups = 0;  // sums over groups of shards behind the reductions of the last backward
  // While something is said: how fast computes are, and how fast what is said; forward, backward.
  std::array<double, 2> compute_speed = {1, 1}, talk_speed = {1, 1};
  int units() const { return layers + (end != 0 ? 1 : 0); }
};

struct StreamTimes {
  std::array<ChunkStreams, 3> of = {};
  std::vector<ChunkStreams> by_rank = {};      // [3 rank + kind] where ranks differ
  int gather_places = 1, reduce_places = 1;    // of each chunk: unit u is in place u mod their number
  std::array<double, Ways::kMost> fewer = {};  // [rank]: layers of a chunk that it redoes less
  double hop_on_link = 0;                      // seconds of a transfer in which it shares links with what its ranks say,
  double hop_speed = 1, talk_beside_hop = 1;   // and how fast either is then
};

// From the first forward to the end of the first rank's last backward; `times` as in pipeline_time, without what is said. Empty: too
// many actions and layers, or a schedule that it does not know.
std::optional<double> play_streams(Schedule schedule, const PipelineTimes& times, const StreamTimes& streams, bool overlap);

}  // namespace foreshard
