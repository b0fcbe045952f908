#include "gui/document/time_axis.h"

#include <algorithm>
#include <cmath>

namespace foreshard {

static constexpr std::int64_t kShortest = 10;

void TimeAxis::set_extent(TimeRange extent) {
  extent.end = std::max(extent.end, extent.begin + Nanoseconds{1});
  const bool whole = visible_ == extent_;
  if (extent == extent_) return;
  extent_ = extent;
  Q_EMIT extent_changed();
  show(whole ? extent_ : visible_);
}

void TimeAxis::show(TimeRange range) {
  const std::int64_t most = extent_.length().value;
  const std::int64_t length = std::clamp(range.length().value, std::min(kShortest, most), most);
  const std::int64_t begin = std::clamp(range.begin.value, extent_.begin.value, extent_.end.value - length);
  const TimeRange next = {{begin}, {begin + length}};
  if (next == visible_) return;
  visible_ = next;
  Q_EMIT visible_changed();
}

void TimeAxis::zoom(double factor, Nanoseconds anchor) {
  if (!(factor > 0)) return;
  const auto length = static_cast<double>(visible_.length().value);
  const double next = std::clamp(length / factor, static_cast<double>(kShortest), static_cast<double>(extent_.length().value));
  const double share = length > 0 ? static_cast<double>((anchor - visible_.begin).value) / length : 0.5;
  const std::int64_t begin = anchor.value - std::llround(share * next);
  show({{begin}, {begin + std::llround(next)}});
}

void TimeAxis::pan(Nanoseconds by) { show({visible_.begin + by, visible_.end + by}); }

void TimeAxis::set_cursor(std::optional<Nanoseconds> when) {
  if (when == cursor_) return;
  cursor_ = when;
  Q_EMIT cursor_changed();
}

void TimeAxis::select(std::optional<TimeRange> range) {
  if (range && range->end < range->begin) std::swap(range->begin, range->end);
  if (range == selected_) return;
  selected_ = range;
  Q_EMIT selected_changed();
}

}  // namespace foreshard
