// Time marks above the rows, the bookmarks on them, the selected range and the cursor.
#include <QCoreApplication>
#include <algorithm>
#include <cmath>

#include "gui/document/words.h"
#include "gui/timeline/timeline_paint.h"

namespace foreshard {

QRectF flag_box(const TimelineScene& scene, const RulerFlag& flag) {
  const double x = scene.x_of(flag.when);
  if (x < scene.lanes.left() - 0.5 || x > scene.lanes.right() + 1) return {};
  return {x, scene.lanes.top() - 18.0, 11, 17};
}

static void paint_flags(QPainter& painter, const TimelineScene& scene, const std::vector<RulerFlag>& flags) {
  for (const RulerFlag& flag : flags) {
    const QRectF box = flag_box(scene, flag);
    if (box.isEmpty()) continue;
    painter.fillRect(QRectF(box.left() - 0.5, box.top(), 1.4, box.height()), scene.theme.accent);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(Qt::NoPen);
    painter.setBrush(scene.theme.accent);
    const QPointF top = box.topLeft();
    if (flag.key.isEmpty()) {
      painter.drawPolygon(QPolygonF({top, top + QPointF(9, 4), top + QPointF(0, 8)}));
    } else {
      painter.drawRect(QRectF(top, QSizeF(11, 11)));
      painter.setPen(scene.theme.label_on(scene.theme.accent));
      painter.drawText(QRectF(top, QSizeF(11, 11)), Qt::AlignCenter, flag.key);
    }
    painter.setRenderHint(QPainter::Antialiasing, false);
  }
}

void paint_ruler(QPainter& painter, const TimelineScene& scene, const std::vector<RulerFlag>& flags) {
  const QRect& lanes = scene.lanes;
  const QRect strip(0, scene.overview, scene.size.width(), lanes.top() - scene.overview);
  painter.fillRect(strip, scene.theme.panel);
  const TimeRange visible = scene.axis.visible();
  painter.setPen(scene.theme.rule);
  painter.drawLine(0, strip.bottom(), scene.size.width(), strip.bottom());
  const QFontMetricsF metrics(painter.font());
  const auto width_of = [&](const QString& text) { return metrics.horizontalAdvance(text); };
  for (const RulerMark& mark : ruler_marks(visible, lanes.width(), width_of)) {
    const double x = lanes.left() + mark.x;
    painter.setPen(mark.major ? scene.theme.faint : scene.theme.rule);
    painter.drawLine(QPointF(x, strip.bottom() - (mark.major ? 7 : 3)), QPointF(x, strip.bottom()));
    painter.setPen(scene.theme.text);
    painter.drawText(QRectF(lanes.left() + mark.text_x, strip.top(), 160, strip.height() - 5), Qt::AlignLeft | Qt::AlignVCenter,
                     mark.text);
  }
  paint_flags(painter, scene, flags);
  painter.fillRect(QRect(0, strip.top(), kHeaderWidth, strip.height() - 1), scene.theme.panel);
  painter.fillRect(QRect(lanes.right() + 1, strip.top(), kGutterWidth, strip.height() - 1), scene.theme.panel);
  painter.setPen(scene.theme.faint);
  painter.drawText(QRect(10, strip.top(), kHeaderWidth - 16, strip.height() - 2), Qt::AlignLeft | Qt::AlignVCenter,
                   time_text(visible.length()) + " " + QCoreApplication::translate("foreshard::TimelineView", "shown"));
  painter.drawText(QRect(lanes.right() + 1, strip.top(), kGutterWidth - 8, strip.height() - 2),
                   Qt::AlignRight | Qt::AlignVCenter, QCoreApplication::translate("foreshard::TimelineView", "busy"));
}

void paint_range_and_cursor(QPainter& painter, const TimelineScene& scene) {
  const QRect& lanes = scene.lanes;
  const QFontMetricsF metrics(painter.font());
  const auto plate = [&](double x, const QString& words) {
    const double w = metrics.horizontalAdvance(words) + 12;
    const QRectF box(std::clamp(x - w / 2, lanes.left() * 1.0, std::max(lanes.right() - w, lanes.left() * 1.0)),
                     scene.overview + 3, w, 19);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(Qt::NoPen);
    painter.setBrush(scene.theme.accent);
    painter.drawRoundedRect(box, 4, 4);
    painter.setPen(scene.theme.label_on(scene.theme.accent));
    painter.drawText(box, Qt::AlignCenter, words);
    painter.setRenderHint(QPainter::Antialiasing, false);
  };
  if (const auto selected = scene.axis.selected()) {
    const double from = std::max(scene.x_of(selected->begin), lanes.left() * 1.0);
    const double to = std::min(scene.x_of(selected->end), lanes.right() + 1.0);
    if (from <= to) {
      const QColor shade = with_alpha(scene.theme.background, 130);
      painter.fillRect(QRectF(lanes.left(), lanes.top(), from - lanes.left(), lanes.height()), shade);
      painter.fillRect(QRectF(to, lanes.top(), lanes.right() + 1 - to, lanes.height()), shade);
      painter.setPen(QPen(scene.theme.accent, 1));
      painter.drawLine(QPointF(from, lanes.top()), QPointF(from, lanes.bottom()));
      painter.drawLine(QPointF(to, lanes.top()), QPointF(to, lanes.bottom()));
      plate((from + to) / 2, time_text(selected->length()));
    }
  }
  if (const auto cursor = scene.axis.cursor()) {
    const double x = std::round(scene.x_of(*cursor));
    if (x < lanes.left() || x > lanes.right()) return;
    painter.setPen(with_alpha(scene.theme.cursor, 170));
    painter.drawLine(QPointF(x, lanes.top()), QPointF(x, lanes.bottom()));
    if (!scene.axis.selected())
      plate(x, tick_text(*cursor, nice_step(static_cast<double>(scene.axis.visible().length().value) / lanes.width())));
  }
}

}  // namespace foreshard
