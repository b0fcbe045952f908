#include "gui/widgets/outline_style.h"

#include <QPainter>
#include <QStyleOption>

namespace foreshard {

OutlineStyle::OutlineStyle() : QProxyStyle(QStringLiteral("Fusion")) {}

// The high-contrast theme needs visible edges.
static bool wants_edges(const QPalette& palette) { return palette.color(QPalette::Window) == QColor(Qt::black); }

static void outline(QPainter& painter, QRect rect, const QColor& colour, int width) {
  painter.save();
  painter.setBrush(Qt::NoBrush);
  painter.setPen(QPen(colour, width, Qt::SolidLine, Qt::SquareCap, Qt::MiterJoin));
  painter.drawRect(QRectF(rect).adjusted(width / 2.0, width / 2.0, -width / 2.0, -width / 2.0));
  painter.restore();
}

static QColor field_edge(const QStyleOption& option) {
  return option.palette.color(option.state.testFlag(QStyle::State_HasFocus) ? QPalette::Highlight : QPalette::WindowText);
}

static void draw_check_box(QPainter& painter, const QStyleOption& option) {
  const QPalette& palette = option.palette;
  const bool on = option.state.testFlag(QStyle::State_On), some = option.state.testFlag(QStyle::State_NoChange);
  const bool marked = on || some;
  painter.fillRect(option.rect, palette.color(marked ? QPalette::Highlight : QPalette::Base));
  const QColor edge = marked                                           ? palette.color(QPalette::Highlight)
                      : option.state.testFlag(QStyle::State_MouseOver) ? palette.color(QPalette::WindowText)
                                                                       : palette.color(QPalette::PlaceholderText);
  outline(painter, option.rect, edge, wants_edges(palette) ? 2 : 1);
  if (!marked) return;
  const QRectF box(option.rect);
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(QPen(palette.color(QPalette::HighlightedText), 1.8, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
  const auto at = [&](double x, double y) { return QPointF(box.left() + box.width() * x, box.top() + box.height() * y); };
  painter.drawPolyline(on ? QPolygonF({at(0.22, 0.52), at(0.42, 0.74), at(0.78, 0.28)})
                          : QPolygonF({at(0.25, 0.5), at(0.75, 0.5)}));
  painter.restore();
}

int OutlineStyle::pixelMetric(PixelMetric metric, const QStyleOption* option, const QWidget* widget) const {
  return metric == PM_FocusFrameHMargin ? 6 : QProxyStyle::pixelMetric(metric, option, widget);
}

void OutlineStyle::drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter,
                                 const QWidget* widget) const {
  if (element == PE_FrameTabBarBase) return;
  if (element == PE_IndicatorCheckBox || element == PE_IndicatorItemViewItemCheck) return draw_check_box(*painter, *option);
  QProxyStyle::drawPrimitive(element, option, painter, widget);
  if (element == PE_FrameLineEdit && wants_edges(option->palette)) outline(*painter, option->rect, field_edge(*option), 2);
}

void OutlineStyle::drawComplexControl(ComplexControl control, const QStyleOptionComplex* option, QPainter* painter,
                                      const QWidget* widget) const {
  QProxyStyle::drawComplexControl(control, option, painter, widget);
  if ((control == CC_SpinBox || control == CC_ComboBox) && wants_edges(option->palette))
    outline(*painter, option->rect, field_edge(*option), 2);
}

}  // namespace foreshard
