// TimelineView: mouse, wheel, keys and what the menus call.
#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QToolTip>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>

#include "gui/document/picked_range.h"
#include "gui/document/words.h"
#include "gui/timeline/timeline_view.h"
#include "report/words/span_words.h"

namespace foreshard {

static constexpr double kZoomStep = 1.4;

void TimelineView::wheelEvent(QWheelEvent* event) {
  const QPoint degrees = event->angleDelta();
  const double notches = (degrees.y() != 0 ? degrees.y() : degrees.x()) / 120.0;
  if (event->modifiers().testFlag(Qt::ControlModifier) && event->modifiers().testFlag(Qt::ShiftModifier)) {
    const int now = rows_.empty() ? kRowMost : rows_.front().height;
    state_.row_height = std::clamp(static_cast<int>(std::lround(now * std::pow(1.25, notches))) + (notches > 0 ? 1 : 0), 1, 96);
    lay_out();
  } else if (event->modifiers().testFlag(Qt::ControlModifier)) {
    axis_.zoom(std::pow(kZoomStep, notches), time_at(event->position().x()));
  } else if (event->modifiers().testFlag(Qt::ShiftModifier) || degrees.y() == 0) {
    axis_.pan({std::llround(-notches * 0.12 * static_cast<double>(axis_.visible().length().value))});
  } else {
    scroll_ -= static_cast<int>(std::lround(notches * 60));
    clamp_scroll();
    update();
  }
  event->accept();
}

void TimelineView::mousePressEvent(QMouseEvent* event) {
  pressed_ = event->pos();
  pressed_range_ = axis_.visible();
  pressed_scroll_ = scroll_;
  if (event->button() == Qt::LeftButton && event->pos().y() < overview_height()) {
    drag_ = Drag::Overview;
    return show_around(event->position().x());
  }
  if (event->button() == Qt::LeftButton && press_legend(event)) return;
  const int row = row_under(event->pos());
  if (event->pos().x() < kHeaderWidth && row >= 0 && event->button() == Qt::LeftButton) {
    mouse_ = event->pos();
    return toggle_open();
  }
  const bool pans = event->button() == Qt::MiddleButton || event->modifiers().testFlag(Qt::ShiftModifier);
  drag_ = pans && event->button() != Qt::RightButton ? Drag::Pan : event->button() == Qt::LeftButton ? Drag::Press : Drag::None;
}

void TimelineView::mouseMoveEvent(QMouseEvent* event) {
  mouse_ = event->pos();
  const QPoint moved = event->pos() - pressed_;
  if (drag_ == Drag::Press && std::abs(moved.x()) > 4) drag_ = Drag::Select;
  if (drag_ == Drag::Pan) {
    const double per_pixel = static_cast<double>(pressed_range_.length().value) / lanes_rect().width();
    const Nanoseconds by = {std::llround(-moved.x() * per_pixel)};
    axis_.show({pressed_range_.begin + by, pressed_range_.end + by});
    scroll_ = pressed_scroll_ - moved.y();
    clamp_scroll();
    update();
  } else if (drag_ == Drag::Select) {
    axis_.select(TimeRange{time_at(pressed_.x()), time_at(event->pos().x())});
  } else if (drag_ == Drag::Overview) {
    show_around(event->position().x());
  }
  const bool inside = lanes_rect().contains(event->pos());
  axis_.set_cursor(inside ? std::optional(time_at(event->pos().x())) : std::nullopt);
  Q_EMIT hovered(inside ? words_at(event->pos()) : QString());
}

void TimelineView::mouseReleaseEvent(QMouseEvent* event) {
  const Drag was = drag_;
  drag_ = Drag::None;
  if (was == Drag::Pan && (event->pos() - pressed_).manhattanLength() < 4 && event->modifiers().testFlag(Qt::ShiftModifier)) {
    static constexpr Arrows next[] = {Arrows::Direct, Arrows::Chain, Arrows::Critical, Arrows::Direct};
    const Picked under = hit(event->pos());
    set_arrows(under == selection_.picked() ? next[static_cast<std::size_t>(arrows_)] : Arrows::Chain);
    return selection_.pick(under);
  }
  if (was != Drag::Press) return;
  axis_.select({});
  trail_.clear();
  selection_.pick(hit(event->pos()));
}

void TimelineView::mouseDoubleClickEvent(QMouseEvent* event) {
  if (lanes_rect().contains(event->pos())) focus_picked();
}

void TimelineView::leaveEvent(QEvent*) {
  mouse_ = {-1, -1};
  axis_.set_cursor({});
  Q_EMIT hovered({});
}

bool TimelineView::event(QEvent* event) {
  if (event->type() == QEvent::ToolTip) {
    const auto* help = static_cast<QHelpEvent*>(event);
    QString words = lanes_rect().contains(help->pos()) ? words_at(help->pos()) : QString();
    for (const RulerFlag& flag : flags_)
      if (flag_box(flag).contains(help->pos())) words = flag.note;
    if (more_box().contains(help->pos())) words = tr("The whole legend");
    for (std::size_t i = 0; i < entries_.size(); ++i)
      if (legend_box(i).contains(help->pos())) words = tr("Click: grey or coloured. Ctrl+click: this one only.");
    if (words.isEmpty())
      QToolTip::hideText();
    else
      QToolTip::showText(help->globalPos(), words, this);
    return true;
  }
  return QWidget::event(event);
}

QString TimelineView::words_at(QPoint at) const { return facts_line(hit(at)); }

QString TimelineView::facts_line(Picked under) const {
  if (!document_ || under.index < 0) return {};
  const auto at = static_cast<std::size_t>(under.index);
  if (under.kind == PickedKind::Bubble && at < document_->bubbles.size()) {
    const Bubble& bubble = document_->bubbles[static_cast<std::size_t>(under.index)];
    return tr("idle %1: %2").arg(time_text(bubble.end - bubble.begin), cause_words(bubble.cause));
  }
  if ((under.kind != PickedKind::Span && under.kind != PickedKind::Action) || at >= document_->trace().spans.size()) return {};
  const Span& span = document_->trace().spans[static_cast<std::size_t>(under.index)];
  const QString action =
      QString::fromStdString(action_name(document_->plan(), action_of(document_->plan(), document_->trace(), span)));
  if (under.kind == PickedKind::Action) return tr("%1, %2").arg(action, time_text(range_of(*document_, under)->length()));
  const QString name = instruction_words(instruction_of(document_->plan(), document_->trace(), span).name);
  return span.count > 1
             ? tr("%1: %2 and %3 more, %4").arg(action, name, count_words(span.count - 1), time_text(span.end - span.begin))
             : tr("%1: %2, %3").arg(action, name, time_text(span.end - span.begin));
}

// Keys by their place on the keyboard, so that W A S D lie together on every layout (scan codes of evdev, plus 8).
void TimelineView::keyPressEvent(QKeyEvent* event) {
  if (event->modifiers() & (Qt::ControlModifier | Qt::AltModifier | Qt::MetaModifier)) return QWidget::keyPressEvent(event);
  static constexpr quint32 w = 25, a = 38, s = 39, d = 40;
  const quint32 place = event->nativeScanCode();
  const int key = event->key();
  const auto is = [&](quint32 code, int letter) { return place == code || (place == 0 && key == letter); };
  if (is(w, Qt::Key_W) || key == Qt::Key_I) return zoom_in();
  if (is(s, Qt::Key_S) || key == Qt::Key_K) return zoom_out();
  if (is(a, Qt::Key_A) || key == Qt::Key_J || key == Qt::Key_Left) return pan_left();
  if (is(d, Qt::Key_D) || key == Qt::Key_L || key == Qt::Key_Right) return pan_right();
  if (key == Qt::Key_Up) return scroll_up();
  if (key == Qt::Key_Down) return scroll_down();
  if (!own_keys_) return QWidget::keyPressEvent(event);
  switch (key) {
    case Qt::Key_0: return fit();
    case Qt::Key_F: return focus_picked();
    case Qt::Key_Z: return zoom_to_selected();
    case Qt::Key_M: return measure();
    case Qt::Key_P: return toggle_pin();
    case Qt::Key_Space: return toggle_open();
    case Qt::Key_Period: return next_op();
    case Qt::Key_Comma: return previous_op();
    case Qt::Key_BracketRight: return next_bubble();
    case Qt::Key_BracketLeft: return previous_bubble();
    case Qt::Key_N: return worst_bubble();
    case Qt::Key_Return:
    case Qt::Key_Enter: return follow_back();
    case Qt::Key_Backspace: return follow_return();
    default: return QWidget::keyPressEvent(event);
  }
}

static Nanoseconds middle(TimeRange range) { return {(range.begin.value + range.end.value) / 2}; }

void TimelineView::zoom_in() { axis_.zoom(kZoomStep, axis_.cursor().value_or(middle(axis_.visible()))); }
void TimelineView::zoom_out() { axis_.zoom(1 / kZoomStep, axis_.cursor().value_or(middle(axis_.visible()))); }
void TimelineView::pan_left() { axis_.pan({-axis_.visible().length().value / 8}); }
void TimelineView::pan_right() { axis_.pan({axis_.visible().length().value / 8}); }
void TimelineView::fit() { axis_.fit(); }

void TimelineView::scroll_up() {
  scroll_ -= 40;
  clamp_scroll();
  update();
}

void TimelineView::scroll_down() {
  scroll_ += 40;
  clamp_scroll();
  update();
}

void TimelineView::zoom_to_selected() {
  if (!axis_.selected()) return focus_picked();
  axis_.show(*axis_.selected());
  axis_.select({});
}

void TimelineView::focus_picked() {
  const auto range = document_ ? range_of(*document_, selection_.picked()) : std::nullopt;
  if (!range) return fit();
  const Nanoseconds around = {range->length().value * 2};
  const TimeRange close = {range->begin - around, range->end + around};
  const TimeRange before = axis_.visible();
  axis_.show(close);
  if (axis_.visible() == before) fit();
}

// A range that was drawn stays and is read out; without one it is what is picked.
void TimelineView::measure() {
  if (const auto drawn = axis_.selected(); drawn && drawn->length() > Nanoseconds{})
    return Q_EMIT hovered(tr("%1 selected, from %2 to %3")
                              .arg(time_text(drawn->length()), tick_text(drawn->begin, {1000}), tick_text(drawn->end, {1000})));
  if (const auto range = document_ ? range_of(*document_, selection_.picked()) : std::nullopt) axis_.select(range);
}

void TimelineView::show_picked(Picked picked) {
  selection_.pick(picked);
  const auto range = range_of(*document_, picked);
  if (!range) return;
  const TimeRange visible = axis_.visible();
  if (range->begin < visible.begin || range->end > visible.end) {
    const Nanoseconds length = std::max(visible.length(), range->length());
    axis_.show({middle(*range) - Nanoseconds{length.value / 2}, middle(*range) + Nanoseconds{length.value - length.value / 2}});
  }
  if (const int index = row_of(class_of(*document_, picked)); index >= 0) {
    const Row& row = rows_[static_cast<std::size_t>(index)];
    scroll_ = std::clamp(scroll_, row.top + row.height - lanes_rect().height(), row.top);
    clamp_scroll();
  }
  update();
}

void TimelineView::step(int by) {
  if (!document_) return;
  const Picked now = selection_.picked();
  std::int32_t span = span_of(*document_, now);
  if (span < 0)
    span = document_->lanes.all.empty() || document_->lanes.all.front().size() == 0 ? -1
                                                                                    : document_->lanes.all.front().span.front();
  if (span < 0) return;
  for (const Lane& lane : document_->lanes.all) {
    if (lane.kind == LaneKind::InLine || lane.who != document_->trace().spans[static_cast<std::size_t>(span)].who) continue;
    const auto at = std::ranges::find(lane.span, span);
    if (at == lane.span.end()) continue;
    const auto next = (at - lane.span.begin()) + (now.kind == PickedKind::Span ? by : 0);
    if (next >= 0 && next < static_cast<std::ptrdiff_t>(lane.size()))
      show_picked({PickedKind::Span, lane.span[static_cast<std::size_t>(next)], now.rank});
    return;
  }
}

void TimelineView::next_op() { step(1); }
void TimelineView::previous_op() { step(-1); }

// From what is picked, else from the first of all, in the same class.
void TimelineView::step_bubble(int by) {
  if (!document_ || document_->bubbles.empty()) return;
  const std::vector<Bubble>& bubbles = document_->bubbles;
  const Picked now = selection_.picked();
  std::ptrdiff_t next = 0;
  if (now.kind == PickedKind::Bubble) {
    next = now.index + by;
  } else if (const std::int32_t span = span_of(*document_, now); span >= 0) {
    const Span& from = document_->trace().spans[static_cast<std::size_t>(span)];
    const auto after = std::ranges::upper_bound(bubbles, std::pair(from.who, from.begin), {},
                                                [](const Bubble& b) { return std::pair(b.who, b.begin); });
    next = (after - bubbles.begin()) + (by > 0 ? 0 : -1);
  }
  if (next >= 0 && next < static_cast<std::ptrdiff_t>(bubbles.size()))
    show_picked({PickedKind::Bubble, static_cast<std::int32_t>(next), {}});
}

void TimelineView::next_bubble() { step_bubble(1); }
void TimelineView::previous_bubble() { step_bubble(-1); }

// The longest; when that is picked already, the next shorter one.
void TimelineView::worst_bubble() {
  if (!document_ || document_->bubbles.empty()) return;
  const std::vector<Bubble>& bubbles = document_->bubbles;
  const auto size = [&](std::int32_t b) {
    return std::pair((bubbles[static_cast<std::size_t>(b)].end - bubbles[static_cast<std::size_t>(b)].begin).value, -b);
  };
  const Picked now = selection_.picked();
  const bool known = now.kind == PickedKind::Bubble && now.index >= 0 && static_cast<std::size_t>(now.index) < bubbles.size();
  std::int32_t best = -1;
  for (std::int32_t b = 0; b < static_cast<std::int32_t>(bubbles.size()); ++b) {
    if (known && size(b) >= size(now.index)) continue;
    if (best < 0 || size(b) > size(best)) best = b;
  }
  if (best >= 0) show_picked({PickedKind::Bubble, best, {}});
}

void TimelineView::follow_back() {
  if (!document_) return;
  const std::vector<ChainHop> hop = binding_hops(*document_, selection_.picked(), Arrows::Direct);
  if (hop.empty()) return;
  trail_.push_back(selection_.picked());
  show_picked({PickedKind::Span, hop.front().from, {}});
}

void TimelineView::follow_return() {
  if (trail_.empty()) return;
  const Picked back = trail_.back();
  trail_.pop_back();
  show_picked(back);
}

static int row_to_change(const std::vector<Row>& rows, int under, int of_picked) {
  const int index = under >= 0 ? under : of_picked;
  return index < static_cast<int>(rows.size()) ? index : -1;
}

void TimelineView::toggle_open() {
  const std::int32_t span = document_ ? span_of(*document_, selection_.picked()) : -1;
  const int picked = span >= 0 ? row_of(document_->trace().spans[static_cast<std::size_t>(span)].who) : -1;
  const int index = row_to_change(rows_, row_under(mouse_), picked);
  if (index < 0 || groups_.empty()) return;
  const std::int32_t group = rows_[static_cast<std::size_t>(index)].key.group;
  if (!state_.open.erase(group)) state_.open.insert(group);
  lay_out();
}

void TimelineView::toggle_pin() {
  const std::int32_t span = document_ ? span_of(*document_, selection_.picked()) : -1;
  const int picked = span >= 0 ? row_of(document_->trace().spans[static_cast<std::size_t>(span)].who) : -1;
  const int index = row_to_change(rows_, row_under(mouse_), picked);
  if (index < 0) return;
  const RowKey key = rows_[static_cast<std::size_t>(index)].key;
  if (!state_.pinned.erase(key)) state_.pinned.insert(key);
  lay_out();
}

}  // namespace foreshard
