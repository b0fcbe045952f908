#include "gui/document/picked_range.h"

#include <algorithm>

namespace foreshard {

static bool inside(std::int32_t at, std::size_t count) { return at >= 0 && static_cast<std::size_t>(at) < count; }

// The spans of the action that lie on the stream of `picked`, in time order.
static std::pair<std::int32_t, std::int32_t> ends_of_action(const Document& document, std::int32_t picked) {
  const std::vector<Span>& spans = document.trace().spans;
  const auto alike = [&](std::int32_t other) {
    const Span &a = spans[static_cast<std::size_t>(picked)], &b = spans[static_cast<std::size_t>(other)];
    return a.who == b.who && a.stream == b.stream && a.action == b.action;
  };
  std::int32_t first = picked, last = picked;
  while (first > 0 && alike(first - 1)) --first;
  while (inside(last + 1, spans.size()) && alike(last + 1)) ++last;
  return {first, last};
}

std::optional<TimeRange> range_of(const Document& document, Picked picked) {
  const std::vector<Span>& spans = document.trace().spans;
  if (picked.kind == PickedKind::Bubble && inside(picked.index, document.bubbles.size())) {
    const Bubble& bubble = document.bubbles[static_cast<std::size_t>(picked.index)];
    return TimeRange{bubble.begin, bubble.end};
  }
  if (!inside(picked.index, spans.size())) return {};
  const Span& span = spans[static_cast<std::size_t>(picked.index)];
  if (picked.kind == PickedKind::Span) return TimeRange{span.begin, span.end};
  if (picked.kind != PickedKind::Action) return {};
  const auto [first, last] = ends_of_action(document, picked.index);
  return TimeRange{spans[static_cast<std::size_t>(first)].begin, spans[static_cast<std::size_t>(last)].end};
}

ClassId class_of(const Document& document, Picked picked) {
  const auto at = static_cast<std::size_t>(picked.index);
  switch (picked.kind) {
    case PickedKind::Span:
    case PickedKind::Action:
      return inside(picked.index, document.trace().spans.size()) ? document.trace().spans[at].who : ClassId{};
    case PickedKind::Bubble: return inside(picked.index, document.bubbles.size()) ? document.bubbles[at].who : ClassId{};
    case PickedKind::Class: return inside(picked.index, document.trace().classes.size()) ? ClassId{picked.index} : ClassId{};
    case PickedKind::Nothing:
    case PickedKind::Link: return {};
  }
  return {};
}

std::int32_t span_of(const Document& document, Picked picked) {
  switch (picked.kind) {
    case PickedKind::Span: return inside(picked.index, document.trace().spans.size()) ? picked.index : -1;
    case PickedKind::Action:
      return inside(picked.index, document.trace().spans.size()) ? ends_of_action(document, picked.index).first : -1;
    case PickedKind::Bubble:
      return inside(picked.index, document.bubbles.size()) ? document.bubbles[static_cast<std::size_t>(picked.index)].before
                                                           : -1;
    case PickedKind::Nothing:
    case PickedKind::Class:
    case PickedKind::Link: return -1;
  }
  return -1;
}

}  // namespace foreshard
