#include "exec/base/stop.h"

#include <exception>
#include <new>

#include "core/base/error.h"

namespace foreshard {

// Whether the exception that is being handled is a bug of ours.
static bool handles_bug() {
  if (!std::current_exception()) return false;
  try {
    throw;
  } catch (const Bug&) {
    return true;
  } catch (...) {
    return false;
  }
}

void Stop::raise(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (raised_.load()) return;
  try {
    why_ = why;
  } catch (const std::bad_alloc&) {  // a short text needs no memory
    why_ = "out of memory";
  }
  bug_ = handles_bug();
  raised_.store(true, std::memory_order_release);
}

void Stop::rethrow(const std::string& what) const {
  const std::lock_guard lock(mutex_);
  if (bug_) throw Bug(what + " failed: " + why_);
  throw DeviceError(what, why_);
}

std::string Stop::why() const {
  const std::lock_guard lock(mutex_);
  return why_;
}

}  // namespace foreshard
