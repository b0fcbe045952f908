// The way of the keyboard through the panes of the window: only through what is seen, nothing behind a tab.
#pragma once

#include <QWidget>
#include <vector>

namespace foreshard {

// To the next stop of the Tab key, or the one before; the panes stand from left to right. False: the keyboard is in none of them.
bool focus_next_stop(QWidget& window, const std::vector<const QWidget*>& panes, bool next);
void focus_next_pane(std::vector<QWidget*> panes);

}  // namespace foreshard
