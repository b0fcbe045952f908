// Where the parts of the window stand: what a narrow window folds away, which view is in front, and the way of the Tab key.
#include <QApplication>
#include <QDockWidget>
#include <QResizeEvent>
#include <QTabWidget>
#include <algorithm>

#include "gui/inspector/table_page.h"
#include "gui/memory/memory_view.h"
#include "gui/timeline/timeline_view.h"
#include "gui/topology/topology_view.h"
#include "gui/window/dock_rail.h"
#include "gui/window/main_window.h"

namespace foreshard {

static constexpr int kNarrow = 1300;  // below, docks are closed until they are asked for

QSize fitting_size(QSize available) {
  constexpr QSize wanted(1600, 1000), frame(16, 48);  // what a window manager puts round it
  return wanted.boundedTo(available - frame).expandedTo({640, 400});
}

// Stops of the Tab key as they are seen: from left to right, and of docks behind one another only the one in front.
bool MainWindow::focusNextPrevChild(bool next) {
  QWidget* const now = focusWidget();
  const QWidget* panes[] = {docks_["strategy"], centralWidget(), nullptr, nullptr, nullptr, nullptr, nullptr};
  std::size_t count = 2;
  for (const char* name : {"inspector", "search", "run", "bookmarks", "log"}) panes[count++] = docks_[name];
  std::vector<QWidget*> stops;
  for (const QWidget* pane : panes) {
    if (!pane->isVisible() || pane->visibleRegion().isEmpty()) continue;
    for (QWidget* at = nextInFocusChain(); at != this; at = at->nextInFocusChain())
      if (pane->isAncestorOf(at) && (at->focusPolicy() & Qt::TabFocus) == Qt::TabFocus && at->focusProxy() == nullptr &&
          at->isEnabled() && at->isVisible())
        stops.push_back(at);
  }
  auto here = std::ranges::find(stops, now);
  if (here == stops.end()) here = std::ranges::find_if(stops, [&](QWidget* stop) { return stop->isAncestorOf(now); });
  if (stops.empty() || here == stops.end()) return QMainWindow::focusNextPrevChild(next);  // a box that lies over the window
  const std::ptrdiff_t many = std::ssize(stops), to = (here - stops.begin() + (next ? 1 : many - 1)) % many;
  stops[static_cast<std::size_t>(to)]->setFocus(next ? Qt::TabFocusReason : Qt::BacktabFocusReason);
  return true;
}

void MainWindow::next_pane() {
  std::vector<QWidget*> panes = {docks_["strategy"]->widget(), pages_->currentWidget()};
  for (const char* name : {"inspector", "search", "run", "bookmarks", "log"}) panes.push_back(docks_[name]->widget());
  const auto inside = [](QWidget* pane) {
    return pane->isAncestorOf(QApplication::focusWidget()) || pane == QApplication::focusWidget();
  };
  std::erase_if(panes, [](QWidget* pane) { return !pane->isVisible() || pane->visibleRegion().isEmpty(); });  // behind a tab
  if (panes.empty()) return;
  const auto now = QApplication::focusWidget() == nullptr ? panes.end() : std::find_if(panes.begin(), panes.end(), inside);
  QWidget* next = now == panes.end() || now + 1 == panes.end() ? panes.front() : *(now + 1);
  if (!next->focusPolicy()) {
    const auto children = next->findChildren<QWidget*>();
    const auto able = std::find_if(children.begin(), children.end(),
                                   [](QWidget* w) { return w->isVisible() && (w->focusPolicy() & Qt::TabFocus) != 0; });
    if (able != children.end()) next = *able;
  }
  next->setFocus(Qt::TabFocusReason);
}

void MainWindow::make_rails() {
  rail_left_ = new DockRail(true), rail_right_ = new DockRail(false);
  addToolBar(Qt::LeftToolBarArea, rail_left_);
  addToolBar(Qt::RightToolBarArea, rail_right_);
  rail_left_->add(docks_["strategy"]);
  for (const char* name : {"inspector", "search", "run", "bookmarks", "log"}) rail_right_->add(docks_[name]);
  for (DockRail* rail : {rail_left_, rail_right_}) connect(rail, &DockRail::opened, this, &MainWindow::open_dock);
}

// In a narrow window one dock of a side at a time.
void MainWindow::open_dock(QDockWidget* dock) {
  const Qt::DockWidgetArea side = dockWidgetArea(dock);
  for (const auto& [name, other] : docks_)
    if (narrow_ && other != dock && !other->isFloating() && dockWidgetArea(other) == side) other->hide();
  const bool closed = dock->isHidden();
  dock->show();
  dock->raise();
  if (narrow_ && closed && !dock->isFloating())
    resizeDocks({dock}, {side == Qt::LeftDockWidgetArea ? 250 : 290}, Qt::Horizontal);
}

void MainWindow::set_narrow(bool narrow) {
  if (narrow == narrow_) return;
  if (narrow) wide_layout_ = saveState(Workspace::kVersion);
  narrow_ = narrow;
  for (DockRail* rail : {rail_left_, rail_right_}) rail->setVisible(narrow);
  if (narrow)
    for (const auto& [name, dock] : docks_) dock->setHidden(!dock->isFloating() || dock->isHidden());
  else
    restoreState(wide_layout_, Workspace::kVersion);
  for (DockRail* rail : {rail_left_, rail_right_}) rail->setVisible(narrow);  // the state of before has them hidden
  timeline_->set_short_legend(narrow);
}

// That of the wide window: a narrow one makes its own.
QByteArray MainWindow::layout() const { return narrow_ ? wide_layout_ : saveState(Workspace::kVersion); }

void MainWindow::set_layout(const QByteArray& layout) {
  if (narrow_)
    wide_layout_ = layout;
  else
    restoreState(layout, Workspace::kVersion);
}

void MainWindow::resizeEvent(QResizeEvent* event) {
  QMainWindow::resizeEvent(event);
  set_narrow(event->size().width() < kNarrow);
}

QWidget* MainWindow::view(const QString& name) {
  if (name == "window") return this;
  const std::map<QString, std::pair<int, QWidget*>> pages = {{"timeline", {0, timeline_}},
                                                             {"memory", {0, memory_}},
                                                             {"topology", {1, topology_}},
                                                             {"compare", {2, pages_->widget(2)}},
                                                             {"table", {3, table_}}};
  if (const auto page = pages.find(name); page != pages.end()) {
    pages_->setCurrentIndex(page->second.first);
    return page->second.second;
  }
  const auto dock = docks_.find(name);
  if (dock == docks_.end()) return nullptr;
  open_dock(dock->second);
  return dock->second->widget();
}

}  // namespace foreshard
