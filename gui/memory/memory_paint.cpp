// MemoryView: painting.
#include <QPainter>
#include <QPainterPath>
#include <algorithm>
#include <cmath>

#include "gui/document/words.h"
#include "gui/memory/memory_view.h"
#include "gui/timeline/timeline_view.h"
#include "report/summary/memory_rows.h"
#include "report/words/span_words.h"

namespace foreshard {

static constexpr Category kLegend[] = {Category::Framework,   Category::Parameters, Category::Gradients,    Category::Optimizer,
                                       Category::Activations, Category::Transient,  Category::Communication};

static QString space_words(Space space) {
  switch (space) {
    case Space::Device: return MemoryView::tr("device");
    case Space::PinnedHost: return MemoryView::tr("host, pinned");
    case Space::PageableHost: return MemoryView::tr("host");
    case Space::Nvme: return MemoryView::tr("NVMe");
  }
  return {};
}

void MemoryView::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), theme_.background);
  if (!document_) {
    painter.setPen(theme_.faint);
    painter.drawText(rect(), Qt::AlignCenter, tr("Memory over time appears here"));
    return;
  }
  QFont small = font();
  small.setPointSizeF(std::max(font().pointSizeF() * 0.85, 6.0));
  painter.setFont(small);
  painter.fillRect(QRect(0, 0, kHeaderWidth, height()), theme_.panel);
  painter.fillRect(QRect(chart().right() + 1, 0, kGutterWidth, height()), theme_.panel);
  if (const MemorySeries* shown = series()) {
    const double scale = devicePixelRatioF();
    const QSize size = (QSizeF(chart().size()) * scale).toSize();
    const Bytes framework = space_ == Space::Device ? document_->summary.fit.framework : Bytes{};
    QImage image = draw_memory(*shown, axis_.visible(), size, {top(), framework}, theme_);
    image.setDevicePixelRatio(scale);
    painter.drawImage(chart().topLeft(), image);
    paint_axis(painter);
    paint_limits(painter);
    paint_peak(painter);
  } else {
    painter.setPen(theme_.faint);
    painter.drawText(chart(), Qt::AlignCenter, loading_.isRunning() ? tr("reading ...") : tr("nothing lives in this memory"));
  }
  paint_header(painter);
  paint_bars(painter);
  paint_cursor(painter);
}

static double nice_gib(double most, int lines) {
  const double least = most / lines;
  double step = std::pow(10, std::floor(std::log10(std::max(least, 1e-6))));
  for (const double times : {1.0, 2.0, 5.0, 10.0})
    if (step * times >= least) return step * times;
  return step * 10;
}

void MemoryView::paint_axis(QPainter& painter) const {
  const double most = in_gib(top()), step = nice_gib(most, std::max(chart().height() / 34, 1));
  for (double gib = 0; gib <= most; gib += step) {
    const double y = y_of({static_cast<std::int64_t>(gib * 1073741824.0)});
    QColor line = theme_.text;
    line.setAlpha(26);
    painter.setPen(line);
    painter.drawLine(QPointF(chart().left(), y), QPointF(chart().right(), y));
    if (y < chart().top() + 18) continue;
    painter.setPen(theme_.faint);
    painter.drawText(QRectF(kHeaderWidth - 66, y - 8, 60, 16), Qt::AlignRight | Qt::AlignVCenter,
                     (gib >= 1000 ? count_words(std::llround(gib)) : QString::number(gib, 'g', 4)) + (gib == 0 ? "" : " GiB"));
  }
}

// In a fixed order: an order by value would change from one strategy to the next.
std::vector<MemoryLimit> MemoryView::limits() const {
  std::vector<MemoryLimit> limits;
  if (series() == nullptr) return limits;
  const Bytes framework = space_ == Space::Device ? document_->summary.fit.framework : Bytes{};
  const StageMemory* stage = row();
  if (capacity() > Bytes{}) {
    limits.push_back({capacity(), tr("capacity"), theme_.limit, Qt::SolidLine});
    if (space_ == Space::Device && document_->summary.fit.reserve > Bytes{})
      limits.push_back({usable(document_->summary), tr("usable"), theme_.limit, Qt::DashLine});
  }
  if (series()->arena > Bytes{}) limits.push_back({series()->arena + framework, tr("reserved"), theme_.accent, Qt::SolidLine});
  if (space_ == Space::Device && stage != nullptr && stage->order_bound > Bytes{})
    limits.push_back({stage->order_bound + framework, tr("worst"), theme_.accent, Qt::DotLine});
  return limits;
}

// Lines across the chart; the gutter names them from the top, each with a piece of its line.
void MemoryView::paint_limits(QPainter& painter) const {
  const std::vector<MemoryLimit> all = limits();
  const bool named = chart().height() >= 29 * std::ssize(all);  // else the piece of line and the number have to do
  double y = chart().top();
  for (const MemoryLimit& limit : all) {
    const QPen pen(limit.colour, 1.4, limit.style);
    painter.setPen(pen);
    if (limit.at <= top())
      painter.drawLine(QPointF(chart().left(), y_of(limit.at)), QPointF(chart().right() + 1, y_of(limit.at)));
    if (y + 14 > chart().bottom()) continue;
    painter.drawLine(QPointF(chart().right() + 8, y + 7), QPointF(chart().right() + 22, y + 7));
    const QRectF room(chart().right() + 26, y, kGutterWidth - 30, 14);
    if (named)
      painter.drawText(room, Qt::AlignLeft | Qt::AlignVCenter,
                       painter.fontMetrics().elidedText(limit.words, Qt::ElideRight, static_cast<int>(room.width())));
    painter.setPen(theme_.faint);
    painter.drawText(room.translated(0, named ? 13 : 0), Qt::AlignLeft | Qt::AlignVCenter, gib_words(limit.at));
    y += named ? 29 : 15;
  }
}

void MemoryView::paint_peak(QPainter& painter) const {
  const MemorySeries& shown = *series();
  const double x = x_of(shown.peak_time);
  if (x < chart().left() || x > chart().right()) return;
  const Bytes framework = space_ == Space::Device ? document_->summary.fit.framework : Bytes{};
  const double y = y_of(sum(shown.peak) + framework);
  QString words =
      (space_ == Space::Device ? tr("peak incl. framework %1") : tr("peak %1")).arg(bytes_words(sum(shown.peak) + framework));
  if (const Lane* lane = document_->lanes.find(who_, LaneKind::Compute)) {
    const auto slice = lane->slice_at(shown.peak_time.value);
    if (slice) {
      const Span& span = document_->trace().spans[static_cast<std::size_t>(lane->span[*slice])];
      words += tr(" in %1").arg(
          QString::fromStdString(action_name(document_->plan(), action_of(document_->plan(), document_->trace(), span))));
    }
  }
  const auto most = std::ranges::max_element(shown.peak);
  if (*most > Bytes{})
    words += tr(", %1 of it %2").arg(bytes_words(*most), category_words(static_cast<Category>(most - shown.peak.begin())));
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(QPen(theme_.background, 2));
  painter.setBrush(theme_.text);
  painter.drawEllipse(QPointF(x, y), 4.5, 4.5);
  const QFontMetricsF metrics(painter.font());
  const double wide = metrics.horizontalAdvance(words) + 14;
  double left = x + 9;
  if (left + wide > chart().right()) left = std::max(x - 9 - wide, chart().left() + 2.0);
  const double top_edge = std::clamp(y - 24, chart().top() + 1.0, std::max(chart().bottom() - 20.0, chart().top() + 1.0));
  QColor plate = theme_.background;
  plate.setAlpha(225);
  painter.setPen(Qt::NoPen);
  painter.setBrush(plate);
  painter.drawRoundedRect(QRectF(left, top_edge, wide, 18), 4, 4);
  painter.setPen(theme_.text);
  painter.drawText(QRectF(left, top_edge, wide, 18), Qt::AlignCenter, words);
  painter.setRenderHint(QPainter::Antialiasing, false);
}

void MemoryView::paint_header(QPainter& painter) const {
  painter.setPen(theme_.rule);
  painter.drawLine(kHeaderWidth - 1, 0, kHeaderWidth - 1, height());
  painter.drawLine(chart().right() + 1, 0, chart().right() + 1, height());
  const StageMemory* stage = row();
  if (stage == nullptr) return;
  painter.setPen(theme_.text);
  painter.drawText(QRectF(10, 6, kHeaderWidth - 16, 16), Qt::AlignLeft | Qt::AlignVCenter, role_words(stage->role));
  painter.setPen(loaded_.series.size() > 1 ? theme_.accent : theme_.faint);
  painter.drawText(QRectF(10, 22, kHeaderWidth - 70, 16), Qt::AlignLeft | Qt::AlignVCenter,
                   space_words(space_) + (loaded_.series.size() > 1 ? QString::fromUtf8(" \u25be") : QString()));
  if (series() == nullptr || chart().height() < 110) return;
  double y = 44;
  const auto number = [&](const QString& words, Bytes bytes) {
    if (bytes <= Bytes{}) return;
    painter.setPen(theme_.faint);
    painter.drawText(QRectF(10, y, 72, 14), Qt::AlignLeft | Qt::AlignVCenter, words);
    painter.setPen(theme_.text);
    painter.drawText(QRectF(10, y + 13, 66, 14), Qt::AlignLeft | Qt::AlignVCenter, bytes_words(bytes));
    y += 30;
  };
  const bool device = space_ == Space::Device;
  const Bytes framework = device ? document_->summary.fit.framework : Bytes{};
  number(tr("peak in use"), sum(series()->peak) + framework);
  if (device && stage->order_bound > Bytes{} && y + 28 < chart().bottom())
    number(tr("worst order"), stage->order_bound + framework);
  if (y + 28 < chart().bottom()) number(tr("reserved"), series()->arena + framework);
}

void MemoryView::paint_bars(QPainter& painter) const {
  if (bars().isEmpty() || document_->summary.memory.empty()) return;
  painter.setPen(theme_.rule);
  painter.drawLine(0, chart().bottom() + 5, width(), chart().bottom() + 5);
  painter.setPen(theme_.faint);
  painter.drawText(QRectF(10, bars().top() - 2, kHeaderWidth - 16, 16), Qt::AlignLeft, tr("peaks incl. framework"));
  const QFontMetricsF metrics(painter.font());
  double y = bars().top() + 16;
  const double line = std::clamp((height() - y - 2) / static_cast<double>(std::size(kLegend)), 11.0, 15.0);
  for (const Category category : kLegend) {  // the legend of both pictures
    if (y + 11 > height()) break;
    painter.fillRect(QRectF(10, y + 3, 9, 9), theme_.of(category));
    painter.setPen(theme_.faint);
    painter.drawText(QRectF(24, y, kHeaderWidth - 28, 15), Qt::AlignLeft | Qt::AlignVCenter, category_words(category));
    y += line;
  }
  for (std::size_t role = 0; role < document_->summary.memory.size(); ++role) paint_bar(painter, role);
  const Bytes limit = document_->summary.fit.capacity;
  if (limit <= Bytes{} || limit > bars_top()) return;
  const QRect area = bars();
  const auto height_of = [&](Bytes bytes) {
    return static_cast<double>(bytes.value) / static_cast<double>(bars_top().value) * area.height();
  };
  painter.setPen(QPen(theme_.limit, 1.4));
  painter.drawLine(QPointF(area.left(), area.bottom() + 1 - height_of(limit)),
                   QPointF(area.right() + 5, area.bottom() + 1 - height_of(limit)));
  painter.drawText(QRectF(area.right() + 8, area.bottom() - 6 - height_of(limit), kGutterWidth - 10, 14),
                   Qt::AlignLeft | Qt::AlignVCenter, tr("capacity"));
}

// Filled: in use at the peak, by category. Outlined: the reserved arena. Dotted: the worst case of any order.
void MemoryView::paint_bar(QPainter& painter, std::size_t role) const {
  const StageMemory& stage = document_->summary.memory[role];
  const QRectF slot = bar_of(role);
  const auto height_of = [&](Bytes bytes) {
    return static_cast<double>(bytes.value) / static_cast<double>(bars_top().value) * slot.height();
  };
  const Bytes framework = document_->summary.fit.framework;
  const LiveBytes parts = peak_parts(document_->summary, stage);
  double bottom = slot.bottom();
  for (const Category category : kLegend) {
    const Bytes bytes = parts[static_cast<std::size_t>(category)];
    const double tall = height_of(bytes);
    painter.fillRect(QRectF(slot.left(), bottom - tall, slot.width(), tall), theme_.of(category));
    bottom -= tall;
  }
  painter.setBrush(Qt::NoBrush);
  painter.setPen(QPen(theme_.accent, 1));
  painter.drawRect(QRectF(slot.left() - 1.5, slot.bottom() - height_of(stage.with_framework), slot.width() + 3,
                          height_of(stage.with_framework)));
  if (stage.order_bound > Bytes{}) {
    const double y = slot.bottom() - height_of(stage.order_bound + framework);
    painter.setPen(QPen(theme_.accent, 1.4, Qt::DotLine));
    painter.drawLine(QPointF(slot.left() - 4, y), QPointF(slot.right() + 4, y));
  }
  const StageMemory* shown = row();
  const bool picked = shown == &stage;
  const QFontMetricsF metrics(painter.font());
  const QString name = role_words(stage.role), number = bytes_words(peak_of(document_->summary, stage));
  const double room = static_cast<double>(bars().width()) / static_cast<double>(document_->summary.memory.size());
  const bool names = std::ranges::all_of(document_->summary.memory, [&](const StageMemory& other) {
    return metrics.horizontalAdvance(role_words(other.role)) <= room - 4;
  });
  const QString words = names ? name : QString::number(role);
  if (metrics.horizontalAdvance(words) > room - 2) return;
  painter.setPen(picked ? theme_.accent : theme_.faint);
  painter.drawText(QRectF(slot.center().x() - room / 2, slot.bottom() + 3, room, 15), Qt::AlignCenter, words);
  if (metrics.horizontalAdvance(number) > room - 4) return;
  painter.setPen(theme_.text);
  painter.drawText(QRectF(slot.center().x() - room / 2, slot.bottom() - height_of(stage.with_framework) - 16, room, 14),
                   Qt::AlignCenter, number);
}

void MemoryView::paint_cursor(QPainter& painter) const {
  const QRect area = chart();
  if (const auto selected = axis_.selected()) {
    const double from = std::max(x_of(selected->begin), area.left() * 1.0),
                 to = std::min(x_of(selected->end), area.right() + 1.0);
    painter.setPen(QPen(theme_.accent, 1));
    if (from <= to) {
      painter.drawLine(QPointF(from, area.top()), QPointF(from, area.bottom()));
      painter.drawLine(QPointF(to, area.top()), QPointF(to, area.bottom()));
    }
  }
  const auto cursor = axis_.cursor();
  if (!cursor) return;
  const double x = std::round(x_of(*cursor));
  if (x < area.left() || x > area.right()) return;
  QColor line = theme_.cursor;
  line.setAlpha(170);
  painter.setPen(line);
  painter.drawLine(QPointF(x, 0), QPointF(x, area.bottom()));
}

}  // namespace foreshard
