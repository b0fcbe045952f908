// The arrows of the binding chain, and the critical path of the run.
#include <QCoreApplication>
#include <QPainterPath>
#include <algorithm>
#include <cmath>

#include "gui/document/words.h"
#include "gui/timeline/timeline_paint.h"

namespace foreshard {

QColor with_alpha(QColor colour, int alpha) {
  colour.setAlpha(alpha);
  return colour;
}

// Draws the path as a line along the row that it runs through, with vertical steps between rows.
static void paint_critical(QPainter& painter, const TimelineScene& scene) {
  const Nanoseconds pixel = {std::max<std::int64_t>(scene.axis.visible().length().value / scene.lanes.width(), 1)};
  QPainterPath path;
  for (const PathStretch& stretch : critical_stretches(*scene.document, scene.axis.visible(), pixel * 2)) {
    const int index = scene.row_of(stretch.who);
    if (index < 0) continue;
    const Row& row = scene.rows[static_cast<std::size_t>(index)];
    const double y = scene.lanes.top() + row.top - scene.scroll + lane_boxes(row, scene.twin != nullptr).front().height -
                     2.5;  // below the words
    const QPointF from(scene.x_of(stretch.begin), y), to(scene.x_of(stretch.end), y);
    if (path.isEmpty())
      path.moveTo(from);
    else
      path.lineTo(from);
    path.lineTo(to);
  }
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setBrush(Qt::NoBrush);
  painter.setPen(QPen(with_alpha(scene.theme.background, 200), 4.6, Qt::SolidLine, Qt::FlatCap, Qt::RoundJoin));
  painter.drawPath(path);
  painter.setPen(QPen(scene.theme.accent, 2, Qt::SolidLine, Qt::FlatCap, Qt::RoundJoin));
  painter.drawPath(path);
  const QString words = critical_words(scene.document.get());
  const QFontMetricsF metrics(painter.font());
  const QRectF plate(scene.lanes.left() + 8, scene.lanes.top() + 6, metrics.horizontalAdvance(words) + 16,
                     metrics.height() + 6);
  painter.setPen(QPen(scene.theme.accent, 1));
  painter.setBrush(with_alpha(scene.theme.panel, 235));
  painter.drawRoundedRect(plate, 4, 4);
  painter.setPen(scene.theme.text);
  painter.drawText(plate, Qt::AlignCenter, words);
  painter.setRenderHint(QPainter::Antialiasing, false);
}

QString critical_words(const Document* document) {
  if (!document || document->critical.empty())
    return QCoreApplication::translate("foreshard::TimelineView", "critical path: none");
  const PathTimes& times = document->critical_times;
  QStringList parts;
  for (std::size_t k = 0; k < kPathKinds; ++k)
    if (times[k] > Nanoseconds{})
      parts << percent_words(static_cast<double>(times[k].value) / static_cast<double>(document->trace().makespan.value)) +
                   " " + path_words(static_cast<PathKind>(k));
  return QCoreApplication::translate("foreshard::TimelineView", "critical path: %1").arg(parts.join(", "));
}

void paint_arrows(QPainter& painter, const TimelineScene& scene, Picked picked, Arrows arrows) {
  if (arrows == Arrows::Critical) return paint_critical(painter, scene);
  const std::vector<ChainHop> hops = binding_hops(*scene.document, picked, arrows);
  painter.setRenderHint(QPainter::Antialiasing);
  QPointF drawn(-1e9, -1e9);
  for (std::size_t h = 0; h < hops.size(); ++h) {
    const QPointF from = scene.anchor_of(hops[h].from, true), to = scene.anchor_of(hops[h].to, false);
    if (from.y() < 0 || to.y() < 0 || to.x() < -200 || from.x() > scene.size.width() + 200) continue;
    const int row = scene.row_of(scene.document->trace().spans[static_cast<std::size_t>(hops[h].to)].who);
    const bool mean = row >= 0 && scene.rows[static_cast<std::size_t>(row)].members.size() > 1;
    if (mean && row == scene.row_of(scene.document->trace().spans[static_cast<std::size_t>(hops[h].from)].who)) continue;
    if ((to - drawn).manhattanLength() < 2 && (to - from).manhattanLength() < 2) continue;
    drawn = to;
    const int alpha = std::max(235 - static_cast<int>(h) * 3, 70);
    painter.setPen(QPen(with_alpha(scene.theme.background, alpha), 4.2));
    QPainterPath path(from);
    const double bend = std::min(std::abs(to.y() - from.y()) * 0.5, 26.0);
    path.cubicTo(from + QPointF(bend, 0), to - QPointF(bend, 0), to);
    painter.setBrush(Qt::NoBrush);
    painter.drawPath(path);
    painter.setPen(QPen(with_alpha(scene.theme.accent, alpha), 1.8));
    painter.drawPath(path);
    if (std::abs(to.y() - from.y()) < 3) continue;
    painter.setPen(Qt::NoPen);
    painter.setBrush(with_alpha(scene.theme.accent, alpha));
    painter.drawPolygon(QPolygonF({to, to + QPointF(-6, -3), to + QPointF(-6, 3)}));
  }
  painter.setRenderHint(QPainter::Antialiasing, false);
}

}  // namespace foreshard
