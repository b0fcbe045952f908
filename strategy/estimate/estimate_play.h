// A short run of a pipeline, chunk by chunk, where ranks are not equally near or transfers of several ranks cross one link, so
// that no closed form holds (docs/search.md, "Screen"). Times in seconds. Internal to strategy/.
#pragma once

#include <algorithm>
#include <array>
#include <optional>

#include "strategy/estimate/estimate_links.h"
#include "strategy/estimate/estimate_pipeline.h"

namespace foreshard {

// The ways of transfers. Those in the same lane cross a link in the same direction and take turns there.
struct Ways {
  static constexpr int kMost = 16;  // ranks
  struct Way {
    double latency = 0, per_byte = 0;
    double share = 0;  // of the compute units at either end
    int lane = 0;
    int other = -1;  // a second lane, at its other end; negative: none
    bool operator==(const Way&) const = default;
  };
  int ranks = 0;                         // 0: not measured
  std::array<Way, kMost> output = {};    // [rank] to the next rank; of the last one to the first
  std::array<Way, kMost> gradient = {};  // [rank] to the rank before; of the first one to the last
  Links links = {};
  bool operator==(const Ways&) const = default;
};

// What a rank of a pipeline runs, in the order of its schedule: GPipe, 1F1B or interleaved with as many micro-batches per group as
// ranks.
struct PlayOrder {
  Schedule schedule = Schedule::OneFOneB;
  int ranks = 1, chunks = 1, microbatches = 1;
  struct Op {
    bool backward = false;
    int chunk = 0, microbatch = 0;
  };
  int count() const { return chunks * microbatches; }  // of forwards on a rank
  Op at(int rank, int position) const;
  // PipelineTimes: 0 the first stage, 1 one between, 2 the last one.
  int kind(int rank, int chunk) const { return rank == 0 && chunk == 0 ? 0 : rank + 1 == ranks && chunk + 1 == chunks ? 2 : 1; }
};

// Warm-up, then a forward and a backward in turn; backwards take the chunks the other way round.
inline PlayOrder::Op PlayOrder::at(int rank, int position) const {
  const auto pass = [&](int k, bool backward) -> Op {
    if (chunks == 1) return {backward, 0, k};
    const int group = k / (ranks * chunks), chunk = k % (ranks * chunks) / ranks;
    return {backward, backward ? chunks - 1 - chunk : chunk, group * ranks + k % ranks};
  };
  const int ahead = chunks == 1 ? ranks - 1 - rank : 2 * (ranks - 1 - rank) + (chunks - 1) * ranks;
  const int warm_up = schedule == Schedule::GPipe ? count() : std::min(ahead, count());
  if (position < warm_up) return pass(position, false);
  const int rest = position - warm_up, pairs = count() - warm_up;
  if (rest >= 2 * pairs) return pass(rest - pairs, true);
  return rest % 2 == 0 ? pass(warm_up + rest / 2, false) : pass(rest / 2, true);
}

// From the first forward to the end of the first rank's last backward. Without `overlap` a rank stands still while it sends. Backwards
// of a rank are so much `faster`. Empty: too many chunks, or a schedule that it does not know.
std::optional<double> play_pipeline(Schedule schedule, const PipelineTimes& times, const Ways& ways, double bytes, bool overlap,
                                    const std::array<double, Ways::kMost>& faster = {});

}  // namespace foreshard
