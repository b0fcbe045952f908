// A library that has the calls of NCCL and is none: it checks what is called and carries it out between threads of one process, on the streams of
// a FakeRuntime. What real NCCL answers with a hang or wrong numbers it complains about by name.
//
//   calls on a communicator      matched by their number: kind, count, type, operation and root must be those of the other ranks
//   several communicators        the orders of all ranks must agree with one total order, else complained about when all is over
//   messages                     matched per pair in order; other sizes are complained about; a group is one entry of its stream
//   graphs                       a call by a thread that captures one is complained about: the executor keeps NCCL out of them
//   communicators                used before they are ready, after an abort, or given up without one: complained about
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace foreshard::gpu {
struct Stream;
}

namespace foreshard {

struct TwinRange {
  const std::byte *begin = nullptr, *end = nullptr;
  bool write = false;
};

struct TwinSettings {
  int version = 22809;
  // Puts an entry on a stream: it may go when `ready` says so, which is asked when it is first in its queue.
  std::function<void(gpu::Stream*, const std::string& what, std::vector<TwinRange>, std::function<bool()> ready)> put = {};
  std::function<bool()> captures = {};  // whether the calling thread captures a graph: then no call is expected
  int never_ready = -1;                 // the n-th communicator stays InProgress for ever
  int failing_call = -1;                // the n-th call on a stream makes its communicator fail later, as a broken network does
  int dropped_call = -1;                // the n-th call on a stream does nothing
  int shortened_call = -1;              // ... is one element short
  int slow_calls = 0;                   // so many calls leave InProgress and have to be asked about
};

struct TwinReport {
  std::vector<std::string> complaints = {};
  int calls = 0, comms = 0, aborted = 0, destroyed = 0, registered = 0;
};

// Exported by the library beside the calls.
class TwinControl {
 public:
  virtual ~TwinControl() = default;
  virtual void begin(TwinSettings settings) = 0;  // forgets all that was
  virtual TwinReport end() = 0;                   // looks for one total order, too
};
using TwinEntry = TwinControl* (*)();
inline constexpr const char* kTwinEntry = "nccl_twin_control";

}  // namespace foreshard
