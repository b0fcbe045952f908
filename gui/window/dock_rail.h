// DockRail: a strip at the edge of a narrow window with one button per dock of that side. A button opens and closes its dock.
#pragma once

#include <QAbstractButton>
#include <QToolBar>

class QDockWidget;

namespace foreshard {

// A button with vertical text. Checked: its dock is open.
class RailButton : public QAbstractButton {
 public:
  RailButton(QDockWidget* dock, bool left);
  QSize sizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  bool left_ = true;  // text reads upwards; false: downwards
};

class DockRail : public QToolBar {
  Q_OBJECT
 public:
  explicit DockRail(bool left);
  void add(QDockWidget* dock);

 Q_SIGNALS:
  void opened(QDockWidget* dock);  // the user opened it; closing hides the dock without a signal
};

}  // namespace foreshard
