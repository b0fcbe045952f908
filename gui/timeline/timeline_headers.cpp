// TimelineView: what stands beside the rows: their names at the left, the share of time in which they compute at the right, the bar
// that scrolls them, and the flags of the bookmarks on the ruler.
#include <QPainter>
#include <QScrollBar>
#include <QSignalBlocker>
#include <algorithm>
#include <cmath>

#include "gui/document/words.h"
#include "gui/timeline/timeline_view.h"

namespace foreshard {

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
void TimelineView::lay_headers_out() {
  QFont small = font();
  small.setPointSizeF(std::max(font().pointSizeF() * 0.88, 6.0));
  const QFontMetricsF metrics(small);
  notes_fit_ = std::ranges::all_of(rows_, [&](const Row& row) {
    return row.note.isEmpty() ||
           metrics.horizontalAdvance(row.title) + metrics.horizontalAdvance(row.note) + 14 <= kHeaderWidth - 29;
  });
}

void TimelineView::paint_name(QPainter& painter, const Row& row, QRectF box, bool beside) const {
  const QFontMetricsF metrics(painter.font());
  const bool is_rank = row.key.rank.valid(), below = box.height() >= 2 * metrics.height() + 6 && !row.note.isEmpty();
  if (row.openable) paint_triangle(painter, {13, box.center().y()}, row.open, theme_.faint);
  const QRectF words = box.adjusted(is_rank ? 34 : 23, 0, 0, 0);
  const QRectF title =
      below ? QRectF(words.left(), words.center().y() - metrics.height(), words.width(), metrics.height()) : words;
  painter.setPen(is_rank ? theme_.faint : theme_.text);
  painter.drawText(title, Qt::AlignLeft | Qt::AlignVCenter, metrics.elidedText(row.title, Qt::ElideRight, words.width()));
  painter.setPen(theme_.faint);
  if (below)
    painter.drawText(title.translated(0, metrics.height()), Qt::AlignLeft | Qt::AlignVCenter, row.note);
  else if (notes_fit_ && beside)
    painter.drawText(words, Qt::AlignRight | Qt::AlignVCenter, row.note);
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
    const auto worst = std::ranges::find(boxes, BoxKind::Worst, &LaneBox::kind);
    const bool split = worst != boxes.end() && worst->height >= kLeastLabelHeight;
    const bool twin = boxes.back().kind == BoxKind::Measured && boxes.back().height >= metrics.height() - 3;
    const double own = twin ? boxes.back().top - 4 : row.height - 1;  // of the row without its twin
    const double tall = std::max(own, metrics.height());
    const QRectF box(0, top + (own - tall) / 2, kHeaderWidth - 6, tall);
    const auto lane_name = [&](const LaneBox& lane, Qt::Alignment side, const QString& words) {
      painter.setPen(theme_.faint);
      painter.drawText(QRectF(34, top + lane.top + (lane.height - metrics.height()) / 2, kHeaderWidth - 40, metrics.height()),
                       side | Qt::AlignVCenter, words);
    };
    if (twin)
      lane_name(boxes.back(), Qt::AlignLeft,
                twin_->measured->trace().origin == Origin::Measured ? tr("measured") : tr("B", "the second of two results"));
    if (split && boxes.front().height >= kLeastLabelHeight) lane_name(boxes.front(), Qt::AlignRight, tr("mean"));
    if (split) lane_name(*worst, Qt::AlignRight, tr("worst rank"));
    if (row.pinned) painter.fillRect(QRectF(0, top, 3, row.height - 1), theme_.accent);
    if (box.center().y() - metrics.height() / 2 < free_from) continue;
    free_from = box.center().y() + metrics.height() / 2;
    paint_name(painter, row, box, !split);
  }
  paint_group_above(painter);
  painter.restore();
  painter.setPen(theme_.rule);
  painter.drawLine(kHeaderWidth - 1, lanes.top(), kHeaderWidth - 1, lanes.bottom());
}

const Row* TimelineView::group_above() const {
  const int first = row_at(rows_, scroll_);
  if (first < 0) return nullptr;
  const Row& row = rows_[static_cast<std::size_t>(first)];
  if (!row.key.rank.valid() || row.pinned) return nullptr;
  const auto head = std::ranges::find(rows_, RowKey{row.key.group, {}}, &Row::key);
  return head == rows_.end() ? nullptr : &*head;
}

// The name of an open group stays when its own row has been scrolled away.
void TimelineView::paint_group_above(QPainter& painter) const {
  const Row* group = group_above();
  if (group == nullptr) return;
  const QFontMetricsF metrics(painter.font());
  const QRectF plate(0, lanes_rect().top(), kHeaderWidth - 1, metrics.height() + 6);
  painter.fillRect(plate, theme_.raised);
  painter.setPen(theme_.rule);
  painter.drawLine(plate.bottomLeft(), plate.bottomRight());
  paint_name(painter, *group, plate.adjusted(0, 0, -5, 0), true);
}

// The share of the visible time in which the compute streams are busy.
void TimelineView::paint_gutter(QPainter& painter) const {
  const QRect lanes = lanes_rect();
  const int left = lanes.right() + 1, right = kGutterWidth - 8 - (scroll_bar_->isHidden() ? 0 : kScrollBar - 4);
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
    const QRectF bar(left + 6, top + row.height / 2.0 - 3.5, 22, std::min(7, std::max(row.height - 1, 1)));
    painter.fillRect(bar, theme_.raised);
    painter.fillRect(QRectF(bar.left(), bar.top(), bar.width() * share, bar.height()), theme_.of(Cell::Forward));
    const double tall = std::max(row.height - 1.0, metrics.height());
    const QRectF words(left, top + (row.height - 1 - tall) / 2, right, tall);
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

void TimelineView::clamp_scroll() {
  const int all = rows_.empty() ? 0 : rows_.back().top + rows_.back().height, page = lanes_rect().height();
  scroll_ = std::clamp(scroll_, 0, std::max(all - page, 0));
  const QSignalBlocker quiet(scroll_bar_);
  scroll_bar_->setRange(0, std::max(all - page, 0));
  scroll_bar_->setPageStep(page);
  scroll_bar_->setValue(scroll_);
  scroll_bar_->setGeometry(width() - kScrollBar, lanes_rect().top(), kScrollBar, page);
  scroll_bar_->setVisible(all > page);
}

void TimelineView::set_flags(std::vector<RulerFlag> flags) {
  flags_ = std::move(flags);
  update();
}

QRectF TimelineView::flag_box(const RulerFlag& flag) const {
  const double x = x_of(flag.when);
  if (x < lanes_rect().left() - 0.5 || x > lanes_rect().right() + 1) return {};
  return {x, lanes_rect().top() - 18.0, 11, 17};
}

void TimelineView::paint_flags(QPainter& painter) const {
  for (const RulerFlag& flag : flags_) {
    const QRectF box = flag_box(flag);
    if (box.isEmpty()) continue;
    painter.fillRect(QRectF(box.left() - 0.5, box.top(), 1.4, box.height()), theme_.accent);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(Qt::NoPen);
    painter.setBrush(theme_.accent);
    const QPointF top = box.topLeft();
    if (flag.key.isEmpty()) {
      painter.drawPolygon(QPolygonF({top, top + QPointF(9, 4), top + QPointF(0, 8)}));
    } else {
      painter.drawRect(QRectF(top, QSizeF(11, 11)));
      painter.setPen(theme_.label_on(theme_.accent));
      painter.drawText(QRectF(top, QSizeF(11, 11)), Qt::AlignCenter, flag.key);
    }
    painter.setRenderHint(QPainter::Antialiasing, false);
  }
}

}  // namespace foreshard
