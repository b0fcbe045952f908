#include "gui/window/dock_panels.h"

#include <QDockWidget>
#include <QMainWindow>
#include <QPlainTextEdit>
#include <QVBoxLayout>

#include "gui/document/bookmark_list.h"
#include "gui/document/workspace.h"
#include "gui/inspector/inspector_view.h"
#include "gui/run/run_panel.h"
#include "gui/search/search_panel.h"
#include "gui/strategy/strategy_panel.h"
#include "gui/strategy/suggestion_list.h"
#include "gui/window/dock_rail.h"
#include "gui/window/plan_views.h"

namespace foreshard {

static constexpr const char* kRight[] = {"inspector", "search", "run", "bookmarks", "log"};

DockPanels::DockPanels(QMainWindow& window, PlanViews& views, QPlainTextEdit* log, const QString& program) : window_(window) {
  window_.setDockOptions(QMainWindow::AnimatedDocks | QMainWindow::AllowNestedDocks | QMainWindow::AllowTabbedDocks);
  window_.setTabPosition(Qt::RightDockWidgetArea, QTabWidget::North);
  strategy_ = new StrategyPanel;
  search_ = new SearchPanel(program);
  run_ = new RunPanel(program);
  bookmarks_ = new BookmarkList;
  inspector_ = new InspectorView(views.axis(), views.selection());
  suggestions_ = new SuggestionList(program);
  auto* inspector = new QWidget;
  auto* column = new QVBoxLayout(inspector);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addWidget(inspector_, 1);
  column->addWidget(suggestions_);
  inspector_veil_ = new FreshnessVeil(inspector);
  make_docks(inspector, log);
  make_rails();
}

QDockWidget* DockPanels::add(const QString& name, const QString& title, QWidget* widget, Qt::DockWidgetArea area) {
  auto* dock = new QDockWidget(title, &window_);
  dock->setObjectName("dock_" + name);
  dock->setWidget(widget);
  if (area == Qt::RightDockWidgetArea) {  // its tab is its title
    auto* none = new QWidget;
    (new QHBoxLayout(none))->setContentsMargins(0, 0, 0, 0);
    dock->setTitleBarWidget(none);
  }
  window_.addDockWidget(area, dock);
  docks_[name] = dock;
  return dock;
}

void DockPanels::make_docks(QWidget* inspector, QPlainTextEdit* log) {
  QDockWidget* left = add("strategy", tr("Strategy"), strategy_, Qt::LeftDockWidgetArea);
  QDockWidget* first = add("inspector", tr("Inspector"), inspector, Qt::RightDockWidgetArea);
  for (const auto& [name, title, widget] :
       std::initializer_list<std::tuple<const char*, QString, QWidget*>>{{"search", tr("Search"), search_},
                                                                         {"run", tr("Run"), run_},
                                                                         {"bookmarks", tr("Bookmarks"), bookmarks_},
                                                                         {"log", tr("Log"), log}})
    window_.tabifyDockWidget(first, add(name, title, widget, Qt::RightDockWidgetArea));
  first->raise();
  window_.resizeDocks({left, first}, {310, 400}, Qt::Horizontal);
}

void DockPanels::make_rails() {
  rail_left_ = new DockRail(true), rail_right_ = new DockRail(false);
  window_.addToolBar(Qt::LeftToolBarArea, rail_left_);
  window_.addToolBar(Qt::RightToolBarArea, rail_right_);
  rail_left_->add(dock("strategy"));
  for (QDockWidget* right : on_the_right()) rail_right_->add(right);
  for (DockRail* rail : {rail_left_, rail_right_}) connect(rail, &DockRail::opened, this, &DockPanels::open);
}

void DockPanels::set_document(const std::shared_ptr<const Document>& document) {
  inspector_->set_document(document);
  run_->set_document(document);
}

void DockPanels::set_twin(const std::shared_ptr<const Twin>& twin) { inspector_->set_twin(twin); }

void DockPanels::set_theme(const Theme& theme) {
  inspector_->set_theme(theme);
  search_->set_theme(theme);
  run_->set_theme(theme);
}

void DockPanels::set_freshness(Freshness freshness) {
  inspector_veil_->set(freshness);
  run_->set_current(freshness == Freshness::Current);
}

bool DockPanels::busy() const { return search_->busy() || run_->busy() || suggestions_->busy(); }

void DockPanels::stop() {
  search_->stop();
  run_->stop();
  suggestions_->clear();
}

QDockWidget* DockPanels::dock(const QString& name) const {
  const auto found = docks_.find(name);
  return found == docks_.end() ? nullptr : found->second;
}

QWidget* DockPanels::bring(const QString& name) {
  QDockWidget* const found = dock(name);
  if (found == nullptr) return nullptr;
  open(found);
  return found->widget();
}

std::vector<QDockWidget*> DockPanels::on_the_right() const {
  std::vector<QDockWidget*> docks;
  for (const char* name : kRight) docks.push_back(dock(name));
  return docks;
}

// In a narrow window at most one dock per side is open.
void DockPanels::open(QDockWidget* dock) {
  const Qt::DockWidgetArea side = window_.dockWidgetArea(dock);
  for (const auto& [name, other] : docks_)
    if (narrow_ && other != dock && !other->isFloating() && window_.dockWidgetArea(other) == side) other->hide();
  const bool closed = dock->isHidden();
  dock->show();
  dock->raise();
  if (narrow_ && closed && !dock->isFloating())
    window_.resizeDocks({dock}, {side == Qt::LeftDockWidgetArea ? 250 : 290}, Qt::Horizontal);
}

void DockPanels::set_narrow(bool narrow) {
  if (narrow) wide_layout_ = window_.saveState(Workspace::kVersion);
  narrow_ = narrow;
  for (DockRail* rail : {rail_left_, rail_right_}) rail->setVisible(narrow);
  if (narrow)
    for (const auto& [name, dock] : docks_) dock->setHidden(!dock->isFloating() || dock->isHidden());
  else
    window_.restoreState(wide_layout_, Workspace::kVersion);
  for (DockRail* rail : {rail_left_, rail_right_}) rail->setVisible(narrow);  // the state of before has them hidden
}

QByteArray DockPanels::layout() const { return narrow_ ? wide_layout_ : window_.saveState(Workspace::kVersion); }

void DockPanels::set_layout(const QByteArray& layout) {
  if (narrow_)
    wide_layout_ = layout;
  else
    window_.restoreState(layout, Workspace::kVersion);
}

}  // namespace foreshard
