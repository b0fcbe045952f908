// A stream with memory, events and random numbers, to time single calls on GPU 0. Used only by exec/cuda/calibrate_*.cpp.
#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <vector>

#include "exec/cuda/gpu_memory.h"
#include "exec/cuda/runtime.h"
#include "exec/cuda/stored_array.h"

namespace foreshard::gpu {

inline double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

class Bench {
 public:
  // `times`: rows of calls, of which the first is not counted and of the others the median is. A call that takes longer than `lasting` is timed once.
  Bench(Runtime& runtime, int times, std::chrono::milliseconds lasting);
  ~Bench() { runtime_.close_stream(stream_); }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  std::byte* memory(Space space, Bytes bytes) { return memory_.allocate(space, bytes); }
  Stream* stream() const { return stream_; }
  // Normal numbers: products of zeros draw less power, so they run faster. Integers are zero.
  void fill_random(const Operand& operand);

  // Seconds of GPU time of one of `count` calls in a row, less what the timing takes; `before` is called before each row.
  template <class Call>
  Seconds time(int count, const Call& call) {
    return time(count, call, [] {});
  }
  template <class Call, class Before>
  Seconds time(int count, const Call& call, const Before& before) {
    std::vector<double> seconds;
    for (int i = 0; i < rows_; ++i) {
      const double taken = row(count, call, before);
      if (i > 0) seconds.push_back(taken);
    }
    return {std::max(median(std::move(seconds)), 1e-9)};
  }
  // One call after other memory was written, whose operands lie in no cache, and one after itself. The GPU writes while the host puts the calls
  // on the stream, so they follow each other without gaps.
  template <class Call>
  std::vector<Seconds> cold_and_warm(const Call& call) {
    call();  // loads kernels and libraries
    runtime_.synchronize(stream_);
    const auto begin = std::chrono::steady_clock::now();
    const double once = row(1, call, [] {});
    if (std::chrono::steady_clock::now() - begin > lasting_) return {{std::max(once, 1e-9)}};
    const auto cool = [&] { runtime_.fill(other_, std::byte{1}, other_bytes_, stream_); };
    const Seconds cold = time(1, call, cool);
    return {cold, time(3, call, [&] { cool(), call(); })};
  }

 private:
  template <class Call, class Before>
  double row(int count, const Call& call, const Before& before) {
    before();
    runtime_.record(begin_, stream_);
    for (int n = 0; n < count; ++n) call();
    runtime_.record(end_, stream_);
    runtime_.synchronize(stream_);
    return static_cast<double>(runtime_.nanoseconds(begin_, end_) - timing_) * 1e-9 / count;
  }

  Runtime& runtime_;
  int rows_;
  std::chrono::milliseconds lasting_;
  GpuMemory memory_;
  EventPool times_;
  Event *begin_ = times_.take(), *end_ = times_.take();
  Stream* stream_ = nullptr;
  std::int64_t timing_ = 0;
  Bytes other_bytes_ = {};  // more than any cache holds
  std::byte* other_ = nullptr;
  std::map<DType, StoredArray> numbers_ = {};
};

}  // namespace foreshard::gpu
