// What a person does with keys and mouse, in the real window. Runs on the offscreen platform and, by scripts/gui_on_x.sh, under
// an X server with a window manager.
#include <gtest/gtest.h>

#include <QApplication>
#include <QComboBox>
#include <QKeySequenceEdit>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QMenu>
#include <QPushButton>
#include <QSpinBox>
#include <QTabWidget>
#include <QTableView>
#include <QTableWidget>
#include <QTest>
#include <QTextBrowser>
#include <algorithm>
#include <cmath>
#include <set>

#include "core/json/json.h"
#include "core/strategy/strategy.h"
#include "gui/compare/compare_view.h"
#include "gui/compare/policy_view.h"
#include "gui/document/twin.h"
#include "gui/inspector/table_page.h"
#include "gui/inspector/tables.h"
#include "gui/memory/memory_view.h"
#include "gui/run/loss_curve.h"
#include "gui/run/run_panel.h"
#include "gui/search/search_panel.h"
#include "gui/strategy/option_field.h"
#include "gui/strategy/strategy_panel.h"
#include "gui/timeline/timeline_view.h"
#include "gui/window/help_overlay.h"
#include "gui/window/key_dialog.h"
#include "gui/window/palette_box.h"
#include "gui/window/tour.h"
#include "report/words/devices.h"
#include "tests/gui/fake_program.h"
#include "tests/gui/open_window.h"

namespace foreshard::interaction_test {
namespace {

class Interaction : public OpenWindow {};

TEST_F(Interaction, AKeyOfAViewIsTheOneThatWasSetNotTheOneItHad) {
  MainWindow& w = open();
  TimelineView* lanes = w.timeline();
  const auto zoomed = [&] { return w.axis().visible() != w.axis().extent(); };
  press(lanes, Qt::Key_W);  // by its place, whatever the menus say
  ASSERT_TRUE(zoomed());
  press(lanes, Qt::Key_0);
  EXPECT_FALSE(zoomed());
  w.keys().rebind("go.fit", QKeySequence("X"));
  press(lanes, Qt::Key_W);
  press(lanes, Qt::Key_0);
  EXPECT_TRUE(zoomed());
  press(lanes, Qt::Key_X);
  EXPECT_FALSE(zoomed());
  w.keys().rebind("go.worst_bubble", QKeySequence("B"));
  press(lanes, Qt::Key_B);
  EXPECT_EQ(w.selection().picked().kind, PickedKind::Bubble);
  ASSERT_TRUE(settled());
  MainWindow again({.program = {}, .settings = folder.filePath("s.ini"), .tour = false});  // keys are kept
  EXPECT_EQ(again.keys().action("go.fit")->shortcut(), QKeySequence("X"));
}

TEST_F(Interaction, TheKeyboardDialogTakesKeysFromTheirHolder) {
  MainWindow& w = open();
  KeyDialog dialog(w.keys(), &w);
  dialog.show();
  auto* table = dialog.findChild<QTableWidget*>();
  auto* edit = dialog.findChild<QKeySequenceEdit*>();
  int row = -1;
  for (std::size_t i = 0; i < w.keys().entries().size(); ++i)
    if (w.keys().entries()[i].name == "help.tour") row = static_cast<int>(i);
  ASSERT_GE(row, 0);
  table->setCurrentCell(row, 0);
  edit->setKeySequence(QKeySequence("Ctrl+K"));
  bool warned = false;
  for (QLabel* label : dialog.findChildren<QLabel*>()) warned |= label->text().contains("Command palette");
  EXPECT_TRUE(warned);
  for (QPushButton* button : dialog.findChildren<QPushButton*>())
    if (button->text() == "Set") QTest::mouseClick(button, Qt::LeftButton);
  EXPECT_EQ(w.keys().action("help.tour")->shortcut(), QKeySequence("Ctrl+K"));
  EXPECT_TRUE(w.keys().action("edit.palette")->shortcut().isEmpty());
  w.keys().reset();
}

TEST_F(Interaction, F6GoesRoundTheWindowAndF11FillsTheScreen) {
  MainWindow& w = open();
  std::set<QWidget*> visited;
  for (int i = 0; i < 3; ++i) {
    QTest::keyClick(&w, Qt::Key_F6);
    ASSERT_NE(QApplication::focusWidget(), nullptr);
    EXPECT_TRUE(w.isAncestorOf(QApplication::focusWidget()));
    visited.insert(QApplication::focusWidget());
  }
  EXPECT_EQ(visited.size(), 3u);  // strategy, the page, the inspector
  QWidget* const third = QApplication::focusWidget();
  for (int i = 0; i < 3; ++i) QTest::keyClick(&w, Qt::Key_F6);
  EXPECT_EQ(QApplication::focusWidget(), third)
      << QApplication::focusWidget()->metaObject()->className() << " " << third->metaObject()->className();
  const QSize before = w.size();
  QTest::keyClick(&w, Qt::Key_F11);
  EXPECT_TRUE(QTest::qWaitFor([&] { return w.isFullScreen() && w.size() != before; }, 5'000));
  QTest::keyClick(&w, Qt::Key_F11);
  EXPECT_TRUE(QTest::qWaitFor([&] { return !w.isFullScreen(); }, 5'000));
}

TEST_F(Interaction, TheTourHasThreeStepsAndEndsAnywhere) {
  MainWindow& w = open();
  w.keys().action("help.tour")->trigger();
  Tour* tour = w.tour();
  EXPECT_TRUE(tour->isVisible());
  const auto buttons = tour->findChildren<QPushButton*>();
  ASSERT_EQ(buttons.size(), 2);
  QPushButton* next = buttons[0]->isDefault() ? buttons[0] : buttons[1];
  for (int step = 0; step < 3; ++step) {
    EXPECT_EQ(tour->step(), step);
    EXPECT_TRUE(w.rect().contains(tour->geometry())) << step;
    QApplication::processEvents();
    QWidget* const part = step == 0 ? static_cast<QWidget*>(w.strategy_panel()) : step == 2 ? w.search_panel() : nullptr;
    if (part != nullptr) {
      EXPECT_FALSE(part->visibleRegion().isEmpty()) << step;
      const QRect there(part->mapTo(&w, QPoint(0, 0)), part->size());
      EXPECT_FALSE(there.intersects(tour->geometry())) << step;
      EXPECT_LT(std::min(std::abs(there.left() - tour->geometry().right()), std::abs(tour->geometry().left() - there.right())),
                60);
    }
    QTest::mouseClick(next, Qt::LeftButton);
  }
  EXPECT_FALSE(tour->isVisible());
  w.keys().action("help.tour")->trigger();
  QTest::keyClick(next, Qt::Key_Escape);
  EXPECT_FALSE(tour->isVisible());
}

TEST_F(Interaction, F1ShowsTheKeysAsTheyAreNow) {
  MainWindow& w = open();
  w.keys().rebind("go.fit", QKeySequence("Ctrl+Alt+Y"));
  bool there = false;
  for (const HelpGroup& group : help_groups(w.keys()))
    for (const auto& [keys, what] : group.rows) there |= keys.contains("Alt+Y");
  EXPECT_TRUE(there);
  QTest::keyClick(&w, Qt::Key_F1);
  EXPECT_TRUE(w.help_overlay()->isVisible());
  EXPECT_EQ(w.help_overlay()->size(), w.size());
  w.resize(w.width() - 60, w.height() - 40);
  EXPECT_TRUE(QTest::qWaitFor([&] { return w.help_overlay()->size() == w.size(); }, 5'000));
  QTest::keyClick(w.help_overlay(), Qt::Key_Escape);
  EXPECT_FALSE(w.help_overlay()->isVisible());
}

double luminance(const QColor& colour) {  // WCAG 2.1
  const auto linear = [](double c) { return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4); };
  return 0.2126 * linear(colour.redF()) + 0.7152 * linear(colour.greenF()) + 0.0722 * linear(colour.blueF());
}

double contrast(const QColor& a, const QColor& b) {
  const double one = luminance(a) + 0.05, other = luminance(b) + 0.05;
  return std::max(one, other) / std::min(one, other);
}

// WCAG asks for 7:1 in its strictest form; the two other themes keep the ordinary 4.5:1.
TEST_F(Interaction, HighContrastIsWhatItSaysOnEveryWidget) {
  MainWindow& w = open();
  const QImage dark = w.grab().toImage();
  for (const auto& [name, least] : {std::pair(ThemeName::HighContrast, 7.0), {ThemeName::Dark, 4.5}, {ThemeName::Light, 4.5}}) {
    w.set_theme(name);
    EXPECT_EQ(w.palette().color(QPalette::Window), theme_of(name).panel);
    for (QWidget* widget : w.findChildren<QWidget*>()) {
      if (!widget->isVisible() || widget->inherits("QProgressBar")) continue;  // not polished yet; says nothing
      const QPalette colours = widget->palette();
      EXPECT_GE(contrast(colours.color(QPalette::WindowText), colours.color(QPalette::Window)), least)
          << widget->metaObject()->className();
      EXPECT_GE(contrast(colours.color(QPalette::Text), colours.color(QPalette::Base)), least)
          << widget->metaObject()->className();
      EXPECT_GE(contrast(colours.color(QPalette::HighlightedText), colours.color(QPalette::Highlight)), 4.5);
    }
    EXPECT_TRUE(name != ThemeName::HighContrast || w.grab().toImage() != dark);
    for (QTextBrowser* page : w.findChildren<QTextBrowser*>())  // what is drawn, which the palette alone does not say
      EXPECT_EQ(page->grab().toImage().pixelColor(page->width() / 2, page->height() - 2), theme_of(name).panel);
  }
}

TEST_F(Interaction, SuchChildrenAsHangAreLeftBehindByTheNextChange) {
  const FakeProgram program("case \"$*\" in *micro_batch=2*|*micro-batch\\ 2*) exec sleep 1000;; esac; exec " FORESHARD_PROGRAM
                            " \"$@\"");
  MainWindow& w = open(program.path());
  const auto shown = w.document();
  Choices hanging = small();
  hanging.strategy["micro_batch"] = "2";
  w.set_choices(hanging, "test");
  QTest::qWait(400);
  EXPECT_TRUE(w.busy());
  w.keys().action("plan.stop")->trigger();
  ASSERT_TRUE(settled());
  EXPECT_EQ(w.document(), shown);
  EXPECT_EQ(w.workspace().choices, hanging);  // what was typed is not lost
  w.set_choices(hanging, "test");
  w.keys().action("plan.simulate")->trigger();
  QTest::qWait(100);
  EXPECT_TRUE(w.busy());
  hanging.strategy["micro_batch"] = "1";
  w.set_choices(hanging, "test");
  ASSERT_TRUE(settled());
  EXPECT_NE(w.document(), shown);
}

// The real search, but it never comes to its end: what is in the table by then has streamed.
TEST_F(Interaction, StrategiesAreThereBeforeTheSearchIsOver) {
  const FakeProgram program("[ \"$1\" = search ] && { " FORESHARD_PROGRAM
                            " \"$@\" > /dev/null; exec sleep 1000; }; exec " FORESHARD_PROGRAM " \"$@\"");
  MainWindow& w = open(program.path());
  SearchPanel* search = w.search_panel();
  search->set_refined(6);
  w.keys().action("plan.search")->trigger();
  EXPECT_TRUE(search->isVisible());
  const auto simulated = [&] {
    return std::ranges::any_of(search->rows().rows(), [](const SearchRow& row) { return row.simulated.has_value(); });
  };
  ASSERT_TRUE(QTest::qWaitFor([&] { return search->rows().rowCount() >= 4 && simulated(); }, 60'000));
  EXPECT_TRUE(search->busy());
  const int found = search->rows().rowCount();
  // A click loads while it still searches; with Ctrl it compares.
  QTableView* table = search->table();
  QTest::mouseClick(table->viewport(), Qt::LeftButton, {}, table->visualRect(table->model()->index(1, 0)).center());
  EXPECT_NE(w.workspace().choices, small());
  search->stop();
  EXPECT_FALSE(search->busy());
  EXPECT_EQ(search->rows().rowCount(), found);  // what was found stays
  ASSERT_TRUE(settled());
  EXPECT_TRUE(w.document());
}

TEST_F(Interaction, RuntimePoliciesAreComparedAndLoaded) {
  MainWindow& w = open();
  w.keys().action("plan.policies")->trigger();
  PolicyView* const policies = w.policies();
  EXPECT_TRUE(policies->isVisible());
  ASSERT_TRUE(QTest::qWaitFor([&] { return policies->rows().rowCount() > 0; }, 60'000));
  const auto& rows = policies->rows().rows();
  EXPECT_EQ(rows.size() + 2, policy_names().size());  // all but "auto" and "none"
  const auto simulated = std::ranges::count_if(rows, [](const PolicyLine& row) { return row.why_not.empty(); });
  EXPECT_EQ(simulated, 8);  // the other six keep parameters until the backward: for one stage
  QTableView* table = policies->table();
  const QString fastest = table->model()->index(0, PolicyRows::Name).data().toString();
  QTest::mouseClick(table->viewport(), Qt::LeftButton, {}, table->visualRect(table->model()->index(0, 0)).center());
  EXPECT_EQ(w.workspace().choices.strategy.at("policy"), fastest.toStdString());
  ASSERT_TRUE(settled());
  EXPECT_NEAR(w.document()->summary.iteration_time.value, rows[static_cast<std::size_t>(policies->rows().fastest())].step.value,
              1e-9);
}

TEST_F(Interaction, TheRunPanelRunsAndTheMeasuredTwinLiesBesideThePrediction) {
  MainWindow& w = open();
  w.keys().action("plan.run")->trigger();
  Q_EMIT w.run_panel()->example_asked();
  ASSERT_TRUE(settled());
  ASSERT_TRUE(why_not_run(w.document()->plan()).isEmpty()) << why_not_run(w.document()->plan()).toStdString();
  w.run_panel()->start();
  EXPECT_TRUE(w.run_panel()->busy());
  ASSERT_TRUE(QTest::qWaitFor([&] { return w.timeline()->twin() != nullptr || !w.message().isEmpty(); }, 120'000));
  ASSERT_TRUE(w.timeline()->twin()) << w.message().toStdString();
  EXPECT_EQ(w.timeline()->twin()->measured->trace().origin, Origin::Measured);
  EXPECT_EQ(w.timeline()->twin()->measured->trace().plan_hash, w.document()->trace().plan_hash);
  // The prediction is for an A100, the run was on this processor: no error is told.
  EXPECT_FALSE(same_device(w.document()->result, w.timeline()->twin()->measured->result));
  for (const auto& cells : w.timeline()->twin()->cells) EXPECT_TRUE(cells.empty());
  bool said = false;
  for (QLabel* label : w.run_panel()->findChildren<QLabel*>()) said |= label->text().contains("not comparable");
  EXPECT_TRUE(said);
  for (QLabel* label : w.compare_view()->findChildren<QLabel*>())
    EXPECT_FALSE(label->text().contains(" %")) << label->text().toStdString();
}

// Ten thousand steps would take minutes: what the curve has while they run came step by step.
TEST_F(Interaction, TheLossCurveGrowsWhileTheRunGoesOn) {
  MainWindow& w = open();
  w.keys().action("plan.run")->trigger();
  Q_EMIT w.run_panel()->example_asked();
  ASSERT_TRUE(settled());
  w.run_panel()->findChild<QSpinBox*>()->setValue(10'000);
  w.run_panel()->start();
  const auto* curve = w.run_panel()->findChild<LossCurve*>();
  ASSERT_TRUE(QTest::qWaitFor([&] { return curve->losses().size() >= 2; }, 60'000));
  EXPECT_TRUE(w.run_panel()->busy());
  const std::size_t before = curve->losses().size();
  ASSERT_TRUE(QTest::qWaitFor([&] { return curve->losses().size() >= before + 3; }, 60'000));
  EXPECT_TRUE(w.run_panel()->busy());
  EXPECT_TRUE(curve->accessibleDescription().contains(QString::number(curve->losses().size())));
  w.run_panel()->stop();
  EXPECT_FALSE(w.run_panel()->busy());
  EXPECT_GE(curve->losses().size(), before + 3);  // what came stays
  EXPECT_EQ(w.run_panel()->findChild<QPushButton*>()->text(), "Run this plan");
}

TEST_F(Interaction, TheBannerLoadsAFileThatChangedOnDisk) {
  MainWindow& w = open();
  const QString file = folder.filePath("r.result");
  save_result(w.document()->result, file.toStdString());
  w.open_file(file);
  ASSERT_TRUE(settled());
  const auto first = w.document();
  save_result(first->result, file.toStdString());  // by a rename, as every writer of ours does
  ASSERT_TRUE(QTest::qWaitFor([&] { return w.message().contains("r.result"); }, 20'000));
  QPushButton* again = nullptr;
  for (QPushButton* button : w.findChildren<QPushButton*>())
    if (button->text() == "Load again") again = button;
  ASSERT_NE(again, nullptr);
  QTest::mouseClick(again, Qt::LeftButton);
  ASSERT_TRUE(settled());
  EXPECT_NE(w.document(), first);
  EXPECT_EQ(w.document()->path, first->path);
}

TEST_F(Interaction, TheTableOfAViewPicksWhatItsRowsAreAbout) {
  MainWindow& w = open();
  press(w.timeline(), Qt::Key_T, Qt::ControlModifier);
  TablePage* page = w.table_page();
  ASSERT_TRUE(page->isVisible());
  EXPECT_EQ(page->kind(), TableKind::Operations);
  ASSERT_TRUE(page->table());
  EXPECT_EQ(page->table()->rowCount(), static_cast<int>(w.document()->trace().spans.size()));
  auto* view = page->findChild<QTableView*>();
  view->setCurrentIndex(view->model()->index(2, 0));
  EXPECT_EQ(w.selection().picked(), (Picked{PickedKind::Span, 2, {}}));
  page->show_kind(TableKind::Bubbles);
  EXPECT_EQ(page->table()->rowCount(), static_cast<int>(w.document()->bubbles.size()));
  w.view("topology");
  QTest::keyClick(&w, Qt::Key_T, Qt::ControlModifier);
  EXPECT_EQ(page->kind(), TableKind::Links);
  EXPECT_EQ(page->table()->rowCount(), static_cast<int>(w.document()->trace().links.size()));
  EXPECT_EQ(w.workspace().page, "table");
  ASSERT_TRUE(settled());
}

TEST_F(Interaction, WhatWasOpenedIsInTheMenuOfRecentFiles) {
  MainWindow& w = open();
  Strategy strategy;
  strategy.tp = 4, strategy.batch.global = 8;
  const QString file = folder.filePath("a.strategy.json");
  write_file(file.toStdString(), to_json(strategy));
  w.open_file(file);
  const Choices opened = w.workspace().choices;
  w.set_choices(small(), "test");
  QMenu* recent = nullptr;
  for (QMenu* menu : w.findChildren<QMenu*>())
    if (menu->title() == "Open &recent") recent = menu;
  ASSERT_NE(recent, nullptr);
  Q_EMIT recent->aboutToShow();
  ASSERT_FALSE(recent->isEmpty());
  EXPECT_TRUE(recent->actions().front()->text().startsWith("a.strategy.json"));
  recent->actions().front()->trigger();
  EXPECT_EQ(w.workspace().choices, opened);
  ASSERT_TRUE(settled());
}

TEST_F(Interaction, ABookmarkOnADigitBringsItsTimeBack) {
  MainWindow& w = open();
  const std::int64_t all = w.axis().extent().length().value;
  w.axis().select(TimeRange{{all / 4}, {all / 2}});
  QTest::keyClick(&w, Qt::Key_3, Qt::ControlModifier);
  ASSERT_EQ(w.workspace().bookmarks.size(), 1u);
  w.axis().select({});
  w.axis().show({{0}, {all / 100}});
  press(w.timeline(), Qt::Key_3);
  EXPECT_LE(w.axis().visible().begin.value, all / 4);
  EXPECT_GE(w.axis().visible().end.value, all / 2);
}

// By the end of the name, as --export takes it.
TEST_F(Interaction, FilesOfEveryKindAreExportedByTheirName) {
  EXPECT_EQ(export_kind("a.pdf"), ExportKind::Pdf);
  EXPECT_EQ(export_kind("A.HTML"), ExportKind::Html);
  EXPECT_EQ(export_kind("x/stages.csv"), ExportKind::StagesCsv);
  EXPECT_EQ(export_kind("x/spans.csv"), ExportKind::SpansCsv);
  EXPECT_FALSE(export_kind("a.doc"));
  MainWindow& w = open();
  const QString file = folder.filePath("a.pdf");
  w.export_to(*export_kind(file), file);
  EXPECT_EQ(read_file(file.toStdString()).substr(0, 4), "%PDF");
}

TEST_F(Interaction, WhatIsPickedIsToldToScreenReaders) {
  MainWindow& w = open();
  const QString before = w.timeline()->accessibleDescription();
  EXPECT_FALSE(before.isEmpty());
  press(w.timeline(), Qt::Key_N);
  EXPECT_TRUE(w.timeline()->accessibleDescription().startsWith("idle ")) << w.timeline()->accessibleDescription().toStdString();
  ASSERT_TRUE(settled());
}

TEST_F(Interaction, ThePaletteSetsAnOptionAndTheTimelineTakesItsKeysBack) {
  MainWindow& w = open();
  QTest::keyClick(&w, Qt::Key_K, Qt::ControlModifier);
  ASSERT_TRUE(w.palette_box()->isVisible());
  QTest::keyClicks(w.palette_box()->line(), "high contrast");
  EXPECT_EQ(w.palette_box()->findChild<QListWidget*>()->item(0)->text(), "Theme > High contrast");
  QTest::keyClick(w.palette_box()->line(), Qt::Key_Return);
  EXPECT_FALSE(w.palette_box()->isVisible()) << w.palette_box()->findChild<QListWidget*>()->item(0)->text().toStdString();
  EXPECT_TRUE(
      QTest::qWaitFor([&] { return w.palette().color(QPalette::Window) == theme_of(ThemeName::HighContrast).panel; }, 5'000));
  QTest::keyClick(&w, Qt::Key_K, Qt::ControlModifier);
  QTest::keyClicks(w.palette_box()->line(), "set micro batch");
  QTest::keyClick(w.palette_box()->line(), Qt::Key_Return);
  QWidget* const focus = QApplication::focusWidget();
  ASSERT_NE(focus, nullptr);
  EXPECT_TRUE(w.strategy_panel()->field("micro_batch")->isAncestorOf(focus));
}

}  // namespace
}  // namespace foreshard::interaction_test
