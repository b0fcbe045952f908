#include "gui/timeline/timeline_view.h"

#include <QPainter>
#include <QScrollBar>
#include <QtConcurrent>
#include <algorithm>
#include <cmath>

#include "gui/document/background.h"
#include "gui/document/picked_range.h"
#include "report/words/span_words.h"

namespace foreshard {

static constexpr std::size_t kOverviewBins = 2048;

TimelineView::TimelineView(TimeAxis& axis, Selection& selection, QWidget* parent)
    : QWidget(parent), axis_(axis), selection_(selection) {
  setMouseTracking(true);
  setFocusPolicy(Qt::StrongFocus);
  setMinimumSize(320, 120);
  setAccessibleName(tr("Timeline"));
  scroll_bar_ = new QScrollBar(Qt::Vertical, this);
  scroll_bar_->hide();
  scroll_bar_->setFocusPolicy(Qt::NoFocus);
  scroll_bar_->setCursor(Qt::ArrowCursor);
  connect(scroll_bar_, &QScrollBar::valueChanged, this, [this](int value) {
    scroll_ = value;
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
  connect(&making_, &QFutureWatcherBase::finished, this, [this] {
    levels_ = making_.result();
    stale_ = true;
    update();
  });
}

TimelineView::~TimelineView() = default;  // a worker keeps what it reads

void TimelineView::set_document(std::shared_ptr<const Document> document) {
  document_ = std::move(document);
  twin_.reset();
  trail_.clear();
  state_.open.clear();
  state_.pinned.clear();
  groups_.clear();
  if (document_) {
    groups_ = group_ranks(*document_, state_.grouping);
    axis_.set_extent({{0}, std::max(document_->trace().makespan, Nanoseconds{1})});
  }
  scroll_ = 0;
  frame_ = {};
  rebuild_levels();
  lay_out();
}

void TimelineView::set_measured(std::shared_ptr<const Document> measured) {
  set_twin(document_ && measured ? match_twin(*document_, std::move(measured)) : nullptr);
}

void TimelineView::set_twin(std::shared_ptr<const Twin> twin) {
  twin_ = std::move(twin);
  if (document_) {
    const Nanoseconds other = twin_ ? twin_->measured->trace().makespan : Nanoseconds{};
    axis_.set_extent({{0}, std::max({document_->trace().makespan, other, Nanoseconds{1}})});
  }
  lay_out();
}

void TimelineView::set_theme(const Theme& theme) {
  theme_ = theme;
  const Paints paints = paints_of(theme, paints_.hidden);
  if (paints == paints_) return update();
  paints_ = paints;
  stale_ = true;
  rebuild_levels();
  update();
}

void TimelineView::set_short_legend(bool one_line) {
  short_legend_ = one_line;
  legend_open_ = false;
  lay_out();
}

void TimelineView::set_legend(bool shown) {
  legend_ = shown;
  lay_out();
}

void TimelineView::set_overview(bool shown) {
  overview_ = shown;
  lay_out();
}

void TimelineView::set_rows_state(RowState state) {
  const bool regroup = state.grouping != state_.grouping;
  state_ = std::move(state);
  if (regroup && document_) groups_ = group_ranks(*document_, state_.grouping);
  lay_out();
}

void TimelineView::set_grouping(Grouping grouping) {
  RowState next = state_;
  next.grouping = grouping;
  next.open.clear();
  next.pinned.clear();
  set_rows_state(std::move(next));
}

void TimelineView::set_arrows(Arrows arrows) {
  arrows_ = arrows;
  update();
}

// All slices are drawn until the worker is done; for a small result that is as quick.
void TimelineView::rebuild_levels() {
  levels_.reset();
  if (!document_) return;
  making_.setFuture(QtConcurrent::run(guarded([document = document_, paints = paints_] {
    const TimeRange whole = {{0}, std::max(document->trace().makespan, Nanoseconds{1})};
    return std::shared_ptr<const Levels>(std::make_shared<Levels>(
        Levels{make_levels(document->lanes, whole, paints), busy_by_bin(*document, paints, kOverviewBins)}));
  })));
}

void TimelineView::wait_for_levels() {
  if (!document_ || levels_) return;
  making_.waitForFinished();
  levels_ = making_.result();
  stale_ = true;
}

QRect TimelineView::lanes_rect() const {
  const int top = kRuler + overview_height();
  const int bottom = legend_ && !legend_boxes_.empty() ? static_cast<int>(legend_boxes_.back().bottom()) + 2 : 0;
  return {kHeaderWidth, top, std::max(width() - kHeaderWidth - kGutterWidth, 1), std::max(height() - top - bottom, 1)};
}

FrameView TimelineView::frame_view() const {
  const QRect lanes = lanes_rect();
  return {axis_.visible(), lanes.width(), lanes.height(), scroll_, devicePixelRatioF()};
}

double TimelineView::x_of(Nanoseconds when) const {
  const QRect lanes = lanes_rect();
  return lanes.left() + static_cast<double>((when - axis_.visible().begin).value) * lanes.width() /
                            static_cast<double>(axis_.visible().length().value);
}

Nanoseconds TimelineView::time_at(double x) const {
  const QRect lanes = lanes_rect();
  return {axis_.visible().begin.value +
          static_cast<std::int64_t>(
              std::floor((x - lanes.left()) * static_cast<double>(axis_.visible().length().value) / lanes.width()))};
}

void TimelineView::lay_legend_out() {
  QFont small = font();
  small.setPointSizeF(std::max(font().pointSizeF() * 0.88, 6.0));
  const QFontMetricsF metrics(small);
  legend_boxes_ = lay_legend(
      entries_, width(), [&](const QString& text) { return metrics.horizontalAdvance(text); }, short_legend_ && !legend_open_);
}

void TimelineView::lay_out() {
  lay_legend_out();
  rows_ = lay_rows(groups_, state_, lanes_rect().height(), twin_ != nullptr);
  lay_headers_out();
  stale_ = true;
  clamp_scroll();
  update();
}

void TimelineView::resizeEvent(QResizeEvent*) { lay_out(); }

int TimelineView::row_under(QPoint at) const {
  const QRect lanes = lanes_rect();
  return at.y() < lanes.top() || at.y() > lanes.bottom() ? -1 : row_at(rows_, at.y() - lanes.top() + scroll_);
}

Picked TimelineView::hit(QPoint at) const {
  const int index = row_under(at);
  if (!document_ || index < 0 || !lanes_rect().contains(at)) return {};
  const Row& row = rows_[static_cast<std::size_t>(index)];
  const int inside = at.y() - lanes_rect().top() + scroll_ - row.top;
  const std::int64_t when = time_at(at.x()).value;
  const std::int64_t near = time_at(at.x() + 1).value;  // short slices are hit anywhere in their pixel
  for (const LaneBox& box : lane_boxes(row, twin_ != nullptr)) {
    if (inside < box.top || inside >= box.top + box.height) continue;
    if (box.kind == BoxKind::Error || box.kind == BoxKind::Measured) break;
    const ClassId who = box.kind == BoxKind::Worst ? row.worst : row.shown();
    const LaneKind kind = box.kind == BoxKind::Communication ? LaneKind::Communication
                          : box.kind == BoxKind::Copy        ? LaneKind::Copy
                                                             : LaneKind::Compute;
    if (const Lane* lane = document_->lanes.find(who, kind)) {
      auto slice = lane->slice_at(when);
      if (!slice) slice = lane->slice_at(near);
      if (slice) return {PickedKind::Span, lane->span[*slice], row.key.rank};
    }
    if (kind != LaneKind::Compute) break;
    if (const std::int32_t bubble = bubble_at(document_->lanes, document_->bubbles, who, when); bubble >= 0)
      return {PickedKind::Bubble, bubble, row.key.rank};
  }
  return {PickedKind::Class, row.shown().value, row.key.rank};
}

static bool has_class(const RankGroup& group, ClassId who) {
  return std::ranges::find(group.classes, who) != group.classes.end();
}

// A row of one of its ranks when its group is open, else the group's.
int TimelineView::row_of(ClassId who) const {
  int closed = -1;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    const Row& row = rows_[r];
    if (row.key.rank.valid() ? row.shown() == who
                             : closed < 0 && has_class(groups_[static_cast<std::size_t>(row.key.group)], who)) {
      if (row.key.rank.valid()) return static_cast<int>(r);
      closed = static_cast<int>(r);
    }
  }
  return closed;
}

QRectF TimelineView::place_of(Picked picked) const {
  if (!document_ || picked.index < 0) return {};
  const auto range = range_of(*document_, picked);
  if (!range) return {};
  const ClassId who = class_of(*document_, picked);
  BoxKind kind = BoxKind::Compute;
  if (picked.kind != PickedKind::Bubble) {
    const Span& span = document_->trace().spans[static_cast<std::size_t>(picked.index)];
    const StreamKind stream = role_of(document_->plan(), document_->trace(), who).streams[span.stream.index()].kind;
    if (stream != StreamKind::Compute) kind = stream == StreamKind::Communication ? BoxKind::Communication : BoxKind::Copy;
  }
  int index = -1;
  for (std::size_t r = 0; r < rows_.size() && picked.rank.valid(); ++r)
    if (rows_[r].key.rank == picked.rank) index = static_cast<int>(r);
  if (index < 0) index = row_of(who);
  if (index < 0) return {};
  const Row& row = rows_[static_cast<std::size_t>(index)];
  const std::vector<LaneBox> boxes = lane_boxes(row, twin_ != nullptr);
  const bool split = std::ranges::find(boxes, BoxKind::Worst, &LaneBox::kind) != boxes.end();
  if (kind == BoxKind::Compute && split && row.worst == who) kind = BoxKind::Worst;
  for (const LaneBox& box : boxes) {
    if (box.kind != kind) continue;
    const double left = x_of(range->begin), right = x_of(range->end);
    const QRectF place(left, lanes_rect().top() + row.top - scroll_ + box.top, std::max(right - left, 1.0), box.height);
    return place.intersected(QRectF(lanes_rect()));
  }
  return {};
}

}  // namespace foreshard
