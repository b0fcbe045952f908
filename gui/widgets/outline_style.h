// OutlineStyle: Qt's Fusion style plus the edges that it omits on a dark background: those of check boxes in every theme, those of text
// fields in high contrast. It adds horizontal padding to cells and removes the light line under tab bars.
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
