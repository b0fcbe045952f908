// What is drawn beside the rows of the timeline: their names at the left, the share of time in which their ranks compute at the right.
#include <QCoreApplication>
#include <algorithm>
#include <cmath>

#include "gui/timeline/timeline_paint.h"

namespace foreshard {

QFont small_font(const QFont& font, double scale) {
  QFont small = font;
  small.setPointSizeF(std::max(font.pointSizeF() * scale, 6.0));
  return small;
}

static void paint_triangle(QPainter& painter, QPointF at, bool open, QColor colour) {
  QPolygonF shape;
  if (open)
    shape << at + QPointF(-4, -2) << at + QPointF(4, -2) << at + QPointF(0, 3.5);
  else
    shape << at + QPointF(-2, -4) << at + QPointF(3.5, 0) << at + QPointF(-2, 4);
  painter.setPen(Qt::NoPen);
  painter.setBrush(colour);
  painter.drawPolygon(shape);
}

// The number of ranks stands beside the name, for all rows or for none; below it where the rows are high.
bool notes_fit(const std::vector<Row>& rows, const QFont& font) {
  const QFontMetricsF metrics(small_font(font, 0.88));
  return std::ranges::all_of(rows, [&](const Row& row) {
    return row.note.isEmpty() ||
           metrics.horizontalAdvance(row.title) + metrics.horizontalAdvance(row.note) + 14 <= kHeaderWidth - 29;
  });
}

static void paint_name(QPainter& painter, const Theme& theme, const Row& row, QRectF box, bool note_beside) {
  const QFontMetricsF metrics(painter.font());
  const bool is_rank = row.key.rank.valid(), below = box.height() >= 2 * metrics.height() + 6 && !row.note.isEmpty();
  if (row.openable) paint_triangle(painter, {13, box.center().y()}, row.open, theme.faint);
  const QRectF words = box.adjusted(is_rank ? 34 : 23, 0, 0, 0);
  const QRectF title =
      below ? QRectF(words.left(), words.center().y() - metrics.height(), words.width(), metrics.height()) : words;
  painter.setPen(is_rank ? theme.faint : theme.text);
  painter.drawText(title, Qt::AlignLeft | Qt::AlignVCenter, metrics.elidedText(row.title, Qt::ElideRight, words.width()));
  painter.setPen(theme.faint);
  if (below)
    painter.drawText(title.translated(0, metrics.height()), Qt::AlignLeft | Qt::AlignVCenter, row.note);
  else if (note_beside)
    painter.drawText(words, Qt::AlignRight | Qt::AlignVCenter, row.note);
}

// Keeps the name of an open group visible while its own row is scrolled out of view.
static void paint_group_above(QPainter& painter, const TimelineScene& scene, bool notes_fit) {
  const Row* group = scene.group_above();
  if (group == nullptr) return;
  const QFontMetricsF metrics(painter.font());
  const QRectF plate(0, scene.lanes.top(), kHeaderWidth - 1, metrics.height() + 6);
  painter.fillRect(plate, scene.theme.raised);
  painter.setPen(scene.theme.rule);
  painter.drawLine(plate.bottomLeft(), plate.bottomRight());
  paint_name(painter, scene.theme, *group, plate.adjusted(0, 0, -5, 0), notes_fit);
}

void paint_headers(QPainter& painter, const TimelineScene& scene, bool notes_fit) {
  const QRect& lanes = scene.lanes;
  painter.fillRect(QRect(0, lanes.top(), kHeaderWidth, lanes.height()), scene.theme.panel);
  painter.save();
  painter.setClipRect(QRect(0, lanes.top(), kHeaderWidth, lanes.height()));
  painter.setRenderHint(QPainter::Antialiasing);
  const QFontMetricsF metrics(painter.font());
  double free_from = -1e9;  // rows lower than their words leave some out
  for (const Row& row : scene.rows) {
    const double top = lanes.top() + row.top - scene.scroll;
    if (top + row.height < lanes.top()) continue;
    if (top > lanes.bottom()) break;
    const std::vector<LaneBox> boxes = lane_boxes(row, scene.twin != nullptr);
    const auto worst = std::ranges::find(boxes, BoxKind::Worst, &LaneBox::kind);
    const bool split = worst != boxes.end() && worst->height >= kLeastLabelHeight;
    const bool twin = boxes.back().kind == BoxKind::Measured && boxes.back().height >= metrics.height() - 3;
    const double own = twin ? boxes.back().top - 4 : row.height - 1;  // of the row without its twin
    const double tall = std::max(own, metrics.height());
    const QRectF box(0, top + (own - tall) / 2, kHeaderWidth - 6, tall);
    const auto lane_name = [&](const LaneBox& lane, Qt::Alignment side, const QString& words) {
      painter.setPen(scene.theme.faint);
      painter.drawText(QRectF(34, top + lane.top + (lane.height - metrics.height()) / 2, kHeaderWidth - 40, metrics.height()),
                       side | Qt::AlignVCenter, words);
    };
    if (twin)
      lane_name(boxes.back(), Qt::AlignLeft,
                scene.twin->measured->trace().origin == Origin::Measured
                    ? QCoreApplication::translate("foreshard::TimelineView", "measured")
                    : QCoreApplication::translate("foreshard::TimelineView", "B", "the second of two results"));
    if (split && boxes.front().height >= kLeastLabelHeight)
      lane_name(boxes.front(), Qt::AlignRight, QCoreApplication::translate("foreshard::TimelineView", "mean"));
    if (split) lane_name(*worst, Qt::AlignRight, QCoreApplication::translate("foreshard::TimelineView", "worst rank"));
    if (row.pinned) painter.fillRect(QRectF(0, top, 3, row.height - 1), scene.theme.accent);
    if (box.center().y() - metrics.height() / 2 < free_from) continue;
    free_from = box.center().y() + metrics.height() / 2;
    paint_name(painter, scene.theme, row, box, notes_fit && !split);
  }
  paint_group_above(painter, scene, notes_fit);
  painter.restore();
  painter.setPen(scene.theme.rule);
  painter.drawLine(kHeaderWidth - 1, lanes.top(), kHeaderWidth - 1, lanes.bottom());
}

// The share of the visible time in which the compute streams are busy.
void paint_gutter(QPainter& painter, const TimelineScene& scene, int right) {
  const QRect& lanes = scene.lanes;
  const int left = lanes.right() + 1;
  painter.fillRect(QRect(left, lanes.top(), kGutterWidth, lanes.height()), scene.theme.panel);
  painter.save();
  painter.setClipRect(QRect(left, lanes.top(), kGutterWidth, lanes.height()));
  TimeRange visible = scene.axis.visible();
  visible.end = std::max(std::min(visible.end, scene.document->trace().makespan), visible.begin + Nanoseconds{1});
  const QFontMetricsF metrics(painter.font());
  double free_from = -1e9;
  for (const Row& row : scene.rows) {
    const int top = lanes.top() + row.top - scene.scroll;
    if (top + row.height < lanes.top()) continue;
    if (top > lanes.bottom()) break;
    double busy = 0, ranks = 0;
    for (const RowMember& member : row.members) {
      ranks += member.ranks;
      if (const Lane* lane = scene.document->lanes.find(member.who, LaneKind::Compute))
        busy += member.ranks * static_cast<double>(lane->busy_until(visible.end.value) - lane->busy_until(visible.begin.value));
    }
    const double share = ranks > 0 ? busy / ranks / static_cast<double>(visible.length().value) : 0;
    const QRectF bar(left + 6, top + row.height / 2.0 - 3.5, 22, std::min(7, std::max(row.height - 1, 1)));
    painter.fillRect(bar, scene.theme.raised);
    painter.fillRect(QRectF(bar.left(), bar.top(), bar.width() * share, bar.height()), scene.theme.of(Cell::Forward));
    const double tall = std::max(row.height - 1.0, metrics.height());
    const QRectF words(left, top + (row.height - 1 - tall) / 2, right, tall);
    if (words.center().y() - metrics.height() / 2 < free_from) continue;
    free_from = words.center().y() + metrics.height() / 2;
    painter.setPen(scene.theme.text);
    painter.drawText(words, Qt::AlignRight | Qt::AlignVCenter,
                     QString::number(share * 100, 'f', share < 0.9995 ? 1 : 0) + " %");
  }
  painter.restore();
  painter.setPen(scene.theme.rule);
  painter.drawLine(left, lanes.top(), left, lanes.bottom());
}

}  // namespace foreshard
