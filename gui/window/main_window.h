// MainWindow: the strategy on the left, the views of its plan in the middle, the tools for it on the right. It creates the parts and
// connects their signals. It owns what concerns the whole window: theme, size, closing.
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
  QString program = {};                 // path of foreshard; empty: it was not found
  QString settings = {};                // path of an ini file; empty: the user's own settings
  QString session = {};                 // file of the workspace that is kept between starts; empty: none
  QString language = {};                // code of the language that the window is in
  std::optional<ThemeName> theme = {};  // none: that of the settings
  QSize size = {};                      // invalid: fitting_size of the screen
  bool tour = true;                     // show the tour at the first start
};

// Exit code of the event loop that tells main() to open the window again, in another language.
inline constexpr int kStartAgain = 1000;

QSize fitting_size(QSize available);  // of a window without a saved size, in pixels

class MainWindow : public QMainWindow {
  Q_OBJECT
 public:
  explicit MainWindow(WindowOptions options, QWidget* parent = nullptr);
  ~MainWindow() override;

  void start(const QStringList& files);  // opens the files; without files the last session, else the worked example
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

  bool busy() const;  // a child process or a worker thread is running
  Freshness freshness() const { return chosen_.freshness(); }
  QString problem() const;  // why the views do not show what was asked for; empty: they do
  QString message() const { return notices_.message(); }
  std::shared_ptr<const Document> document() const { return shown_.document(); }
  std::shared_ptr<const Document> compared() const { return shown_.compared(); }
  KeyMap& keys() { return keys_; }
  QUndoStack& undo_stack() { return chosen_.undo_stack(); }
  Selection& selection() { return views_->selection(); }
  TimeAxis& axis() { return views_->axis(); }
  TimelineView* timeline() const { return views_->timeline(); }
  CompareView* compare_view() const { return views_->compare(); }
  PolicyView* policies() const { return views_->policies(); }
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
  void settled();  // no computation is under way any more

 protected:
  void closeEvent(QCloseEvent* event) override;
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;  // sees the events of the whole application
  bool focusNextPrevChild(bool next) override;                 // left to right; skips what is hidden behind a tab
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
