#include "gui/run/loss_curve.h"

#include <QPainter>
#include <algorithm>
#include <cmath>

#include "gui/widgets/round_ticks.h"

namespace foreshard {

LossCurve::LossCurve(QWidget* parent) : QWidget(parent) {
  setAccessibleName(tr("Loss by step"));
  setMinimumHeight(90);
}

void LossCurve::clear() {
  losses_.clear();
  update();
}

void LossCurve::add(double loss) {
  losses_.push_back(loss);
  setAccessibleDescription(tr("step %1: loss %2").arg(losses_.size()).arg(loss));
  update();
}

void LossCurve::set_theme(const Theme& theme) {
  theme_ = theme;
  update();
}

void LossCurve::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.fillRect(rect(), theme_.background);
  const QFontMetrics metrics(font());
  painter.setPen(theme_.faint);
  if (losses_.empty()) {
    painter.drawText(rect(), Qt::AlignCenter, tr("loss by step"));
    return;
  }
  double least = 1e300, most = -1e300;
  for (const double loss : losses_)
    if (std::isfinite(loss)) least = std::min(least, loss), most = std::max(most, loss);
  if (!(most > least)) least -= 0.5, most = least + 1;
  const double border = (most - least) * 0.1;
  least -= border, most += border;
  const QRectF area(metrics.horizontalAdvance("000.00") + 10, 8, width() - metrics.horizontalAdvance("000.00") - 20,
                    height() - metrics.height() - 16);
  for (const double tick : round_ticks(least, most, 4)) {
    const double y = area.bottom() - (tick - least) / (most - least) * area.height();
    painter.setPen(theme_.rule);
    painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y));
    painter.setPen(theme_.faint);
    painter.drawText(QRectF(0, y - metrics.height() / 2.0, area.left() - 6, metrics.height()),
                     Qt::AlignRight | Qt::AlignVCenter, QString::number(tick, 'g', 4));
  }
  QPolygonF line;
  const double steps = std::max<double>(1, static_cast<double>(losses_.size()) - 1);
  for (std::size_t i = 0; i < losses_.size(); ++i)
    if (std::isfinite(losses_[i]))
      line << QPointF(area.left() + static_cast<double>(i) / steps * area.width(),
                      area.bottom() - (losses_[i] - least) / (most - least) * area.height());
  painter.setPen(QPen(theme_.accent, 2));
  painter.drawPolyline(line);
  painter.setBrush(theme_.accent);
  if (!line.isEmpty()) painter.drawEllipse(line.last(), 3, 3);
  painter.setPen(theme_.faint);
  painter.drawText(QRectF(area.left(), area.bottom() + 4, area.width(), metrics.height()), Qt::AlignRight,
                   tr("step %1").arg(losses_.size()));
}

}  // namespace foreshard
