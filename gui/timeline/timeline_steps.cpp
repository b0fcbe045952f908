#include "gui/timeline/timeline_steps.h"

#include <algorithm>

#include "gui/document/picked_range.h"

namespace foreshard {

std::optional<Picked> next_op(const Document& document, Picked now, int by) {
  std::int32_t span = span_of(document, now);
  if (span < 0)
    span = document.lanes.all.empty() || document.lanes.all.front().size() == 0 ? -1 : document.lanes.all.front().span.front();
  if (span < 0) return {};
  for (const Lane& lane : document.lanes.all) {
    if (lane.kind == LaneKind::InLine || lane.who != document.trace().spans[static_cast<std::size_t>(span)].who) continue;
    const auto at = std::ranges::find(lane.span, span);
    if (at == lane.span.end()) continue;
    const auto next = (at - lane.span.begin()) + (now.kind == PickedKind::Span ? by : 0);
    if (next >= 0 && next < static_cast<std::ptrdiff_t>(lane.size()))
      return Picked{PickedKind::Span, lane.span[static_cast<std::size_t>(next)], now.rank};
    return {};
  }
  return {};
}

// From the picked bubble or span, else the first bubble of all.
// The bubbles are ordered by class and begin, so a step can lead into the next class.
std::optional<Picked> next_bubble(const Document& document, Picked now, int by) {
  if (document.bubbles.empty()) return {};
  const std::vector<Bubble>& bubbles = document.bubbles;
  std::ptrdiff_t next = 0;
  if (now.kind == PickedKind::Bubble) {
    next = now.index + by;
  } else if (const std::int32_t span = span_of(document, now); span >= 0) {
    const Span& from = document.trace().spans[static_cast<std::size_t>(span)];
    const auto after = std::ranges::upper_bound(bubbles, std::pair(from.who, from.begin), {},
                                                [](const Bubble& b) { return std::pair(b.who, b.begin); });
    next = (after - bubbles.begin()) + (by > 0 ? 0 : -1);
  }
  if (next >= 0 && next < static_cast<std::ptrdiff_t>(bubbles.size()))
    return Picked{PickedKind::Bubble, static_cast<std::int32_t>(next), {}};
  return {};
}

// The longest bubble; if a bubble is picked, the next shorter one.
std::optional<Picked> worst_bubble(const Document& document, Picked now) {
  if (document.bubbles.empty()) return {};
  const std::vector<Bubble>& bubbles = document.bubbles;
  const auto size = [&](std::int32_t b) {
    return std::pair((bubbles[static_cast<std::size_t>(b)].end - bubbles[static_cast<std::size_t>(b)].begin).value, -b);
  };
  const bool known = now.kind == PickedKind::Bubble && now.index >= 0 && static_cast<std::size_t>(now.index) < bubbles.size();
  std::int32_t best = -1;
  for (std::int32_t b = 0; b < static_cast<std::int32_t>(bubbles.size()); ++b) {
    if (known && size(b) >= size(now.index)) continue;
    if (best < 0 || size(b) > size(best)) best = b;
  }
  if (best >= 0) return Picked{PickedKind::Bubble, best, {}};
  return {};
}

}  // namespace foreshard
