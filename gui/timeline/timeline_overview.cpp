// The strip of the whole run above the ruler, with the visible stretch framed.
#include <QCoreApplication>
#include <algorithm>
#include <cmath>

#include "gui/document/words.h"
#include "gui/timeline/timeline_paint.h"

namespace foreshard {

// Maps the whole extent of the axis, not the visible range, to the width of the lanes.
static double overview_x(const TimelineScene& scene, Nanoseconds when) {
  const TimeRange whole = scene.axis.extent();
  return scene.lanes.left() +
         static_cast<double>((when - whole.begin).value) * scene.lanes.width() / static_cast<double>(whole.length().value);
}

TimeRange range_around(const TimelineScene& scene, double x) {
  const TimeRange whole = scene.axis.extent(), seen = scene.axis.visible();
  const double share = std::clamp((x - scene.lanes.left()) / scene.lanes.width(), 0.0, 1.0);
  const std::int64_t middle = whole.begin.value + static_cast<std::int64_t>(share * static_cast<double>(whole.length().value));
  const std::int64_t half = seen.length().value / 2;
  return {{middle - half}, {middle - half + seen.length().value}};
}

void paint_overview(QPainter& painter, const TimelineScene& scene, const std::vector<float>* busy) {
  if (scene.overview == 0) return;
  const QRect& lanes = scene.lanes;
  const QRectF strip(lanes.left(), 3, lanes.width(), kOverview - 5);
  painter.fillRect(QRect(0, 0, scene.size.width(), kOverview), scene.theme.panel);
  painter.fillRect(strip, scene.theme.bubble);
  painter.setPen(scene.theme.faint);
  painter.drawText(QRect(10, 0, kHeaderWidth - 16, kOverview), Qt::AlignLeft | Qt::AlignVCenter,
                   QCoreApplication::translate("foreshard::TimelineView", "whole run"));
  painter.drawText(QRect(lanes.right() + 1, 0, kGutterWidth - 8, kOverview), Qt::AlignRight | Qt::AlignVCenter,
                   percent_words(1 - scene.document->summary.bubble.fraction));
  if (busy && !busy->empty()) {
    const double end = overview_x(scene, scene.document->trace().makespan) - strip.left();
    const auto bins = static_cast<double>(busy->size());
    for (int x = 0; x < static_cast<int>(std::min(end, strip.width())); ++x) {
      const auto first = static_cast<std::size_t>(x * bins / std::max(end, 1.0));
      const auto last = std::clamp(static_cast<std::size_t>((x + 1) * bins / std::max(end, 1.0)), first + 1, busy->size());
      double mean = 0;
      for (std::size_t b = first; b < last; ++b) mean += static_cast<double>((*busy)[b]);
      mean /= static_cast<double>(last - first);
      painter.fillRect(QRectF(strip.left() + x, strip.bottom() - mean * strip.height(), 1, mean * strip.height()),
                       scene.theme.of(Cell::Forward));
    }
  }
  const double from = std::max(overview_x(scene, scene.axis.visible().begin), strip.left()),
               to = std::min(overview_x(scene, scene.axis.visible().end), strip.right());
  QColor shade = scene.theme.panel;
  shade.setAlpha(165);
  painter.fillRect(QRectF(strip.left(), strip.top(), from - strip.left(), strip.height()), shade);
  painter.fillRect(QRectF(to, strip.top(), strip.right() - to, strip.height()), shade);
  painter.setBrush(Qt::NoBrush);
  painter.setPen(QPen(scene.theme.accent, 1.4));
  painter.drawRect(QRectF(from, strip.top() - 1, std::max(to - from, 2.0), strip.height() + 1));
}

}  // namespace foreshard
