// TimelineView: painting. The frame without text is kept until something in it changes; words, marks and the cursor go on top.
#include <QPainter>
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

static QFont small_font(const QFont& font, double scale) {
  QFont small = font;
  small.setPointSizeF(std::max(font.pointSizeF() * scale, 6.0));
  return small;
}

// More than can be drawn within a frame wait for their levels of detail, a tenth of a second.
static constexpr std::size_t kSlicesAtOnce = 300'000;

static std::size_t slices_of(const Document& document) {
  std::size_t slices = 0;
  for (const Lane& lane : document.lanes.all) slices += lane.size();
  return slices;
}

void TimelineView::refresh_frame() {
  const FrameView view = frame_view();
  if (!stale_ && view == frame_of_) return;
  if (!levels_ && making_.isRunning() && slices_of(*document_) > kSlicesAtOnce) return;
  const FrameSources sources = {document_.get(), levels_ ? &levels_->lanes : nullptr, twin_.get(), theme_, paints_};
  frame_ = draw_frame(sources, rows_, view);
  frame_of_ = view;
  stale_ = false;
  if (frame_.isNull()) return;
  QPainter painter(&frame_);
  painter.setFont(small_font(font(), 0.82));
  paint_labels(painter);
}

void TimelineView::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), theme_.background);
  if (!document_) {
    painter.setPen(theme_.faint);
    painter.drawText(rect(), Qt::AlignCenter, tr("Nothing to show yet: simulate a strategy or open a result"));
    return;
  }
  refresh_frame();
  painter.drawImage(lanes_rect().topLeft(), frame_);
  painter.setFont(small_font(font(), 0.88));
  painter.save();
  painter.setClipRect(lanes_rect());
  paint_arrows(painter);
  paint_picked(painter);
  painter.restore();
  paint_headers(painter);
  paint_gutter(painter);
  paint_ruler(painter);
  paint_overview(painter);
  if (legend_) paint_legend(painter);
  paint_range_and_cursor(painter);
}

void TimelineView::paint_labels(QPainter& painter) const {
  const QFontMetricsF metrics(painter.font());
  const auto width_of = [&](const QString& text) { return metrics.horizontalAdvance(text); };
  for (const FrameLabel& label : frame_labels(*document_, rows_, twin_.get(), frame_of_, width_of)) {
    if (label.bubble ? paints_.hidden.has(label.cause) : paints_.hidden.has(label.under.paint)) continue;
    if (label.bubble) {
      const double width = metrics.horizontalAdvance(label.text) + 10,
                   height = std::min(label.box.height() - 2, metrics.height());
      const QRectF plate(label.box.center().x() - width / 2, label.box.center().y() - height / 2, width, height);
      painter.setPen(Qt::NoPen);
      painter.setBrush(with_alpha(theme_.background, 215));
      painter.drawRoundedRect(plate, 3, 3);
      painter.setPen(theme_.name == ThemeName::HighContrast ? theme_.text : theme_.of(label.cause));
    } else {
      painter.setPen(theme_.label_on(QColor::fromRgb(paints_.of(label.under))));
    }
    painter.drawText(label.box, Qt::AlignCenter, label.text);
  }
}

void TimelineView::paint_ruler(QPainter& painter) const {
  const QRect lanes = lanes_rect();
  const QRect strip(0, overview_height(), width(), lanes.top() - overview_height());
  painter.fillRect(strip, theme_.panel);
  const TimeRange visible = axis_.visible();
  painter.setPen(theme_.rule);
  painter.drawLine(0, strip.bottom(), width(), strip.bottom());
  const QFontMetricsF metrics(painter.font());
  const auto width_of = [&](const QString& text) { return metrics.horizontalAdvance(text); };
  for (const RulerMark& mark : ruler_marks(visible, lanes.width(), width_of)) {
    const double x = lanes.left() + mark.x;
    painter.setPen(mark.major ? theme_.faint : theme_.rule);
    painter.drawLine(QPointF(x, strip.bottom() - (mark.major ? 7 : 3)), QPointF(x, strip.bottom()));
    painter.setPen(theme_.text);
    painter.drawText(QRectF(lanes.left() + mark.text_x, strip.top(), 160, strip.height() - 5), Qt::AlignLeft | Qt::AlignVCenter,
                     mark.text);
  }
  paint_flags(painter);
  painter.fillRect(QRect(0, strip.top(), kHeaderWidth, strip.height() - 1), theme_.panel);
  painter.fillRect(QRect(lanes.right() + 1, strip.top(), kGutterWidth, strip.height() - 1), theme_.panel);
  painter.setPen(theme_.faint);
  painter.drawText(QRect(10, strip.top(), kHeaderWidth - 16, strip.height() - 2), Qt::AlignLeft | Qt::AlignVCenter,
                   time_text(visible.length()) + " " + tr("shown"));
  painter.drawText(QRect(lanes.right() + 1, strip.top(), kGutterWidth - 8, strip.height() - 2),
                   Qt::AlignRight | Qt::AlignVCenter, tr("busy"));
}

void TimelineView::paint_picked(QPainter& painter) const {
  const QRectF place = place_of(selection_.picked());
  if (place.isEmpty()) return;
  painter.setBrush(Qt::NoBrush);
  painter.setPen(QPen(theme_.background, 4));
  painter.drawRect(place.adjusted(-1, 0, 1, -1));
  painter.setPen(QPen(theme_.accent, 2));
  painter.drawRect(place.adjusted(-1, 0, 1, -1));
}

void TimelineView::paint_range_and_cursor(QPainter& painter) const {
  const QRect lanes = lanes_rect();
  const QFontMetricsF metrics(painter.font());
  const auto plate = [&](double x, const QString& words) {
    const double w = metrics.horizontalAdvance(words) + 12;
    const QRectF box(std::clamp(x - w / 2, lanes.left() * 1.0, std::max(lanes.right() - w, lanes.left() * 1.0)),
                     overview_height() + 3, w, 19);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(Qt::NoPen);
    painter.setBrush(theme_.accent);
    painter.drawRoundedRect(box, 4, 4);
    painter.setPen(theme_.label_on(theme_.accent));
    painter.drawText(box, Qt::AlignCenter, words);
    painter.setRenderHint(QPainter::Antialiasing, false);
  };
  if (const auto selected = axis_.selected()) {
    const double from = std::max(x_of(selected->begin), lanes.left() * 1.0);
    const double to = std::min(x_of(selected->end), lanes.right() + 1.0);
    if (from <= to) {
      const QColor shade = with_alpha(theme_.background, 130);
      painter.fillRect(QRectF(lanes.left(), lanes.top(), from - lanes.left(), lanes.height()), shade);
      painter.fillRect(QRectF(to, lanes.top(), lanes.right() + 1 - to, lanes.height()), shade);
      painter.setPen(QPen(theme_.accent, 1));
      painter.drawLine(QPointF(from, lanes.top()), QPointF(from, lanes.bottom()));
      painter.drawLine(QPointF(to, lanes.top()), QPointF(to, lanes.bottom()));
      plate((from + to) / 2, time_text(selected->length()));
    }
  }
  if (const auto cursor = axis_.cursor()) {
    const double x = std::round(x_of(*cursor));
    if (x < lanes.left() || x > lanes.right()) return;
    painter.setPen(with_alpha(theme_.cursor, 170));
    painter.drawLine(QPointF(x, lanes.top()), QPointF(x, lanes.bottom()));
    if (!axis_.selected())
      plate(x, tick_text(*cursor, nice_step(static_cast<double>(axis_.visible().length().value) / lanes.width())));
  }
}

}  // namespace foreshard
