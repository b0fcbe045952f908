// WindowFiles: all files that the window reads and writes: workspaces, the session that is kept between starts, results, plans, strategies,
// exports. Every failure is reported; what is open stays open.
#pragma once

#include <QFileSystemWatcher>
#include <QSettings>

#include "gui/document/export.h"
#include "gui/document/workspace.h"
#include "gui/window/chosen_plan.h"

class QMainWindow;
class QMenu;

namespace foreshard {

class WindowFiles : public QObject {
  Q_OBJECT
 public:
  // All must outlive it. `session`: file of the workspace that is kept between starts; empty: none.
  WindowFiles(QMainWindow& window, ChosenPlan& chosen, ShownPlan& shown, PlanViews& views, DockPanels& docks, Notices& notices,
              QSettings& settings, const QString& session);

  void open(const QString& file);  // a file of any FileKind; reports failure in the banner
  void open_dialog();
  void fill_recent(QMenu& menu);
  bool restore_session();     // false: there is none, or it cannot be read (which is logged)
  void save_session();        // called after every result, so that a crash loses at most one change
  Choices beginning() const;  // the choices of the last session, else of the worked example
  void save();
  void save_as();
  void export_to(ExportKind kind, const QString& file);  // throws Error
  void export_dialog(ExportKind kind, const QString& filter, const QString& suffix);

  Workspace workspace() const;
  void show(const Workspace& workspace);
  bool busy() const { return loads_ > 0; }

 Q_SIGNALS:
  void began();     // a result is being read
  void restored();  // a workspace is open; its plan is shown later

 private:
  void open_workspace(const std::string& path);
  void open_part(FileKind kind, const std::string& path);
  void load_result(const QString& file);
  void take_result(const std::shared_ptr<const Document>& document, const QString& file);
  void save_to(const QString& file);
  void saved(const QString& file);
  void note_recent(const QString& file);
  void watch(const QString& file);
  void update_title();

  QMainWindow& window_;
  ChosenPlan& chosen_;
  ShownPlan& shown_;
  PlanViews& views_;
  DockPanels& docks_;
  Notices& notices_;
  QSettings& settings_;
  QString session_;
  QString workspace_file_;
  Choices saved_choices_;    // the choices as saved in workspace_file_
  QString wanted_measured_;  // a measured result to show when the simulation of its plan ends
  QFileSystemWatcher watcher_;
  int loads_ = 0;
};

}  // namespace foreshard
