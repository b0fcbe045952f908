// HelpOverlay: all keys on one sheet over the window, by menu; any key or click takes it away.
#pragma once

#include <QWidget>

#include "gui/key_map.h"
#include "gui/theme.h"

namespace foreshard {

struct HelpGroup {
  QString title = {};
  std::vector<std::pair<QString, QString>> rows = {};  // keys, what they do
};

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
