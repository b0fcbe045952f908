// A library that has the calls of NCCL and is none: it checks what is called and carries it out between threads of one process, on the streams of
// a FakeRuntime. What real NCCL answers with a hang or wrong numbers it complains about by name.
//
//   calls on a communicator      matched by their number: kind, count, type, operation and root must be those of the other ranks
//   several communicators        the orders of all ranks must agree with one total order, else complained about when all is over; on a GPU, too, their
//                                operations must follow each other (nccl_twin_order.h), else complained about at once
//   connections                  made by the first call on a communicator, which leaves InProgress as long as that takes
//   messages                     matched per pair in order; other sizes are complained about; a group is one entry of its stream
//   graphs                       a call by a thread that captures one is complained about: the executor keeps NCCL out of them
//   memory                       given with anything in it but zeros; what is registered has to lie in it, and all of it has to come back
//   communicators                used before they are ready, after an abort, or given up without one: complained about; so is an abort while a
//                                thread is inside a call on it (NCCL's guide, "Fault tolerance": nobody may call then), and one that waits for a kernel of
//                                a communicator that is not aborted with it in one group
#pragma once

#include <chrono>

#include <functional>
#include <string>
#include <vector>

#include "tests/cuda/meeting.h"

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
  // Puts an entry on a stream, which is asked how far it has come when it is first in its queue; tells which one of the stream's it is.
  std::function<std::uint64_t(gpu::Stream*, const std::string& what, std::vector<TwinRange>, std::function<Meeting()>)> put =
      {};
  // Whether what is put on `later` now cannot begin before that entry can.
  std::function<bool(const gpu::Stream* earlier, std::uint64_t entry, const gpu::Stream* later)> ordered = {};
  std::function<std::int64_t(const gpu::Stream*)> gpu = {};  // of a stream
  std::function<bool()> captures = {};  // whether the calling thread captures a graph: then no call is expected
  int never_ready = -1;                 // the n-th communicator stays InProgress for ever
  int failing_call = -1;                // the n-th call on a stream makes its communicator fail later, as a broken network does
  int dropped_call = -1;                // the n-th call on a stream does nothing
  int shortened_call = -1;              // ... is one element short
  int slow_calls = 0;                   // so many calls leave InProgress and have to be asked about
  int stalled_call = -1;                // the n-th call on a stream stays inside for a while
  bool gives_memory = true;             // ncclMemAlloc does
  std::function<void()> connects = {};  // told when the first call on a communicator is made
  std::chrono::milliseconds connecting{0};  // what the first call on a communicator takes
};

struct TwinReport {
  std::vector<std::string> complaints = {};
  bool launches_in_order = false;  // NCCL_LAUNCH_ORDER_IMPLICIT was in force
  int calls = 0, comms = 0, aborted = 0, destroyed = 0;
  int registrations = 0, registered = 0;  // made; not taken back
  int memories = 0, kept_memories = 0;    // of ncclMemAlloc; those that did not come back
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
