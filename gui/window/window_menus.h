// WindowMenus: creates every action of the window once, and puts it into a menu, the key map and the command palette.
#pragma once

#include <QObject>
#include <functional>

#include "gui/window/key_map.h"

class QMenu;

namespace foreshard {

class ChosenPlan;
class DockPanels;
class MainWindow;
class Notices;
class PlanViews;
class ProgramLists;
class ShownPlan;
class TimelineView;
class WindowFiles;

// The parts of the window that the actions use; all must outlive the menus.
struct WindowParts {
  Notices& notices;
  PlanViews& views;
  DockPanels& docks;
  ProgramLists& lists;
  ShownPlan& shown;
  ChosenPlan& chosen;
  WindowFiles& files;
};

class WindowMenus : public QObject {
  Q_OBJECT
 public:
  WindowMenus(MainWindow& window, KeyMap& keys, const WindowParts& parts);  // all must outlive it

 private:
  void make_file_menu();
  void make_edit_menu();
  void make_plan_menu();
  void make_help_menu();
  void make_view_menu();
  void make_rows_menu(QMenu* menu);
  void make_memory_menu(QMenu* menu);
  void make_shown_menu(QMenu* menu);
  void make_arrows_menu(QMenu* menu);
  void make_go_menu();
  void make_bookmark_actions(QMenu* menu);
  QAction* act(QMenu* menu, const QString& name, const QString& text, const QKeySequence& keys, std::function<void()> run);
  QAction* choose(QMenu* menu, const QString& name, const QString& text, bool chosen, std::function<void()> run);
  QAction* act_in_timeline(QMenu* menu, const QString& name, const QString& text, const QKeySequence& keys,
                           void (TimelineView::*run)());
  void open_palette();
  void open_find();

  MainWindow& window_;
  KeyMap& keys_;
  WindowParts parts_;
};

}  // namespace foreshard
