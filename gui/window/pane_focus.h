// Moves the keyboard focus through the panes of the window. Only visible widgets get it, none behind a tab.
#pragma once

#include <QWidget>
#include <vector>

namespace foreshard {

// Moves the focus to the next (or previous) widget in Tab order. `panes`: from left to right. False: the focus is in none of them.
bool focus_next_stop(QWidget& window, const std::vector<const QWidget*>& panes, bool next);
// Moves the focus to the next pane, after the last to the first.
void focus_next_pane(std::vector<QWidget*> panes);

}  // namespace foreshard
