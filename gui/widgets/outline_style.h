// OutlineStyle: Fusion with the edges that it leaves out on dark ground: of check boxes in every theme, of text fields in high
// contrast; with room at the sides of cells, and without its light line under tab bars.
#pragma once

#include <QProxyStyle>

namespace foreshard {

class OutlineStyle : public QProxyStyle {
  Q_OBJECT
 public:
  OutlineStyle();
  void drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter,
                     const QWidget* widget = nullptr) const override;
  void drawComplexControl(ComplexControl control, const QStyleOptionComplex* option, QPainter* painter,
                          const QWidget* widget = nullptr) const override;
  int pixelMetric(PixelMetric metric, const QStyleOption* option = nullptr, const QWidget* widget = nullptr) const override;
};

}  // namespace foreshard
