// HelpOverlay: all keys on one sheet over the window, by menu; any key or click takes it away.
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

// Where each group stands: its title, then a line for every row.
struct HelpLayout {
  std::vector<QPoint> corners = {};  // [group]; empty: there is too little room
  QFont font = {};
  int line = 0, column = 0, keys = 0;  // pixels: height, width, width of the keys in front
};
HelpLayout lay_help(const std::vector<HelpGroup>& groups, QSize room, QFont font);  // as large as all of it has room

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

// The actions by the part of their name before the point, and what mouse and keys do in the views themselves.
std::vector<HelpGroup> help_groups(const KeyMap& keys);

}  // namespace foreshard
