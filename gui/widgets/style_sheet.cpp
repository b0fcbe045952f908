#include "gui/widgets/style_sheet.h"

namespace foreshard {

// @name stands for a colour of the theme.
static const char* const kSheet = R"(
QLabel#faint, QLabel#kpi_name, QLabel#kpi_aside { color: @faint; }
QLabel#kpi_name, QLabel#kpi_aside { font-size: 8.5pt; }
QLabel#kpi_value { font-size: 13.5pt; font-weight: 600; }
QWidget#kpi { background: @raised; border-radius: 5px; }
QLabel#kpi_aside[wrong="true"], QLabel#option_name[wrong="true"], QLabel#reason, QLabel#refusal, QLabel#estimate[wrong="true"] { color: @limit; }
QLabel#estimate { color: @accent; }
QLabel#reason { font-size: 8.5pt; }
QToolButton#group_title { border: none; font-weight: 600; padding: 3px 0; text-align: left; }
QToolButton#group_title:hover, QToolButton#group_title:focus { color: @accent; }
QFrame#palette_box { background: @raised; border: 1px solid @accent; border-radius: 6px; }
QFrame#tour_card { background: @raised; border: 1px solid @accent; border-radius: 8px; }
QFrame#freshness_chip { background: @raised; border: 1px solid @accent; border-radius: 6px; }
QFrame#banner { background: @raised; border-left: 4px solid @limit; }
QDockWidget::title { background: @panel; padding: 6px 10px; }
QDockWidget { font-weight: 600; }
QTabBar { qproperty-drawBase: 0; }
QTabBar::tab { padding: 6px 12px; background: @panel; color: @faint; border: none; border-bottom: 2px solid transparent; }
QTabBar::tab:selected { color: @text; border-bottom: 2px solid @accent; }
QTabBar::tab:hover { color: @text; }
QTabWidget::pane { border: none; }
QMainWindow::separator { background: @rule; width: 1px; height: 1px; }
QSplitter::handle { background: @rule; }
QHeaderView::section { background: @panel; color: @faint; border: none; border-bottom: 1px solid @rule; padding: 7px 8px 4px 8px; }
QHeaderView::up-arrow, QHeaderView::down-arrow { subcontrol-origin: margin; subcontrol-position: top center; width: 11px; height: 8px; top: 1px; }
QTextBrowser { background: @panel; color: @text; border: none; }
QTableView, QListWidget, QPlainTextEdit { border: 1px solid @rule; }
QToolTip { background: @raised; color: @text; border: 1px solid @rule; padding: 4px; }
QProgressBar { background: @rule; border: none; border-radius: 3px; }
QProgressBar::chunk { background: @accent; border-radius: 3px; }
QMenu { background: @raised; color: @text; border: 1px solid @rule; }
QMenu::item { padding: 5px 24px 5px 20px; }
QMenu::item:selected { background: @accent; color: @on_accent; }
QMenu::separator { height: 1px; background: @rule; margin: 4px 0; }
QToolBar { background: @panel; border: none; border-bottom: 1px solid @rule; spacing: 4px; padding: 3px 6px; }
QStatusBar { background: @panel; border-top: 1px solid @rule; }
QStatusBar::item { border: none; }
)";

QString style_sheet(const Theme& theme) {
  QString text = QString::fromUtf8(kSheet);
  const std::pair<const char*, QColor> colours[] = {{"@on_accent", theme.label_on(theme.accent)},
                                                    {"@faint", theme.faint},
                                                    {"@raised", theme.raised},
                                                    {"@limit", theme.limit},
                                                    {"@accent", theme.accent},
                                                    {"@panel", theme.panel},
                                                    {"@rule", theme.rule},
                                                    {"@text", theme.text}};
  for (const auto& [name, colour] : colours) text.replace(QLatin1String(name), colour.name());
  return text;
}

}  // namespace foreshard
