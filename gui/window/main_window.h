// MainWindow: the strategy on the left, the plan that it makes in the middle, what can be done with it on the right. It owns
// the shared time axis and selection, runs the children, and keeps the workspace.
#pragma once

#include <QElapsedTimer>
#include <QFileSystemWatcher>
#include <QMainWindow>
#include <QSettings>
#include <QTimer>
#include <QUndoStack>
#include <memory>
#include <optional>

#include "gui/document/choices.h"
#include "gui/document/document.h"
#include "gui/document/export.h"
#include "gui/document/freshness.h"
#include "gui/document/selection.h"
#include "gui/document/time_axis.h"
#include "gui/document/workspace.h"
#include "gui/run/live_estimate.h"
#include "gui/run/simulation.h"
#include "gui/widgets/banner.h"
#include "gui/widgets/theme.h"
#include "gui/window/key_map.h"

class QDockWidget;
class QMenu;
class QPlainTextEdit;
class QProgressBar;
class QTabWidget;

namespace foreshard {

class BookmarkList;
class CompareView;
class DockRail;
class HelpOverlay;
class InspectorView;
class KpiStrip;
class MemoryView;
class PaletteBox;
class RunPanel;
class SearchPanel;
class StrategyPanel;
class SuggestionList;
class TablePage;
class TimelineView;
class TopologyView;
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

  void start(const QStringList& files);                          // opens them, or the last session, or the worked example
  void open_file(const QString& file);                           // of any kind; a message when it cannot be
  void set_choices(const Choices& choices, const QString& why);  // undoable; simulates
  void set_theme(ThemeName name);
  Workspace workspace() const;
  void show_workspace(const Workspace& workspace);
  bool busy() const;  // a child or a worker is at work
  Freshness freshness() const { return freshness_; }

  std::shared_ptr<const Document> document() const { return document_; }
  std::shared_ptr<const Document> compared() const { return compared_; }
  QString problem() const;  // why nothing, or not what was asked for, is shown; empty: nothing is wrong
  StrategyPanel* strategy_panel() const { return strategy_; }
  SearchPanel* search_panel() const { return search_; }
  RunPanel* run_panel() const { return run_; }
  PaletteBox* palette_box() const { return palette_; }
  BookmarkList* bookmark_list() const { return bookmarks_; }
  KeyMap& keys() { return keys_; }
  QUndoStack& undo_stack() { return undo_; }
  Selection& selection() { return selection_; }
  TimeAxis& axis() { return axis_; }
  TimelineView* timeline() const { return timeline_; }
  CompareView* compare_view() const { return compare_; }
  TablePage* table_page() const { return table_; }
  Tour* tour() const { return tour_; }
  HelpOverlay* help_overlay() const { return help_; }
  QString message() const;             // of the banner
  QWidget* view(const QString& name);  // "window", "timeline", "memory", ...; brought to the front; null: no such view
  void compare_with(const Choices& choices);
  void export_to(ExportKind kind, const QString& file);  // throws Error

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
  // main_window.cpp: parts and their places
  void make_centre();
  void make_docks();
  QDockWidget* add_dock(const QString& name, const QString& title, QWidget* widget, Qt::DockWidgetArea area);
  void connect_parts();
  void apply_theme();
  void settle();
  // main_window_layout.cpp: what is folded away in a narrow window
  void make_rails();
  void next_pane();
  void open_dock(QDockWidget* dock);
  void set_narrow(bool narrow);
  QByteArray layout() const;
  void set_layout(const QByteArray& layout);
  // main_window_actions.cpp: menus, keys, palette
  void make_actions();
  void make_file_menu();
  void make_edit_menu();
  void make_plan_menu();
  void make_view_menu();
  void make_go_menu();
  void make_help_menu();
  QAction* act(QMenu* menu, const QString& name, const QString& text, const QKeySequence& keys, std::function<void()> run);
  QAction* choose(QMenu* menu, const QString& name, const QString& text, bool chosen, std::function<void()> run);
  void open_palette();
  void open_find();
  void start_tour();
  void go_to(const Picked& picked, const TimeRange& range);
  void make_rows_menu(QMenu* menu);
  void make_shown_menu(QMenu* menu);
  void make_memory_menu(QMenu* menu);
  void make_arrows_menu(QMenu* menu);
  void show_table();
  void make_bookmark_actions(QMenu* menu);
  QAction* act_in_timeline(QMenu* menu, const QString& name, const QString& text, const QKeySequence& keys,
                           void (TimelineView::*run)());
  QString time_label() const;
  // main_window_flow.cpp: from choices to pictures
  void ask_program();
  void choices_edited(const Choices& choices, const QString& knob);
  void simulate_soon();
  void simulate_now();
  void set_freshness(Freshness freshness);
  void stop_all();
  void act_on_freshness();
  void simulation_failed(const QString& message, bool wrong_input);
  QString said_plainly(const QString& reason) const;
  void take_simulated(const Simulated& simulated);
  void take_compared(const Simulated& simulated);
  void take_estimate(const EstimateAnswer& answer);
  void show_document(std::shared_ptr<const Document> document);
  void show_measured(std::shared_ptr<const Document> measured);
  void lay_measured();
  void update_extents();
  void update_compare();
  void picked_changed();
  void run_example();
  // main_window_files.cpp: workspaces, results, exports
  void make_recent_menu();
  void open_dialog();
  void save_as();
  void save_to(const QString& file);
  void saved(const QString& file);
  void update_title();
  Choices beginning() const;  // what a file leaves open: as in the last session, else as in the worked example
  void save_session();
  void load_result_file(const QString& file);
  void adopt_origin();
  void watch(const QString& file);
  void note_recent(const QString& file);
  void export_dialog(ExportKind kind, const QString& filter, const QString& suffix);
  void tell(About about, const QString& message, const QString& remedy = {}, std::function<void()> run = {});
  void log(const QString& line);

  WindowOptions options_;
  std::unique_ptr<QSettings> settings_;
  KeyMap keys_;
  TimeAxis axis_, compare_axis_;
  Selection selection_, compare_selection_;
  QUndoStack undo_;
  Simulation simulation_, compare_simulation_;
  LiveEstimate estimate_;
  QTimer debounce_, settle_timer_;
  QElapsedTimer asked_;                // since the last request of a simulation
  std::optional<qint64> detail_took_;  // ms, of the last picture with the wanted detail
  QFileSystemWatcher watcher_;

  Theme theme_;
  Choices choices_, shown_choices_;  // of the panel; of the picture, where it comes from no file
  Freshness freshness_ = Freshness::Current;
  std::optional<Choices> compared_choices_ = {};
  Granularity granularity_ = Granularity::Layer;
  std::map<std::string, std::string> resolved_ = {};
  std::shared_ptr<const Document> document_ = {}, compared_ = {}, measured_ = {};  // shared with the views
  QString result_file_, measured_file_, workspace_file_;
  QString wanted_measured_;  // a measurement of what is being simulated
  Choices saved_choices_;    // in workspace_file_
  QString refusal_;          // of the newest simulation
  std::optional<TimeRange> wanted_range_ = {};
  int loads_ = 0;
  std::map<std::string, std::vector<std::string>> names_ = {};  // of models and topologies

  QTabWidget* pages_ = nullptr;
  KpiStrip* kpis_ = nullptr;
  Banner* banner_ = nullptr;
  FreshnessVeil* veil_ = nullptr;
  FreshnessVeil* inspector_veil_ = nullptr;
  TimelineView* timeline_ = nullptr;
  MemoryView* memory_ = nullptr;
  CompareView* compare_ = nullptr;
  TopologyView* topology_ = nullptr;
  TablePage* table_ = nullptr;
  InspectorView* inspector_ = nullptr;
  SuggestionList* suggestions_ = nullptr;
  StrategyPanel* strategy_ = nullptr;
  SearchPanel* search_ = nullptr;
  RunPanel* run_ = nullptr;
  BookmarkList* bookmarks_ = nullptr;
  QPlainTextEdit* log_ = nullptr;
  PaletteBox* palette_ = nullptr;
  HelpOverlay* help_ = nullptr;
  Tour* tour_ = nullptr;
  QProgressBar* progress_ = nullptr;
  QMenu* recent_ = nullptr;
  std::map<QString, QDockWidget*> docks_;
  DockRail* rail_left_ = nullptr;
  DockRail* rail_right_ = nullptr;
  bool narrow_ = false;
  QByteArray wide_layout_ = {};
};

}  // namespace foreshard
