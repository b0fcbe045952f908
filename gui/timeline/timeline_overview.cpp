// TimelineView: the strip of the whole run above the ruler, with the visible stretch framed; and the legend, whose entries hide
// what they name.
#include <QMouseEvent>
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "gui/document/words.h"
#include "gui/timeline/timeline_view.h"

namespace foreshard {

static constexpr double kHiddenOpacity = 0.45;  // of a legend entry: off, and still to be read

std::vector<float> busy_by_bin(const Document& document, const Paints& paints, std::size_t bins) {
  std::vector<Sums> line(bins);
  const TimeRange whole = {{0}, std::max(document.trace().makespan, Nanoseconds{1})};
  double ranks = 0;
  for (const RankClass& c : document.trace().classes) ranks += static_cast<double>(c.members.size());
  for (const Lane& lane : document.lanes.all)
    if (lane.kind == LaneKind::Compute) {
      const double share =
          static_cast<double>(document.trace().classes[lane.who.index()].members.size()) / std::max(ranks, 1.0);
      add_slices(lane, whole, paints, static_cast<float>(share), line);
    }
  std::vector<float> busy(bins);
  for (std::size_t i = 0; i < bins; ++i) busy[i] = std::min(line[i][3], 1.0F);
  return busy;
}

int TimelineView::overview_height() const { return overview_ ? kOverview : 0; }

// The extent on the width of the lanes, whatever is visible.
double TimelineView::overview_x(Nanoseconds when) const {
  const TimeRange whole = axis_.extent();
  return lanes_rect().left() +
         static_cast<double>((when - whole.begin).value) * lanes_rect().width() / static_cast<double>(whole.length().value);
}

void TimelineView::show_around(double overview_x) {
  const TimeRange whole = axis_.extent(), seen = axis_.visible();
  const double share = std::clamp((overview_x - lanes_rect().left()) / lanes_rect().width(), 0.0, 1.0);
  const std::int64_t middle = whole.begin.value + static_cast<std::int64_t>(share * static_cast<double>(whole.length().value));
  const std::int64_t half = seen.length().value / 2;
  axis_.show({{middle - half}, {middle - half + seen.length().value}});
}

void TimelineView::paint_overview(QPainter& painter) const {
  if (!overview_) return;
  const QRect lanes = lanes_rect();
  const QRectF strip(lanes.left(), 3, lanes.width(), kOverview - 5);
  painter.fillRect(QRect(0, 0, width(), kOverview), theme_.panel);
  painter.fillRect(strip, theme_.bubble);
  painter.setPen(theme_.faint);
  painter.drawText(QRect(10, 0, kHeaderWidth - 16, kOverview), Qt::AlignLeft | Qt::AlignVCenter, tr("whole run"));
  painter.drawText(QRect(lanes.right() + 1, 0, kGutterWidth - 8, kOverview), Qt::AlignRight | Qt::AlignVCenter,
                   percent_words(1 - document_->summary.bubble_fraction));
  if (levels_ && !levels_->busy.empty()) {
    const double end = overview_x(document_->trace().makespan) - strip.left();
    const auto bins = static_cast<double>(levels_->busy.size());
    for (int x = 0; x < static_cast<int>(std::min(end, strip.width())); ++x) {
      const auto first = static_cast<std::size_t>(x * bins / std::max(end, 1.0));
      const auto last =
          std::clamp(static_cast<std::size_t>((x + 1) * bins / std::max(end, 1.0)), first + 1, levels_->busy.size());
      double mean = 0;
      for (std::size_t b = first; b < last; ++b) mean += static_cast<double>(levels_->busy[b]);
      mean /= static_cast<double>(last - first);
      painter.fillRect(QRectF(strip.left() + x, strip.bottom() - mean * strip.height(), 1, mean * strip.height()),
                       theme_.of(Cell::Forward));
    }
  }
  const double from = std::max(overview_x(axis_.visible().begin), strip.left()),
               to = std::min(overview_x(axis_.visible().end), strip.right());
  QColor shade = theme_.panel;
  shade.setAlpha(165);
  painter.fillRect(QRectF(strip.left(), strip.top(), from - strip.left(), strip.height()), shade);
  painter.fillRect(QRectF(to, strip.top(), strip.right() - to, strip.height()), shade);
  painter.setBrush(Qt::NoBrush);
  painter.setPen(QPen(theme_.accent, 1.4));
  painter.drawRect(QRectF(from, strip.top() - 1, std::max(to - from, 2.0), strip.height() + 1));
}

QRectF TimelineView::legend_box(std::size_t entry) const {
  if (!legend_ || entry >= legend_boxes_.size() || legend_boxes_[entry].isEmpty()) return {};
  return legend_boxes_[entry].translated(0, lanes_rect().bottom() + 1);
}

QRectF TimelineView::more_box() const { return legend_box(entries_.size()); }

bool TimelineView::press_legend(QMouseEvent* event) {
  if (more_box().contains(event->position())) {
    legend_open_ = true;
    lay_out();
    return true;
  }
  for (std::size_t i = 0; i < entries_.size() && legend_; ++i) {
    if (!legend_box(i).contains(event->position())) continue;
    const bool alone = event->modifiers().testFlag(Qt::ControlModifier);
    set_hidden(alone ? only(paints_.hidden, entries_[i]) : toggled(paints_.hidden, entries_[i]));
    return true;
  }
  return false;
}

void TimelineView::set_hidden(Hidden hidden) {
  if (hidden == paints_.hidden) return;
  paints_ = paints_of(theme_, hidden);
  stale_ = true;
  rebuild_levels();
  update();
  Q_EMIT hidden_changed();
}

void TimelineView::paint_legend(QPainter& painter) const {
  const int top = lanes_rect().bottom() + 1;
  painter.fillRect(QRect(0, top, width(), height() - top), theme_.panel);
  painter.setPen(theme_.rule);
  painter.drawLine(0, top, width(), top);
  const double scale = devicePixelRatioF();
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const LegendEntry& entry = entries_[i];
    const QRectF place = legend_box(i);
    if (place.isEmpty()) continue;
    const bool hidden = entry.hidden_by(paints_.hidden);
    const QRectF box(place.left(), place.center().y() - 7, entry.bubble ? 22 : 15, 14);
    painter.setOpacity(hidden ? kHiddenOpacity : 1);
    if (entry.bubble) {
      QImage sample(QSize(22, 14) * scale, QImage::Format_RGB32);
      sample.fill(theme_.bubble);
      for (int y = 0; y < sample.height(); ++y)
        for (int x = 0; x < sample.width(); ++x)
          if (on_hatch(entry.cause, x, y, scale)) sample.setPixelColor(x, y, theme_.of(entry.cause));
      sample.setDevicePixelRatio(scale);
      painter.drawImage(box.topLeft(), sample);
    } else {
      const QColor colour = QColor::fromRgb(paints_.of({entry.paint, 0, false}));
      painter.fillRect(box, colour);
      painter.setPen(theme_.label_on(colour));
      painter.drawText(box, Qt::AlignCenter, entry.letter);
    }
    if (hidden) {
      painter.setBrush(Qt::NoBrush);
      painter.setPen(theme_.text);
      painter.drawRect(box.adjusted(0, 0, -1, -1));
    }
    painter.setPen(hidden ? theme_.text : theme_.faint);
    const QRectF words = place.adjusted(entry.bubble ? 27 : 20, 0, 8, 0);
    painter.drawText(words, Qt::AlignLeft | Qt::AlignVCenter, entry.words);
    if (hidden) painter.drawLine(QPointF(words.left(), words.center().y()), QPointF(words.right() - 8, words.center().y()));
    painter.setOpacity(1);
  }
  if (const QRectF more = more_box(); !more.isEmpty()) {
    const auto seen = std::ranges::count_if(legend_boxes_, [](const QRectF& place) { return !place.isEmpty(); }) - 1;
    painter.setPen(theme_.accent);
    painter.drawText(more, Qt::AlignLeft | Qt::AlignVCenter, QString("+%1").arg(std::ssize(entries_) - seen));
  }
}

void TimelineView::describe() {
  const Picked picked = selection_.picked();
  QString words = tr("Work and idle time of every group of ranks; the table of operations holds the same in text");
  if (document_ && picked.index >= 0) words = facts_line(picked);
  setAccessibleDescription(words);
}

}  // namespace foreshard
