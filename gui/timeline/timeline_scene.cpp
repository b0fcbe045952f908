#include "gui/timeline/timeline_scene.h"

#include <QCoreApplication>
#include <algorithm>
#include <cmath>

#include "gui/document/picked_range.h"
#include "gui/document/words.h"
#include "report/words/span_words.h"

namespace foreshard {

void TimelineScene::set_rows_state(RowState next) {
  const bool regroup = next.grouping != state.grouping;
  state = std::move(next);
  if (regroup && document) groups = group_ranks(*document, state.grouping);
}

void TimelineScene::lay_out(QSize widget, int legend) {
  size = widget;
  const int top = kRuler + overview;
  lanes = {kHeaderWidth, top, std::max(size.width() - kHeaderWidth - kGutterWidth, 1),
           std::max(size.height() - top - legend, 1)};
  rows = lay_rows(groups, state, lanes.height(), twin != nullptr);
}

double TimelineScene::x_of(Nanoseconds when) const {
  return lanes.left() + static_cast<double>((when - axis.visible().begin).value) * lanes.width() /
                            static_cast<double>(axis.visible().length().value);
}

Nanoseconds TimelineScene::time_at(double x) const {
  return {axis.visible().begin.value +
          static_cast<std::int64_t>(
              std::floor((x - lanes.left()) * static_cast<double>(axis.visible().length().value) / lanes.width()))};
}

int TimelineScene::row_under(QPoint at) const {
  return at.y() < lanes.top() || at.y() > lanes.bottom() ? -1 : row_at(rows, at.y() - lanes.top() + scroll);
}

Picked TimelineScene::hit(QPoint at) const {
  const int index = row_under(at);
  if (!document || index < 0 || !lanes.contains(at)) return {};
  const Row& row = rows[static_cast<std::size_t>(index)];
  const int inside = at.y() - lanes.top() + scroll - row.top;
  const std::int64_t when = time_at(at.x()).value;
  const std::int64_t near = time_at(at.x() + 1).value;  // short slices are hit anywhere in their pixel
  for (const LaneBox& box : lane_boxes(row, twin != nullptr)) {
    if (inside < box.top || inside >= box.top + box.height) continue;
    if (box.kind == BoxKind::Error || box.kind == BoxKind::Measured) break;
    const ClassId who = box.kind == BoxKind::Worst ? row.worst : row.shown();
    const LaneKind kind = box.kind == BoxKind::Communication ? LaneKind::Communication
                          : box.kind == BoxKind::Copy        ? LaneKind::Copy
                                                             : LaneKind::Compute;
    if (const Lane* lane = document->lanes.find(who, kind)) {
      auto slice = lane->slice_at(when);
      if (!slice) slice = lane->slice_at(near);
      if (slice) return {PickedKind::Span, lane->span[*slice], row.key.rank};
    }
    if (kind != LaneKind::Compute) break;
    if (const std::int32_t bubble = bubble_at(document->lanes, document->bubbles, who, when); bubble >= 0)
      return {PickedKind::Bubble, bubble, row.key.rank};
  }
  return {PickedKind::Class, row.shown().value, row.key.rank};
}

static bool has_class(const RankGroup& group, ClassId who) {
  return std::ranges::find(group.classes, who) != group.classes.end();
}

int TimelineScene::row_of(ClassId who) const {
  int closed = -1;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const Row& row = rows[r];
    if (row.key.rank.valid() ? row.shown() == who
                             : closed < 0 && has_class(groups[static_cast<std::size_t>(row.key.group)], who)) {
      if (row.key.rank.valid()) return static_cast<int>(r);
      closed = static_cast<int>(r);
    }
  }
  return closed;
}

QRectF TimelineScene::place_of(Picked picked) const {
  if (!document || picked.index < 0) return {};
  const auto range = range_of(*document, picked);
  if (!range) return {};
  const ClassId who = class_of(*document, picked);
  BoxKind kind = BoxKind::Compute;
  if (picked.kind != PickedKind::Bubble) {
    const Span& span = document->trace().spans[static_cast<std::size_t>(picked.index)];
    const StreamKind stream = role_of(document->plan(), document->trace(), who).streams[span.stream.index()].kind;
    if (stream != StreamKind::Compute) kind = stream == StreamKind::Communication ? BoxKind::Communication : BoxKind::Copy;
  }
  int index = -1;
  for (std::size_t r = 0; r < rows.size() && picked.rank.valid(); ++r)
    if (rows[r].key.rank == picked.rank) index = static_cast<int>(r);
  if (index < 0) index = row_of(who);
  if (index < 0) return {};
  const Row& row = rows[static_cast<std::size_t>(index)];
  const std::vector<LaneBox> boxes = lane_boxes(row, twin != nullptr);
  const bool split = std::ranges::find(boxes, BoxKind::Worst, &LaneBox::kind) != boxes.end();
  if (kind == BoxKind::Compute && split && row.worst == who) kind = BoxKind::Worst;
  for (const LaneBox& box : boxes) {
    if (box.kind != kind) continue;
    const double left = x_of(range->begin), right = x_of(range->end);
    const QRectF place(left, lanes.top() + row.top - scroll + box.top, std::max(right - left, 1.0), box.height);
    return place.intersected(QRectF(lanes));
  }
  return {};
}

QPointF TimelineScene::anchor_of(std::int32_t span, bool at_end) const {
  const Span& of = document->trace().spans[static_cast<std::size_t>(span)];
  const int index = row_of(of.who);
  if (index < 0) return {-1, -1};
  const Row& row = rows[static_cast<std::size_t>(index)];
  const StreamKind stream = role_of(document->plan(), document->trace(), of.who).streams[of.stream.index()].kind;
  const BoxKind wanted = stream == StreamKind::Compute ? BoxKind::Compute : BoxKind::Communication;
  double y = row.height / 2.0;
  for (const LaneBox& box : lane_boxes(row, twin != nullptr))
    if (box.kind == wanted) y = box.top + box.height / 2.0;
  return {x_of(at_end ? of.end : of.begin), lanes.top() + row.top - scroll + y};
}

const Row* TimelineScene::group_above() const {
  const int first = row_at(rows, scroll);
  if (first < 0) return nullptr;
  const Row& row = rows[static_cast<std::size_t>(first)];
  if (!row.key.rank.valid() || row.pinned) return nullptr;
  const auto head = std::ranges::find(rows, RowKey{row.key.group, {}}, &Row::key);
  return head == rows.end() ? nullptr : &*head;
}

int TimelineScene::row_of_picked(Picked picked) const {
  const std::int32_t span = document ? span_of(*document, picked) : -1;
  return span >= 0 ? row_of(document->trace().spans[static_cast<std::size_t>(span)].who) : -1;
}

QString facts_line(const Document* document, Picked under) {
  if (!document || under.index < 0) return {};
  const auto at = static_cast<std::size_t>(under.index);
  if (under.kind == PickedKind::Bubble && at < document->bubbles.size()) {
    const Bubble& bubble = document->bubbles[static_cast<std::size_t>(under.index)];
    return QCoreApplication::translate("foreshard::TimelineView", "idle %1: %2")
        .arg(time_text(bubble.end - bubble.begin), cause_words(bubble.cause));
  }
  if ((under.kind != PickedKind::Span && under.kind != PickedKind::Action) || at >= document->trace().spans.size()) return {};
  const Span& span = document->trace().spans[static_cast<std::size_t>(under.index)];
  const QString action =
      QString::fromStdString(action_name(document->plan(), action_of(document->plan(), document->trace(), span)));
  if (under.kind == PickedKind::Action)
    return QCoreApplication::translate("foreshard::TimelineView", "%1, %2")
        .arg(action, time_text(range_of(*document, under)->length()));
  const QString name = instruction_words(instruction_of(document->plan(), document->trace(), span).name);
  return span.count > 1 ? QCoreApplication::translate("foreshard::TimelineView", "%1: %2 and %3 more, %4")
                              .arg(action, name, count_words(span.count - 1), time_text(span.end - span.begin))
                        : QCoreApplication::translate("foreshard::TimelineView", "%1: %2, %3")
                              .arg(action, name, time_text(span.end - span.begin));
}

}  // namespace foreshard
