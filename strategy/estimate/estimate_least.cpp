// What no play of a pipeline with its talk takes less than (estimate_talk.h).
#include <algorithm>

#include "strategy/estimate/estimate_talk_alone.h"

namespace foreshard {

namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

// Seconds of one link of all that flows of a chunk say in `m` micro-batches: over shards, to other replicas, of tensor collectives.
std::array<double, 3> said_in_all(const TalkOfChunk& of, double m) {
  std::array<double, 3> all = {of.gathers + of.early_gathers, 0, 0};
  const auto say = [&](const TalkStep& step, double times, double more) {
    const double said = times * (step.ahead + step.before + step.said + step.after) + more;
    all[0] += (1 - step.over_groups) * said + times * step.still[Links::OfShards];
    all[1] += step.over_groups * said + times * step.still[Links::OfReplicas];
    all[2] += times * step.still[Links::Tensor];
  };
  say(of.forward, m, 0), say(of.backward, m - 1, 0), say(of.last_backward, 1, of.sums + of.sums_after_tied);
  return all;
}

// Of the first rank, until its first forward is not held up any more.
double begin_of(const TalkOfChunk& first) {
  const TalkStep& step = first.forward;
  const double gathered = step.begin_hold < 0 ? 0 : step.ahead + step.before - step.begin_hold;
  return std::max({0.0, gathered, first.early_gathers - step.compute * (1 - first.early_share)});
}

}  // namespace

double least_end(const TalkTimes& talk, const PlayOrder& order, int rank) {
  const bool meets = order.ranks > 1 && (rank == 0 || rank + 1 == order.ranks);
  double all = talk.at(rank, order.kind(rank, 0)).last_backward.after + (meets ? std::max(0.0, talk.tied) : 0);
  for (int chunk = 0; chunk < order.chunks; ++chunk) {
    const TalkOfChunk& of = talk.at(rank, order.kind(rank, chunk));
    all += of.sums + of.one_update;
    if (chunk + 1 == order.chunks) all += std::max(of.gathers, of.update - of.one_update);
  }
  return all;
}

double least_talk(Schedule schedule, const PipelineTimes& times, const TalkTimes& talk, const Ways& ways, double bytes,
                  bool overlap) {
  const PlayOrder order{schedule, times.ranks, times.chunks, 1};
  const int p = times.ranks;
  const double m = times.microbatches;
  double least = 0, down = 0, up = 0;  // a micro-batch's way to a rank, and from it to the end
  const double last_end = least_end(talk, order, 0);
  std::array<double, Links::kLinks> loads = {};
  const auto load = [&](const Links::Traffic& traffic, double seconds) {
    for (const Links::Crossing& crossing : traffic.crosses)
      if (crossing.own) loads[at(crossing.link)] += crossing.share * seconds;
  };
  std::array<std::array<double, 3>, 3> said;
  for (int rank = 0; rank < p; ++rank) {
    if (rank == 0 || !talk.by_rank.empty())
      for (int kind = 0; kind < 3; ++kind) said[at(kind)] = said_in_all(talk.at(rank, kind), m);
    const bool thinner = rank > 0 && rank <= times.fewer;
    const double f_less = thinner ? times.forward_less : 0, b_less = thinner ? times.backward_less : 0;
    const Ways::Way &out = ways.output[at(rank)], &back = ways.gradient[at(rank)];
    const double outputs = times.chunks - (rank + 1 == p ? 1 : 0), gradients = times.chunks - (rank == 0 ? 1 : 0);
    const double send = out.latency + out.per_byte * bytes, send_back = back.latency + back.per_byte * bytes;
    double all = overlap ? 0 : m * (outputs * send + gradients * send_back) - (rank == 0 ? 0 : send_back), says = 0;
    for (int chunk = 0; chunk < times.chunks; ++chunk) {
      const std::size_t kind = at(order.kind(rank, chunk));
      const TalkOfChunk& of = talk.at(rank, order.kind(rank, chunk));
      all += m * (of.forward.compute - f_less) + (m - 1) * (of.backward.compute - b_less) + of.last_backward.compute - b_less;
      says += said[kind][0] + said[kind][1];
      load(talk.sums ? ways.links.sums[at(rank)] : ways.links.traffic[at(Links::flow(rank, Links::Shards))], said[kind][0]);
      load(ways.links.traffic[at(Links::flow(rank, Links::Replicas))], said[kind][1]);
      load(ways.links.tensors[at(rank)], said[kind][2]);
    }
    if (rank > 0) up += send_back;
    all += std::max(up + last_end, least_end(talk, order, rank));
    least = std::max({least, says, (rank == 0 ? begin_of(talk.at(0, 0)) : down) + all});
    const TalkOfChunk& first = talk.at(rank, order.kind(rank, 0));
    down += first.forward.compute - f_less + send, up += first.last_backward.compute - b_less;
    load(ways.links.traffic[at(Links::flow(rank, Links::Output))], outputs * m * out.per_byte * bytes);
    load(ways.links.traffic[at(Links::flow(rank, Links::Gradient))], gradients * m * back.per_byte * bytes);
  }
  return std::max(least, *std::max_element(loads.begin(), loads.begin() + std::max(1, ways.links.links)));
}

}  // namespace foreshard
