#include "exec/base/stop.h"

namespace foreshard {

void Stop::raise(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (raised_.load()) return;
  why_ = why;
  raised_.store(true, std::memory_order_release);
}

std::string Stop::why() const {
  const std::lock_guard lock(mutex_);
  return why_;
}

}  // namespace foreshard
