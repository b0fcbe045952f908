// HelpOverlay: a sheet over the window that lists all keys, grouped by menu. Any key or click closes it.
#pragma once

#include <QFont>
#include <QPoint>
#include <QWidget>

#include "gui/widgets/theme.h"
#include "gui/window/key_map.h"

namespace foreshard {

struct HelpGroup {
  QString title = {};
  std::vector<std::pair<QString, QString>> rows = {};  // keys, what they do
};

// Where each group is drawn: its title, then one line per row.
struct HelpLayout {
  std::vector<QPoint> corners = {};  // [group], top left in pixels; empty: the sheet does not fit
  QFont font = {};
  int line = 0, column = 0, keys = 0;  // pixels: line height, column width, width of the keys in it
};
HelpLayout lay_help(const std::vector<HelpGroup>& groups, QSize room, QFont font);  // with the largest font with which all fits

class HelpOverlay : public QWidget {
  Q_OBJECT
 public:
  explicit HelpOverlay(QWidget* parent);
  void open(std::vector<HelpGroup> groups, const Theme& theme);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  std::vector<HelpGroup> groups_;
  Theme theme_ = {};
};

// Groups the actions by the part of their name before the point ("view.fit": view), and adds the mouse and key actions of the views.
std::vector<HelpGroup> help_groups(const KeyMap& keys);

}  // namespace foreshard
