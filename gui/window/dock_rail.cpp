#include "gui/window/dock_rail.h"

#include <QDockWidget>
#include <QPainter>

namespace foreshard {

RailButton::RailButton(QDockWidget* dock, bool left) : left_(left) {
  setText(dock->windowTitle());
  setAccessibleName(dock->windowTitle());
  setCheckable(true);
  setFocusPolicy(Qt::TabFocus);
  connect(dock, &QDockWidget::visibilityChanged, this, [this, dock] { setChecked(!dock->isHidden()); });
}

QSize RailButton::sizeHint() const { return {fontMetrics().height() + 10, fontMetrics().horizontalAdvance(text()) + 24}; }

void RailButton::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  const QPalette& colours = palette();
  if (isChecked() || underMouse() || hasFocus()) painter.fillRect(rect(), colours.color(QPalette::Button));
  if (isChecked() || hasFocus()) {
    const int edge = left_ ? 0 : width() - 2;
    painter.fillRect(QRect(edge, 0, 2, height()), colours.color(QPalette::Highlight));
  }
  painter.setPen(colours.color(QPalette::WindowText));
  painter.translate(width() / 2.0, height() / 2.0);
  painter.rotate(left_ ? -90 : 90);
  painter.drawText(QRectF(-height() / 2.0, -width() / 2.0, height(), width()), Qt::AlignCenter, text());
}

DockRail::DockRail(bool left) {
  setObjectName(left ? "rail_left" : "rail_right");
  setAccessibleName(left ? tr("Panels on the left") : tr("Panels on the right"));
  setWindowTitle(accessibleName());
  setOrientation(Qt::Vertical);
  setMovable(false);
  setContextMenuPolicy(Qt::PreventContextMenu);
  toggleViewAction()->setVisible(false);
  hide();
}

void DockRail::add(QDockWidget* dock) {
  auto* button = new RailButton(dock, objectName() == "rail_left");
  addWidget(button);
  connect(button, &QAbstractButton::clicked, this, [this, button, dock] {
    if (dock->isHidden())
      Q_EMIT opened(dock);
    else
      dock->hide();
    button->setChecked(!dock->isHidden());
  });
}

}  // namespace foreshard
