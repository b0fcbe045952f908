// TimelineView: the arrows of the binding chain, and the critical path of the run.
#include <QPainter>
#include <QPainterPath>
#include <algorithm>
#include <cmath>

#include "gui/document/words.h"
#include "gui/timeline/timeline_view.h"
#include "report/words/span_words.h"

namespace foreshard {

static QColor with_alpha(QColor colour, int alpha) {
  colour.setAlpha(alpha);
  return colour;
}

QPointF TimelineView::anchor_of(std::int32_t span, bool at_end) const {
  const Span& of = document_->trace().spans[static_cast<std::size_t>(span)];
  const int index = row_of(of.who);
  if (index < 0) return {-1, -1};
  const Row& row = rows_[static_cast<std::size_t>(index)];
  const StreamKind stream = role_of(document_->plan(), document_->trace(), of.who).streams[of.stream.index()].kind;
  const BoxKind wanted = stream == StreamKind::Compute ? BoxKind::Compute : BoxKind::Communication;
  double y = row.height / 2.0;
  for (const LaneBox& box : lane_boxes(row, twin_ != nullptr))
    if (box.kind == wanted) y = box.top + box.height / 2.0;
  return {x_of(at_end ? of.end : of.begin), lanes_rect().top() + row.top - scroll_ + y};
}

// The path lies in the row that it goes through and steps down or up to the next one.
void TimelineView::paint_critical(QPainter& painter) const {
  const Nanoseconds pixel = {std::max<std::int64_t>(axis_.visible().length().value / lanes_rect().width(), 1)};
  QPainterPath path;
  for (const PathStretch& stretch : critical_stretches(*document_, axis_.visible(), pixel * 2)) {
    const int index = row_of(stretch.who);
    if (index < 0) continue;
    const Row& row = rows_[static_cast<std::size_t>(index)];
    const double y =
        lanes_rect().top() + row.top - scroll_ + lane_boxes(row, twin_ != nullptr).front().height - 2.5;  // below the words
    const QPointF from(x_of(stretch.begin), y), to(x_of(stretch.end), y);
    if (path.isEmpty())
      path.moveTo(from);
    else
      path.lineTo(from);
    path.lineTo(to);
  }
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setBrush(Qt::NoBrush);
  painter.setPen(QPen(with_alpha(theme_.background, 200), 4.6, Qt::SolidLine, Qt::FlatCap, Qt::RoundJoin));
  painter.drawPath(path);
  painter.setPen(QPen(theme_.accent, 2, Qt::SolidLine, Qt::FlatCap, Qt::RoundJoin));
  painter.drawPath(path);
  const QString words = critical_words();
  const QFontMetricsF metrics(painter.font());
  const QRectF plate(lanes_rect().left() + 8, lanes_rect().top() + 6, metrics.horizontalAdvance(words) + 16,
                     metrics.height() + 6);
  painter.setPen(QPen(theme_.accent, 1));
  painter.setBrush(with_alpha(theme_.panel, 235));
  painter.drawRoundedRect(plate, 4, 4);
  painter.setPen(theme_.text);
  painter.drawText(plate, Qt::AlignCenter, words);
  painter.setRenderHint(QPainter::Antialiasing, false);
}

QString TimelineView::critical_words() const {
  if (!document_ || document_->critical.empty()) return tr("critical path: none");
  const PathTimes& times = document_->critical_times;
  QStringList parts;
  for (std::size_t k = 0; k < kPathKinds; ++k)
    if (times[k] > Nanoseconds{})
      parts << percent_words(static_cast<double>(times[k].value) / static_cast<double>(document_->trace().makespan.value)) +
                   " " + path_words(static_cast<PathKind>(k));
  return tr("critical path: %1").arg(parts.join(", "));
}

void TimelineView::paint_arrows(QPainter& painter) const {
  if (arrows_ == Arrows::Critical) return paint_critical(painter);
  const std::vector<ChainHop> hops = binding_hops(*document_, selection_.picked(), arrows_);
  painter.setRenderHint(QPainter::Antialiasing);
  QPointF drawn(-1e9, -1e9);
  for (std::size_t h = 0; h < hops.size(); ++h) {
    const QPointF from = anchor_of(hops[h].from, true), to = anchor_of(hops[h].to, false);
    if (from.y() < 0 || to.y() < 0 || to.x() < -200 || from.x() > width() + 200) continue;
    const int row = row_of(document_->trace().spans[static_cast<std::size_t>(hops[h].to)].who);
    const bool mean = row >= 0 && rows_[static_cast<std::size_t>(row)].members.size() > 1;
    if (mean && row == row_of(document_->trace().spans[static_cast<std::size_t>(hops[h].from)].who)) continue;
    if ((to - drawn).manhattanLength() < 2 && (to - from).manhattanLength() < 2) continue;
    drawn = to;
    const int alpha = std::max(235 - static_cast<int>(h) * 3, 70);
    painter.setPen(QPen(with_alpha(theme_.background, alpha), 4.2));
    QPainterPath path(from);
    const double bend = std::min(std::abs(to.y() - from.y()) * 0.5, 26.0);
    path.cubicTo(from + QPointF(bend, 0), to - QPointF(bend, 0), to);
    painter.setBrush(Qt::NoBrush);
    painter.drawPath(path);
    painter.setPen(QPen(with_alpha(theme_.accent, alpha), 1.8));
    painter.drawPath(path);
    if (std::abs(to.y() - from.y()) < 3) continue;
    painter.setPen(Qt::NoPen);
    painter.setBrush(with_alpha(theme_.accent, alpha));
    painter.drawPolygon(QPolygonF({to, to + QPointF(-6, -3), to + QPointF(-6, 3)}));
  }
  painter.setRenderHint(QPainter::Antialiasing, false);
}

}  // namespace foreshard
