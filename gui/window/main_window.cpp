#include "gui/window/main_window.h"

#include <QApplication>
#include <QCloseEvent>
#include <QDockWidget>
#include <QDragEnterEvent>
#include <QKeyEvent>
#include <QMimeData>
#include <QResizeEvent>
#include <QScreen>
#include <QStatusBar>

#include "gui/compare/policy_view.h"
#include "gui/document/background.h"
#include "gui/document/bookmark_list.h"
#include "gui/run/run_panel.h"
#include "gui/search/search_panel.h"
#include "gui/strategy/suggestion_list.h"
#include "gui/timeline/timeline_view.h"
#include "gui/widgets/style_sheet.h"
#include "gui/window/help_overlay.h"
#include "gui/window/palette_box.h"
#include "gui/window/pane_focus.h"
#include "gui/window/tour.h"

namespace foreshard {

static constexpr int kNarrow = 1300;  // below, docks are closed until they are asked for

QSize fitting_size(QSize available) {
  constexpr QSize wanted(1600, 1000), frame(16, 48);  // what a window manager puts round it
  return wanted.boundedTo(available - frame).expandedTo({640, 400});
}

static std::unique_ptr<QSettings> open_settings(const WindowOptions& options) {
  if (options.settings.isEmpty()) return std::make_unique<QSettings>("foreshard", "foreshard-gui");
  return std::make_unique<QSettings>(options.settings, QSettings::IniFormat);
}

static ThemeName theme_in(const QSettings& settings) {
  const int kept = settings.value("theme", 0).toInt();
  return kept == 1 ? ThemeName::Light : kept == 2 ? ThemeName::HighContrast : ThemeName::Dark;
}

static PlanViews* add_centre(QMainWindow& window, const QString& program) {
  auto* views = new PlanViews(program);
  window.setCentralWidget(views);
  return views;
}

MainWindow::MainWindow(WindowOptions options, QWidget* parent)
    : QMainWindow(parent),
      options_(std::move(options)),
      settings_(open_settings(options_)),
      theme_(theme_of(options_.theme.value_or(theme_in(*settings_)))),
      keys_(*settings_),
      views_(add_centre(*this, options_.program)),
      palette_(new PaletteBox(this)),
      help_(new HelpOverlay(this)),
      tour_(new Tour(this)),
      notices_(*views_->banner(), *statusBar()),
      docks_(*this, *views_, notices_.log_view(), options_.program),
      lists_(options_.program, *docks_.strategy()),
      shown_(*views_, docks_, notices_, options_.program),
      chosen_(shown_, *views_, docks_, notices_, options_.program),
      files_(*this, chosen_, shown_, *views_, docks_, notices_, *settings_, options_.session),
      menus_(*this, keys_, {notices_, *views_, docks_, lists_, shown_, chosen_, files_}) {
  setWindowTitle("foreshard");
  setAcceptDrops(true);
  connect_plan();
  connect_panels();
  apply_theme();
  resize(options_.size.isValid() ? options_.size : fitting_size(screen()->availableSize()));
  if (options_.program.isEmpty())
    notices_.tell(About::Program, tr("The program foreshard is neither beside this one nor on PATH: results can be opened, but "
                                     "nothing can be simulated."));
  else
    lists_.ask();
}

// An input line reports its text when it loses the focus; its signals must still be received then.
MainWindow::~MainWindow() {
  hide();
  qApp->removeEventFilter(this);
}

void MainWindow::connect_plan() {
  settle_timer_.setInterval(100);
  connect(&settle_timer_, &QTimer::timeout, this, &MainWindow::settle);
  const auto settle_soon = [this] { settle_timer_.start(); };
  connect(&chosen_, &ChosenPlan::began, this, settle_soon);
  connect(&shown_, &ShownPlan::began, this, settle_soon);
  connect(&files_, &WindowFiles::began, this, settle_soon);
  connect(&shown_, &ShownPlan::shown, this, &MainWindow::document_shown);
  connect(&lists_, &ProgramLists::options_set, &chosen_, &ChosenPlan::show_resolved);
  connect(&lists_, &ProgramLists::failed, this, [this](const QString& message) { notices_.tell(About::Program, message); });
  connect(views_, &PlanViews::acted, &chosen_, &ChosenPlan::act_on_freshness);
  connect(&views_->selection(), &Selection::changed, this, [this] { chosen_.suggest_for(views_->selection().picked()); });
  connect(views_->timeline(), &TimelineView::hovered, &notices_, &Notices::show_status);
  connect(tour_, &Tour::step_shown, this, [this](int step) {
    const char* const raised[] = {"strategy", "inspector", "search"};
    if (step >= 0 && step < 3) view(raised[step]);
  });
  qApp->installEventFilter(this);
}

void MainWindow::connect_panels() {
  const auto say = [this](About about) { return [this, about](const QString& message) { notices_.tell(about, message); }; };
  SearchPanel* const search = docks_.search();
  connect(search, &SearchPanel::load_asked, this,
          [this](const Choices& choices) { set_choices(choices, tr("Load a strategy")); });
  connect(search, &SearchPanel::compare_asked, &shown_, &ShownPlan::compare_with);
  connect(search, &SearchPanel::finished, &settle_timer_, qOverload<>(&QTimer::start));
  connect(search, &SearchPanel::said, this, say(About::Search));
  connect(search, &SearchPanel::failed, this, [this, search](const QString& message) {
    notices_.tell(About::Search, message, tr("Search again"), [search] { search->start(); });
  });
  PolicyView* const policies = views_->policies();
  connect(policies, &PolicyView::load_asked, this,
          [this](const Choices& choices) { set_choices(choices, tr("Load a policy")); });
  connect(policies, &PolicyView::compare_asked, &shown_, &ShownPlan::compare_with);
  connect(policies, &PolicyView::began, &settle_timer_, qOverload<>(&QTimer::start));
  connect(policies, &PolicyView::said, this, say(About::Comparison));
  RunPanel* const run = docks_.run();
  connect(run, &RunPanel::measured, this,
          [this](std::shared_ptr<const Document> measured) { shown_.show_measured(std::move(measured)); });
  connect(run, &RunPanel::example_asked, this, &MainWindow::run_example);
  connect(run, &RunPanel::said, this, say(About::Run));
  connect(docks_.suggestions(), &SuggestionList::chosen, this,
          [this](const Choices& choices) { set_choices(choices, tr("Apply a suggestion")); });
  BookmarkList* const bookmarks = docks_.bookmarks();
  connect(bookmarks, &BookmarkList::went, this, [this](const Bookmark& bookmark) { views_->go_to({}, bookmark.range); });
  connect(bookmarks, &BookmarkList::listed, this, [this, bookmarks] { views_->set_flags(bookmarks->bookmarks()); });
}

void MainWindow::start(const QStringList& files) {
  const bool restored = files.isEmpty() && files_.restore_session();
  if (!restored && files.isEmpty()) {
    chosen_.begin_with(worked_example());
    chosen_.simulate_soon();
    chosen_.simulate_now();
    if (options_.tour && settings_->value("tour_seen").isNull()) {
      settings_->setValue("tour_seen", true);
      QTimer::singleShot(400, this, &MainWindow::start_tour);
    }
  }
  settle_timer_.start();
  if (!files.isEmpty()) chosen_.assume(files_.beginning());
  for (const QString& file : files) open_file(file);
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
  views_->set_theme(theme_);
  docks_.set_theme(theme_);
}

void MainWindow::start_again_in(const QString& language) {
  settings_->setValue("language", language);
  files_.save_session();
  close();
  QApplication::exit(kStartAgain);
}

void MainWindow::start_tour() {
  tour_->start({{tr("Change a setting"),
                 tr("This is GPT-3 with 175 billion parameters on 1024 A100 GPUs. Change any field: the estimate follows while "
                    "you type, the simulation a moment later. What is left at Auto is chosen for you."),
                 docks_.dock("strategy")},
                {tr("Read the bubbles"),
                 tr("Every row is a pipeline stage. Hatched stretches are GPUs that wait. Click one: the inspector names the "
                    "cause and lists changes that would shorten it, with simulated gains."),
                 docks_.dock("inspector")},
                {tr("Let it search"),
                 tr("The search tries every parallel strategy and plots time against memory. A click loads a strategy; "
                    "Ctrl+click compares it with the current one."),
                 docks_.dock("search")}});
}

void MainWindow::run_example() {
  set_choices({.model = "gpt2-124m",
               .cluster = "dgx-a100",
               .nodes = 1,
               .strategy = {{"pp", "2"}, {"dp", "1"}, {"tp", "1"}, {"global_batch", "4"}, {"seq", "64"}, {"precision", "fp32"}},
               .settings = {"model.n_layer=4", "model.n_embd=128", "model.n_head=4", "model.vocab_size=512"}},
              tr("Load a small plan"));
}

QWidget* MainWindow::view(const QString& name) {
  if (name == "window") return this;
  QWidget* const page = views_->bring(name);
  return page != nullptr ? page : docks_.bring(name);
}

bool MainWindow::busy() const {
  return chosen_.busy() || shown_.busy() || docks_.busy() || files_.busy() || lists_.busy() || views_->policies()->busy();
}

void MainWindow::settle() {
  if (busy()) return;
  settle_timer_.stop();
  Q_EMIT settled();
}

QString MainWindow::problem() const {
  if (notices_.tells_about(About::File)) return message();
  if (document() && freshness() == Freshness::Current) return {};
  if (!chosen_.refusal().isEmpty()) return chosen_.refusal();
  return message().isEmpty() ? tr("There is nothing to show.") : message();
}

// Undo and redo act on the choices, even in an input line that has its own undo. An InternalError is reported.
bool MainWindow::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == InternalError::kind() && watched == qApp) {
    notices_.tell(About::Ourselves, static_cast<InternalError*>(event)->what);
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

// Tab visits the panes from left to right; of docks that are tabs of one another it visits only the front one.
bool MainWindow::focusNextPrevChild(bool next) {
  std::vector<const QWidget*> panes = {docks_.dock("strategy"), centralWidget()};
  for (const QDockWidget* dock : docks_.on_the_right()) panes.push_back(dock);
  return focus_next_stop(*this, panes, next) || QMainWindow::focusNextPrevChild(next);  // false: a box lies over the window
}

void MainWindow::next_pane() {
  std::vector<QWidget*> panes = {docks_.dock("strategy")->widget(), views_->page_in_front()};
  for (const QDockWidget* dock : docks_.on_the_right()) panes.push_back(dock->widget());
  focus_next_pane(std::move(panes));
}

void MainWindow::resizeEvent(QResizeEvent* event) {
  QMainWindow::resizeEvent(event);
  const bool narrow = event->size().width() < kNarrow;
  if (narrow == docks_.narrow()) return;
  docks_.set_narrow(narrow);
  views_->timeline()->set_short_legend(narrow);
}

void MainWindow::closeEvent(QCloseEvent* event) {
  files_.save_session();
  chosen_.stop();
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
