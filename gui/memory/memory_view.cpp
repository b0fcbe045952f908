#include "gui/memory/memory_view.h"

#include <QHelpEvent>
#include <QMouseEvent>
#include <QToolTip>
#include <QWheelEvent>
#include <QtConcurrent>
#include <algorithm>
#include <cmath>

#include "gui/document/background.h"
#include "gui/document/picked_range.h"
#include "gui/document/words.h"
#include "gui/timeline/timeline_view.h"
#include "report/summary/memory_rows.h"

namespace foreshard {

static constexpr std::size_t kSpansAtOnce = 40'000;  // of a class: more are read in a worker

MemoryView::MemoryView(TimeAxis& axis, Selection& selection, QWidget* parent)
    : QWidget(parent), axis_(axis), selection_(selection), theme_(theme_of(ThemeName::Dark)) {
  setMouseTracking(true);
  setMinimumSize(320, 100);
  setAccessibleName(tr("Memory"));
  setAccessibleDescription(tr("Live bytes by category over time; the table of memory holds the peaks of every stage in text"));
  const auto repaint = [this] { update(); };
  connect(&axis_, &TimeAxis::visible_changed, this, repaint);
  connect(&axis_, &TimeAxis::cursor_changed, this, repaint);
  connect(&axis_, &TimeAxis::selected_changed, this, repaint);
  connect(&selection_, &Selection::changed, this, [this] { follow_selection(); });
  connect(&loading_, &QFutureWatcherBase::finished, this, [this] {
    Loaded loaded = loading_.result();
    if (loaded.who == who_ && loaded.of == document_) loaded_ = std::move(loaded);
    update();
  });
}

MemoryView::~MemoryView() = default;  // a worker keeps what it reads

MemoryView::Loaded MemoryView::load(const Document& document, ClassId who) {
  Loaded loaded{who, make_series(document, who), {}, {}};
  if (!loaded.series.empty())
    loaded.at_peak = live_blocks(document, who, loaded.series.front().space, loaded.series.front().peak_time);
  return loaded;
}

void MemoryView::set_document(std::shared_ptr<const Document> document) {
  document_ = std::move(document);  // a worker of the one before goes on in vain
  loaded_ = {};
  who_ = {};
  space_ = Space::Device;
  if (document_) show_class(tightest_class(*document_));
  update();
}

void MemoryView::set_theme(const Theme& theme) {
  theme_ = theme;
  update();
}

void MemoryView::set_space(Space space) {
  space_ = space;
  update();
}

void MemoryView::wait_for_series() {
  if (series() != nullptr || !loading_.isRunning()) return;
  loading_.waitForFinished();
  loaded_ = loading_.result();
}

void MemoryView::show_class(ClassId who) {
  if (!who.valid() || who == who_) return;
  who_ = who;
  const auto spans = std::ranges::equal_range(document_->trace().spans, who, {}, &Span::who);
  if (spans.size() <= kSpansAtOnce)
    loaded_ = load(*document_, who);
  else
    loading_.setFuture(QtConcurrent::run(guarded([document = document_, who] {
      Loaded loaded = load(*document, who);
      loaded.of = document;
      return loaded;
    })));
  update();
}

void MemoryView::follow_selection() {
  const Picked picked = selection_.picked();
  if (!document_ || picked.index < 0) return;
  show_class(class_of(*document_, picked));
}

const MemorySeries* MemoryView::series() const {
  const auto found = std::ranges::find(loaded_.series, space_, &MemorySeries::space);
  return found == loaded_.series.end() ? nullptr : &*found;
}

const StageMemory* MemoryView::row() const {
  if (!document_ || !who_.valid() || who_.index() >= document_->trace().classes.size()) return nullptr;
  const std::size_t role = document_->trace().classes[who_.index()].role.index();
  return role < document_->summary.memory.size() ? &document_->summary.memory[role] : nullptr;
}

Bytes MemoryView::capacity() const {
  if (!document_) return {};
  switch (space_) {
    case Space::Device: return document_->summary.fit.capacity;
    case Space::PinnedHost:
    case Space::PageableHost:
      return document_->cluster && !document_->cluster->nodes.empty() ? document_->cluster->nodes.front().shape.host_memory
                                                                      : Bytes{};
    case Space::Nvme:
      return document_->cluster && !document_->cluster->nodes.empty() ? document_->cluster->nodes.front().shape.nvme : Bytes{};
  }
  return {};
}

QRect MemoryView::chart() const {
  const int bars_height = height() >= 190 ? std::clamp(height() * 2 / 5, 84, 190) : 0;
  return {kHeaderWidth, 8, std::max(width() - kHeaderWidth - kGutterWidth, 1), std::max(height() - bars_height - 14, 1)};
}

QRect MemoryView::bars() const {
  const int from = chart().bottom() + 22, room = height() - from - 20;
  return room < 40 ? QRect() : QRect(kHeaderWidth, from, chart().width(), room);
}

double MemoryView::x_of(Nanoseconds when) const {
  const QRect area = chart();
  return area.left() + static_cast<double>((when - axis_.visible().begin).value) * area.width() /
                           static_cast<double>(axis_.visible().length().value);
}

Nanoseconds MemoryView::time_at(double x) const {
  const QRect area = chart();
  return {axis_.visible().begin.value +
          static_cast<std::int64_t>(
              std::floor((x - area.left()) * static_cast<double>(axis_.visible().length().value) / area.width()))};
}

// The chart includes the capacity unless the curve would become too flat.
Bytes MemoryView::top() const {
  const MemorySeries* shown = series();
  Bytes most = shown == nullptr ? Bytes{1} : std::max(sum(shown->peak), shown->arena);
  if (space_ == Space::Device) most += document_->summary.fit.framework;
  if (capacity() > Bytes{} && capacity().value < most.value * 4) most = std::max(most, capacity());
  return {std::max<std::int64_t>(most.value + most.value / 8, 1)};  // room for the words at the peak
}

double MemoryView::y_of(Bytes bytes) const {
  const QRect area = chart();
  return area.bottom() + 1 - static_cast<double>(bytes.value) / static_cast<double>(top().value) * area.height();
}

Bytes MemoryView::bars_top() const {
  Bytes most = {1};
  for (const StageMemory& stage : document_->summary.memory) most = std::max({most, stage.with_framework, stage.order_bound});
  const Bytes limit = document_->summary.fit.capacity;
  if (limit > Bytes{} && limit.value < most.value * 4) most = std::max(most, limit);
  return {most.value + most.value / 8};
}

QRectF MemoryView::bar_of(std::size_t role) const {
  const QRect area = bars();
  const double slot = static_cast<double>(area.width()) / static_cast<double>(document_->summary.memory.size());
  const double wide = std::min(slot * 0.72, 64.0);
  return {area.left() + slot * (static_cast<double>(role) + 0.5) - wide / 2, static_cast<double>(area.top()), wide,
          static_cast<double>(area.height())};
}

int MemoryView::role_under(QPoint at) const {
  if (!document_ || document_->summary.memory.empty() || !bars().adjusted(0, -8, 0, 18).contains(at)) return -1;
  const double slot = static_cast<double>(bars().width()) / static_cast<double>(document_->summary.memory.size());
  return std::clamp(static_cast<int>((at.x() - bars().left()) / slot), 0,
                    static_cast<int>(document_->summary.memory.size()) - 1);
}

QString MemoryView::words_at(QPoint at) const {
  QStringList lines;
  const auto list = [&](const LiveBytes& live) {
    for (int c = 0; c < kCategories; ++c)
      if (const Bytes bytes = live[static_cast<std::size_t>(c)]; bytes > Bytes{})
        lines << category_words(static_cast<Category>(c)) + "  " + bytes_words(bytes);
  };
  if (series() != nullptr && at.x() > chart().right() && at.y() <= chart().bottom())
    return tr(
        "capacity: memory of the device\nusable: capacity less the reserve that stays free\n"
        "reserved: the arena that the plan reserves\nworst: what the worst order of the same work would need");
  if (const int role = role_under(at); role >= 0) {
    const StageMemory& stage = document_->summary.memory[static_cast<std::size_t>(role)];
    const Summary& summary = document_->summary;
    lines << tr("%1: peak incl. framework %2").arg(role_words(stage.role), peak_words(summary, stage));
    list(peak_parts(summary, stage));
    if (stage.order_bound > Bytes{})
      lines << tr("worst case of any order %1").arg(bytes_words(stage.order_bound + summary.fit.framework));
    lines << tr("reserved arena %1").arg(bytes_words(stage.with_framework));
  } else if (const MemorySeries* shown = series(); shown != nullptr && chart().contains(at)) {
    LiveBytes live = shown->at(time_at(at.x()));
    if (space_ == Space::Device) live[static_cast<std::size_t>(Category::Framework)] += document_->summary.fit.framework;
    if (std::abs(x_of(shown->peak_time) - at.x()) < 6 && space_ == Space::Device) {
      lines << tr("largest at the peak:");
      for (std::size_t b = 0; b < std::min<std::size_t>(loaded_.at_peak.size(), 6); ++b)
        lines << QString::fromUtf8("%1 \u00d7 %2  %3")
                     .arg(count_words(loaded_.at_peak[b].count), QString::fromStdString(loaded_.at_peak[b].buffer),
                          bytes_words(loaded_.at_peak[b].bytes));
    }
    lines << (space_ == Space::Device ? tr("in use incl. framework %1") : tr("in use %1")).arg(bytes_words(sum(live)));
    list(live);
    if (const Bytes experts = sum(shown->experts_at(time_at(at.x()))); experts > Bytes{})
      lines << tr("states of experts (hatched) %1").arg(bytes_words(experts));
  }
  return lines.join('\n');
}

void MemoryView::mouseMoveEvent(QMouseEvent* event) {
  const bool inside =
      event->pos().x() >= chart().left() && event->pos().x() <= chart().right() && event->pos().y() <= chart().bottom();
  axis_.set_cursor(inside && document_ ? std::optional(time_at(event->pos().x())) : std::nullopt);
  Q_EMIT hovered(words_at(event->pos()).replace('\n', "   "));
}

void MemoryView::mousePressEvent(QMouseEvent* event) {
  if (!document_ || event->button() != Qt::LeftButton) return;
  if (const int role = role_under(event->pos()); role >= 0) {
    for (std::size_t c = 0; c < document_->trace().classes.size(); ++c)
      if (document_->trace().classes[c].role.value == role)
        return selection_.pick({PickedKind::Class, static_cast<std::int32_t>(c), {}});
  }
  if (event->pos().x() < kHeaderWidth && loaded_.series.size() > 1) {  // the next space
    const auto now = std::ranges::find(loaded_.series, space_, &MemorySeries::space);
    const auto next =
        now == loaded_.series.end() || std::next(now) == loaded_.series.end() ? loaded_.series.begin() : std::next(now);
    set_space(next->space);
  }
}

void MemoryView::wheelEvent(QWheelEvent* event) {
  const double notches = (event->angleDelta().y() != 0 ? event->angleDelta().y() : event->angleDelta().x()) / 120.0;
  if (event->modifiers().testFlag(Qt::ControlModifier))
    axis_.zoom(std::pow(1.4, notches), time_at(event->position().x()));
  else
    axis_.pan({std::llround(-notches * 0.12 * static_cast<double>(axis_.visible().length().value))});
  event->accept();
}

void MemoryView::leaveEvent(QEvent*) {
  axis_.set_cursor({});
  Q_EMIT hovered({});
}

bool MemoryView::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  const QString words = words_at(help->pos());
  if (words.isEmpty())
    QToolTip::hideText();
  else
    QToolTip::showText(help->globalPos(), words, this);
  return true;
}

}  // namespace foreshard
