// TimelineView: painting. The frame without text is kept until something in it changes; words, marks and the cursor go on top.
#include <QPainter>
#include <QPainterPath>
#include <algorithm>
#include <cmath>

#include "gui/timeline_view.h"
#include "gui/words.h"
#include "report/span_words.h"

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
      painter.setPen(theme_.of(label.cause));
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
  const double per_pixel = static_cast<double>(visible.length().value) / lanes.width();
  const Nanoseconds step = nice_step(per_pixel * 110), small = {std::max<std::int64_t>(step.value / 5, 1)};
  painter.setPen(theme_.rule);
  painter.drawLine(0, strip.bottom(), width(), strip.bottom());
  for (std::int64_t t = (visible.begin.value / small.value) * small.value; t <= visible.end.value; t += small.value) {
    const double x = x_of({t});
    if (x < lanes.left() - 0.5 || x > lanes.right() + 1) continue;
    const bool major = t % step.value == 0;
    painter.setPen(major ? theme_.faint : theme_.rule);
    painter.drawLine(QPointF(x, strip.bottom() - (major ? 7 : 3)), QPointF(x, strip.bottom()));
    if (!major) continue;
    if (x + 60 > lanes.right()) continue;
    painter.setPen(theme_.text);
    painter.drawText(QRectF(x + 4, strip.top(), 120, strip.height() - 5), Qt::AlignLeft | Qt::AlignVCenter,
                     tick_text({t}, step));
  }
  painter.fillRect(QRect(0, strip.top(), kHeaderWidth, strip.height() - 1), theme_.panel);
  painter.fillRect(QRect(lanes.right() + 1, strip.top(), kGutterWidth, strip.height() - 1), theme_.panel);
  painter.setPen(theme_.faint);
  painter.drawText(QRect(10, strip.top(), kHeaderWidth - 16, strip.height() - 2), Qt::AlignLeft | Qt::AlignVCenter,
                   time_text(visible.length()) + " " + tr("shown"));
  painter.drawText(QRect(lanes.right() + 1, strip.top(), kGutterWidth - 8, strip.height() - 2),
                   Qt::AlignRight | Qt::AlignVCenter, tr("busy"));
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

void TimelineView::paint_headers(QPainter& painter) const {
  const QRect lanes = lanes_rect();
  painter.fillRect(QRect(0, lanes.top(), kHeaderWidth, lanes.height()), theme_.panel);
  painter.save();
  painter.setClipRect(QRect(0, lanes.top(), kHeaderWidth, lanes.height()));
  painter.setRenderHint(QPainter::Antialiasing);
  const QFontMetricsF metrics(painter.font());
  double free_from = -1e9;  // rows lower than their words leave some out
  for (const Row& row : rows_) {
    const double top = lanes.top() + row.top - scroll_;
    if (top + row.height < lanes.top()) continue;
    if (top > lanes.bottom()) break;
    const std::vector<LaneBox> boxes = lane_boxes(row, twin_ != nullptr);
    const bool twin = boxes.back().kind == BoxKind::Measured && boxes.back().height >= metrics.height() - 3;
    const double own = twin ? boxes.back().top - 4 : row.height - 1;  // of the row without its twin
    const double tall = std::max(own, metrics.height());
    const QRectF box(0, top + (own - tall) / 2, kHeaderWidth - 6, tall);
    if (twin) {
      painter.setPen(theme_.faint);
      painter.drawText(QRectF(34, top + boxes.back().top, kHeaderWidth - 40, boxes.back().height),
                       Qt::AlignLeft | Qt::AlignVCenter,
                       twin_->measured->trace().origin == Origin::Measured ? tr("measured") : tr("the other"));
    }
    const bool is_rank = row.key.rank.valid();
    if (row.pinned) painter.fillRect(QRectF(0, top, 3, row.height - 1), theme_.accent);
    if (box.center().y() - metrics.height() / 2 < free_from) continue;
    free_from = box.center().y() + metrics.height() / 2;
    if (row.openable) paint_triangle(painter, {13, box.center().y()}, row.open, theme_.faint);
    painter.setPen(is_rank ? theme_.faint : theme_.text);
    const QRectF words = box.adjusted(is_rank ? 34 : 23, 0, 0, 0);
    painter.drawText(words, Qt::AlignLeft | Qt::AlignVCenter, metrics.elidedText(row.title, Qt::ElideRight, words.width()));
    if (metrics.horizontalAdvance(row.title) + metrics.horizontalAdvance(row.note) + 14 > words.width()) continue;
    painter.setPen(theme_.faint);
    painter.drawText(words, Qt::AlignRight | Qt::AlignVCenter, row.note);
  }
  painter.restore();
  painter.setPen(theme_.rule);
  painter.drawLine(kHeaderWidth - 1, lanes.top(), kHeaderWidth - 1, lanes.bottom());
}

// The share of the visible time in which the compute streams are busy.
void TimelineView::paint_gutter(QPainter& painter) const {
  const QRect lanes = lanes_rect();
  const int left = lanes.right() + 1;
  painter.fillRect(QRect(left, lanes.top(), kGutterWidth, lanes.height()), theme_.panel);
  painter.save();
  painter.setClipRect(QRect(left, lanes.top(), kGutterWidth, lanes.height()));
  TimeRange visible = axis_.visible();
  visible.end = std::max(std::min(visible.end, document_->trace().makespan), visible.begin + Nanoseconds{1});
  const QFontMetricsF metrics(painter.font());
  double free_from = -1e9;
  for (const Row& row : rows_) {
    const int top = lanes.top() + row.top - scroll_;
    if (top + row.height < lanes.top()) continue;
    if (top > lanes.bottom()) break;
    double busy = 0, ranks = 0;
    for (const RowMember& member : row.members) {
      ranks += member.ranks;
      if (const Lane* lane = document_->lanes.find(member.who, LaneKind::Compute))
        busy += member.ranks * static_cast<double>(lane->busy_until(visible.end.value) - lane->busy_until(visible.begin.value));
    }
    const double share = ranks > 0 ? busy / ranks / static_cast<double>(visible.length().value) : 0;
    const QRectF bar(left + 7, top + row.height / 2.0 - 3.5, 26, std::min(7, std::max(row.height - 1, 1)));
    painter.fillRect(bar, theme_.raised);
    painter.fillRect(QRectF(bar.left(), bar.top(), bar.width() * share, bar.height()), theme_.of(Cell::Forward));
    const double tall = std::max(row.height - 1.0, metrics.height());
    const QRectF words(left, top + (row.height - 1 - tall) / 2, kGutterWidth - 8, tall);
    if (words.center().y() - metrics.height() / 2 < free_from) continue;
    free_from = words.center().y() + metrics.height() / 2;
    painter.setPen(theme_.text);
    painter.drawText(words, Qt::AlignRight | Qt::AlignVCenter,
                     QString::number(share * 100, 'f', share < 0.9995 ? 1 : 0) + " %");
  }
  painter.restore();
  painter.setPen(theme_.rule);
  painter.drawLine(left, lanes.top(), left, lanes.bottom());
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

void TimelineView::paint_arrows(QPainter& painter) const {
  const std::vector<ChainHop> hops = binding_hops(*document_, selection_.picked(), arrows_);
  painter.setRenderHint(QPainter::Antialiasing);
  const bool fades = arrows_ != Arrows::Critical;
  QPointF drawn(-1e9, -1e9);
  for (std::size_t h = 0; h < hops.size(); ++h) {
    const QPointF from = anchor_of(hops[h].from, true), to = anchor_of(hops[h].to, false);
    if (from.y() < 0 || to.y() < 0 || to.x() < -200 || from.x() > width() + 200) continue;
    const int row = row_of(document_->trace().spans[static_cast<std::size_t>(hops[h].to)].who);
    const bool mean = row >= 0 && rows_[static_cast<std::size_t>(row)].members.size() > 1;
    if (mean && row == row_of(document_->trace().spans[static_cast<std::size_t>(hops[h].from)].who)) continue;
    if ((to - drawn).manhattanLength() < 2 && (to - from).manhattanLength() < 2) continue;
    drawn = to;
    const int alpha = fades ? std::max(235 - static_cast<int>(h) * 3, 70) : 190;
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
