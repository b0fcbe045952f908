#include "exec/cuda/command_ring.h"

namespace foreshard::gpu {

bool CommandRing::add(const Command& command) {
  const std::lock_guard lock(mutex_);
  if (count_ == ring_.size()) return false;
  ring_[(head_ + count_) % ring_.size()] = command;
  if (++count_ == 1) changed_.notify_all();
  return true;
}

std::optional<Command> CommandRing::take(const Stop& stop) {
  std::unique_lock lock(mutex_);
  stop.wait(lock, changed_, [&] { return count_ > 0 || closed_; });
  if (count_ == 0) return {};
  const Command command = ring_[head_];
  head_ = (head_ + 1) % ring_.size();
  --count_;
  return command;
}

void CommandRing::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

}  // namespace foreshard::gpu
