#include "gui/search/pareto_view.h"

#include <QMouseEvent>
#include <QPainter>
#include <QPainterPath>
#include <QToolTip>
#include <algorithm>
#include <cmath>

#include "gui/widgets/round_ticks.h"
namespace foreshard {

static double gib_of(const SearchRow& row) { return static_cast<double>(row.peak.value) / (1 << 30); }

ParetoView::ParetoView(const SearchRows& rows, QWidget* parent) : QWidget(parent), rows_(rows) {
  setMouseTracking(true);
  setAccessibleName(tr("Time against memory of the strategies found"));
  setAccessibleDescription(tr("The table beside it holds the same strategies."));
  const auto again = [this] {
    measure();
    update();
  };
  connect(&rows, &QAbstractItemModel::rowsInserted, this, again);
  connect(&rows, &QAbstractItemModel::modelReset, this, again);
  connect(&rows, &QAbstractItemModel::dataChanged, this, again);
}

void ParetoView::set_theme(const Theme& theme) {
  theme_ = theme;
  update();
}

void ParetoView::set_marked(int row) {
  marked_ = row;
  update();
}

void ParetoView::measure() {
  if (rows_.rows().empty()) {
    least_time_ = least_memory_ = 0, most_time_ = most_memory_ = 1;
    return;
  }
  least_time_ = least_memory_ = 1e300, most_time_ = most_memory_ = 0;
  for (const SearchRow& row : rows_.rows()) {
    least_time_ = std::min(least_time_, row.seconds()), most_time_ = std::max(most_time_, row.seconds());
    least_memory_ = std::min(least_memory_, gib_of(row)), most_memory_ = std::max(most_memory_, gib_of(row));
  }
  const auto widen = [](double& least, double& most) {
    const double border = std::max((most - least) * 0.06, most * 0.01 + 1e-9);
    least = std::max(0.0, least - border), most += border;
  };
  widen(least_time_, most_time_);
  widen(least_memory_, most_memory_);
}

QRectF ParetoView::plot() const {
  const QFontMetrics metrics(font());
  const double left = metrics.horizontalAdvance("000.0") + 16, bottom = 2 * metrics.height() + 18;
  const double top = 2 * metrics.height() + 14.0;  // the legend, then the name of the upright axis
  return {left, top, width() - left - 14, height() - bottom - top};
}

QPointF ParetoView::place_of(int index) const {
  const SearchRow& row = rows_.rows()[static_cast<std::size_t>(index)];
  const QRectF area = plot();
  return {area.left() + (row.seconds() - least_time_) / (most_time_ - least_time_) * area.width(),
          area.bottom() - (gib_of(row) - least_memory_) / (most_memory_ - least_memory_) * area.height()};
}

int ParetoView::row_at(QPointF place) const {
  int nearest = -1;
  double best = 100;  // pixels squared
  for (int i = 0; i < rows_.rowCount(); ++i) {
    const QPointF d = place_of(i) - place;
    if (const double distance = d.x() * d.x() + d.y() * d.y(); distance <= best) best = distance, nearest = i;
  }
  return nearest;
}

// Later schedules get the next colour and shape by themselves.
static std::size_t kind_of(const Strategy& strategy) {
  return static_cast<std::size_t>(strategy.pipeline.schedule.value_or(Schedule::OneFOneB));
}

static QColor colour_of(const Theme& theme, const Strategy& strategy) {
  const QColor colours[] = {theme.of(Cell::WeightGradient),
                            theme.of(Cell::Forward),
                            theme.of(Cell::Backward),
                            theme.in_line(),
                            theme.transfer(),
                            theme.collective()};
  return colours[kind_of(strategy) % std::size(colours)];
}

// Square, circle, triangle, diamond: the second cue.
static void paint_mark(QPainter& painter, QPointF at, const Strategy& strategy, double r) {
  switch (kind_of(strategy) % 4) {
    case 0: painter.drawRect(QRectF(at.x() - r * 0.9, at.y() - r * 0.9, r * 1.8, r * 1.8)); return;
    case 1: painter.drawEllipse(at, r, r); return;
    case 2:
      painter.drawPolygon(
          QPolygonF({at + QPointF(0, -r * 1.2), at + QPointF(r * 1.1, r * 0.9), at + QPointF(-r * 1.1, r * 0.9)}));
      return;
    default:
      painter.drawPolygon(QPolygonF(
          {at + QPointF(0, -r * 1.3), at + QPointF(r * 1.3, 0), at + QPointF(0, r * 1.3), at + QPointF(-r * 1.3, 0)}));
  }
}

void ParetoView::paint_grid(QPainter& painter) const {
  const QRectF area = plot();
  const QFontMetrics metrics(font());
  const double unit = most_time_ < 1 ? 1e3 : 1;  // milliseconds below a second
  painter.setPen(theme_.rule);
  const auto xs = round_ticks(least_time_ * unit, most_time_ * unit, std::max(2, static_cast<int>(area.width() / 80)));
  const auto ys = round_ticks(least_memory_, most_memory_, std::max(2, static_cast<int>(area.height() / 45)));
  for (const double x : xs) {
    const double at = area.left() + (x / unit - least_time_) / (most_time_ - least_time_) * area.width();
    painter.setPen(theme_.rule);
    painter.drawLine(QPointF(at, area.top()), QPointF(at, area.bottom()));
    painter.setPen(theme_.faint);
    painter.drawText(QRectF(at - 40, area.bottom() + 3, 80, metrics.height()), Qt::AlignHCenter, QString::number(x, 'g', 6));
  }
  for (const double y : ys) {
    const double at = area.bottom() - (y - least_memory_) / (most_memory_ - least_memory_) * area.height();
    painter.setPen(theme_.rule);
    painter.drawLine(QPointF(area.left(), at), QPointF(area.right(), at));
    painter.setPen(theme_.faint);
    painter.drawText(QRectF(0, at - metrics.height() / 2.0, area.left() - 6, metrics.height()),
                     Qt::AlignRight | Qt::AlignVCenter, QString::number(y, 'g', 5));
  }
  painter.setPen(theme_.faint);
  painter.drawText(QRectF(area.left(), area.bottom() + metrics.height() + 5, area.width(), metrics.height()),
                   Qt::AlignRight | Qt::TextDontClip,  // Chinese is taller than the metrics of the font say
                   unit > 1 ? tr("step time [ms]") : tr("step time [s]"));
  painter.drawText(QPointF(6, metrics.height() + metrics.ascent() + 4), tr("peak memory [GiB]"));
}

void ParetoView::paint_points(QPainter& painter) const {
  const auto& rows = rows_.rows();
  const std::vector<int> front = pareto_front(rows);
  QPainterPath line;
  for (const int i : front) {  // steps: between two points the slower one's memory is not yet had
    const QPointF at = place_of(i);
    if (line.elementCount() == 0)
      line.moveTo(at);
    else
      line.lineTo(QPointF(at.x(), line.currentPosition().y())), line.lineTo(at);
  }
  painter.setPen(QPen(theme_.accent, 1.5));
  painter.setBrush(Qt::NoBrush);
  painter.drawPath(line);
  for (int i = 0; i < static_cast<int>(rows.size()); ++i) {
    const SearchRow& row = rows[static_cast<std::size_t>(i)];
    const bool best = std::find(front.begin(), front.end(), i) != front.end();
    QColor colour = colour_of(theme_, row.strategy);
    painter.setPen(row.simulated ? QPen(theme_.text, 1.6) : QPen(colour.darker(130), 1));
    if (!best) colour.setAlphaF(0.55F);
    painter.setBrush(colour);
    paint_mark(painter, place_of(i), row.strategy, best ? 5.5 : 4.5);
  }
  if (marked_ < 0 || marked_ >= static_cast<int>(rows.size())) return;
  painter.setPen(QPen(theme_.cursor, 2));
  painter.setBrush(Qt::NoBrush);
  painter.drawEllipse(place_of(marked_), 10, 10);
}

void ParetoView::paint_legend(QPainter& painter) const {
  std::vector<Strategy> kinds;
  for (const SearchRow& row : rows_.rows())
    if (std::none_of(kinds.begin(), kinds.end(),
                     [&](const Strategy& k) { return k.pipeline.schedule == row.strategy.pipeline.schedule; }))
      kinds.push_back(row.strategy);
  std::sort(kinds.begin(), kinds.end(),
            [](const Strategy& a, const Strategy& b) { return a.pipeline.schedule < b.pipeline.schedule; });
  const QFontMetrics metrics(font());
  double x = width() - 14;
  const double y = 4;
  const auto entry = [&](const QString& text, auto mark) {
    x -= metrics.horizontalAdvance(text);
    painter.setPen(theme_.text);
    painter.drawText(QPointF(x, y + metrics.ascent()), text);
    x -= 10;
    mark(QPointF(x, y + metrics.height() / 2.0));
    x -= 14;
  };
  entry(tr("simulated"), [&](QPointF at) {
    painter.setPen(QPen(theme_.text, 1.6));
    painter.setBrush(Qt::NoBrush);
    painter.drawEllipse(at, 4.5, 4.5);
  });
  for (auto kind = kinds.rbegin(); kind != kinds.rend(); ++kind)
    entry(name_of(kind->pipeline.schedule.value_or(Schedule::OneFOneB)), [&](QPointF at) {
      painter.setPen(Qt::NoPen);
      painter.setBrush(colour_of(theme_, *kind));
      paint_mark(painter, at, *kind, 4.5);
    });
}

void ParetoView::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), theme_.background);
  painter.setRenderHint(QPainter::Antialiasing);
  if (rows_.rows().empty()) {
    painter.setPen(theme_.faint);
    painter.drawText(rect().adjusted(20, 20, -20, -20), Qt::AlignCenter | Qt::TextWordWrap,
                     tr("Every strategy that a search finds appears here: time against memory."));
    return;
  }
  paint_grid(painter);
  paint_points(painter);
  paint_legend(painter);
}

void ParetoView::mousePressEvent(QMouseEvent* event) {
  const int row = row_at(event->position());
  if (event->button() == Qt::LeftButton && row >= 0) Q_EMIT picked(row, event->modifiers().testFlag(Qt::ControlModifier));
}

bool ParetoView::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  const int index = row_at(help->pos());
  if (index < 0) {
    QToolTip::hideText();
    return true;
  }
  QStringList lines;
  for (int column = 0; column < rows_.columnCount(); ++column)
    lines << rows_.headerData(column, Qt::Horizontal).toString() + ": " + rows_.data(rows_.index(index, column)).toString();
  QToolTip::showText(help->globalPos(), lines.join("\n"), this);
  return true;
}

}  // namespace foreshard
