#include "gui/window/main_window.h"

#include <QApplication>
#include <QCloseEvent>
#include <QComboBox>
#include <QDockWidget>
#include <QDragEnterEvent>
#include <QKeyEvent>
#include <QMimeData>
#include <QPlainTextEdit>
#include <QProgressBar>
#include <QScreen>
#include <QScrollArea>
#include <QSplitter>
#include <QStatusBar>
#include <QTabWidget>
#include <QVBoxLayout>

#include "gui/compare/compare_view.h"
#include "gui/document/background.h"
#include "gui/document/bookmark_list.h"
#include "gui/inspector/inspector_view.h"
#include "gui/inspector/kpi_strip.h"
#include "gui/inspector/table_page.h"
#include "gui/memory/memory_view.h"
#include "gui/run/run_panel.h"
#include "gui/search/search_panel.h"
#include "gui/strategy/strategy_panel.h"
#include "gui/strategy/suggestion_list.h"
#include "gui/timeline/timeline_view.h"
#include "gui/topology/topology_view.h"
#include "gui/widgets/style_sheet.h"
#include "gui/window/help_overlay.h"
#include "gui/window/palette_box.h"
#include "gui/window/tour.h"

namespace foreshard {

static std::unique_ptr<QSettings> open_settings(const WindowOptions& options) {
  if (options.settings.isEmpty()) return std::make_unique<QSettings>("foreshard", "foreshard-gui");
  return std::make_unique<QSettings>(options.settings, QSettings::IniFormat);
}

static ThemeName theme_in(const QSettings& settings) {
  const int kept = settings.value("theme", 0).toInt();
  return kept == 1 ? ThemeName::Light : kept == 2 ? ThemeName::HighContrast : ThemeName::Dark;
}

MainWindow::MainWindow(WindowOptions options, QWidget* parent)
    : QMainWindow(parent),
      options_(std::move(options)),
      settings_(open_settings(options_)),
      keys_(*settings_),
      simulation_(options_.program),
      compare_simulation_(options_.program),
      theme_(theme_of(options_.theme.value_or(theme_in(*settings_)))) {
  setWindowTitle("foreshard");
  setAcceptDrops(true);
  setDockOptions(AnimatedDocks | AllowNestedDocks | AllowTabbedDocks);
  setTabPosition(Qt::RightDockWidgetArea, QTabWidget::North);
  make_centre();
  make_docks();
  make_actions();
  connect_parts();
  apply_theme();
  resize(options_.size.isValid() ? options_.size : fitting_size(screen()->availableSize()));
  ask_program();
}

// A line that is being edited says its text when it loses the focus, and that is still heard.
MainWindow::~MainWindow() {
  hide();
  qApp->removeEventFilter(this);
}

void MainWindow::make_centre() {
  auto* centre = new QWidget;
  auto* column = new QVBoxLayout(centre);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  kpis_ = new KpiStrip;
  column->addWidget(kpis_);
  timeline_ = new TimelineView(axis_, selection_);
  timeline_->set_overview(true);
  timeline_->leave_keys();
  memory_ = new MemoryView(axis_, selection_);
  auto* split = new QSplitter(Qt::Vertical);
  split->setObjectName("time_split");
  split->addWidget(timeline_);
  split->addWidget(memory_);
  split->setStretchFactor(0, 3);
  split->setStretchFactor(1, 2);
  split->setChildrenCollapsible(false);
  split->setHandleWidth(3);
  compare_ = new CompareView(compare_axis_, compare_selection_);
  auto* compare_page = new QWidget;
  auto* compare_column = new QVBoxLayout(compare_page);
  compare_column->setContentsMargins(0, 0, 0, 0);
  auto* mode = new QComboBox;
  mode->setObjectName("compare_mode");
  mode->setAccessibleName(tr("Layout of the comparison"));
  mode->addItems({tr("Stacked"), tr("Interleaved"), tr("Table")});
  connect(mode, &QComboBox::currentIndexChanged, this, [this](int at) { compare_->set_mode(static_cast<CompareMode>(at)); });
  auto* row = new QHBoxLayout;
  row->setContentsMargins(10, 6, 10, 6);
  row->addWidget(mode);
  row->addStretch(1);
  compare_column->addLayout(row);
  compare_column->addWidget(compare_, 1);
  topology_ = new TopologyView(axis_, selection_);
  table_ = new TablePage(axis_, selection_);
  pages_ = new QTabWidget;
  pages_->setAccessibleName(tr("Views"));
  pages_->setDocumentMode(true);
  pages_->addTab(split, tr("Timeline and memory"));
  pages_->addTab(topology_, tr("Topology"));
  pages_->addTab(compare_page, tr("Compare"));
  pages_->addTab(table_, tr("Table"));
  column->addWidget(pages_, 1);
  setCentralWidget(centre);
  banner_ = new Banner(centre);
  veil_ = new FreshnessVeil(centre);
  veil_->leave_bright(banner_);
  palette_ = new PaletteBox(this);
  help_ = new HelpOverlay(this);
  tour_ = new Tour(this);
  progress_ = new QProgressBar;
  progress_->setRange(0, 1000);
  progress_->setFixedSize(140, 6);
  progress_->setTextVisible(false);
  progress_->setAccessibleName(tr("Progress of the simulation"));
  progress_->hide();
  statusBar()->addPermanentWidget(progress_);
}

QDockWidget* MainWindow::add_dock(const QString& name, const QString& title, QWidget* widget, Qt::DockWidgetArea area) {
  auto* dock = new QDockWidget(title, this);
  dock->setObjectName("dock_" + name);
  dock->setWidget(widget);
  if (area == Qt::RightDockWidgetArea) {  // its tab is its title
    auto* none = new QWidget;
    (new QHBoxLayout(none))->setContentsMargins(0, 0, 0, 0);
    dock->setTitleBarWidget(none);
  }
  addDockWidget(area, dock);
  docks_[name] = dock;
  return dock;
}

void MainWindow::make_docks() {
  strategy_ = new StrategyPanel;
  search_ = new SearchPanel(options_.program);
  run_ = new RunPanel(options_.program);
  bookmarks_ = new BookmarkList;
  log_ = new QPlainTextEdit;
  log_->setReadOnly(true);
  log_->setMaximumBlockCount(2000);
  log_->setAccessibleName(tr("Log"));
  inspector_ = new InspectorView(axis_, selection_);
  suggestions_ = new SuggestionList(options_.program);
  auto* inspector = new QWidget;
  auto* column = new QVBoxLayout(inspector);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addWidget(inspector_, 1);
  column->addWidget(suggestions_);
  inspector_veil_ = new FreshnessVeil(inspector);
  add_dock("strategy", tr("Strategy"), strategy_, Qt::LeftDockWidgetArea);
  QDockWidget* first = add_dock("inspector", tr("Inspector"), inspector, Qt::RightDockWidgetArea);
  for (const auto& [name, title, widget] :
       std::initializer_list<std::tuple<const char*, QString, QWidget*>>{{"search", tr("Search"), search_},
                                                                         {"run", tr("Run"), run_},
                                                                         {"bookmarks", tr("Bookmarks"), bookmarks_},
                                                                         {"log", tr("Log"), log_}})
    tabifyDockWidget(first, add_dock(name, title, widget, Qt::RightDockWidgetArea));
  first->raise();
  resizeDocks({docks_["strategy"], first}, {310, 400}, Qt::Horizontal);
  make_rails();
}

void MainWindow::connect_parts() {
  debounce_.setSingleShot(true);
  debounce_.setInterval(150);
  connect(&debounce_, &QTimer::timeout, this, &MainWindow::simulate_now);
  settle_timer_.setInterval(100);
  connect(&settle_timer_, &QTimer::timeout, this, &MainWindow::settle);
  connect(strategy_, &StrategyPanel::edited, this, &MainWindow::choices_edited);
  connect(strategy_, &StrategyPanel::remedy_chosen, this, [this](const QString& remedy) {
    Choices next = choices_;
    if (apply_remedy(next, remedy.toStdString())) set_choices(next, remedy);
  });
  connect(&simulation_, &Simulation::progress, this, [this](double fraction) {
    progress_->show();
    progress_->setValue(static_cast<int>(fraction * 1000));
  });
  connect(&simulation_, &Simulation::done, this, &MainWindow::take_simulated);
  connect(&simulation_, &Simulation::failed, this, &MainWindow::simulation_failed);
  connect(tour_, &Tour::step_shown, this, [this](int step) {
    const char* const raised[] = {"strategy", "inspector", "search"};
    if (step >= 0 && step < 3) view(raised[step]);
  });
  connect(veil_, &FreshnessVeil::acted, this, &MainWindow::act_on_freshness);
  qApp->installEventFilter(this);
  connect(&compare_simulation_, &Simulation::done, this, &MainWindow::take_compared);
  connect(&compare_simulation_, &Simulation::failed, this,
          [this](const QString& message) { tell(About::Comparison, message); });
  connect(&estimate_, &LiveEstimate::answered, this, &MainWindow::take_estimate);
  connect(&selection_, &Selection::changed, this, &MainWindow::picked_changed);
  connect(timeline_, &TimelineView::hovered, this, [this](const QString& words) { statusBar()->showMessage(words); });
  const auto say = [this](About about) { return [this, about](const QString& message) { tell(about, message); }; };
  connect(search_, &SearchPanel::load_asked, this,
          [this](const Choices& choices) { set_choices(choices, tr("Load a strategy")); });
  connect(search_, &SearchPanel::compare_asked, this, &MainWindow::compare_with);
  connect(search_, &SearchPanel::finished, &settle_timer_, qOverload<>(&QTimer::start));
  connect(search_, &SearchPanel::said, this, say(About::Search));
  connect(search_, &SearchPanel::failed, this,
          [this](const QString& message) { tell(About::Search, message, tr("Search again"), [this] { search_->start(); }); });
  connect(run_, &RunPanel::measured, this, &MainWindow::show_measured);
  connect(run_, &RunPanel::example_asked, this, &MainWindow::run_example);
  connect(run_, &RunPanel::said, this, say(About::Run));
  connect(suggestions_, &SuggestionList::chosen, this,
          [this](const Choices& choices) { set_choices(choices, tr("Apply a suggestion")); });
  connect(bookmarks_, &BookmarkList::went, this, [this](const Bookmark& bookmark) { go_to({}, bookmark.range); });
  connect(bookmarks_, &BookmarkList::changed, this, &MainWindow::save_session);
  connect(bookmarks_, &BookmarkList::listed, this, [this] {
    std::vector<RulerFlag> flags;
    for (const Bookmark& bookmark : bookmarks_->bookmarks())
      flags.push_back({bookmark.range.begin, bookmark.digit > 0 ? QString::number(bookmark.digit) : QString(),
                       QString::fromStdString(bookmark.note)});
    timeline_->set_flags(std::move(flags));
  });
  connect(&watcher_, &QFileSystemWatcher::fileChanged, this, [this](const QString& file) {
    tell(About::File, tr("%1 has changed on disk.").arg(file), tr("Load again"), [this, file] { open_file(file); });
  });
}

void MainWindow::set_theme(ThemeName name) {
  theme_ = theme_of(name);
  settings_->setValue("theme", static_cast<int>(name));
  apply_theme();
}

void MainWindow::apply_theme() {
  setStyleSheet({});  // one that is there gives back the palette from before it
  QApplication::setPalette(qt_palette(theme_));
  setPalette(qt_palette(theme_));
  setStyleSheet(style_sheet(theme_));
  timeline_->set_theme(theme_);
  memory_->set_theme(theme_);
  compare_->set_theme(theme_);
  topology_->set_theme(theme_);
  inspector_->set_theme(theme_);
  search_->set_theme(theme_);
  run_->set_theme(theme_);
}

bool MainWindow::busy() const {
  return debounce_.isActive() || simulation_.busy() || compare_simulation_.busy() || search_->busy() || run_->busy() ||
         suggestions_->busy() || loads_ > 0;
}

void MainWindow::settle() {
  if (busy()) return;
  settle_timer_.stop();
  Q_EMIT settled();
}

// Undo and redo are the document's, also where a line of text has its own. What a worker did not foresee is told.
bool MainWindow::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == InternalError::kind() && watched == qApp) {
    tell(About::Ourselves, static_cast<InternalError*>(event)->what);
  } else if (event->type() == QEvent::ShortcutOverride && isAncestorOf(qobject_cast<QWidget*>(watched))) {
    const QKeySequence keys(static_cast<QKeyEvent*>(event)->keyCombination());
    for (const char* name : {"edit.undo", "edit.redo"})
      if (keys_.action(name)->shortcut() == keys) {
        event->ignore();
        return true;
      }
  }
  return QMainWindow::eventFilter(watched, event);
}

QString MainWindow::message() const { return banner_->isVisibleTo(this) ? banner_->text() : QString(); }

QString MainWindow::problem() const {
  if (banner_->isVisibleTo(this) && banner_->about() == About::File) return banner_->text();
  if (document_ && freshness_ == Freshness::Current) return {};
  if (!refusal_.isEmpty()) return refusal_;
  return message().isEmpty() ? tr("There is nothing to show.") : message();
}

void MainWindow::closeEvent(QCloseEvent* event) {
  save_session();
  stop_all();
  event->accept();
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
  if (event->mimeData()->hasUrls()) event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) {
  event->acceptProposedAction();
  for (const QUrl& url : event->mimeData()->urls())
    if (url.isLocalFile()) open_file(url.toLocalFile());
}

}  // namespace foreshard
