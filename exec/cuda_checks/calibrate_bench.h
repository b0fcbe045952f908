// Bench: times single calls on GPU 0, with a stream, memory and random numbers for them. Used only by calibrate_*.cpp of this folder.
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
  // `times`: number of repetitions of a measurement; the result is the median of all but the first. cold_and_warm measures a call that
  // takes longer than `lasting` only once.
  Bench(Runtime& runtime, int times, std::chrono::milliseconds lasting);
  ~Bench() { runtime_.close_stream(stream_); }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  std::byte* memory(Space space, Bytes bytes) { return memory_.allocate(space, bytes); }
  Stream* stream() const { return stream_; }
  // Fills with normal random numbers, because products of zeros draw less power and run faster. Integers (int32) become 0.
  void fill_random(const Operand& operand);

  // GPU time per call, for `count` calls that are enqueued one after the other, without the overhead of timing. `before` is called before
  // each repetition.
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
  // Times a call with cold caches (after other memory was written) and with warm ones (after the same call). The GPU writes that memory
  // while the host enqueues the calls, so the calls run without gaps. Returns both times; for a call longer than `lasting`, a single time.
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
  Bytes other_bytes_ = {};  // more than the L2 cache holds
  std::byte* other_ = nullptr;
  std::map<DType, StoredArray> numbers_ = {};
};

}  // namespace foreshard::gpu
