#include "gui/window/pane_focus.h"

#include <QApplication>
#include <algorithm>

namespace foreshard {

static bool behind_a_tab(const QWidget* pane) { return !pane->isVisible() || pane->visibleRegion().isEmpty(); }

bool focus_next_stop(QWidget& window, const std::vector<const QWidget*>& panes, bool next) {
  QWidget* const now = window.focusWidget();
  std::vector<QWidget*> stops;
  for (const QWidget* pane : panes) {
    if (behind_a_tab(pane)) continue;
    for (QWidget* at = window.nextInFocusChain(); at != &window; at = at->nextInFocusChain())
      if (pane->isAncestorOf(at) && (at->focusPolicy() & Qt::TabFocus) == Qt::TabFocus && at->focusProxy() == nullptr &&
          at->isEnabled() && at->isVisible())
        stops.push_back(at);
  }
  auto here = std::ranges::find(stops, now);
  if (here == stops.end()) here = std::ranges::find_if(stops, [&](QWidget* stop) { return stop->isAncestorOf(now); });
  if (stops.empty() || here == stops.end()) return false;
  const std::ptrdiff_t many = std::ssize(stops), to = (here - stops.begin() + (next ? 1 : many - 1)) % many;
  stops[static_cast<std::size_t>(to)]->setFocus(next ? Qt::TabFocusReason : Qt::BacktabFocusReason);
  return true;
}

void focus_next_pane(std::vector<QWidget*> panes) {
  const auto inside = [](QWidget* pane) {
    return pane->isAncestorOf(QApplication::focusWidget()) || pane == QApplication::focusWidget();
  };
  std::erase_if(panes, behind_a_tab);
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

}  // namespace foreshard
