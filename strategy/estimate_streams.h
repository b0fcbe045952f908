// A short run of a pipeline whose ranks have links of their own (docs/search.md, "Screen"): each rank has a stream that computes,
// one that talks to its replicas, layer by layer, and one per direction that sends. What the streams of a rank wait for of each
// other, and what they take from each other, is played; a closed form does not hold where chunks wait for each other both ways.
// Times in seconds. Internal to strategy/.
#pragma once

#include <array>
#include <optional>

#include "strategy/estimate_play.h"

namespace foreshard {

// What a chunk of one kind (PipelineTimes) does. ZeRO 2 says a reduction for each layer of a backward; ZeRO 3 a gather for each layer of
// both, too.
struct ChunkStreams {
  double forward = 0, backward = 0;  // seconds with nothing beside them
  double head = 0;                   // of a layer's backward, before its first weight gradient
  double rest = 0;                   // of a layer's forward, after its weights were last read
  int layers = 1;
  double redone = 0, redo = 0, redone_head = 0;  // so many first layers are redone: what each adds to the backward, its `head`
  double scatter = 0, gather = 0;                // of one layer; 0: nothing is said
  double groups = 0, head_groups = 0;            // sums over groups of shards behind the reductions of the last backward
  double head_scatter = 0, head_gather = 0;      // of the last stage
  double embedding_scatter = 0, embedding_gather = 0;  // of the first one
  // While something is said: how fast computes are, and how fast what is said; forward, backward.
  std::array<double, 2> compute_speed = {1, 1}, talk_speed = {1, 1};
};

struct StreamTimes {
  std::array<ChunkStreams, 3> of = {};
  int gather_places = 1, reduce_places = 1;    // of each chunk: layer l is in place l mod their number
  std::array<double, Ways::kMost> fewer = {};  // [rank]: layers of a chunk that it redoes less
};

// From the first forward to the end of the first rank's last backward; `times` as in pipeline_time, without what is said. Empty: too
// many actions and layers, or a schedule that it does not know.
std::optional<double> play_streams(Schedule schedule, const PipelineTimes& times, const StreamTimes& streams, bool overlap);

}  // namespace foreshard
