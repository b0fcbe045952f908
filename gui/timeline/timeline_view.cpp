#include "gui/timeline/timeline_view.h"

#include <QPainter>
#include <QScrollBar>
#include <QSignalBlocker>
#include <algorithm>

namespace foreshard {

TimelineView::TimelineView(TimeAxis& axis, Selection& selection, QWidget* parent)
    : QWidget(parent), axis_(axis), selection_(selection), scene_{.axis = axis}, frame_([this] { update(); }) {
  setMouseTracking(true);
  setFocusPolicy(Qt::StrongFocus);
  setMinimumSize(320, 120);
  setAccessibleName(tr("Timeline"));
  scroll_bar_ = new QScrollBar(Qt::Vertical, this);
  scroll_bar_->hide();
  scroll_bar_->setFocusPolicy(Qt::NoFocus);
  scroll_bar_->setCursor(Qt::ArrowCursor);
  connect(scroll_bar_, &QScrollBar::valueChanged, this, [this](int value) {
    scene_.scroll = value;
    update();
  });
  set_theme(theme_of(ThemeName::Dark));
  const auto repaint = [this] { update(); };
  connect(&axis_, &TimeAxis::visible_changed, this, repaint);
  connect(&axis_, &TimeAxis::cursor_changed, this, repaint);
  connect(&axis_, &TimeAxis::selected_changed, this, repaint);
  connect(&selection_, &Selection::changed, this, [this] {
    describe();
    update();
  });
  describe();
}

TimelineView::~TimelineView() = default;  // a worker keeps what it reads

void TimelineView::set_document(std::shared_ptr<const Document> document) {
  scene_.document = std::move(document);
  scene_.twin.reset();
  trail_.clear();
  scene_.state.open.clear();
  scene_.state.pinned.clear();
  scene_.groups.clear();
  if (scene_.document) {
    scene_.groups = group_ranks(*scene_.document, scene_.state.grouping);
    axis_.set_extent({{0}, std::max(scene_.document->trace().makespan, Nanoseconds{1})});
  }
  scene_.scroll = 0;
  frame_.forget();
  frame_.make_levels_of(scene_);
  lay_out();
}

void TimelineView::set_measured(std::shared_ptr<const Document> measured) {
  set_twin(scene_.document && measured ? match_twin(*scene_.document, std::move(measured)) : nullptr);
}

void TimelineView::set_twin(std::shared_ptr<const Twin> twin) {
  scene_.twin = std::move(twin);
  if (scene_.document) {
    const Nanoseconds other = scene_.twin ? scene_.twin->measured->trace().makespan : Nanoseconds{};
    axis_.set_extent({{0}, std::max({scene_.document->trace().makespan, other, Nanoseconds{1}})});
  }
  lay_out();
}

void TimelineView::set_theme(const Theme& theme) {
  scene_.theme = theme;
  const Paints paints = paints_of(theme, scene_.paints.hidden);
  if (paints == scene_.paints) return update();
  scene_.paints = paints;
  redraw();
}

void TimelineView::set_short_legend(bool one_line) {
  legend_.shorten(one_line);
  lay_out();
}

void TimelineView::set_legend(bool shown) {
  legend_.show(shown);
  lay_out();
}

void TimelineView::set_overview(bool shown) {
  scene_.overview = shown ? kOverview : 0;
  lay_out();
}

void TimelineView::set_rows_state(RowState state) {
  scene_.set_rows_state(std::move(state));
  lay_out();
}

void TimelineView::set_grouping(Grouping grouping) {
  RowState next = scene_.state;
  next.grouping = grouping;
  next.open.clear();
  next.pinned.clear();
  set_rows_state(std::move(next));
}

void TimelineView::set_arrows(Arrows arrows) {
  arrows_ = arrows;
  update();
}

// Call when colours change: the image and the levels of detail are made anew.
void TimelineView::redraw() {
  frame_.changed();
  frame_.make_levels_of(scene_);
  update();
}

void TimelineView::set_hidden(Hidden hidden) {
  if (hidden == scene_.paints.hidden) return;
  scene_.paints = paints_of(scene_.theme, hidden);
  redraw();
  Q_EMIT hidden_changed();
}

void TimelineView::set_flags(std::vector<RulerFlag> flags) {
  flags_ = std::move(flags);
  update();
}

void TimelineView::wait_for_levels() { frame_.wait_for_levels(scene_); }

void TimelineView::lay_out() {
  legend_.lay_out(width(), font());
  scene_.lay_out(size(), legend_.height());
  notes_fit_ = notes_fit(scene_.rows, font());
  frame_.changed();
  clamp_scroll();
  update();
}

void TimelineView::resizeEvent(QResizeEvent*) { lay_out(); }

void TimelineView::clamp_scroll() {
  const int all = scene_.all_rows(), page = scene_.lanes.height();
  scene_.scroll = std::clamp(scene_.scroll, 0, std::max(all - page, 0));
  const QSignalBlocker quiet(scroll_bar_);
  scroll_bar_->setRange(0, std::max(all - page, 0));
  scroll_bar_->setPageStep(page);
  scroll_bar_->setValue(scene_.scroll);
  scroll_bar_->setGeometry(width() - kScrollBar, scene_.lanes.top(), kScrollBar, page);
  scroll_bar_->setVisible(all > page);
}

QRectF TimelineView::legend_box(std::size_t entry) const {
  const QRectF box = legend_.box(entry);
  return box.isEmpty() ? QRectF() : box.translated(0, scene_.lanes.bottom() + 1);
}

QRectF TimelineView::more_box() const { return legend_box(legend_.entries().size()); }

static void paint_picked(QPainter& painter, const Theme& theme, QRectF place) {
  if (place.isEmpty()) return;
  painter.setBrush(Qt::NoBrush);
  painter.setPen(QPen(theme.background, 4));
  painter.drawRect(place.adjusted(-1, 0, 1, -1));
  painter.setPen(QPen(theme.accent, 2));
  painter.drawRect(place.adjusted(-1, 0, 1, -1));
}

void TimelineView::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), scene_.theme.background);
  if (!scene_.document) {
    painter.setPen(scene_.theme.faint);
    painter.drawText(rect(), Qt::AlignCenter, tr("Nothing to show yet: simulate a strategy or open a result"));
    return;
  }
  frame_.refresh(scene_, devicePixelRatioF(), small_font(font(), 0.82));
  painter.drawImage(scene_.lanes.topLeft(), frame_.image());
  painter.setFont(small_font(font(), 0.88));
  painter.save();
  painter.setClipRect(scene_.lanes);
  paint_arrows(painter, scene_, selection_.picked(), arrows_);
  paint_picked(painter, scene_.theme, place_of(selection_.picked()));
  painter.restore();
  paint_headers(painter, scene_, notes_fit_);
  paint_gutter(painter, scene_, kGutterWidth - 8 - (scroll_bar_->isHidden() ? 0 : kScrollBar - 4));
  paint_ruler(painter, scene_, flags_);
  paint_overview(painter, scene_, frame_.busy());
  if (legend_.shown()) legend_.paint(painter, scene_);
  paint_range_and_cursor(painter, scene_);
}

void TimelineView::describe() {
  const Picked picked = selection_.picked();
  QString words = tr("Work and idle time of every group of ranks; the table of operations holds the same in text");
  if (scene_.document && picked.index >= 0) words = facts_line(scene_.document.get(), picked);
  setAccessibleDescription(words);
}

}  // namespace foreshard
