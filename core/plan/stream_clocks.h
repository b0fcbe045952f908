// Happens-before of the steps of one role: for every step, how many steps of each stream have ended before it begins (a vector
// clock). Steps come in issue order; those of one stream run one after another.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace foreshard {

class StreamClocks {
 public:
  explicit StreamClocks(std::size_t streams) : last_of_stream_(streams, -1) {}

  void reserve(std::size_t steps) {
    streams_of_.reserve(steps);
    positions_.reserve(steps);
    clocks_.reserve(steps * last_of_stream_.size());
  }
  // Appends a step on this stream and returns its number.
  std::int32_t add(std::int32_t stream) {
    std::int32_t& last = last_of_stream_[static_cast<std::size_t>(stream)];
    const auto here = static_cast<std::int32_t>(streams_of_.size());
    streams_of_.push_back(stream);
    positions_.push_back(last < 0 ? 0 : positions_[static_cast<std::size_t>(last)] + 1);
    clocks_.resize(clocks_.size() + last_of_stream_.size());
    if (last >= 0) {
      std::int32_t* clock = clocks_.data() + clocks_.size() - last_of_stream_.size();
      std::copy_n(ended_before(last), last_of_stream_.size(), clock);
      clock[stream] = positions_.back();
    }
    return last = here;
  }
  // States that the step added last begins after the end of step `on`.
  void depend(std::int32_t on) {
    const std::size_t streams = last_of_stream_.size();
    std::int32_t* clock = clocks_.data() + clocks_.size() - streams;
    const std::int32_t* other = ended_before(on);
    for (std::size_t s = 0; s < streams; ++s) clock[s] = std::max(clock[s], other[s]);
    std::int32_t& own = clock[streams_of_[static_cast<std::size_t>(on)]];
    own = std::max(own, positions_[static_cast<std::size_t>(on)] + 1);
  }

  int count() const { return static_cast<int>(streams_of_.size()); }
  int streams() const { return static_cast<int>(last_of_stream_.size()); }
  std::int32_t stream(int step) const { return streams_of_[static_cast<std::size_t>(step)]; }
  // Number of earlier steps on its stream.
  std::int32_t position(int step) const { return positions_[static_cast<std::size_t>(step)]; }
  // [stream]: number of steps that have to end before `step` may begin.
  const std::int32_t* ended_before(int step) const {
    return clocks_.data() + static_cast<std::size_t>(step) * last_of_stream_.size();
  }
  // Whether `a` ends before `b` begins in every execution.
  bool before(int a, int b) const { return ended_before(b)[stream(a)] > position(a); }

 private:
  std::vector<std::int32_t> last_of_stream_;
  std::vector<std::int32_t> streams_of_ = {}, positions_ = {};  // [step]
  std::vector<std::int32_t> clocks_ = {};                       // [step * streams + stream]
};

}  // namespace foreshard
