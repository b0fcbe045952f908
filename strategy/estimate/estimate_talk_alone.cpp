#include "strategy/estimate/estimate_talk_alone.h"

namespace foreshard {

AloneTalk::AloneTalk(const TalkOf& of) : TalkRanks(of) {
  double longest = 0;  // of the chunks of a rank
  for (int rank = 0; rank < p_; ++rank) {
    double all = 0;
    for (int chunk = 0; chunk < order_.chunks; ++chunk)
      all += this->of(rank, chunk).forward.compute + this->of(rank, chunk).backward.compute;
    longest = std::max(longest, all);
  }
  slices_per_second_ = kSlices / std::max(1e-30, longest * (order_.microbatches + static_cast<double>(p_ - 1) / order_.chunks));
  std::fill_n(loads_.begin(), ways_.links.links, std::array<double, kMostSlices>{});
  for (int rank = 0; rank < p_; ++rank) says(rank, ranks_[at(rank)].backlog, 0);
}

double AloneTalk::run() {
  for (int rank = 0; rank < p_; ++rank) begin_next(rank);
  changed_ = (1U << p_) - 1;
  while (changed_ != 0) go(std::countr_zero(changed_));
  return *std::max_element(since_.begin(), since_.begin() + p_);
}

void AloneTalk::go(int rank) {
  for (;;) {
    now_ = since_[at(rank)];
    const double left = time_left(rank);
    if (left >= kNever) break;
    now_ += left, tiny_ = kTiny * (1 + now_);
    catch_up(rank), go_on(rank);
  }
  changed_ &= ~(1U << rank);
}

void AloneTalk::send(int rank, const PlayOrder::Op& op) {
  const int stream = stream_of(rank, op.backward);
  load(ways_.links.traffic[at(Links::flow(rank, op.backward ? Links::Gradient : Links::Output))], send_time(stream));
  const double arrives = free_[at(stream)] = std::max(now_, free_[at(stream)]) + send_time(stream);
  if (const int to = deliver(stream, op, arrives); to >= 0) changed_ |= 1U << to;
  if (ranks_[at(rank)].state == State::Stands) ranks_[at(rank)].until = arrives;
}

void AloneTalk::load(const Links::Traffic& traffic, double seconds) {
  if (seconds <= 0) return;
  const auto slice = static_cast<std::size_t>(std::min(now_ * slices_per_second_, kMostSlices - 1.0));
  for (const Links::Crossing& crossing : traffic.crosses)
    if (crossing.own) loads_[at(crossing.link)][slice] += crossing.share * seconds;
}

void AloneTalk::says(int rank, double over_shards, double over_groups) {
  load(talk_.sums ? ways_.links.sums[at(rank)] : ways_.links.traffic[at(Links::flow(rank, Links::Shards))], over_shards);
  load(ways_.links.traffic[at(Links::flow(rank, Links::Replicas))], over_groups);
}

// Collectives that its computes wait for.
void AloneTalk::begins(int rank) {
  const TalkStep& step = ranks_[at(rank)].step;
  for (int which = 0; which < Links::kStills; ++which)
    load(ways_.links.standing(Links::still(rank, which)), step.still[at(which)]);
}

double AloneTalk::least() const {
  double least = *std::max_element(since_.begin(), since_.begin() + p_);
  for (int link = 0; link < ways_.links.links; ++link) {
    double left = 0;
    for (int slice = kMostSlices; slice-- > 0;) {
      left += loads_[at(link)][at(slice)];
      if (left > 0) least = std::max(least, slice / slices_per_second_ + left);
    }
  }
  return least;
}

void AloneTalk::ended(int rank) {
  const std::size_t which = action(rank, ranks_[at(rank)].position);
  after_[which] = ranks_[at(rank)].step.compute, done_[at(count_++)] = static_cast<int>(which);
}

// From the last action to the first: behind each are the next one of its rank and the one that takes what it sends. Slots, which nobody needs any
// more, say what is behind the begin of that one.
void AloneTalk::look_back() {
  std::array<double, Ways::kMost> behind;  // [rank] of the action looked at
  for (int rank = 0; rank < p_; ++rank) behind[at(rank)] = least_end(talk_, order_, rank);
  while (count_ > 0) {
    const int actions = 2 * order_.count(), which = done_[at(--count_)], rank = which / actions, position = which % actions;
    const PlayOrder::Op op = order_.at(rank, position);
    double& after = after_[at(which)];
    const double computes = after;
    after = behind[at(rank)];
    if (order_.kind(rank, op.chunk) != (op.backward ? 0 : 2)) {
      const int stream = stream_of(rank, op.backward);
      const double taken = slot(receiver(stream), received(stream, op)), sends = send_time(stream);
      if (!overlap_ && position + 1 < actions) after += sends;  // behind the last one the rank goes on with what it has said
      after = std::max(after, sends + taken);
    }
    slot(rank, op) = behind[at(rank)] = computes + after;
  }
}

}  // namespace foreshard
