// MainWindow: the strategy on the left, the plan that it makes in the middle, what can be done with it on the right. It makes the
// parts, lets them hear of one another, and keeps what is of the window as a whole: its theme, its size, its end.
#pragma once

#include <QMainWindow>
#include <QSettings>
#include <QTimer>
#include <memory>
#include <optional>

#include "gui/strategy/program_lists.h"
#include "gui/widgets/theme.h"
#include "gui/window/chosen_plan.h"
#include "gui/window/dock_panels.h"
#include "gui/window/key_map.h"
#include "gui/window/notices.h"
#include "gui/window/window_files.h"
#include "gui/window/window_menus.h"

namespace foreshard {

class HelpOverlay;
class PaletteBox;
class Tour;

struct WindowOptions {
  QString program = {};                 // foreshard; empty: it was not found
  QString settings = {};                // an ini file; empty: the person's own
  QString session = {};                 // the workspace that is kept between starts; empty: none is
  QString language = {};                // as shown
  std::optional<ThemeName> theme = {};  // empty: of the settings
  QSize size = {};                      // not valid: as large as is useful and the screen allows
  bool tour = true;                     // at the first start
};

// What main() does after the window has closed.
inline constexpr int kStartAgain = 1000;  // exit code: in another language

QSize fitting_size(QSize available);  // of a first window

class MainWindow : public QMainWindow {
  Q_OBJECT
 public:
  explicit MainWindow(WindowOptions options, QWidget* parent = nullptr);
  ~MainWindow() override;

  void start(const QStringList& files);  // opens them, or the last session, or the worked example
  void open_file(const QString& file) { files_.open(file); }
  void set_choices(const Choices& choices, const QString& why) { chosen_.set_choices(choices, why); }
  void compare_with(const Choices& choices) { shown_.compare_with(choices); }
  void export_to(ExportKind kind, const QString& file) { files_.export_to(kind, file); }
  Workspace workspace() const { return files_.workspace(); }
  void show_workspace(const Workspace& workspace) { files_.show(workspace); }
  void set_theme(ThemeName name);
  const Theme& theme() const { return theme_; }
  void start_tour();
  void start_again_in(const QString& language);
  void next_pane();
  QWidget* view(const QString& name);  // "window", "timeline", "memory", ...; brought to the front; null: no such view

  bool busy() const;  // a child or a worker is at work
  Freshness freshness() const { return chosen_.freshness(); }
  QString problem() const;  // why nothing, or not what was asked for, is shown; empty: nothing is wrong
  QString message() const { return notices_.message(); }
  std::shared_ptr<const Document> document() const { return shown_.document(); }
  std::shared_ptr<const Document> compared() const { return shown_.compared(); }
  KeyMap& keys() { return keys_; }
  QUndoStack& undo_stack() { return chosen_.undo_stack(); }
  Selection& selection() { return views_->selection(); }
  TimeAxis& axis() { return views_->axis(); }
  TimelineView* timeline() const { return views_->timeline(); }
  CompareView* compare_view() const { return views_->compare(); }
  TablePage* table_page() const { return views_->table(); }
  StrategyPanel* strategy_panel() const { return docks_.strategy(); }
  SearchPanel* search_panel() const { return docks_.search(); }
  RunPanel* run_panel() const { return docks_.run(); }
  BookmarkList* bookmark_list() const { return docks_.bookmarks(); }
  PaletteBox* palette_box() const { return palette_; }
  Tour* tour() const { return tour_; }
  HelpOverlay* help_overlay() const { return help_; }

 Q_SIGNALS:
  void document_shown();
  void settled();  // nothing more is under way

 protected:
  void closeEvent(QCloseEvent* event) override;
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;  // of the whole application
  bool focusNextPrevChild(bool next) override;                 // panel, centre, right; nothing behind a tab
  void resizeEvent(QResizeEvent* event) override;

 private:
  void connect_plan();
  void connect_panels();
  void apply_theme();
  void settle();
  void run_example();

  WindowOptions options_;
  std::unique_ptr<QSettings> settings_;
  Theme theme_;
  KeyMap keys_;
  QTimer settle_timer_;
  PlanViews* views_;
  PaletteBox* palette_;
  HelpOverlay* help_;
  Tour* tour_;
  Notices notices_;
  DockPanels docks_;
  ProgramLists lists_;
  ShownPlan shown_;
  ChosenPlan chosen_;
  WindowFiles files_;
  WindowMenus menus_;
};

}  // namespace foreshard
