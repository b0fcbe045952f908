#include "strategy/estimate_talk_alone.h"

namespace foreshard {

double AloneTalk::run() {
  for (int rank = 0; rank < p_; ++rank) begin_next(rank);
  changed_ = (1U << p_) - 1;
  while (changed_ != 0) go(std::countr_zero(changed_));
  find_after();
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
  const double arrives = free_[at(stream)] = std::max(now_, free_[at(stream)]) + send_time(stream);
  if (const int to = deliver(stream, op, arrives); to >= 0) changed_ |= 1U << to;
  if (ranks_[at(rank)].state == State::Stands) ranks_[at(rank)].until = arrives;
}

void AloneTalk::ended(int rank) {
  const std::size_t which = action(rank, ranks_[at(rank)].position);
  after_[which] = ranks_[at(rank)].step.compute, done_[at(count_++)] = static_cast<int>(which);
}

// From the last action to the first: behind each are the next one of its rank and the one that takes what it sends. Slots, which nobody needs any
// more, say what is behind the begin of that one.
void AloneTalk::find_after() {
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
