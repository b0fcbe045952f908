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
#include "gui/timeline/timeline_steps.h"
#include "gui/timeline/timeline_view.h"
#include "report/words/span_words.h"

namespace foreshard {

static constexpr double kZoomStep = 1.4;

void TimelineView::wheelEvent(QWheelEvent* event) {
  const QPoint degrees = event->angleDelta();
  const double notches = (degrees.y() != 0 ? degrees.y() : degrees.x()) / 120.0;
  if (event->modifiers().testFlag(Qt::ControlModifier) && event->modifiers().testFlag(Qt::ShiftModifier)) {
    const int now = scene_.rows.empty() ? kRowMost : scene_.rows.front().height;
    scene_.state.row_height =
        std::clamp(static_cast<int>(std::lround(now * std::pow(1.25, notches))) + (notches > 0 ? 1 : 0), 1, 96);
    lay_out();
  } else if (event->modifiers().testFlag(Qt::ControlModifier)) {
    axis_.zoom(std::pow(kZoomStep, notches), scene_.time_at(event->position().x()));
  } else if (event->modifiers().testFlag(Qt::ShiftModifier) || degrees.y() == 0) {
    axis_.pan({std::llround(-notches * 0.12 * static_cast<double>(axis_.visible().length().value))});
  } else {
    scroll_by(-static_cast<int>(std::lround(notches * 60)));
  }
  event->accept();
}

// The point relative to the top left of the legend.
QPointF TimelineView::legend_point(QPointF at) const { return at - QPointF(0, scene_.lanes.bottom() + 1); }

bool TimelineView::press_legend(QMouseEvent* event) {
  const QPointF at = legend_point(event->position());
  if (legend_.more_box().contains(at)) {
    legend_.open();
    lay_out();
    return true;
  }
  const std::optional<std::size_t> pressed = legend_.entry_at(at);
  if (!pressed) return false;
  const LegendEntry& entry = legend_.entries()[*pressed];
  const bool alone = event->modifiers().testFlag(Qt::ControlModifier);
  set_hidden(alone ? only(hidden(), entry) : toggled(hidden(), entry));
  return true;
}

void TimelineView::mousePressEvent(QMouseEvent* event) {
  pressed_ = event->pos();
  pressed_range_ = axis_.visible();
  pressed_scroll_ = scene_.scroll;
  if (event->button() == Qt::LeftButton && event->pos().y() < scene_.overview) {
    drag_ = Drag::Overview;
    return axis_.show(range_around(scene_, event->position().x()));
  }
  if (event->button() == Qt::LeftButton && press_legend(event)) return;
  const int row = scene_.row_under(event->pos());
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
    const double per_pixel = static_cast<double>(pressed_range_.length().value) / scene_.lanes.width();
    const Nanoseconds by = {std::llround(-moved.x() * per_pixel)};
    axis_.show({pressed_range_.begin + by, pressed_range_.end + by});
    scroll_by(pressed_scroll_ - moved.y() - scene_.scroll);
  } else if (drag_ == Drag::Select) {
    axis_.select(TimeRange{scene_.time_at(pressed_.x()), scene_.time_at(event->pos().x())});
  } else if (drag_ == Drag::Overview) {
    axis_.show(range_around(scene_, event->position().x()));
  }
  const bool inside = scene_.lanes.contains(event->pos());
  axis_.set_cursor(inside ? std::optional(scene_.time_at(event->pos().x())) : std::nullopt);
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
  if (scene_.lanes.contains(event->pos())) focus_picked();
}

void TimelineView::leaveEvent(QEvent*) {
  mouse_ = {-1, -1};
  axis_.set_cursor({});
  Q_EMIT hovered({});
}

bool TimelineView::event(QEvent* event) {
  if (event->type() == QEvent::ToolTip) {
    const auto* help = static_cast<QHelpEvent*>(event);
    QString words = scene_.lanes.contains(help->pos()) ? words_at(help->pos()) : QString();
    for (const RulerFlag& flag : flags_)
      if (flag_box(scene_, flag).contains(help->pos())) words = flag.note;
    if (more_box().contains(help->pos())) words = tr("The whole legend");
    if (legend_.entry_at(legend_point(help->pos()))) words = tr("Click: grey or coloured. Ctrl+click: this one only.");
    if (words.isEmpty())
      QToolTip::hideText();
    else
      QToolTip::showText(help->globalPos(), words, this);
    return true;
  }
  return QWidget::event(event);
}

QString TimelineView::words_at(QPoint at) const { return facts_line(scene_.document.get(), hit(at)); }

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

void TimelineView::scroll_by(int pixels) {
  scene_.scroll += pixels;
  clamp_scroll();
  update();
}

void TimelineView::scroll_up() { scroll_by(-40); }
void TimelineView::scroll_down() { scroll_by(40); }

void TimelineView::zoom_to_selected() {
  if (!axis_.selected()) return focus_picked();
  axis_.show(*axis_.selected());
  axis_.select({});
}

void TimelineView::focus_picked() {
  const auto range = scene_.document ? range_of(*scene_.document, selection_.picked()) : std::nullopt;
  if (!range) return fit();
  const Nanoseconds around = {range->length().value * 2};
  const TimeRange close = {range->begin - around, range->end + around};
  const TimeRange before = axis_.visible();
  axis_.show(close);
  if (axis_.visible() == before) fit();
}

// Reports the length of a selected range; without one, selects the range of the picked object.
void TimelineView::measure() {
  if (const auto drawn = axis_.selected(); drawn && drawn->length() > Nanoseconds{})
    return Q_EMIT hovered(tr("%1 selected, from %2 to %3")
                              .arg(time_text(drawn->length()), tick_text(drawn->begin, {1000}), tick_text(drawn->end, {1000})));
  if (const auto range = scene_.document ? range_of(*scene_.document, selection_.picked()) : std::nullopt) axis_.select(range);
}

void TimelineView::pick_and_show(std::optional<Picked> picked) {
  if (!picked) return;
  selection_.pick(*picked);
  const auto range = range_of(*scene_.document, *picked);
  if (!range) return;
  const TimeRange visible = axis_.visible();
  if (range->begin < visible.begin || range->end > visible.end) {
    const Nanoseconds length = std::max(visible.length(), range->length());
    axis_.show({middle(*range) - Nanoseconds{length.value / 2}, middle(*range) + Nanoseconds{length.value - length.value / 2}});
  }
  if (const int index = scene_.row_of(class_of(*scene_.document, *picked)); index >= 0) {
    const Row& row = scene_.rows[static_cast<std::size_t>(index)];
    scene_.scroll = std::clamp(scene_.scroll, row.top + row.height - scene_.lanes.height(), row.top);
    clamp_scroll();
  }
  update();
}

static std::optional<Picked> from_here(const Document* document, Picked now,
                                       std::optional<Picked> (*next)(const Document&, Picked, int), int by) {
  return document ? next(*document, now, by) : std::nullopt;
}

void TimelineView::next_op() { pick_and_show(from_here(scene_.document.get(), selection_.picked(), &foreshard::next_op, 1)); }
void TimelineView::previous_op() {
  pick_and_show(from_here(scene_.document.get(), selection_.picked(), &foreshard::next_op, -1));
}
void TimelineView::next_bubble() {
  pick_and_show(from_here(scene_.document.get(), selection_.picked(), &foreshard::next_bubble, 1));
}
void TimelineView::previous_bubble() {
  pick_and_show(from_here(scene_.document.get(), selection_.picked(), &foreshard::next_bubble, -1));
}
void TimelineView::worst_bubble() {
  if (scene_.document) pick_and_show(foreshard::worst_bubble(*scene_.document, selection_.picked()));
}

void TimelineView::follow_back() {
  if (!scene_.document) return;
  const std::vector<ChainHop> hop = binding_hops(*scene_.document, selection_.picked(), Arrows::Direct);
  if (hop.empty()) return;
  trail_.push_back(selection_.picked());
  pick_and_show(Picked{PickedKind::Span, hop.front().from, {}});
}

void TimelineView::follow_return() {
  if (trail_.empty()) return;
  const Picked back = trail_.back();
  trail_.pop_back();
  pick_and_show(back);
}

int TimelineView::row_to_change() const {
  const int under = scene_.row_under(mouse_), index = under >= 0 ? under : scene_.row_of_picked(selection_.picked());
  return index < static_cast<int>(scene_.rows.size()) ? index : -1;
}

void TimelineView::toggle_open() {
  const int index = row_to_change();
  if (index < 0 || scene_.groups.empty()) return;
  const std::int32_t group = scene_.rows[static_cast<std::size_t>(index)].key.group;
  if (!scene_.state.open.erase(group)) scene_.state.open.insert(group);
  lay_out();
}

void TimelineView::toggle_pin() {
  const int index = row_to_change();
  if (index < 0) return;
  const RowKey key = scene_.rows[static_cast<std::size_t>(index)].key;
  if (!scene_.state.pinned.erase(key)) scene_.state.pinned.insert(key);
  lay_out();
}

}  // namespace foreshard
