// DockRail: a strip at the edge of a narrow window with a button for each dock of that side, which opens and closes it.
#pragma once

#include <QAbstractButton>
#include <QToolBar>

class QDockWidget;

namespace foreshard {

// Its words run along the edge. Checked: the dock is open.
class RailButton : public QAbstractButton {
 public:
  RailButton(QDockWidget* dock, bool left);
  QSize sizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  bool left_ = true;  // read upwards, else downwards
};

class DockRail : public QToolBar {
  Q_OBJECT
 public:
  explicit DockRail(bool left);
  void add(QDockWidget* dock);

 Q_SIGNALS:
  void opened(QDockWidget* dock);  // by a person; a dock that is closed is hidden already
};

}  // namespace foreshard
